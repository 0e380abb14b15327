//! A disk's transfer rate: one transfer after the other, whichever of its slots they are in.

use std::collections::VecDeque;

use crate::units::{Instant, Nanos};

/// When the rate is used, and for how long it was. Transfers have to be given in the order in which
/// they begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    used: Nanos,
    /// From when until when it is used, without what is over: at most one span for each request of
    /// the disk that is not done.
    ahead: VecDeque<(Instant, Instant)>,
}

impl Rate {
    /// When a transfer is done that may begin at `begins`; a request that comes at `now`.
    pub(super) fn claim(&mut self, now: Instant, begins: Instant, transfer: Nanos) -> Instant {
        while self.ahead.len() > 1 && self.ahead[0].1 <= now {
            self.ahead.pop_front();
        }
        self.used += transfer;
        match self.ahead.back_mut() {
            Some((_, until)) if *until >= begins => {
                *until += transfer;
                *until
            }
            _ => {
                self.ahead.push_back((begins, begins + transfer));
                begins + transfer
            }
        }
    }

    /// For how long it was used until `now`.
    pub(super) fn used_by(&self, now: Instant) -> Nanos {
        let left = self.ahead.iter().map(|&(from, until)| until.since(from.max(now)));
        self.used.saturating_sub(left.fold(Nanos::ZERO, |sum, span| sum + span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_used_by_what_is_transferred_and_not_by_what_lies_between_or_ahead() {
        let (at, span) = (Instant::from_nanos, Nanos::from_nanos);
        let mut rate = Rate::default();
        assert_eq!(rate.claim(at(0), at(0), span(10)), at(10));
        assert_eq!(rate.claim(at(0), at(5), span(10)), at(20));
        // A transfer that begins later: in between it is idle.
        assert_eq!(rate.claim(at(0), at(100), span(10)), at(110));
        let used = [0, 7, 20, 60, 105, 110, 500].map(|now| rate.used_by(at(now)).as_nanos());
        assert_eq!(used, [0, 7, 20, 20, 25, 30, 30]);
        assert_eq!(rate.claim(at(200), at(200), span(1)), at(201));
        assert_eq!((rate.used_by(at(201)).as_nanos(), rate.ahead.len()), (31, 2));
    }
}
