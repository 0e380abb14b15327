//! Calls that are late: outstanding for far longer than calls of their kind take.
//!
//! A call that hangs (of one file, one lock, one disk) is outstanding while others are made and
//! answered. The time with no others outstanding is its own: it is not what the next reply was
//! waited for, nor makes it the others two at a time.

use std::collections::BTreeMap;

use perf::units::Nanos;

/// How many times longer than its kind takes on average a late call is outstanding.
const LATE_FACTOR: u64 = 20;
/// Before that none is late.
const LATE_NS_MIN: u64 = 1_000_000_000;
/// Calls become late at multiples of this time: however many are outstanding, these are few.
const STEP_NS: u64 = 125_000_000;

/// When a call is late that is made at `now`.
pub(super) fn due_ns(now: u64, mean: Nanos) -> u64 {
    let after_ns = mean.as_nanos().saturating_mul(LATE_FACTOR).max(LATE_NS_MIN);
    let due_ns = now.saturating_add(after_ns);
    due_ns.checked_next_multiple_of(STEP_NS).unwrap_or(u64::MAX)
}

/// Calls outstanding by when they are late.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// How many will be, by when.
    due: BTreeMap<u64, u32>,
    /// How many are.
    calls: u32,
}

impl Late {
    pub(super) const fn calls(&self) -> u32 {
        self.calls
    }

    pub(super) fn called(&mut self, due_ns: u64) {
        *self.due.entry(due_ns).or_default() += 1;
    }

    /// A call is over.
    pub(super) fn over(&mut self, due_ns: u64) {
        let Some(calls) = self.due.get_mut(&due_ns) else {
            self.calls = self.calls.saturating_sub(1);
            return;
        };
        *calls -= 1;
        if *calls == 0 {
            self.due.remove(&due_ns);
        }
    }

    /// So many calls count no longer: of a connection, where the oldest are.
    pub(super) fn gone(&mut self, calls: u32) {
        let late = self.calls.min(calls);
        self.calls -= late;
        for _ in late..calls {
            let Some(&due_ns) = self.due.keys().next() else { return };
            self.over(due_ns);
        }
    }

    /// The next moment until `now` at which calls become late.
    pub(super) fn next(&self, now: u64) -> Option<u64> {
        self.due.keys().next().copied().filter(|due_ns| *due_ns <= now)
    }

    /// It has come.
    pub(super) fn comes(&mut self, due_ns: u64) {
        self.calls += self.due.remove(&due_ns).unwrap_or(0);
    }
}

/// Calls of a client with its server that hung, while others were answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Hung {
    pub calls: u64,
    /// Those of them that were not answered.
    pub unanswered: u64,
    /// The one that was outstanding longest: for how long, and the packet with the end of it, as
    /// Wireshark counts.
    pub longest_ns: u64,
    pub frame: u64,
    /// It was answered.
    pub is_answered: bool,
}

impl Hung {
    /// A call was outstanding for so long.
    pub(super) const fn count(&mut self, ns: u64, frame: u64, is_answered: bool) {
        self.calls += 1;
        self.unanswered += !is_answered as u64;
        let is_first = ns == self.longest_ns && frame < self.frame;
        if ns > self.longest_ns || is_first {
            (self.longest_ns, self.frame, self.is_answered) = (ns, frame, is_answered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_call_is_late_after_a_second_or_20_times_what_its_kind_takes() {
        assert_eq!(due_ns(10 * SECOND, Nanos::from_nanos(1_000_000)), 11 * SECOND);
        assert_eq!(due_ns(10 * SECOND, Nanos::from_nanos(SECOND)), 30 * SECOND);
        assert_eq!(due_ns(u64::MAX - 1, Nanos::from_nanos(SECOND)), u64::MAX);
    }

    #[test]
    fn calls_are_late_from_their_moment_until_they_are_over() {
        let mut late = Late::default();
        [SECOND, SECOND, 2 * SECOND].into_iter().for_each(|due_ns| late.called(due_ns));
        assert_eq!(late.next(SECOND - 1), None);
        late.over(SECOND);
        assert_eq!(late.next(3 * SECOND), Some(SECOND));
        late.comes(SECOND);
        assert_eq!((late.calls(), late.next(3 * SECOND)), (1, Some(2 * SECOND)));
        late.over(SECOND);
        assert_eq!(late.calls(), 0);
        late.gone(1);
        assert_eq!((late.calls(), late.next(3 * SECOND)), (0, None));
    }
}
