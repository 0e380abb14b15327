//! What was wrong.

use std::fmt;

/// What was wrong.
#[derive(Debug)]
pub enum Fault {
    Content {
        offset: u64,
        expected: Vec<u8>,
        got: Vec<u8>,
        /// Bytes that differ in what was read, and how many were read.
        wrong: u64,
        read: u64,
    },
    /// Fewer bytes than the file has there.
    Short {
        offset: u64,
        expected: u64,
        got: u64,
    },
    Size {
        expected: u64,
        got: u64,
    },
    System {
        cause: std::io::Error,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Content { offset, expected, got, wrong, read } => write!(
                f,
                "wrong content from offset {offset} ({offset:#x}): expected {expected:02x?}, got \
                 {got:02x?}; {wrong} of {read} bytes differ"
            ),
            Self::Short { offset, expected, got } => {
                write!(f, "a read of {expected} bytes at offset {offset} gave {got}")
            }
            Self::Size { expected, got } => {
                write!(f, "the size is {got}, and should be {expected}")
            }
            Self::System { cause } => write!(f, "failed: {cause}"),
        }
    }
}
