//! Processor time, of this process and of the calling thread.

use perf::units::Nanos;
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

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let secs = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos::from_secs(secs) + Nanos::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
