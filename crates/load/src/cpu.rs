//! Processor time: of this process, of the calling thread, and of everybody else.

use std::fs;

use perf::units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// A reading of both clocks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// All threads: client, embedded server and emulated link together.
    pub process: Nanos,
    /// The calling thread: the client with its end of the link.
    pub thread: Nanos,
}

impl Usage {
    pub fn now() -> Self {
        Self { process: read(ClockId::ProcessCPUTime), thread: read(ClockId::ThreadCPUTime) }
    }

    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            process: self.process.saturating_sub(earlier.process),
            thread: self.thread.saturating_sub(earlier.thread),
        }
    }
}

/// All processors of the machine, over a time: who else used them.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours {
    began: Instant,
    busy: Option<Nanos>,
    own: Nanos,
}

impl Neighbours {
    pub fn watch(now: Instant) -> Self {
        Self { began: now, busy: busy(), own: Usage::now().process }
    }

    /// The share of all processors that others have used since, from 0 to 1; kernel threads that
    /// work for us count as others. `None` where the system does not say.
    pub fn share(&self, now: Instant) -> Option<f64> {
        let busy = busy()?.saturating_sub(self.busy?);
        let own = Usage::now().process.saturating_sub(self.own);
        // All of the machine's, also where this process may use one of them only.
        let processors = processors()? as f64;
        let all = now.since(self.began).as_secs_f64() * processors;
        (all > 0.0).then(|| busy.saturating_sub(own).as_secs_f64() / all)
    }
}

/// Time that all processors of the machine have not been idle since it started, in ticks of 10 ms.
/// `None` where the system does not say.
pub fn machine() -> Option<Nanos> {
    busy()
}

/// Processors that the machine runs.
fn processors() -> Option<usize> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let lines = stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
    Some(lines.count().max(1))
}

/// Time that the processors have not been idle, from the first line of /proc/stat: user, nice,
/// system, idle, iowait, irq, softirq, steal, in ticks of 10 ms.
fn busy() -> Option<Nanos> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some(Nanos::from_millis(10) * (user + nice + system + irq + softirq + steal))
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos::from_secs(secs) + Nanos::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
