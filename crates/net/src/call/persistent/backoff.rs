//! When to connect again: at once to who has answered, ever later to who has not.

use perf::units::{Instant, Nanos};

/// First pause; a guess at how long a server needs to start.
const PAUSE_MIN: Nanos = Nanos::from_millis(100);

/// Longest: a server that has come back is noticed within this time.
const PAUSE_MAX: Nanos = Nanos::from_secs(5);

/// The state of one connection's attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    pause: Nanos,
}

impl Backoff {
    /// The server has answered a call.
    pub(super) fn answered(&mut self) {
        self.pause = Nanos::ZERO;
    }

    /// A connection could not be made, or has ended. Gives when to try the next.
    pub(super) fn ended(&mut self, now: Instant) -> Instant {
        let next = now + self.pause;
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_is_reached_again_at_once_and_who_does_not_ever_later() {
        let now = Instant::EPOCH;
        let mut backoff = Backoff::default();
        let mut pauses = || backoff.ended(now).since(now).as_nanos() / 1_000_000;
        let first: Vec<u64> = (0..9).map(|_| pauses()).collect();
        assert_eq!(first, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.answered();
        assert_eq!(backoff.ended(now), now);
    }
}
