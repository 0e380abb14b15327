//! The arguments of `nfskit bench compare`.

use std::path::PathBuf;

use clap::Parser;

/// Compares the records of two places: which is faster, as far as they show it.
///
/// For workloads that measure one place at a time (basic, nhfsstone, null, stream, spray, storage),
/// and for runs of other days. Records are what --json has written, of one workload. Several of
/// each place with the same parameters are repetitions: run them in turn, A B A B, so that what
/// changes meanwhile meets both alike. Each result that both have is compared by a test; how long
/// a run was, or which load it offered, is none.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench compare --first a1.json a2.json a3.json --second b1.json b2.json b3.json
  for i in 1 2 3; do for s in a b; do nfskit bench basic --target nfs://$s/x --json $s$i.json; done; done")]
pub struct Compare {
    /// Records of the one place.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) first: Vec<PathBuf>,
    /// Records of the other.
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) second: Vec<PathBuf>,
    /// Compares also where parameters differ, which may be what the numbers then show.
    #[arg(long)]
    pub(crate) mix_parameters: bool,
    /// Compares also where what was written does not survive the same things.
    #[arg(long)]
    pub(crate) mix_durability: bool,
    /// Writes a record of the comparison to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
