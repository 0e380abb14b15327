//! The arguments of `nfskit papers`.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use client::url::Target;
use harness::values::{count, read, target, time, whole};
use load::mix::Mix;
use load::suite13::Test;
use net::shape::profile::Profile;
use perf::model::disk::Profile as DiskProfile;
use perf::units::Nanos;

use crate::suite13::args::{scale, test};

// What all of them know; a doc comment here would be the help of the command.
#[derive(Args, Debug)]
pub struct Common {
    /// How long a call of the protocol may wait for its reply before the run gives up.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(crate) reply_limit: Nanos,
    /// Ends with exit code 1 unless the aims are met.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints tables in Markdown instead.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Writes the run record to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Puts delays into a path, one parameter of LogGP at a time, and reads them back.
///
/// The emulator of Martin and Culler 1999, checked: L, o, g and G over the paper's ranges, each
/// added to a path, probed as `nfskit study` probes, and read back with its transaction model. What
/// was put in is the difference to the same path without it, probed in alternation. Without
/// --target the path is a loopback to a server of our own in memory. The aim of --check: everything
/// is read back within 3 %.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers loggp                             about three minutes
  nfskit papers loggp --quick --json loggp.json
  nfskit papers loggp --only L,G --target nfs://server/export")]
pub struct Loggp {
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
    /// The L that the path has before L, o or G is put in: so long that a processor which waits
    /// goes to sleep with and without it, and the time to wake it is not in the difference.
    #[arg(long, value_name = "TIME", default_value = "200us", value_parser = time)]
    pub(crate) base_latency: Nanos,
    /// How long to measure each point.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) point_time: Option<Nanos>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The parameters' letters: g is the gap between messages, G that for each byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Symbol {
    #[value(name = "L")]
    Latency,
    #[value(name = "o")]
    Overhead,
    #[value(name = "g")]
    Gap,
    #[value(name = "G")]
    GapPerByte,
}

/// Predicts a server's upper load points and its saturation from the lower ones, and measures them.
///
/// WRITEs of 8 KiB with 1 to 64 outstanding, on servers of our own with one processor: in memory,
/// in a directory with UNSTABLE, in a directory with FILE_SYNC. The model is fitted to the lower
/// half of the points and to the processor's time for a call in them; nothing of the upper half is
/// looked at. Martin and Culler 1999 were off by 24 and 30 % at worst; the aims of --check are 5 %
/// at the median and 15 % at worst.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers predict                           about two minutes
  nfskit papers predict --quick --json predict.json
  nfskit papers predict --dir /srv/data --link 1ms/1g")]
pub struct Predict {
    /// Where the directory for the servers' files is made [default: the system's temporary one].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The emulated link in front of the servers.
    #[arg(long, value_name = "PROFILE", default_value = "lan-1g")]
    pub(crate) link: Profile,
    /// o: what a server's processor spends on each message besides.
    #[arg(long, value_name = "TIME", default_value = "80us", value_parser = time)]
    pub(crate) overhead: Nanos,
    /// Each point once or twice, and shortly.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long each point is measured, and twice as long where calls wait for syncs [default:
    /// 300ms, with --quick 100ms].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Nanos>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Predicts what five changes gain, applies them, and measures.
///
/// L + 1 ms, G to 100 Mbit/s, o + 50 us, one thread, four times as many calls outstanding: for
/// WRITEs of 8 KiB with four outstanding, to a server of our own in memory. What a probe of the
/// unchanged path finds is all that the formula of the cycle, mean value analysis and the
/// simulation know. The aims of --check: the predictions are 5 % off at the median and 12 % at
/// worst.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers whatif                            about forty seconds
  nfskit papers whatif --quick --json whatif.json")]
pub struct WhatIf {
    /// The emulated link before any change.
    #[arg(long, value_name = "PROFILE", default_value = "200us/1g")]
    pub(crate) link: Profile,
    /// Measures less.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long each run of a change is [default: 300ms, with --quick 100ms].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Nanos>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Runs a mix of operations while L, o and G are varied, on a live system and a simulated one.
///
/// Figures 5 to 8, 10 and 11 of Martin and Culler 1999 as they come out here: base response time
/// against L, saturation against o with the fit 1/(S + k o), response time against G. The simulated
/// system is the same program in virtual time; it has the costs of the live system's baseline, and
/// predicts the rest. Without --target the live system is a server of our own in memory, with one
/// thread. The aim of --check: both agree within 10 % everywhere.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers sensitivity                       about three minutes
  nfskit papers sensitivity --quick --html sensitivity.html
  nfskit papers sensitivity --mix sfs97-v2 --json -")]
pub struct Sensitivity {
    /// A directory of an NFS server, instead of a server of our own; o, which is spent in the
    /// server, is then left out. A scratch directory is made there and removed again.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Option<Target>,
    /// The mix of operations: laddis, sfs97-v2, sfs97-v3 or sfs2008-v3.
    #[arg(long, value_name = "NAME", default_value_t = Mix::SFS97_V3)]
    pub(crate) mix: Mix,
    /// Fewer points, measured once and shortly.
    #[arg(long)]
    pub(crate) quick: bool,
    /// How long each point is measured [default: 2s].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Nanos>,
    /// How often each point is measured live [default: 3].
    #[arg(long, value_name = "N", value_parser = count(1..=100))]
    pub(crate) repeats: Option<u32>,
    /// What decides the operations and when they start.
    #[arg(long, value_name = "N", default_value_t = 1999, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Writes a report with the figures to FILE, or to standard output with `-`.
    #[arg(long, alias = "out", value_name = "-|FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Times the 13 tests of the paper on caching on the client's disk, with and without a cache.
///
/// The tests of the paper on caching files on the client's disk (Badros 1997), alone and
/// by four copies at once: on a local directory, through a client that waits as the paper's kernel
/// did (1997), one that waits as Linux 2.4's (kernel-like), ours, ours with a cache (`kept`), and
/// ours before a proxy on this host that answers changes from its log (write-back). Mounts are made
/// anew before each test, so that what is read again comes from the disk. The paper's figures are
/// lost; what its text says stands beside what was measured. The aims of --check: no test makes
/// more calls with the cache than without, and reading again no READ.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers badros --target nfs://server/export
  nfskit papers badros --target nfs://server/export --link L=10ms --scale 0.2 --repeats 1
  nfskit papers badros --target nfs://server/export --link 350us/10Mbit/s --test 8,9,12 --check")]
pub struct Badros {
    /// A directory of a server.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Target,
    /// An emulated link between this host and the server; the paper's network was 350us/10Mbit/s.
    #[arg(long, value_name = "PROFILE", value_parser = read(mounted_link))]
    pub(crate) link: Option<String>,
    /// Where local files, cache and log lie, on one disk [default: where temporary files do].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Leaves the proxy off, which has the export's changes for itself while it runs.
    #[arg(long)]
    pub(crate) no_write_back: bool,
    /// Only these tests.
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = test)]
    pub(crate) test: Vec<Test>,
    /// Copies at once: all tests with the first number, then all with the next.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = count(1..=64))]
    pub(crate) copies: Vec<u32>,
    /// Runs of everything; places take turns.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// Share of the paper's sizes and numbers, from 0.01 to 10.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = scale)]
    pub(crate) scale: f64,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Counts what a write log saves a disk, and times stable WRITEs with it and without.
///
/// Sun's guide to the performance of servers, on NVRAM: a file of 1 MB in WRITEs of 8 KiB cost a
/// disk 128 writes of data, 128 of the inode and 116 of indirect blocks, and with NVRAM 128, one
/// and one. The same file here, to two servers on this host with the same disk, and response
/// times of FILE_SYNC WRITEs over 8 files at rates that double. The aim of --check: with the log
/// no more writes of the disk, and no rate at which a WRITE takes longer.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit papers sun
  nfskit papers sun --sim rate=2MB/s,access=15ms --sim-log nvram
  nfskit papers sun --without nfs://127.0.0.1:2049/ --with nfs://127.0.0.1:2050/ --disk nvme0n1")]
pub struct Sun {
    /// A directory of a server without a write log.
    #[arg(long, value_name = "URL", value_parser = target, requires = "with")]
    pub(crate) without: Option<Target>,
    /// A directory of one with it (nfskit serve --write-log).
    #[arg(long, value_name = "URL", value_parser = target, requires = "without")]
    pub(crate) with: Option<Target>,
    /// The emulated disk, as serve sim:DISK has them.
    #[arg(long, value_name = "DISK", default_value = "hdd", value_parser = disk)]
    pub(crate) sim: DiskProfile,
    /// The emulated disk of its write log.
    #[arg(long, value_name = "DISK", default_value = "nvram", value_parser = disk)]
    pub(crate) sim_log: DiskProfile,
    /// The disk of both, as /proc/diskstats names it; nothing else should write there.
    #[arg(long, value_name = "NAME", requires = "with")]
    pub(crate) disk: Option<String>,
    /// The disk of the write log, if that is another.
    #[arg(long, value_name = "NAME", requires = "disk")]
    pub(crate) log_disk: Option<String>,
    /// How long each rate is measured.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub(crate) time: Nanos,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// A link that fits among the options of a mount, which commas separate.
fn mounted_link(text: &str) -> Result<Profile, String> {
    if text.contains(',') {
        return Err("one parameter, such as L=10ms, or a named profile, such as lan-1g".to_owned());
    }
    text.parse().map_err(|error| format!("{error}"))
}

fn disk(text: &str) -> Result<DiskProfile, String> {
    text.parse().map_err(|error: perf::model::disk::ProfileError| error.to_string())
}
