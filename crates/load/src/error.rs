//! Why a measurement did not come about.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] client::error::Error),
    #[error(transparent)]
    Floor(#[from] net::floor::error::FloorError),
    #[error("{path} has {found} bytes, and not {expected}")]
    Length { path: PathBuf, found: u64, expected: u64 },
    #[error("{doing} in {path}: {cause}")]
    Local { doing: &'static str, path: PathBuf, cause: io::Error },
    #[error("no timer: {0}")]
    Timer(io::Error),
    #[error("too few answers to compute {what}")]
    TooFew { what: &'static str },
}
