//! Whether a state of a file is told apart from the next one.
//!
//! Servers tell times that tick: those of Linux in steps of up to 10 ms, those of some file systems
//! in whole seconds. What changes twice within one tick has the same times after both. A block that
//! was read between the two, and stored under that time, would be served for the second state for
//! ever. So data are stored only if they were asked for when the tick of their state was over:
//!
//! - another file of the same origin is known to have changed clearly later than this one; or
//! - the state was known to us for longer than a tick when the data were asked for.
//!
//! Neither compares the server's clock with ours. An origin may be several machines whose clocks
//! differ a little: that is what "clearly" is for.

use crate::key::Time;

/// No tick of a clock that tells fractions of a second is longer (a jiffy at 100 Hz, five times).
const FINE_TICK_NS: u64 = 50_000_000;

/// Of a clock that tells whole seconds.
const COARSE_TICK_NS: u64 = 2_000_000_000;

/// By which the clocks of the machines of one origin may differ.
const DIFFERENCE_NS: u64 = 1_000_000_000;

/// What is known of an origin's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct OriginTime {
    newest: Time,
}

impl OriginTime {
    /// A reply has told this time of change (ctime), which only the origin sets. Not one of a
    /// modification (mtime), which programs set to what they like.
    pub fn told(&mut self, ctime: Time) {
        self.newest = self.newest.max(ctime);
    }

    /// Whether what is asked for now is of the state that changed last at `ctime`, or shows another
    /// time. `known_for_ns`: since the reply that first told this state.
    pub fn is_settled(&self, ctime: Time, known_for_ns: u64) -> bool {
        let tick = if ctime.nanos == 0 { COARSE_TICK_NS } else { FINE_TICK_NS };
        known_for_ns > tick || since(self.newest, ctime) > i128::from(tick + DIFFERENCE_NS)
    }
}

fn since(later: Time, earlier: Time) -> i128 {
    let seconds = i128::from(later.seconds) - i128::from(earlier.seconds);
    seconds * 1_000_000_000 + i128::from(later.nanos) - i128::from(earlier.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64, nanos: u32) -> Time {
        Time { seconds, nanos }
    }

    #[test]
    fn a_state_is_settled_when_its_tick_is_over() {
        let mut origin = OriginTime::default();
        assert!(!origin.is_settled(time(5, 1), 50_000_000));
        assert!(origin.is_settled(time(5, 1), 50_000_001));
        origin.told(time(6, 50_000_002));
        assert!(origin.is_settled(time(5, 1), 0));
        assert!(!origin.is_settled(time(5, 2), 0));
        origin.told(time(4, 0));
        assert!(origin.is_settled(time(5, 1), 0), "an older time takes nothing back");
    }

    #[test]
    fn whole_seconds_take_longer() {
        let mut origin = OriginTime::default();
        origin.told(time(8, 0));
        assert!(!origin.is_settled(time(5, 0), 2_000_000_000));
        origin.told(time(8, 1));
        assert!(origin.is_settled(time(5, 0), 0));
    }

    #[test]
    fn any_time_is_taken() {
        let mut origin = OriginTime::default();
        origin.told(time(i64::MAX, u32::MAX));
        assert!(origin.is_settled(time(i64::MIN, 0), 0));
        assert!(!origin.is_settled(time(i64::MAX, u32::MAX), 0));
    }
}
