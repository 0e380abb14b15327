//! The arguments of `nfskit model predict`, `infer`, `fit` and `whatif`.

use std::path::PathBuf;

use clap::{Args, Parser};
use harness::values::{count, positive, size, time};
use perf::model::whatif::Change;
use perf::units::Nanos;

/// What is known of a server, for models of it.
#[derive(Args, Clone, Debug)]
pub struct Known {
    /// Processors that calls are spread over, or nodes of a cluster [default: 1].
    #[arg(long, value_name = "N", value_parser = count(1..=1_000_000))]
    pub(crate) cpus: Option<u32>,
    /// Disks.
    #[arg(long, value_name = "N", value_parser = count(1..=1_000_000))]
    pub(crate) disks: Option<u32>,
    /// Time of a disk for a call that misses the cache.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) disk: Option<Nanos>,
    /// Memory and NVRAM together; K, M and G are powers of 1,024, here and in --accessed.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) cache: Option<u64>,
    /// Data that is accessed for each call a second, as benchmarks scale it [default: 1M, as SFS
    /// has it].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) accessed: Option<u64>,
    /// A queue for each disk instead of one for all.
    #[arg(long)]
    pub(crate) line_each: bool,
}

/// Predicts response time over throughput from a server's parameters.
///
/// Open: calls come whether the server is ready or not. Closed: so many callers, each with one call
/// at most. docs/models.md, sections 10 and 11, has the assumptions.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  nfskit model predict --cpu 900us --delay 3400us --disks 24 --disk 12ms --cache 128M")]
pub struct Predict {
    /// Time of a processor for a call.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) cpu: Nanos,
    /// What a call takes besides: the network both ways, the client, fixed costs.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) delay: Nanos,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Callers, for the closed model.
    #[arg(long, value_name = "N", value_parser = count(1..=100_000))]
    pub(crate) callers: Option<u32>,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Infers the structure of a server from its curve: a table of throughput and response time.
///
/// Finds the time of a call on the processor, what does not depend on the load, the size of the
/// cache, the disks; each with its interval. Says what the curve does not show, and refuses a curve
/// that no such server has.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  nfskit model infer f840.txt --cpus 2 --disks 76

A curve, with its units in the first line:
  throughput_per_s  response_ms
  3037              1.1
  6071              1.3")]
pub struct Infer {
    /// The curve: a file of two columns, or what `bench curve` wrote with --csv or --json.
    #[arg(value_name = "CURVE")]
    pub(crate) curve: PathBuf,
    /// Which of several servers or connections in the file: a part of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Explains measurements by a model's parameters, each with its interval.
///
/// A sweep of outstanding calls by a cycle and a slowest stage, a trace by the path and the servers
/// at its end, a curve of response time as `infer` does; the file's heading shows which. Says
/// what the data do not show, and refuses what the model does not explain.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit model fit sweep.txt
  nfskit model fit trace.txt --json fit.json
  nfskit bench curve --target nfs://server/export --json run.json; nfskit model fit run.json
  nfskit trace nfs.pcap --csv calls.csv; nfskit model fit calls.csv --of ADDRESS:PORT

A sweep, with its units in the first line; a window may come several times:
  outstanding  throughput_per_s
  1            1980
  2            3890
A trace: one call with its reply in a line; stable is 1 for stable WRITEs and COMMITs:
  sent_us  answered_us  bytes  stable
  0        214          8192   0
A curve:
  throughput_per_s  response_ms
  3037              1.1")]
pub struct Fit {
    /// The measurements: a file of columns, what `bench curve` wrote with --csv or --json, or what
    /// `trace` wrote with --csv.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which of several servers or connections in the file: a part of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Predicts what a change would do to a server that was measured.
///
/// Of a curve: response time and saturation, by the open formula and, with --callers, by mean value
/// analysis. Of the record of `nfskit probe`: throughput of a sequential write, by the formula of
/// the transaction cycle and by mean value analysis. Of a sweep or a trace: calls a second, by
/// both; of a trace also by its own calls made again, beside what was measured. All of them also by
/// simulation, which is the program itself in virtual time. Each with its
/// interval, and with what limits; of a probe, also which of the models to believe, and why.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit model whatif f840.txt L+1ms
  nfskit model whatif f840.txt --cpus 2 --disks 76 --callers 96 disks=152 cache=64G
  nfskit model whatif f840.txt \"clients x2\" --rate 12000
  nfskit model whatif probe.json L=5ms outstanding=32
  nfskit model whatif probe.json G=100m
  nfskit model whatif probe.json write-log=sim:nvram
  nfskit model whatif sweep.txt \"outstanding x4\" --outstanding 8

Changes of a curve: L=TIME L+TIME o+TIME cpu=TIME cpus=N disk=TIME disks=N cache=SIZE clients=N; of
a probe: L o+ G=RATE outstanding wsize threads disks write-log=DEVICE; of a sweep: L+ o+
outstanding; of a trace: these, G=RATE wsize cpus threads write-log; and each of them with a
factor, as in \"cpu x0.5\". DEVICE is what serve --write-log prints of its log, such as
95us,both=130us, or an emulated disk such as sim:nvram. All together are one change. What a model
does not contain is refused.")]
pub struct WhatIf {
    /// A curve or a sweep (a file of two columns), a record of `probe`, `model infer` or `model
    /// fit`, or what `bench curve` or `trace` wrote.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which of several servers or connections in the file: a part of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// What changes.
    #[arg(value_name = "CHANGE", required = true, value_parser = change)]
    pub(crate) changes: Vec<Change>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Calls a second to predict for, of a curve [default: half of its peak].
    #[arg(long, value_name = "N", value_parser = positive(1e-9..=1e12))]
    pub(crate) rate: Option<f64>,
    /// Callers, for the closed model of a curve.
    #[arg(long, value_name = "N", value_parser = count(1..=100_000))]
    pub(crate) callers: Option<u32>,
    /// Calls outstanding before the change, of a probe, a sweep and a trace [default: what the
    /// probe recommends; 1; the trace's mean].
    #[arg(long, value_name = "N", value_parser = count(1..=65_536))]
    pub(crate) outstanding: Option<u32>,
    /// Latency of the measured network, one way, which L= of a curve or a probe replaces.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) latency: Option<Nanos>,
    /// Messages of an operation of a curve, each of which costs an o [default: 2].
    #[arg(long, value_name = "K", value_parser = positive(1e-9..=1e12))]
    pub(crate) messages: Option<f64>,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

fn change(text: &str) -> Result<Change, String> {
    text.parse().map_err(|error: perf::model::whatif::WhatIfError| error.to_string())
}
