//! Why a measurement did not come about.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] client::error::Error),
    #[error("a generator of load ended before its run did")]
    Ended,
    #[error(transparent)]
    Floor(#[from] net::floor::error::FloorError),
    #[error("{path} has {found} bytes, and not {expected}")]
    Length { path: PathBuf, found: u64, expected: u64 },
    #[error("{doing} in {path}: {cause}")]
    Local { doing: &'static str, path: PathBuf, cause: io::Error },
    #[error(
        "no room: {need_files} files with {need_bytes} bytes are needed, there is room for \
         {free_files} with {free_bytes}"
    )]
    NoRoom { need_bytes: u64, free_bytes: u64, need_files: u64, free_files: u64 },
    #[error("no timer: {0}")]
    Timer(io::Error),
    #[error("too few answers to compute {what}")]
    TooFew { what: &'static str },
    #[error("the server answers a WRITE of {bytes} bytes with a count of 0")]
    WroteNothing { bytes: u64 },
}
