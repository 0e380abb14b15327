//! The arguments of `nfskit log`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    Inspect(Inspect),
    Verify(Verify),
    Replay(Replay),
    Drain(Drain),
    Status(Status),
}

/// Says what a log holds. No server may have it. Of several logs of a directory, all are to be
/// given.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log inspect /var/lib/nfskit/data.wal
  nfskit log inspect /dev/sdb1 /dev/sdc1")]
pub(crate) struct Inspect {
    #[arg(value_name = "FILE|DEVICE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Reads all of a log that a recovery would read. Exit code 1 says that it is damaged.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log verify /var/lib/nfskit/data.wal && echo whole")]
pub(crate) struct Verify {
    #[arg(value_name = "FILE|DEVICE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Brings what a log holds to its place, as the next start of its server would, for which it stays.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log replay /var/lib/nfskit/data.wal /srv/data
  nfskit log replay --salvage /var/lib/nfskit/data.wal /srv/data   # it is damaged")]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Says what a proxy's log (serve nfs://... --write-back) has on its way to the origin, and which
/// conflicts there were. The proxy may run.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log status /var/lib/nfskit/filer.wal")]
pub(crate) struct Status {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Brings what a log holds to its place, and ends it: the directory can be served without it then,
/// and the log be removed. Of a proxy's log, all is brought to its origin.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log drain /var/lib/nfskit/data.wal /srv/data
  nfskit log drain /var/lib/nfskit/filer.wal nfs://filer/export   # of a proxy that has ended
  nfskit log drain /dev/sdb1 /dev/sdc1 /srv/data")]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The logs of a directory, and what they are for.
#[derive(Debug, Parser)]
pub(crate) struct Place {
    #[arg(value_name = "FILE|DEVICE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The directory that was served with it; the origin of a proxy.
    #[arg(value_name = "DIR|URL")]
    pub(crate) dir: PathBuf,
    /// Of a damaged log, brings what is whole to its place and gives up the rest. Keep a copy of
    /// the log before. A file that was truncated or committed after a stable write may get the
    /// write's bytes again, if the note of that is what was lost.
    #[arg(long)]
    pub(crate) salvage: bool,
}
