//! The arguments of `nfskit bench nhfsstone`.

use std::path::PathBuf;

use clap::Parser;
use client::url::Target;
use harness::values::{count, positive, target, time, whole};
use perf::units::Nanos;

/// nhfsstone, the benchmark of 1990: a mix of calls at a rate, and the mean time of a call.
///
/// Options with one letter are the original's. The mix is the original's default, or one that
/// nfsstat has counted, of any of its layouts, or whatever else is a mix to nfskit bench curve.
/// Seven tasks sleep, do an operation and sleep again; the calls of each operation are made at the
/// wire, without a client's caches. Prints the original's table and summary. Exit code 1: the mix
/// that was generated is off by more than 10 %.
///
/// Where the counters of a kernel's NFS server or client are on this host, it first waits two
/// seconds, and does not begin when there are more than 20 calls of others in that time.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench nhfsstone --target nfs://server/export
  nfskit bench nhfsstone --target nfs://server/a --target nfs://server/b -l 200 -t 120
  nfsstat -s > counted; nfskit bench nhfsstone --target nfs://server/export -m counted
  nfskit bench nhfsstone --target nfs://server/export?version=2 -T 4 -l 1000 -p 50")]
pub struct Nhfsstone {
    /// A directory of an NFS server; again for more, over which the tasks are spread.
    #[arg(long, value_name = "URL", value_parser = target, required = true)]
    pub(crate) target: Vec<Target>,
    /// What nfsstat printed, in a file, or another mix [default: the original's].
    #[arg(short, long, value_name = "WORD", conflicts_with = "operation")]
    pub(crate) mix: Option<String>,
    /// Calls a second.
    #[arg(short, long, value_name = "N", default_value = "30", value_parser = positive(1e-3..=1e7))]
    pub(crate) load: f64,
    /// How long: so many calls as the rate makes in that time.
    #[arg(short, long, value_name = "TIME", value_parser = time, conflicts_with = "calls")]
    pub(crate) time: Option<Nanos>,
    /// How many calls [default: 5000].
    #[arg(short, long, value_name = "N", value_parser = count(1..=1_000_000_000))]
    pub(crate) calls: Option<u32>,
    /// Tasks that do one operation at a time.
    #[arg(short, long, value_name = "N", default_value_t = 7, value_parser = count(1..=10_000))]
    pub(crate) processes: u32,
    /// Only this operation, by its number in version 2 or by its name.
    #[arg(short = 'T', long, value_name = "OPNUM|NAME")]
    pub(crate) operation: Option<String>,
    /// What decides lengths, sleeps and the order of operations.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Begins whatever others do.
    #[arg(long)]
    pub(crate) busy: bool,
    /// How long a call may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
