//! A file system exercised at random, every byte verified: reads, writes, appends, truncations up
//! and down, memory mappings, fsync, close and reopen, renames, in an order that a seed decides.
//!
//! The file is compared with a copy in memory that is plainly right. The seed alone decides the
//! operations, never the time or what the file system answers, so that a run can be made again.
//!
//! One thread works on one file. The first difference, or error, ends the run; the file is left
//! for a look, and [`Failed`] says how to see it again.

mod exercise;
mod fault;
mod mapped;
mod model;
mod operation;
mod options;

use std::path::PathBuf;

pub use self::exercise::run;
pub use self::fault::Fault;
pub use self::options::{FILE_BYTES_MAX, Options};

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
