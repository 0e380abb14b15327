//! A file system exercised at random, every byte verified: reads, writes, appends, truncations up
//! and down, memory mappings, fsync, close and reopen, renames, in an order that a seed decides.
//!
//! The file is compared with a copy in memory that is plainly right. The seed alone decides the
//! operations, never the time or what the file system answers, so that a run can be made again.
//!
//! One thread works on one file. The first difference, or error, ends the run; the file is left
//! for a look, and [`Failed`] says how to see it again.

mod exercise;
mod mapped;
mod model;
mod operation;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use net::clock::Clock;
use perf::units::Instant;

use crate::error::Error;

/// Longest file: its copy is in memory.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// What to do, and for how long.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Options {
    pub seed: u64,
    /// Operations at most.
    pub operations_max: u64,
    /// When to end, at the latest.
    pub until: Option<Instant>,
    /// Longest that the file may become; above zero, at most [`FILE_BYTES_MAX`].
    pub file_bytes_max: u64,
    /// Most bytes of one operation; above zero.
    pub call_bytes_max: u32,
    /// Reads and writes through memory mappings, too.
    pub mapped: bool,
}

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    pub operations: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// Why a run ended early.
#[derive(Debug)]
pub struct Failed {
    pub what: Fault,
    /// Number of the operation that found it, counted from one: as many show it again.
    pub operation: u64,
    pub seed: u64,
    /// The newest operations, oldest first.
    pub log: Vec<String>,
    /// The newest operation before that wrote at the place of the difference.
    pub last_writer: Option<String>,
    pub file: PathBuf,
}

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

/// Exercises a new file called after `name` in `dir`, until the options or `stop` end it. Blocks.
///
/// # Errors
/// The file cannot be made. What goes wrong later is the inner error.
pub fn run(
    clock: &Clock,
    dir: &Path,
    name: &str,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Result<Tally, Box<Failed>>, Error> {
    exercise::run(clock, dir, name, options, stop)
}
