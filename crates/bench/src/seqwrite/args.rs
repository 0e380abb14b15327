//! The arguments of `nfskit bench seqwrite`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use client::url::Target;
use harness::values::{count, size, target, time};
use perf::units::Nanos;

use crate::through_client::ThroughClient;

/// Writes fresh files sequentially, as applications do: write() calls, fsync, close.
///
/// For each size: throughput from the first call to the last, to the flush, and to the close, in
/// MiB (2^20 bytes) for each second; then what the times of single calls say. Several
/// places are measured in alternation.
///
/// With --wire it makes the WRITE calls of the protocol itself, a number of them outstanding, and
/// COMMITs: what the path can do without a client's caches; one --target, one --size, and no --csv.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench seqwrite --dir /mnt/nfs --dir /tmp --size 25M,50M,100M
  nfskit bench seqwrite --dir /mnt/nfs --size 40M --repeats 1 --csv calls.csv
  nfskit bench seqwrite --dir /tmp --target nfs://server/export --write-policy linux-2.4.4
  nfskit bench seqwrite --wire --target nfs://server/export --size 1G --outstanding 16 --json -")]
#[command(group = ArgGroup::new("place").required(true).multiple(true).args(["dir", "target"]))]
pub struct Seqwrite {
    /// A directory to write in, on any file system; again for more.
    #[arg(long, value_name = "PATH", conflicts_with = "wire")]
    pub(crate) dir: Vec<PathBuf>,
    /// A directory of an NFS server to write in, through our client.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// Length of the file, or a list of lengths [default: 100M; with --wire: 256M].
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    pub(crate) size: Vec<u64>,
    /// Bytes in a call [default: 8K; with --wire: 1M, and at most what the server takes].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) call: Option<u64>,
    /// Runs, each with a fresh file.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// A call over this is a slow one.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    pub(crate) slow: Nanos,
    /// Writes the time of every call as CSV to FILE, or to standard output with `-`.
    #[arg(long, alias = "latencies", value_name = "-|FILE", conflicts_with = "wire")]
    pub(crate) csv: Option<PathBuf>,
    /// Compares flushed throughputs also where a flush does not survive the same things.
    #[arg(long, conflicts_with = "wire")]
    pub(crate) mix_durability: bool,
    /// Makes the calls of the protocol itself, without a client's caches.
    #[arg(long, requires = "target")]
    #[arg(conflicts_with_all = ["write_policy", "wsize", "dirty_max"])]
    pub(crate) wire: bool,
    /// With --wire: calls outstanding.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = count(1..=4096))]
    #[arg(requires = "wire")]
    pub(crate) outstanding: u32,
    /// With --wire: a COMMIT after so many bytes; at the end there is always one.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    #[arg(requires = "wire")]
    pub(crate) commit_every: u64,
    /// With --wire: what each WRITE asks for.
    #[arg(long, value_enum, default_value_t = Stable::Unstable, requires = "wire")]
    pub(crate) stable: Stable,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// places or lengths.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) client: ThroughClient,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Stable {
    Unstable,
    #[value(name = "data_sync")]
    DataSync,
    #[value(name = "file_sync")]
    FileSync,
}
