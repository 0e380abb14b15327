//! The arguments of `nfskit doctor`.

use std::path::PathBuf;

use clap::Parser;
use harness::values::time;
use perf::units::Nanos;

/// Says why a mount is slow: what costs the time, how sure that is, and what to change.
///
/// Reads what this host's kernel counts, twice, and applies rules to it; no server is contacted, so
/// a mount that hangs does not hold it up. Exit code 1 says that a finding is of high severity.
///
/// With a server it calls that instead: the phases of a mount one by one, each with its time
/// and, where it fails, the likely causes. Every step has a limit.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit doctor                                   every NFS mount of this host
  nfskit doctor /mnt/data --for 60s               one, over a minute
  nfskit doctor server:/export --write            the phases of a mount, without mounting
  nfskit doctor server                            the same up to the list of its exports
  nfskit doctor --from saved/                     a copied /proc, or a folder of pasted outputs
  ssh host cat /proc/self/mountstats | nfskit doctor --from -
  nfskit doctor --collect host.tar.gz --mask-addresses
  nfskit doctor --from host.tar.gz --json - -q")]
pub(crate) struct Doctor {
    /// A mount point, or a path below one that begins with / or . [default: all mounts]; or a
    /// server to ask: HOST, HOST:/EXPORT or nfs://HOST/EXPORT. With --from, HOST chooses mounts.
    #[arg(value_name = "MOUNTPOINT|HOST|HOST:/EXPORT|URL")]
    pub(crate) subject: Option<String>,
    /// With a server: makes a scratch directory there, writes, and removes it.
    #[arg(long, conflicts_with_all = ["from", "collect"])]
    pub(crate) write: bool,
    /// With a server: `nfskit probe --quick` of it, when all phases are well. It writes, too.
    #[arg(long, conflicts_with_all = ["from", "collect"])]
    pub(crate) probe: bool,
    /// With a server: how long each step may take [default: 3s].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) limit: Option<Nanos>,
    /// Saved evidence instead of this host: what --collect has made, a sosreport, a folder with a
    /// copied /proc, with outputs or captures, or one such file (`-` is standard input).
    #[arg(long, value_name = "PATH")]
    pub(crate) from: Option<PathBuf>,
    /// Saves both samples of this host's counters, for a colleague: what is in it is listed
    /// first. Paths of mounts and exports are in it; file names and credentials are not.
    #[arg(long, value_name = "FILE.tar.gz", conflicts_with_all = ["from", "subject"])]
    pub(crate) collect: Option<PathBuf>,
    /// With --collect: other addresses and host names in place of the real ones.
    #[arg(long, requires = "collect")]
    pub(crate) mask_addresses: bool,
    /// Time between the two samples of the counters [default: 10s].
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "from")]
    pub(crate) span: Option<Nanos>,
    /// Sets a threshold of a rule, as in client-queue.queue_ms=5 (docs/doctor-rules.md has all).
    #[arg(long, value_name = "RULE.NAME=NUMBER")]
    pub(crate) set: Vec<String>,
    /// Writes a record of what was found to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes a report to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
}
