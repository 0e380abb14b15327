//! When a call over datagrams is sent again, and how many may be under way: a plain state machine.
//!
//! The time to wait is estimated from the response times of each procedure, as Jacobson and Karels
//! have it (RFC 6298): the smoothed time and four times its deviation. A call that was sent twice
//! tells nothing about its time (Karn), and each time that it is sent again it waits twice as long.
//!
//! What is lost is mostly lost because too much was under way at once, so the number of calls under
//! way is a window: it grows by one for each of itself answered and is halved when a call has to be
//! sent again, once per round trip.

use std::collections::{BTreeSet, HashMap};

use perf::units::{Instant, Nanos};

/// The wait before anything is known (RFC 6298 section 2).
const WAIT_INITIAL: Nanos = Nanos::from_secs(1);

/// Least wait: a guess at what a server's disk may need now and then, so that a slow sync is not
/// taken for a loss.
const WAIT_MIN: Nanos = Nanos::from_millis(100);

/// Most: a server that has come back is noticed within this time.
const WAIT_MAX: Nanos = Nanos::from_secs(15);

/// Calls under way: at first, and at most.
const WINDOW_INITIAL: u32 = 8;
const WINDOW_MAX: u32 = 256;

/// Procedures with an estimate of their own; others share one.
const ESTIMATES_MAX: usize = 64;

/// What [`Retransmit::due`] has to say of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// Send it again, as it is.
    Again(u32),
    /// Its time is up.
    GivenUp(u32),
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Retransmit {
    /// For a call in all, from when it is first sent.
    limit: Nanos,
    calls: HashMap<u32, Attempt>,
    /// Moments at which calls want to be looked at.
    due: BTreeSet<(Instant, u32)>,
    estimates: HashMap<u32, Estimate>,
    window: Window,
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    procedure: u32,
    first: Instant,
    last: Instant,
    due: Instant,
    wait: Nanos,
    again: bool,
}

impl Retransmit {
    pub(super) fn new(limit: Nanos) -> Self {
        Self {
            limit,
            calls: HashMap::new(),
            due: BTreeSet::new(),
            estimates: HashMap::new(),
            window: Window::default(),
        }
    }

    /// Whether one more call may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.calls.len() < self.window.calls as usize
    }

    /// A call is sent for the first time.
    pub(super) fn sent(&mut self, now: Instant, xid: u32, procedure: u32) {
        let wait = self.estimates.get(&self.key(procedure)).map_or(WAIT_INITIAL, Estimate::wait);
        let due = now + wait.min(self.limit);
        let attempt = Attempt { procedure, first: now, last: now, due, wait, again: false };
        self.calls.insert(xid, attempt);
        self.due.insert((due, xid));
    }

    /// The first reply to a call has come. Gives when the call was first sent, if it is known.
    pub(super) fn answered(&mut self, now: Instant, xid: u32) -> Option<Instant> {
        let attempt = self.take(xid)?;
        self.window.answered();
        if !attempt.again {
            let key = self.key(attempt.procedure);
            self.estimates.entry(key).or_default().sample(now.since(attempt.first));
        }
        Some(attempt.first)
    }

    fn take(&mut self, xid: u32) -> Option<Attempt> {
        let attempt = self.calls.remove(&xid)?;
        self.due.remove(&(attempt.due, xid));
        Some(attempt)
    }

    /// The next call whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        let &(due, xid) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, xid));
        let attempt = self.calls.get_mut(&xid)?;
        let end = attempt.first + self.limit;
        if now >= end {
            self.calls.remove(&xid);
            return Some(Due::GivenUp(xid));
        }
        self.window.lost(attempt.last, now);
        attempt.wait = (attempt.wait * 2).min(WAIT_MAX);
        attempt.due = (now + attempt.wait).min(end);
        attempt.last = now;
        attempt.again = true;
        self.due.insert((attempt.due, xid));
        Some(Due::Again(xid))
    }

    /// When [`Retransmit::due`] will next have something to say.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(due, _)| due)
    }

    fn key(&self, procedure: u32) -> u32 {
        let known = self.estimates.len() < ESTIMATES_MAX || self.estimates.contains_key(&procedure);
        if known { procedure } else { u32::MAX }
    }
}

