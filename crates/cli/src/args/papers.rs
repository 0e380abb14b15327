//! The arguments of `nfskit papers`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use client::url::Target;
use perf::units::Nanos;

use super::{target, time};

/// Puts delays into a path, one parameter of LogGP at a time, and reads them back.
///
/// The apparatus of Martin and Culler 1999, checked: L, o, g and G over the paper's ranges, each
/// added to a path, probed as `nfskit study` probes, and read back with its transaction model. What
/// was put in is the difference to the same path without it, probed in alternation. Without
/// --target the path is a loopback to a server of our own in memory.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers loggp                             about three minutes
  nfskit papers loggp --quick --json loggp.json
  nfskit papers loggp --only L,G --target nfs://server/export")]
pub(crate) struct Loggp {
    /// A directory of an NFS server, instead of a server of our own. A scratch directory is made
    /// there and removed again.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// The parameters to put in: L, o, g, G [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub(crate) only: Vec<Symbol>,
    /// The ends of each range, measured shortly.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long to measure each point.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) point_time: Option<Nanos>,
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// The parameters' letters: g is the gap between messages, G that for each byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Symbol {
    #[value(name = "L")]
    Latency,
    #[value(name = "o")]
    Overhead,
    #[value(name = "g")]
    Gap,
    #[value(name = "G")]
    GapPerByte,
}
