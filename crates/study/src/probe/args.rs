//! The arguments of `nfskit probe`.

use std::path::PathBuf;

use clap::Parser;
use client::url::Target;
use harness::values::{target, time};
use net::shape::profile::Profile;
use perf::units::Nanos;

/// Finds the parameters of a server from the client's side alone.
///
/// The network round trip (2 T_prop) and rate (G), what client and server spend on a call (T_op, o,
/// g), what the disk does (T_B), and how many calls the server works on side by side, each with its
/// interval; and what follows from them: throughput over the number of calls outstanding,
/// beside what was measured. Reports what these measurements cannot separate. Any
/// server of NFS v2 or v3, over TCP or UDP. A scratch directory is made there and removed again.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit probe nfs://server/export                about fifteen seconds
  nfskit probe nfs://server/export --quick --json probe.json
  nfskit model whatif probe.json L+1ms            what would change
  nfskit probe 'nfs://server/export?version=2&proto=udp'")]
pub struct Probe {
    /// A directory of an NFS server.
    #[arg(value_name = "URL", value_parser = target)]
    pub(crate) target: Target,
    /// An emulated link in front of the server.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) link: Option<Profile>,
    /// Measures less: under ten seconds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long a call may wait for its reply before the probe gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes a report with the curves to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the run record to FILE, or to standard output with `-`; `nfskit model` reads it.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
