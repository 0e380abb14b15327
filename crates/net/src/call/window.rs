//! How many calls over datagrams may be under way.
//!
//! What is lost is mostly lost because too much was under way at once, so the number of calls under
//! way is a window: it grows by one for each of itself answered and is halved when a call has to be
//! retransmitted, once per round trip.

use perf::units::Instant;

/// Calls under way: at first, and at most.
pub(super) const WINDOW_INITIAL: u32 = 8;
const WINDOW_MAX: u32 = 256;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) calls: u32,
    /// Answered since it was last made larger.
    answered: u32,
    /// What was sent before has been paid for already.
    halved_at: Instant,
}

impl Default for Window {
    fn default() -> Self {
        Self { calls: WINDOW_INITIAL, answered: 0, halved_at: Instant::EPOCH }
    }
}

impl Window {
    pub(super) fn answered(&mut self) {
        self.answered += 1;
        if self.answered >= self.calls {
            self.answered = 0;
            self.calls = (self.calls + 1).min(WINDOW_MAX);
        }
        debug_assert!((1..=WINDOW_MAX).contains(&self.calls) && self.answered < self.calls);
    }

    /// A call sent at `sent` has not been answered in time.
    pub(super) fn lost(&mut self, sent: Instant, now: Instant) {
        if sent >= self.halved_at {
            self.calls = (self.calls / 2).max(1);
            self.halved_at = now;
            self.answered = 0;
        }
    }
}
