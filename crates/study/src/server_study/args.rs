//! The arguments of `nfskit study`.

use std::path::PathBuf;

use clap::Parser;
use client::url::Target;
use harness::values::{target, time};
use net::shape::profile::Profile;
use perf::units::Nanos;

/// Measures an NFS path, explains it, predicts a change, applies it, and reports.
///
/// Without --target it starts a server of its own on a temporary directory, behind an emulated
/// link.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit study                                    an embedded server behind a gigabit link
  nfskit study --link wan-10ms --quick            5 ms away, 100 Mbit/s, in half a minute
  nfskit study --target nfs://server/export       an existing NFS v3 server
  nfskit study --store /srv/data --write-log /mnt/nvme/log
  nfskit study --dir /mnt/data                    through a mount, of whatever file system")]
pub struct Study {
    /// An existing NFS v3 server instead of the embedded one. A scratch directory is made there
    /// and removed again.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// A mounted directory instead of a server, of whatever file system: what its programs get, and
    /// what the kernel's client of NFS counts meanwhile. A scratch directory is made there and
    /// removed again.
    #[arg(
        long, value_name = "DIR", conflicts_with_all = ["target", "link", "store", "reply_limit"]
    )]
    pub(crate) dir: Option<PathBuf>,
    /// The emulated link between client and server [default: lan-1g; with --target: none].
    #[arg(long, value_name = "PROFILE")]
    pub(crate) link: Option<Profile>,
    /// Where the embedded server keeps its files [default: a temporary directory].
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub(crate) store: Option<PathBuf>,
    /// Also measures stable WRITEs without a write log and with this one, of embedded servers on
    /// the same disk; new, and removed afterwards; for root.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "dir"])]
    pub(crate) write_log: Option<PathBuf>,
    /// How long a call may wait for its reply before the study gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Measures less: under 20 seconds; half a minute over wan-10ms.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Where report.html, run.json and calls.csv go.
    #[arg(long, value_name = "DIR", default_value = "nfskit-study")]
    pub(crate) out: PathBuf,
    /// Writes the run record to FILE too, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