/// How long a procedure takes.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    smoothed: Option<Nanos>,
    deviation: Nanos,
}

impl Estimate {
    fn sample(&mut self, time: Nanos) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.deviation) = (Some(time), time / 2);
            return;
        };
        let off = time.saturating_sub(smoothed) + smoothed.saturating_sub(time);
        self.deviation = (self.deviation * 3 + off) / 4;
        self.smoothed = Some((smoothed * 7 + time) / 8);
    }

    fn wait(&self) -> Nanos {
        let wait = self.smoothed.map_or(WAIT_INITIAL, |smoothed| smoothed + self.deviation * 4);
        wait.clamp(WAIT_MIN, WAIT_MAX)
    }
}

#[derive(Debug)]
struct Window {
    calls: u32,
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
    fn answered(&mut self) {
        self.answered += 1;
        if self.answered >= self.calls {
            self.answered = 0;
            self.calls = (self.calls + 1).min(WINDOW_MAX);
        }
    }

    /// A call sent at `sent` has not been answered in time.
    fn lost(&mut self, sent: Instant, now: Instant) {
        if sent >= self.halved_at {
            self.calls = (self.calls / 2).max(1);
            self.halved_at = now;
            self.answered = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + MS * millis
    }

    #[test]
    fn a_call_without_answer_is_sent_again_ever_later_until_its_time_is_up() {
        let mut calls = Retransmit::new(Nanos::from_secs(10));
        calls.sent(at(0), 7, 1);
        let mut said = Vec::new();
        while let Some(due) = calls.next_due() {
            said.push((due.since(Instant::EPOCH) / 1_000_000, calls.due(due).unwrap()));
        }
        let expected = [
            (1_000, Due::Again(7)),
            (3_000, Due::Again(7)),
            (7_000, Due::Again(7)),
            (10_000, Due::GivenUp(7)),
        ];
        assert_eq!(said, expected.map(|(ms, due)| (Nanos::from_nanos(ms), due)));
        assert_eq!(calls.answered(at(10_001), 7), None);
    }

    #[test]
    fn the_wait_follows_the_procedures_own_times() {
        let mut calls = Retransmit::new(Nanos::from_secs(60));
        for (xid, procedure, takes) in (0..64).flat_map(|n| [(2 * n, 1, 1), (2 * n + 1, 7, 300)]) {
            calls.sent(at(0), xid, procedure);
            calls.answered(at(takes), xid);
        }
        calls.sent(at(1_000), 1_000, 1);
        assert_eq!(calls.next_due(), Some(at(1_100)), "the least");
        calls.take(1_000);
        calls.sent(at(1_000), 1_001, 7);
        let wait = calls.next_due().unwrap().since(at(1_000));
        assert!((MS * 300..MS * 310).contains(&wait), "{wait}: the deviation has shrunk");
        calls.take(1_001);
        calls.sent(at(1_000), 1_002, 3);
        assert_eq!(calls.next_due(), Some(at(2_000)), "nothing is known of it");
    }

    #[test]
    fn an_answer_to_a_call_sent_twice_tells_nothing_about_its_time() {
        let mut calls = Retransmit::new(Nanos::from_secs(60));
        calls.sent(at(0), 1, 1);
        assert_eq!(calls.due(at(1_000)), Some(Due::Again(1)));
        assert_eq!(calls.answered(at(1_001), 1), Some(at(0)));
        calls.sent(at(2_000), 2, 1);
        assert_eq!(calls.next_due(), Some(at(3_000)));
    }

    #[test]
    fn the_window_is_halved_once_per_round_trip_and_grows_by_one_per_window() {
        let mut calls = Retransmit::new(Nanos::from_secs(60));
        for xid in 0..WINDOW_INITIAL {
            assert!(calls.has_room());
            calls.sent(at(0), xid, 1);
        }
        assert!(!calls.has_room());
        while calls.due(at(1_000)).is_some() {}
        assert_eq!(calls.window.calls, WINDOW_INITIAL / 2);
        while calls.due(at(3_000)).is_some() {}
        assert_eq!(calls.window.calls, WINDOW_INITIAL / 4);
        for xid in 0..WINDOW_INITIAL {
            calls.answered(at(3_001), xid);
        }
        assert_eq!(calls.window.calls, 4, "2 + 3 of 8 answers");
    }
}
