//! The arguments of `nfskit cache`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use harness::values::{count, size};

#[derive(Debug, Subcommand)]
pub(crate) enum Cache {
    Status(Status),
    Why(Why),
    Warm(Warm),
    Pin(Pin),
    Unpin(Unpin),
    Invalidate(Invalidate),
    Clean(Clean),
    Verify(Verify),
}

/// Says what lies in a cache, and how often it was read. A mount may be using it.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache status /var/cache/nfskit
  nfskit cache status /var/cache/nfskit --files 20     the files that were read and missed most")]
pub(crate) struct Status {
    /// The cache's directory, as given to --cache.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Lists so many files, those first that have saved most bytes.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count(0..=u32::MAX))]
    pub(crate) files: u32,
}

/// Says why a file is read from the cache or is not. A mount may be using it.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache why /var/cache/nfskit /mnt/data/table.db")]
pub(crate) struct Why {
    /// The cache's directory.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// A file, where it is mounted.
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
}

/// Reads files through their mount, so that its cache has them. Of a directory, all files below it.
/// Exit code 3: one could not be read, or is not in the cache as a whole afterwards.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache warm /mnt/data/models /mnt/data/table.db")]
pub(crate) struct Warm {
    /// Files and directories, where they are mounted.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Keeps blocks of these files when the cache is cleaned. A mount that is using the cache notices
/// it within a second. Exit code 3: nothing is stored of one of them; the others are pinned.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache pin /var/cache/nfskit /mnt/data/table.db")]
pub(crate) struct Pin {
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Files, where they are mounted. What is not stored yet cannot be pinned: warm it before.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
}

/// Lets pinned files go again when the cache is cleaned, whether something is stored of them now
/// or not.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache unpin /var/cache/nfskit /mnt/data/table.db
  nfskit cache unpin /var/cache/nfskit                       all of them")]
pub(crate) struct Unpin {
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Files, where they are mounted; without any all, also those that the server has no more.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Drops what is stored of files, or of all. A mount that has the cache does it within a second.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache invalidate /var/cache/nfskit /mnt/data/table.db
  nfskit cache invalidate /var/cache/nfskit                       all of it")]
pub(crate) struct Invalidate {
    /// The cache's directory.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Files, where they are mounted; all that is stored without any.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Drops what is least wanted, until no more than this is stored of each export; pinned files stay.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache clean /var/cache/nfskit --to 10G")]
pub(crate) struct Clean {
    /// The cache's directory.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Bytes to leave for each export.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) to: u64,
}

/// Reads all that is stored and compares checksums. Exit code 1: blocks are damaged; a read of them
/// fetches them anew. A mount may be using the cache.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit cache verify /var/cache/nfskit && echo whole")]
pub(crate) struct Verify {
    /// The cache's directory.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
