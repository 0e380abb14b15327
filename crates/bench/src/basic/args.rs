//! The arguments of `nfskit bench basic`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser};
use client::url::Target;
use harness::values::{count, size, target, time};
use net::shape::profile::Profile;
use perf::units::Nanos;

/// Runs the basic tests of the Connectathon suite on a server or in a directory, or reads its logs.
///
/// Each result is checked exactly, and the suite's lines are printed, seconds as decimals. A server
/// is called without a client's caches; a directory of any file system is used through system
/// calls. Options with one letter are the suite's. Numbers that are given hold for each test that
/// knows them. Exit code 1: a test failed.
///
/// With --read it reads logs of the suite. There one digit behind the point of seconds means
/// hundredths, or tenths in programs that print decimals: both readings are given, and which one
/// it is, where the log shows it.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench basic --target nfs://server/export           checked and timed (-t)
  nfskit bench basic --target 'nfs://server/export?version=2&proto=udp' -f
  nfskit bench basic --dir /mnt/nfs --json run.json
  nfskit bench basic --dir /mnt/nfs --test 6 --files 400 --count 100
  nfskit bench basic --read cthon.log                       CSV on standard output
  nfskit bench basic --read cthon.log --json results.json --csv results.csv")]
#[command(group = ArgGroup::new("what").required(true).args(["dir", "target", "read"]))]
pub struct Basic {
    /// A directory of an NFS server to work in, without a client's caches.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// A directory to work in, on any file system.
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    /// A log of the suite to read, or standard input with `-`; again for more.
    #[arg(long, value_name = "-|LOG")]
    pub(crate) read: Vec<PathBuf>,
    /// Checks only: each test once, and a small tree.
    #[arg(short = 'f', long, conflicts_with = "read")]
    pub(crate) functional: bool,
    /// Checks and takes the time, which is done without any option.
    #[arg(short = 't', long, conflicts_with_all = ["functional", "read"])]
    pub(crate) timing: bool,
    /// Works in the directory itself instead of making one in it.
    #[arg(short = 'n', long, conflicts_with = "read")]
    pub(crate) no_directory: bool,
    /// With -n: what else is in the directory does not matter to test 6.
    #[arg(short = 'i', long, requires = "no_directory")]
    pub(crate) ignore_others: bool,
    /// Test 5 writes synchronously.
    #[arg(short = 's', long, conflicts_with = "read")]
    pub(crate) sync: bool,
    /// Goes on with the next test when one has failed.
    #[arg(short = 'k', long, conflicts_with = "read")]
    pub(crate) keep_going: bool,
    /// Only these of the tests 1 to 9.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = count(1..=9))]
    #[arg(conflicts_with = "read")]
    pub(crate) test: Vec<u32>,
    /// Levels of the tree [default: 5; with -f: 2].
    #[arg(long, value_name = "N", value_parser = count(1..=100), conflicts_with = "read")]
    pub(crate) levels: Option<u32>,
    /// Files of a test, of the tree in each directory [default: the suite's].
    #[arg(long, value_name = "N", value_parser = count(0..=1_000_000), conflicts_with = "read")]
    pub(crate) files: Option<u32>,
    /// Directories in each directory of the tree [default: 2].
    #[arg(long, value_name = "N", value_parser = count(0..=1000), conflicts_with = "read")]
    pub(crate) dirs: Option<u32>,
    /// How often a test does what it does [default: the suite's; with -f: 1].
    #[arg(long, value_name = "N", value_parser = count(1..=10_000_000), conflicts_with = "read")]
    pub(crate) count: Option<u32>,
    /// Length of the file of test 5.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    #[arg(conflicts_with = "read")]
    pub(crate) size: u64,
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    #[arg(conflicts_with_all = ["dir", "read"])]
    pub(crate) reply_limit: Nanos,
    /// An emulated link in front of the server.
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["dir", "read"])]
    pub(crate) link: Option<Profile>,
    /// Writes the run record, or with --read a record of what was read, to FILE, or to standard
    /// output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes what was read (with --read) as CSV to FILE, or to standard output with `-` [default:
    /// - without --json].
    #[arg(long, value_name = "-|FILE", conflicts_with_all = ["dir", "target"])]
    pub(crate) csv: Option<PathBuf>,
}
