//! The arguments of `nfskit bench curve`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser};
use client::url::Target;
use harness::values::{count, positive, size, target, time, whole};
use load::curve::Share;
use load::mix::Arrivals;
use perf::units::Nanos;

use crate::curve::ranks::{self, Place};

/// Response time over throughput, with a mix of operations as the SFS benchmarks have it.
///
/// An open loop starts operations by a schedule, whatever the server does, at ten loads up to its
/// saturation, which is found first, and at one above it. Several targets are measured in
/// alternation, and stand in one report. Base, slope, knee, saturation and overall response time
/// come with their intervals. Exit code 1: a point violates a rule, which is printed.
///
/// Files are made in a scratch directory, 10 MiB for each operation a second up to --file-set-max,
/// and removed again; whether they fit is checked first.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench curve --target nfs://server/export --html curve.html
  nfskit bench curve --target nfs://a/x --target nfs://b/x --mix sfs2008-v3 --html both.html
  nfskit bench curve --store /srv/data --write-log /mnt/nvme/log --html log.html
  nfskit bench curve --target nfs://server/export --loads 500,1000,2000 --time 300s --warm-up 300s
  nfskit bench curve --target nfs://server/export --closed 64 --threads 2
  srun -N 4 nfskit bench curve --target nfs://server/export --meet node1:7010")]
#[command(group = ArgGroup::new("servers").required(true).args(["target", "write_log"]))]
pub struct Curve {
    /// A directory of an NFS server; again for more, each with a curve of its own.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Vec<Target>,
    /// Two servers of this process instead, on one disk, without a write log and with this one,
    /// which is new and removed afterwards; for root.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "meet"], requires = "store")]
    pub(crate) write_log: Option<PathBuf>,
    /// With --write-log: where the two servers keep their files, in a directory of their own.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["target", "meet"])]
    #[arg(requires = "write_log")]
    pub(crate) store: Option<PathBuf>,
    /// The mix of operations: laddis, sfs97-v2, sfs97-v3, sfs2008-v3, an operation's name, `nfsd`
    /// or `mountstats` for what this host's kernel has counted, or a FILE: a mix, counters, what
    /// nfsstat prints, a capture; `-` for standard input [default: sfs97-v3; of version 2
    /// sfs97-v2].
    #[arg(long, value_name = "WORD")]
    pub(crate) mix: Option<String>,
    /// The intervals between the starts of operations: poisson, uniform or fixed.
    #[arg(long, value_name = "NAME", default_value_t, conflicts_with = "closed")]
    pub(crate) arrivals: Arrivals,
    /// A closed loop: so many operations outstanding, each point with more, up to N; or these.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = count(1..=65_536))]
    #[arg(conflicts_with = "loads")]
    pub(crate) closed: Vec<u32>,
    /// Points up to the saturation, or with --closed up to N.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count(1..=200))]
    #[arg(conflicts_with = "loads")]
    pub(crate) points: u32,
    /// These loads, in operations a second, instead of looking for the saturation.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = positive(1e-3..=1e9))]
    pub(crate) loads: Vec<f64>,
    /// Runs before anything counts, at each point.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub(crate) warm_up: Nanos,
    /// How long each point is measured.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) time: Nanos,
    /// Runs of each point.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=100))]
    pub(crate) repeats: u32,
    /// Connections to each target [default: one for each thread].
    #[arg(long, value_name = "N", value_parser = count(1..=4096))]
    pub(crate) connections: Option<u32>,
    /// Operations outstanding at a time; over it an open loop's operations wait, which counts.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = count(1..=65_536))]
    pub(crate) outstanding_max: u32,
    /// Threads that generate.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=256))]
    pub(crate) threads: u32,
    /// Bytes of files for each operation a second of the highest load.
    #[arg(long, value_name = "SIZE", default_value = "10M", value_parser = size)]
    pub(crate) file_set_per_op: u64,
    /// Not more bytes of files than that.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(crate) file_set_max: u64,
    /// Share of the files that is accessed, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = count(1..=100))]
    pub(crate) accessed: u32,
    /// What decides the operations, their files and their moments.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Where the processes meet that mpirun, srun or another launcher has started as one generator
    /// on many hosts: the first one's host, and a free port. The variable NFSKIT_MEET_KEY has a
    /// key, the same for all.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) meet: Option<Place>,
    /// Process N, from 0, of M [default: from mpirun or srun].
    #[arg(long, value_name = "N/M", value_parser = ranks::share, requires = "meet")]
    pub(crate) process: Option<Share>,
    /// How long a call may wait for its reply before the curve ends there.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// targets.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes a report with the curves to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the points as CSV to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) csv: Option<PathBuf>,
}
