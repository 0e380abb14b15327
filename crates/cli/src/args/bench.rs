//! The arguments of `nfskit bench`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use client::url::Target;
use client::write_behind::PolicyName;
use net::shape::profile::Profile;
use perf::units::Nanos;

use super::{count, size, target, time};

/// Writes fresh files sequentially, as applications do: write() calls, fsync, close.
///
/// After each size's last call, its flush and its close stands the throughput since the first
/// call, in MiB (2^20 bytes) for each second; then what the times of single calls say. Several
/// places are measured in alternation.
///
/// With --wire it makes the WRITE calls of the protocol itself, a number of them outstanding, and
/// COMMITs: what the path can do without a client's caches.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench seqwrite --dir /mnt/nfs --dir /tmp --size 25M,50M,100M
  nfskit bench seqwrite --dir /mnt/nfs --size 40M --repeats 1 --csv calls.csv
  nfskit bench seqwrite --dir /tmp --target nfs://server/export --write-policy linux-2.4.4
  nfskit bench seqwrite --wire --target nfs://server/export --size 1G --outstanding 16 --json -")]
#[command(group = ArgGroup::new("place").required(true).multiple(true).args(["dir", "target"]))]
pub(crate) struct Seqwrite {
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
    /// How our client holds writes back: linux-2.4.4, no-flush, hashed, unlocked or adaptive.
    #[arg(long, value_name = "NAME", default_value_t, requires = "target")]
    #[arg(conflicts_with = "wire")]
    pub(crate) write_policy: PolicyName,
    /// Most bytes in a WRITE of our client [default: what the server likes].
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "target")]
    #[arg(conflicts_with = "wire")]
    pub(crate) wsize: Option<u64>,
    /// Bytes that our client may hold and the server not have on its disk.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "target")]
    #[arg(conflicts_with = "wire", default_value = "256M")]
    pub(crate) dirty_max: u64,
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
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    #[arg(requires = "target")]
    pub(crate) reply_limit: Nanos,
    /// An emulated link in front of the server.
    #[arg(long, value_name = "PROFILE", requires = "target")]
    pub(crate) link: Option<Profile>,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// places or lengths.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Stable {
    Unstable,
    #[value(name = "data_sync")]
    DataSync,
    #[value(name = "file_sync")]
    FileSync,
}

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
pub(crate) struct Policies {
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
    pub(crate) html: PathBuf,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Reads, writes, truncates, maps and renames a file at random, and verifies every byte.
///
/// A seed decides the operations; a failure ends with the command that repeats it. Exit
/// code 1: the file system gave something else than was written.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench fsx --dir /mnt/nfs --time 600s
  nfskit bench fsx --dir /mnt/nfs --seed 7 --ops 12345      the same again
  nfskit bench fsx --dir /mnt/nfs --files 4 --size 4M")]
pub(crate) struct Fsx {
    /// The directory to work in, on any file system.
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: PathBuf,
    /// What decides the operations [default: the time].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// When to end.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "ops")]
    #[arg(default_value = "60s")]
    pub(crate) time: Nanos,
    /// Operations in each file, however long they take.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ops: Option<u64>,
    /// Longest that a file may become.
    #[arg(long, value_name = "SIZE", default_value = "256K", value_parser = size)]
    pub(crate) size: u64,
    /// Most bytes of one operation.
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub(crate) call: u64,
    /// Files that are worked on at once, each with a thread and a seed of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=256))]
    pub(crate) files: u32,
    /// No memory mappings, for file systems that have none.
    #[arg(long)]
    pub(crate) no_mmap: bool,
}

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
  nfskit bench basic --target nfs://server/export?version=2&proto=udp -f
  nfskit bench basic --dir /mnt/nfs --json run.json
  nfskit bench basic --dir /mnt/nfs --test 6 --files 400 --count 100
  nfskit bench basic --read cthon.log                       CSV on standard output
  nfskit bench basic --read cthon.log --json results.json --csv results.csv")]
#[command(group = ArgGroup::new("what").required(true).args(["dir", "target", "read"]))]
pub(crate) struct Basic {
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
