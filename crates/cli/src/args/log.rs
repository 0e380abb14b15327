//! The arguments of `nfskit log`.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use harness::exit::Failure;
use harness::values::time;
use perf::units::Nanos;

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    Inspect(Inspect),
    Verify(Verify),
    Replay(Replay),
    Drain(Drain),
    Status(Status),
}

/// Says what a log holds. No server may be using it. Give all logs of a directory that has several.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log inspect /var/lib/nfskit/data.wal
  nfskit log inspect /dev/sdb1 /dev/sdc1")]
pub(crate) struct Inspect {
    /// A write log; of a directory that has several, all.
    #[arg(value_name = "FILE|DEVICE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Reads all of a log that a recovery would read. Exit code 1 says that it is damaged.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log verify /var/lib/nfskit/data.wal && echo whole")]
pub(crate) struct Verify {
    /// A write log; of a directory that has several, all.
    #[arg(value_name = "FILE|DEVICE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

/// Writes what a log holds to its place, as the next start of its server would; the log stays.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log replay /var/lib/nfskit/data.wal /srv/data
  nfskit log replay --salvage /var/lib/nfskit/data.wal /srv/data   # it is damaged")]
#[command(override_usage = "nfskit log replay [OPTIONS] <FILE|DEVICE>... <DIR>")]
pub(crate) struct Replay {
    /// All logs of a directory, and behind them the directory.
    #[arg(value_name = "FILE|DEVICE|DIR", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) damaged: Damaged,
}

impl Replay {
    /// The logs, and the directory.
    ///
    /// # Errors
    /// Only one was given, with no directory behind it.
    pub(crate) fn place(&self) -> Result<(&[PathBuf], &Path), Failure> {
        split(&self.paths, |log| {
            let what = format!("{log}, and no directory that it is of");
            Failure::usage(what, format!("{log} DIR"))
        })
    }
}

/// Says what a proxy's log (serve nfs://... --write-back) has on its way to the origin, and which
/// conflicts there were. The proxy may run.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log status /var/lib/nfskit/filer.wal")]
pub(crate) struct Status {
    /// The log of a proxy.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Writes what a log holds to its place, and retires it: the directory can be served without it
/// then, and the log be removed. Of a proxy's log, all is brought to its origin.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit log drain /var/lib/nfskit/data.wal /srv/data
  nfskit log drain /var/lib/nfskit/filer.wal nfs://filer/export   # of a proxy that has ended
  nfskit log drain --for 60s /var/lib/nfskit/filer.wal nfs://filer/export
  nfskit log drain /dev/sdb1 /dev/sdc1 /srv/data")]
#[command(override_usage = "nfskit log drain [OPTIONS] <FILE|DEVICE>... <DIR|URL>")]
pub(crate) struct Drain {
    /// All logs, and behind them the directory that was served with them; of a proxy, its log and
    /// its origin.
    // One list: of a single word clap would say that what is missing is the log.
    #[arg(value_name = "FILE|DEVICE|DIR|URL", required = true)]
    paths: Vec<PathBuf>,
    /// Of a proxy's log: ends after this time, whatever the origin has not taken by then; the log
    /// keeps it. Without it, an origin that is full or does not answer is waited for.
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) limit: Option<Nanos>,
    #[command(flatten)]
    pub(crate) damaged: Damaged,
}

impl Drain {
    /// The logs, and the directory or URL.
    ///
    /// # Errors
    /// Only one was given, with no directory or URL behind it.
    pub(crate) fn place(&self) -> Result<(&[PathBuf], &Path), Failure> {
        split(&self.paths, |log| {
            let what = format!("{log}, and no directory or origin that it is of");
            Failure::usage(what, format!("{log} DIR, or {log} nfs://HOST/EXPORT"))
        })
    }
}

/// What becomes of a damaged log.
#[derive(Debug, Parser)]
pub(crate) struct Damaged {
    /// Of a damaged log, brings what is whole to its place and gives up the rest. Keep a copy of
    /// the log before. A file that was truncated or committed after a stable write may get the
    /// write's bytes again, if the note of that is what was lost. Exit code 1 says that something
    /// was lost.
    #[arg(long)]
    pub(crate) salvage: bool,
}

/// The logs, and what stands behind them; `alone`: nothing does.
fn split(
    paths: &[PathBuf],
    alone: impl FnOnce(&str) -> Failure,
) -> Result<(&[PathBuf], &Path), Failure> {
    match paths {
        [files @ .., of] if !files.is_empty() => Ok((files, of)),
        given => {
            let log = given.first().map(|log| log.display().to_string()).unwrap_or_default();
            Err(alone(&log))
        }
    }
}
