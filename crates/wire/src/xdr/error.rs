//! Why bytes are not the message they should be.

use thiserror::Error;

/// What is wrong, where, and in which field (the innermost one, named as in the RFC).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("{field} at byte {at}: {kind}")]
pub struct DecodeError {
    /// Offset from the start of the message.
    pub at: usize,
    /// Name of the field that could not be read.
    pub field: &'static str,
    pub kind: DecodeErrorKind,
}

#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum DecodeErrorKind {
    #[error("{value} is not a boolean")]
    BadBool { value: u32 },
    #[error("{value} is not one of the listed values")]
    BadEnum { value: u32 },
    #[error("{got} bytes, at most {max} are allowed")]
    TooLong { max: usize, got: usize },
    #[error("{got} elements, at most {max} are allowed")]
    TooMany { max: usize, got: usize },
    #[error("{have} bytes after the end of the message")]
    Trailing { have: usize },
    #[error("needs {need} bytes, {have} are left")]
    Truncated { need: usize, have: usize },
}

impl DecodeErrorKind {
    /// The error at offset `at`, in a field that is named on the way out.
    pub const fn at(self, at: usize) -> DecodeError {
        DecodeError { at, field: "", kind: self }
    }
}

impl DecodeError {
    /// Names the field, unless an inner one has been named already.
    #[must_use]
    pub fn in_field(self, field: &'static str) -> Self {
        match self.field {
            "" => Self { field, ..self },
            _ => self,
        }
    }
}
