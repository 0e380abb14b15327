//! The arguments of `nfskit trace`.

use std::path::PathBuf;

use clap::Parser;
use harness::values::{time, time_or_zero};
use perf::units::Nanos;
use trace::Host;

/// Analyzes captures: latency of each operation, calls outstanding, gaps and their causes.
///
/// Captures are pcap or pcapng files, packed with gzip or zstd or not; `-` is standard input.
/// Several are read as one, in the order of time. NFS is found on any port, over TCP and UDP.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit trace nfs.pcap
  nfskit trace --interface eth0 --time 60s
  tcpdump -i eth0 -w - port 2049 | nfskit trace -
  nfskit trace nfs.pcap --operation WRITE,COMMIT --from 10s --csv calls.csv
  nfskit trace nfs.pcap --html report.html --json -
  nfskit trace nfs.pcap --parquet calls.parquet")]
pub struct Trace {
    /// Captures, or `-`.
    #[arg(value_name = "FILE|-", required_unless_present = "interface")]
    pub(crate) files: Vec<PathBuf>,
    /// Listens to these interfaces of this host instead, until it is interrupted. Needs root, or
    /// the capability CAP_NET_RAW.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "files")]
    pub(crate) interface: Vec<String>,
    /// With --interface: only what is from or for this host, no traffic that a switch mirrors.
    #[arg(long, conflicts_with = "files")]
    pub(crate) no_promiscuous: bool,
    /// With --interface: for so long at most.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "files")]
    pub(crate) time: Option<Nanos>,
    /// Only calls of these clients, by all of their ports or by one.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_delimiter = ',')]
    pub(crate) client: Vec<Host>,
    /// Only calls to these servers, at all of their ports or at one: 10.0.0.2, 10.0.0.2:2049, or an
    /// IPv6 address in brackets, such as `[fd00::2]:2049`.
    #[arg(long, value_name = "ADDRESS[:PORT]", value_delimiter = ',')]
    pub(crate) server: Vec<Host>,
    /// Only these operations, by the RFC's names.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) operation: Vec<String>,
    /// Only files whose path, or handle in hexadecimal, has this in it.
    #[arg(long, value_name = "TEXT")]
    pub(crate) file: Option<String>,
    /// Only calls from this time on, counted from the first packet.
    #[arg(long, value_name = "TIME", value_parser = time_or_zero)]
    pub(crate) from: Option<Nanos>,
    /// Only calls before this time, counted from the first packet.
    #[arg(long, value_name = "TIME", value_parser = time_or_zero)]
    pub(crate) until: Option<Nanos>,
    /// Fits a model to the busiest client and server, over all of their connections, and predicts
    /// what a larger window, a shorter round trip and unstable WRITEs would give.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Writes a record of everything that was counted to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes a report with plots to FILE, or to standard output with `-`: transfer, rates and
    /// times, calls outstanding, gaps.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes every call that got its reply as CSV to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Writes a row for every call that got its reply, for DuckDB, Spark and others, to FILE or to
    /// standard output: the columns of --csv, with types.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Writes how often each procedure was called, in percent, as a mix of operations.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) mix: Option<PathBuf>,
}
