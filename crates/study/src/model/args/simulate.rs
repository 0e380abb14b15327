//! The arguments of `nfskit model`.

use std::path::PathBuf;

use clap::Parser;
use harness::values::whole;

/// Runs clients, links, servers and disks in virtual time, and reports what each did.
///
/// The client and the server are those of `nfskit mount` and `nfskit serve`; links, processors and
/// disks take the time that the topology states. The same topology and seed give the same run to
/// the last byte, which the digest of all messages shows.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit model simulate office.toml
  nfskit model simulate office.toml --seed 7 --json run.json
  nfskit model simulate office.toml --curve --html office.html
  nfskit model simulate probe.json                the path that nfskit probe found
  nfskit model simulate fit.json --curve          what model fit or model infer found

A topology, in which all but [[clients]] may be left out:
  seed = 1
  [server]                 # count, cores, per-call, per-byte, costs, disk, cache, memory,
  disk = \"hdd\"             # dirty-max, write-back, commit-mode, threads
  costs.WRITE = \"60us\"
  [[clients]]              # again for other kinds
  count = 100              # and cores
  link = \"lan-1g\"
  [workload]               # mix, outstanding or rate, arrivals, warm-up, time, files
  mix = \"sfs97-v3\"
  [[faults]]               # crash, fail-writes, fail-syncs, slow-disk, full
  what = \"crash\"
  at = \"5s\"
  down = \"1s\"")]
pub struct Simulate {
    /// What is simulated: a TOML file, or a record: of `nfskit probe`, whose path then leads to
    /// WRITEs, of `model infer` or `bench curve`, whose server is loaded at half its peak, or of
    /// `model fit`.
    #[arg(value_name = "TOPOLOGY.toml|RECORD")]
    pub(crate) topology: PathBuf,
    /// Which of several records in the file: a part of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// Runs it again at a tenth to nearly all of the throughput that it reached, and gives response
    /// time over throughput.
    #[arg(long)]
    pub(crate) curve: bool,
    /// Writes a report to FILE, or to standard output with `-`: utilization of each resource over
    /// time, and the curve.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Another seed than the topology's.
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
