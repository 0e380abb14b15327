//! The arguments of `nfskit bench tasks`.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, ValueEnum};
use client::url::Target;
use harness::values::{count, size, target};

use crate::through_client::ThroughClient;

/// Parallel writers: k tasks, each of which writes a file ten times, or ten files.
///
/// The write tests of a thesis of 2002: throughput of each task, their sum, and that of all bytes
/// until the last task has ended. Several targets are written at once, task by task in turn;
/// --clients gives each target several clients with connections and caches of their own.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  nfskit bench tasks --target nfs://server/export
  nfskit bench tasks --target nfs://server/export --size 32M --files ten --tasks 1,10
  nfskit bench tasks --target nfs://a/x --target nfs://b/y --tasks 2 --alone   two servers at once
  nfskit bench tasks --target nfs://server/export --tasks 2 --clients 2        two clients at once
  nfskit bench tasks --dir /mnt/nfs --sweep 32K:32M:16K --tasks 8 --repeats 1  the thesis's sweep")]
#[command(group = ArgGroup::new("place").required(true).multiple(true).args(["dir", "target"]))]
pub struct Tasks {
    /// A directory of an NFS server to write in, through our client; again for more.
    #[arg(long, value_name = "URL", value_parser = target)]
    pub(crate) target: Vec<Target>,
    /// A directory to write in, on any file system; again for more.
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Vec<PathBuf>,
    /// Tasks at once, or a list [default: 1,2,4,8,10,20; with --sweep: 8].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[arg(value_parser = count(1..=load::tasks::TASKS_MAX))]
    pub(crate) tasks: Vec<u32>,
    /// Length of each file, or a list.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    #[arg(default_value = "1M", conflicts_with = "sweep")]
    pub(crate) size: Vec<u64>,
    /// Growing lengths: from, to, and what is added each time, or x and the factor.
    #[arg(long, value_name = "FROM:TO:STEP", value_parser = sweep, num_args = 0..=1)]
    #[arg(default_missing_value = "16K:32M:x2")]
    pub(crate) sweep: Option<Sweep>,
    /// Whether a task writes the same file each time, or another one; or both, in turn.
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',', default_value = "same")]
    pub(crate) files: Vec<FileNames>,
    /// How often each task writes a file.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count(1..=100_000))]
    pub(crate) times: u32,
    /// Bytes in a call.
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = size)]
    pub(crate) call: u64,
    /// Clients of each server, over which its tasks are spread.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count(1..=256))]
    #[arg(requires = "target")]
    pub(crate) clients: u32,
    /// Each of several targets by itself, too, with the tasks that it has among the others.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Flushes each file before it is closed (fsync), as closing does over NFS in any case.
    #[arg(long)]
    pub(crate) sync: bool,
    /// Runs of each, in alternation, after a first one that does not count.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count(1..=1000))]
    pub(crate) repeats: u32,
    /// Writes every task of every run as CSV to FILE, or to standard output with `-`.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Writes the run record to FILE, or to standard output with `-`; a list of them for several
    /// numbers of tasks or lengths.
    #[arg(long, value_name = "-|FILE")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) client: ThroughClient,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum FileNames {
    /// The same file each time.
    Same,
    /// Another file each time: ten with the usual --times.
    Ten,
}

/// Lengths of a sweep: at least one, at most `SWEEP_MAX`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sweep(pub(crate) Vec<u64>);

/// More than the thesis's 2,047.
const SWEEP_MAX: usize = 4096;

/// From one length to the next.
enum Step {
    Times(u64),
    Plus(u64),
}

impl Step {
    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix('x') {
            Some(factor) => factor.parse().ok().filter(|n| *n > 1).map(Self::Times),
            None => size(text).ok().map(Self::Plus),
        }
    }

    fn after(&self, bytes: u64) -> Option<u64> {
        match self {
            Self::Times(factor) => bytes.checked_mul(*factor),
            Self::Plus(step) => bytes.checked_add(*step),
        }
    }
}

fn sweep(text: &str) -> Result<Sweep, String> {
    let form = || format!("{text:?} is not FROM:TO:STEP, such as 32K:32M:16K or 16K:32M:x2");
    let mut parts = text.splitn(3, ':');
    let (Some(from), Some(to), Some(step)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(form());
    };
    let (from, to) = (size(from).map_err(|_| form())?, size(to).map_err(|_| form())?);
    if from > to {
        return Err(format!("{text:?} begins above its end"));
    }
    let step = Step::read(step).ok_or_else(form)?;
    let sizes = std::iter::successors(Some(from), |bytes| step.after(*bytes));
    let sizes: Vec<u64> = sizes.take_while(|bytes| *bytes <= to).take(SWEEP_MAX + 1).collect();
    match sizes.len() > SWEEP_MAX {
        true => Err(format!("{text:?} has more than {SWEEP_MAX} lengths")),
        false => Ok(Sweep(sizes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_grows_by_steps_or_factors() {
        assert_eq!(sweep("1K:4K:1K").unwrap().0, [1024, 2048, 3072, 4096]);
        assert_eq!(sweep("16K:33K:x2").unwrap().0, [16 << 10, 32 << 10]);
        assert_eq!(sweep("32K:32M:16K").unwrap().0.len(), 2047);
        assert_eq!(sweep("8K:8K:8K").unwrap().0, [8192]);
        for wrong in ["", "1K", "1K:2K", "1K:2K:x1", "1K:2K:", "1K:2K:0", "x:2K:1K", "2K:1K:1K"] {
            assert!(sweep(wrong).is_err(), "{wrong}");
        }
        assert!(sweep("1:1T:1").unwrap_err().contains("more than 4096"));
        assert_eq!(sweep("8T:16777215T:x1000000000000").unwrap().0.len(), 1);
    }
}
