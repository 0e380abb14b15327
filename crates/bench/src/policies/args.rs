//! The arguments of `nfskit bench policies`.

use std::path::PathBuf;

use clap::Parser;
use client::url::Target;
use harness::values::{count, size, target, time};
use net::shape::profile::Profile;
use perf::units::Nanos;

/// Writes the same files through all five write-behind policies, as Lever and Honeyman did in 2002.
///
/// Without --target it starts two servers of its own in memory: a fast one behind --link, and a
/// slow one behind a fifth of its rate. Calls go straight to the client's library. Prints a table
/// and writes a report with the paper's figures 2 to 6 and table 1 as measured here.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench policies                           about a minute
  nfskit bench policies --link wan-10ms --repeats 1
  nfskit bench policies --target nfs://server/export --wsize 1M")]
pub struct Policies {
    /// A directory of an NFS server to write in, instead of servers of our own.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// The emulated link in front of the server [default: 50 us one way, 1 Gbit/s; with --target:
    /// none].
    #[arg(long, value_name = "PROFILE")]
    pub(crate) link: Option<Profile>,
    /// Most bytes of a WRITE.
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = size)]
    pub(crate) wsize: u64,
    /// Files a tenth as long, for a first look.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs of each policy and file.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count(1..=100))]
    pub(crate) repeats: u32,
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Writes the report to FILE, or to standard output with `-`.
    #[arg(long, alias = "out", value_name = "-|FILE", default_value = "nfskit-policies.html")]
    pub(crate) html: Option<PathBuf>,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}
