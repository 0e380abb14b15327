//! Why a test did not come to its end, or not to the right one.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Failed {
    /// The system refused something.
    #[error("{doing} {path}: {cause}")]
    System { doing: &'static str, path: PathBuf, cause: io::Error },
    /// The file system gave something else than was put there.
    #[error("{path}: {what}")]
    Wrong { path: PathBuf, what: String },
    /// A program of the system's did not do its work.
    #[error("{program} failed in {path}: {output}")]
    Program { program: &'static str, path: PathBuf, output: String },
    /// The caller wanted no more.
    #[error("stopped")]
    Stopped,
}

impl Failed {
    pub(super) fn at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |cause| Self::System { doing, path, cause }
    }

    pub(super) fn wrong(path: &Path, what: impl Into<String>) -> Self {
        Self::Wrong { path: path.to_owned(), what: what.into() }
    }
}

/// Compares byte by byte, and tells the first difference.
pub(super) fn same(path: &Path, got: &[u8], expected: &[u8]) -> Result<(), Failed> {
    if got == expected {
        return Ok(());
    }
    let at = got.iter().zip(expected).position(|(got, expected)| got != expected);
    Err(Failed::wrong(
        path,
        match at {
            Some(at) => {
                format!("byte {at} is {:#04x}, and not {:#04x}", got[at], expected[at])
            }
            None => format!("{} bytes, and not {}", got.len(), expected.len()),
        },
    ))
}
