//! Whether a state of a file can be distinguished from the next one.
//!
//! Servers tell times that tick: those of Linux in steps of up to 10 ms, those of some file systems
//! in whole seconds. What changes twice within one tick has the same times after both. A block that
//! was read between the two, and stored under that time, would be served for the second state for
//! ever. So data are stored only if they were requested when the tick of their state was over:
//!
//! - the state was known to us for longer than a tick when the data were requested; or
//! - the origin's clock has clearly gone on since: it stands no lower than any time of change that
//!   it has reported, and what has passed here since then. It may have been set back, and have
//!   files from before: more than our own clock says is not believed; or
//! - by our own clock the change is so long past that no clock is so wrong.
//!
//! An origin may be several machines whose clocks differ a little: that is what "clearly" is for.

use crate::key::Time;

/// No tick of a clock that tells fractions of a second is longer (a jiffy at 100 Hz, five times).
const FINE_TICK_NS: u64 = 50_000_000;

/// Of a clock that tells whole seconds.
const COARSE_TICK_NS: u64 = 2_000_000_000;

/// By which the clocks of the machines of one origin may differ.
const DIFFERENCE_NS: u64 = 100_000_000;

/// By which our clock and the origin's may differ: an hour, a time zone that somebody got wrong.
/// Where they differ by more, two changes within one tick may be taken for one.
const WRONG_NS: u64 = 3_600_000_000_000;

/// What is known of an origin's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct OriginTime {
    /// By how much it is ahead of the caller's clock at least, in nanoseconds.
    ahead_min: Option<i128>,
}

/// When it is called, by the caller's clocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Now {
    /// Of a clock that only goes forward.
    pub steady_ns: u64,
    /// Since 1970, as far as the caller knows.
    pub wall: Time,
}

impl OriginTime {
    /// A reply that is here now has this time of change (ctime), which only the origin sets.
    /// Not one of a modification (mtime), which programs set to what they like.
    pub fn observe(&mut self, ctime: Time, steady_ns: u64) {
        let ahead = nanos(ctime) - i128::from(steady_ns);
        self.ahead_min = Some(self.ahead_min.map_or(ahead, |known| known.max(ahead)));
    }

    /// Whether what is requested now is of the state that changed last at `ctime`, or shows another
    /// time. `known_for_ns`: since the first reply with this state.
    pub fn is_settled(&self, ctime: Time, known_for_ns: u64, now: Now) -> bool {
        let tick = if ctime.nanos == 0 { COARSE_TICK_NS } else { FINE_TICK_NS };
        let at_least = self.ahead_min.map(|ahead| ahead + i128::from(now.steady_ns));
        let origin_now = at_least.map(|origin_now| origin_now.min(nanos(now.wall)));
        let is_over =
            |now: i128, margin: u64| now - nanos(ctime) > i128::from(tick) + i128::from(margin);
        known_for_ns > tick
            || origin_now.is_some_and(|now| is_over(now, DIFFERENCE_NS))
            || is_over(nanos(now.wall), WRONG_NS)
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time(seconds: i64, nanos: u32) -> Time {
        Time { seconds, nanos }
    }

    /// At so many milliseconds of a clock that has nothing to do with the origin's, and with a wall
    /// clock that is half an hour ahead of that.
    fn at(ms: u64) -> Now {
        Now { steady_ns: ms * MS, wall: time(1800, 0) }
    }

    #[test]
    fn a_state_is_settled_when_its_tick_is_over() {
        let mut origin = OriginTime::default();
        assert!(!origin.is_settled(time(5, 1), 50 * MS, at(1000)));
        assert!(origin.is_settled(time(5, 1), 50 * MS + 1, at(1000)));
        origin.observe(time(5, 0), 1000 * MS);
        assert!(!origin.is_settled(time(5, 1), 0, at(1150)));
        assert!(origin.is_settled(time(5, 1), 0, at(1151)));
        assert!(!origin.is_settled(time(5, 2 * 1_000_000), 0, at(1151)));
        origin.observe(time(4, 0), 1100 * MS);
        assert!(origin.is_settled(time(5, 1), 0, at(1151)), "a late time takes nothing back");
        origin.observe(time(9, 0), 1160 * MS);
        assert!(origin.is_settled(time(5, 1), 0, at(1160)));
    }

    #[test]
    fn whole_seconds_take_longer() {
        let mut origin = OriginTime::default();
        origin.observe(time(5, 0), 0);
        assert!(!origin.is_settled(time(5, 0), 2000 * MS, at(2100)));
        assert!(origin.is_settled(time(5, 0), 0, at(2101)));
    }

    #[test]
    fn what_is_old_by_our_own_clock_is_settled() {
        let origin = OriginTime::default();
        let now = |seconds| Now { steady_ns: 0, wall: time(seconds, 0) };
        assert!(!origin.is_settled(time(5, 1), 0, now(3605)));
        assert!(origin.is_settled(time(5, 1), 0, now(3606)));
    }

    #[test]
    fn a_file_of_the_future_settles_nothing_before_our_clock_says_so() {
        let mut origin = OriginTime::default();
        origin.observe(time(9_000, 0), 0);
        let now = |nanos| Now { steady_ns: 0, wall: time(100, nanos) };
        assert!(!origin.is_settled(time(100, 1), 0, now(150_000_000)));
        assert!(origin.is_settled(time(100, 1), 0, now(151_000_000)));
    }

    #[test]
    fn any_time_is_taken() {
        let mut origin = OriginTime::default();
        origin.observe(time(i64::MAX, u32::MAX), u64::MAX);
        assert!(origin.is_settled(time(i64::MIN, 0), 0, at(0)));
        assert!(!origin.is_settled(time(i64::MAX, u32::MAX), 0, at(0)));
    }
}
