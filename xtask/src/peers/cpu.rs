//! CPU time of a process with all its threads, and the cores that it may use.
//!
//! `/proc/PID/task/*/schedstat` has nanoseconds, but a thread that ends takes its own along;
//! `/proc/PID/stat` keeps them, in ticks of 10 ms. The sum of the first is what we go by, unless
//! the second shows that threads have ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::host::about;

/// Ticks in `/proc/PID/stat` are of USER_HZ, which Linux has fixed at 100.
const TICK_NS: u64 = 10_000_000;
/// By so much the ticks may be off, at both ends together, though no thread has ended.
const TICKS_OFF_NS: u64 = 3 * TICK_NS;

/// CPU time of a process at one moment.
#[derive(Clone, Debug)]
pub(crate) struct CpuTime {
    threads_ns: BTreeMap<u32, u64>,
    ticks: u64,
}

impl CpuTime {
    pub(crate) fn of(pid: u32) -> Result<Self, String> {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let read = |path: &Path| fs::read_to_string(path).map_err(about(path));
        let stat = read(&process.join("stat"))?;
        let ticks = ticks(&stat).ok_or_else(|| format!("/proc/{pid}/stat reads {stat:?}"))?;
        let mut threads_ns = BTreeMap::new();
        for tid in threads(pid)? {
            let file = process.join(format!("task/{tid}/schedstat"));
            // A thread that ended since it was listed is in the ticks.
            if let Some(ns) = fs::read_to_string(file).ok().and_then(|text| schedstat_ns(&text)) {
                threads_ns.insert(tid, ns);
            }
        }
        Ok(Self { threads_ns, ticks })
    }

    /// CPU time between an earlier moment and this one.
    pub(crate) fn since_ns(&self, earlier: &Self) -> u64 {
        let of = |(tid, ns): (&u32, &u64)| {
            ns.saturating_sub(earlier.threads_ns.get(tid).copied().unwrap_or(0))
        };
        let exact = self.threads_ns.iter().map(of).sum::<u64>();
        let coarse = self.ticks.saturating_sub(earlier.ticks) * TICK_NS;
        if coarse > exact + TICKS_OFF_NS { coarse } else { exact }
    }
}

/// First field of a schedstat: nanoseconds on a CPU.
fn schedstat_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// User and system time of a stat line. The name, in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn threads(pid: u32) -> Result<Vec<u32>, String> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .map_err(|error| format!("the server has gone: {error}"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The cores that this thread may use, from the lowest.
pub(crate) fn cores() -> Result<Vec<usize>, String> {
    let set = sched_getaffinity(None).map_err(|error| format!("sched_getaffinity: {error}"))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Lets this thread, and all that it starts from now on, use these cores alone.
pub(crate) fn pin(cores: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    for &core in cores {
        set.set(core);
    }
    sched_setaffinity(None, &set).map_err(|error| format!("sched_setaffinity: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a (b) c) S 1 42 42 0 -1 4194560 2201 0 3 0 117 83 0 0 20 0 5 0 99 1 2";

    #[test]
    fn ticks_are_user_and_system_time_whatever_the_name() {
        assert_eq!(ticks(STAT), Some(200));
        assert_eq!(ticks("42 (a) S 1"), None);
        assert_eq!(schedstat_ns("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(schedstat_ns(""), None);
    }

    #[test]
    fn a_thread_that_ended_is_counted_by_the_ticks() {
        let at = |threads: &[(u32, u64)], ticks| CpuTime {
            threads_ns: threads.iter().copied().collect(),
            ticks,
        };
        let before = at(&[(1, 1_000), (2, 5_000)], 100);
        assert_eq!(at(&[(1, 1_500), (2, 5_001), (3, 7)], 100).since_ns(&before), 508);
        // One tick more than the threads say is how ticks are; thirty are a thread that is gone.
        assert_eq!(at(&[(1, 1_500)], 101).since_ns(&before), 500);
        assert_eq!(at(&[(1, 1_500)], 130).since_ns(&before), 300_000_000);
    }

    #[test]
    fn our_own_cpu_time_does_not_go_back() {
        let pid = std::process::id();
        let before = CpuTime::of(pid).unwrap();
        let after = CpuTime::of(pid).unwrap();
        assert!(after.since_ns(&before) < 60_000_000_000);
        assert!(!cores().unwrap().is_empty());
    }
}
