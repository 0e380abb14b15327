//! The arguments of `nfskit log`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    Inspect(Inspect),
    Verify(Verify),
    Drain(Drain),
}

/// Says what a log holds. No server may have it.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log inspect /var/lib/nfskit/data.wal")]
pub(crate) struct Inspect {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Reads all of a log that a recovery would read. Exit code 1 says that it is damaged.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log verify /var/lib/nfskit/data.wal && echo whole")]
pub(crate) struct Verify {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Brings what a log holds to its place, as the next start of its server would, and ends it: the
/// directory can be served without it then, and the log be removed.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log drain /var/lib/nfskit/data.wal /srv/data")]
pub(crate) struct Drain {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The directory that was served with it.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}
