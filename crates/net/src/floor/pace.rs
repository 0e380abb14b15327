//! Exact waits of a thread: what an alarm is to a task (see `clock/alarm.rs`).

use perf::units::{Instant, Nanos};
use rustix::event::{Timespec, poll};

use crate::clock::Clock;

/// How long before its moment a thread begins to watch the clock; as `clock/alarm.rs`.
const LEAD: Nanos = Nanos::from_micros(110);

/// Blocks the calling thread until `at`, to a few microseconds, or not at all if that has passed.
/// Says how late it is. Only of the real clock.
pub fn until(clock: &Clock, at: Instant) -> Nanos {
    loop {
        let now = clock.now();
        if now >= at {
            return now.since(at);
        }
        let left = at.since(now);
        if left > LEAD {
            rest(left - LEAD);
        } else {
            // On a machine with one processor somebody else may be what we wait for.
            std::thread::yield_now();
        }
    }
}

/// Blocks the calling thread for about `span`, which signals may shorten.
pub fn rest(span: Nanos) {
    let nanos = span.as_nanos();
    let limit = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    };
    poll(&mut [], Some(&limit)).ok();
}

/// When the next of many is due, at a rate; `None` as soon as may be.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    started: Instant,
    /// Between two, in nanoseconds: a rate of millions needs fractions.
    interval_ns: Option<f64>,
}

impl Pace {
    /// So many in a second from `started`, or without end.
    pub fn new(started: Instant, per_s: Option<f64>) -> Self {
        Self { started, interval_ns: per_s.filter(|rate| *rate > 0.0).map(|rate| 1e9 / rate) }
    }

    /// When number `index` (from zero) is due, if there is a rate.
    pub fn due(&self, index: u64) -> Option<Instant> {
        let interval_ns = self.interval_ns?;
        Some(self.started + Nanos::from_secs_f64(interval_ns * 1e-9 * index as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_until_its_moment_and_not_before() {
        let clock = Clock::real();
        let at = clock.now() + Nanos::from_millis(2);
        until(&clock, at);
        assert!(clock.now() >= at);
        assert!(until(&clock, at) > Nanos::ZERO, "what has passed is late");
    }

    #[test]
    fn a_pace_of_millions_does_not_drift() {
        let pace = Pace::new(Instant::EPOCH, Some(3e6));
        assert_eq!(pace.due(3_000_000), Some(Instant::EPOCH + Nanos::from_secs(1)));
        assert_eq!(Pace::new(Instant::EPOCH, None).due(5), None);
        assert_eq!(Pace::new(Instant::EPOCH, Some(0.0)).due(5), None);
    }
}
