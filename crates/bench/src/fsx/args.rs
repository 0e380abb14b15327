//! The arguments of `nfskit bench fsx`.

use std::path::PathBuf;

use clap::Parser;
use harness::values::{count, size, time, whole};
use perf::units::Nanos;

/// Reads, writes, truncates, maps and renames a file at random, and verifies every byte.
///
/// A seed decides the operations; a failure ends with the command that repeats it. Exit
/// code 1: the file system gave something else than was written.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench fsx --dir /mnt/nfs --time 600s
  nfskit bench fsx --dir /mnt/nfs --seed 7 --ops 12345      the same again
  nfskit bench fsx --dir /mnt/nfs --files 4 --size 4M")]
pub struct Fsx {
    /// The directory to work in, on any file system.
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: PathBuf,
    /// What decides the operations [default: the time].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// When to end.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "ops")]
    #[arg(default_value = "60s")]
    pub(crate) time: Nanos,
    /// Operations in each file, however long they take.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub(crate) ops: Option<u64>,
    /// Longest that a file may become.
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = size)]
    pub(crate) size: u64,
    /// Most bytes of one operation.
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub(crate) call: u64,
    /// Files that are worked on at once, each with a thread and a seed of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=256))]
    pub(crate) files: u32,
    /// No memory mappings, for file systems that have none.
    #[arg(long)]
    pub(crate) no_mmap: bool,
}
