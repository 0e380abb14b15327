//! What a file is opened for, and what was not done.

use std::fmt;

use client::error::Error;
use wire::nfs3::NfsStat3;

use crate::sim::failure::Failure;

/// What a file is opened for, besides reading.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Write,
    Append,
}

/// What was requested was not done.
#[derive(Debug)]
pub(super) struct Refused {
    /// None: that should never happen.
    pub(super) status: Option<NfsStat3>,
    text: String,
}

impl Refused {
    pub(super) fn new(status: Option<NfsStat3>, text: String) -> Self {
        Self { status, text }
    }

    /// # Errors
    /// It is none that a file system has for a program.
    pub(super) fn status(&self) -> Result<NfsStat3, Failure> {
        self.status.ok_or_else(|| Failure::new("no reply", self.text.clone()))
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { status: error.status(), text: error.to_string() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
