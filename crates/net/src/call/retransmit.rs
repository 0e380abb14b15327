//! When a call is retransmitted, and when it has waited for too long: a plain state machine.
//!
//! The time to wait for a reply is estimated from the response times of each class of procedures
//! (`estimate.rs`); where nothing is known, or a class has no estimate, it is `timeo`. A call that
//! was sent twice tells nothing about its time (Karn), and each time that it is retransmitted it
//! waits twice as long. Streams lose nothing, so that they estimate nothing and wait for `timeo`.
//!
//! `timeo` x `retrans` after a call was submitted is its major timeout: a soft client gives it up
//! exactly then; a hard one reports it, and goes on until the next one. (Linux's comes after
//! `timeo` x (`retrans` + 1) over TCP, and after `timeo` doubled `retrans` times over UDP.)

use std::collections::{BTreeSet, HashMap};

use perf::units::{Instant, Nanos};

use super::estimate::Estimate;
use super::options::{Options, Recovery, Traits};
use super::window::Window;
use super::xids::Xids;

/// Longest wait over datagrams: a server that has come back is noticed within this time.
const DATAGRAM_WAIT_MAX: Nanos = Nanos::from_secs(15);

/// Longest wait over streams (nfs(5)); reconnecting does not wait for it.
const STREAM_WAIT_MAX: Nanos = Nanos::from_secs(600);

/// Classes with an estimate of their own; others share one.
const ESTIMATES_MAX: usize = 64;

/// What [`Retransmit::due`] has to say of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// Send it again, as it is. It was last sent at `sent`.
    Again { xid: u32, sent: Instant },
    /// The same, after a major timeout.
    Major { xid: u32, sent: Instant },
    /// Its time, `limit`, is up.
    GivenUp { xid: u32, limit: Nanos },
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Retransmit {
    rules: Rules,
    calls: Xids<Attempt>,
    /// Moments at which calls want to be looked at.
    due: BTreeSet<(Instant, u32)>,
    estimates: HashMap<u32, Estimate>,
    window: Window,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Before anything is known (RFC 6298 section 2 has 1 s).
    wait_initial: Nanos,
    wait_max: Nanos,
    major_timeout: Nanos,
    /// Until the server has answered once: when to give up even though the client is hard.
    first_reply_limit: Option<Nanos>,
    recovery: Recovery,
    traits: Traits,
}

impl Rules {
    pub(super) fn datagrams(options: &Options) -> Self {
        let wait_max = options.timeo.max(DATAGRAM_WAIT_MAX);
        Self { wait_max, ..Self::of(options) }
    }

    pub(super) fn stream(options: &Options) -> Self {
        let wait_max = options.timeo.max(STREAM_WAIT_MAX);
        Self { wait_max, traits: Traits { class: |_| None, ..options.traits }, ..Self::of(options) }
    }

    /// With another major timeout.
    pub(super) fn within(self, major_timeout: Nanos) -> Self {
        Self { major_timeout, ..self }
    }

    pub(super) fn major_timeout(&self) -> Nanos {
        self.major_timeout
    }

    fn of(options: &Options) -> Self {
        // Less than a tick of the coarse clock would be a busy loop.
        let timeo = options.timeo.max(Nanos::from_millis(1));
        Self {
            wait_initial: timeo,
            wait_max: timeo,
            major_timeout: timeo * u64::from(options.retrans.max(1)),
            first_reply_limit: (options.recovery == Recovery::Hard && !options.insist)
                .then_some(options.first_reply_limit),
            recovery: options.recovery,
            traits: options.traits,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    class: Option<u32>,
    first: Instant,
    last: Instant,
    due: Instant,
    wait: Nanos,
    /// When its next major timeout is.
    major: Instant,
    again: bool,
}

impl Retransmit {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            calls: Xids::default(),
            due: BTreeSet::new(),
            estimates: HashMap::new(),
            window: Window::default(),
        }
    }

    /// The server has answered: it is one.
    pub(super) fn proven(&mut self) {
        self.rules.first_reply_limit = None;
    }

    /// Whether one more call may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.calls.len() < self.window.calls as usize
    }

    /// A call is sent for the first time.
    pub(super) fn sent(&mut self, now: Instant, xid: u32, procedure: u32) {
        let class = self.class(procedure);
        let known = class.and_then(|class| self.estimates.get(&class));
        let wait = known.and_then(|estimate| estimate.wait(self.rules.wait_max));
        let wait = wait.unwrap_or(self.rules.wait_initial);
        let limit = self.rules.first_reply_limit.unwrap_or(self.rules.major_timeout);
        let major = now + limit;
        let due = (now + wait).min(major);
        let attempt = Attempt { class, first: now, last: now, due, wait, major, again: false };
        let before = self.calls.insert(xid, attempt);
        debug_assert!(before.is_none(), "XID {xid} is that of an outstanding call");
        self.due.insert((due, xid));
        self.check();
    }

    /// Each outstanding call has one time at which it is due.
    fn check(&self) {
        debug_assert_eq!(self.calls.len(), self.due.len());
    }

    /// A call is retransmitted for another reason than its time: its connection broke.
    pub(super) fn sent_again(&mut self, now: Instant, xid: u32) {
        if let Some(attempt) = self.calls.get_mut(&xid) {
            self.due.remove(&(attempt.due, xid));
            (attempt.last, attempt.again) = (now, true);
            attempt.due = (now + attempt.wait).min(attempt.major);
            self.due.insert((attempt.due, xid));
        }
    }

    /// The first reply to a call has come. Gives when the call was first sent, if it is known and
    /// was sent once.
    pub(super) fn answered(&mut self, now: Instant, xid: u32) -> Option<Instant> {
        let attempt = self.forget(xid)?;
        self.window.answered();
        if attempt.again {
            return None;
        }
        if let Some(class) = attempt.class {
            self.estimates.entry(class).or_default().sample(now.since(attempt.first));
        }
        Some(attempt.first)
    }

    /// Nobody waits for the call any more.
    pub(super) fn abandoned(&mut self, xid: u32) {
        self.forget(xid);
    }

    fn forget(&mut self, xid: u32) -> Option<Attempt> {
        let attempt = self.calls.remove(&xid)?;
        self.due.remove(&(attempt.due, xid));
        self.check();
        Some(attempt)
    }

    /// The next call whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        let &(due, xid) = self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.remove(&(due, xid));
        let attempt = self.calls.get_mut(&xid)?;
        let sent = attempt.last;
        let is_major = now >= attempt.major;
        let (rules, limit) = (&self.rules, attempt.major.since(attempt.first));
        let is_soft = rules.recovery == Recovery::Soft || rules.first_reply_limit.is_some();
        if is_major && is_soft {
            self.calls.remove(&xid);
            return Some(Due::GivenUp { xid, limit });
        }
        if is_major {
            attempt.major = now + self.rules.major_timeout;
        }
        // Where no time is estimated, being late is no sign of loss.
        if attempt.class.is_some() {
            self.window.lost(sent, now);
        }
        attempt.wait = (attempt.wait * 2).min(self.rules.wait_max);
        attempt.due = (now + attempt.wait).min(attempt.major);
        attempt.last = now;
        attempt.again = true;
        self.due.insert((attempt.due, xid));
        self.check();
        Some(if is_major { Due::Major { xid, sent } } else { Due::Again { xid, sent } })
    }

    /// When [`Retransmit::due`] will next have something to say.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(due, _)| due)
    }

    fn class(&self, procedure: u32) -> Option<u32> {
        let class = (self.rules.traits.class)(procedure)?;
        let known = self.estimates.len() < ESTIMATES_MAX || self.estimates.contains_key(&class);
        Some(if known { class } else { u32::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::window::WINDOW_INITIAL;

    const MS: Nanos = Nanos::from_millis(1);

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + MS * millis
    }

    fn datagrams(retrans: u32, recovery: Recovery) -> Retransmit {
        let (timeo, insist) = (Nanos::from_secs(1), true);
        let options = Options { timeo, retrans, recovery, insist, ..Options::datagrams() };
        Retransmit::new(Rules::datagrams(&options))
    }

    /// What is due of one call, and after how many milliseconds.
    fn due_times(calls: &mut Retransmit, times: usize) -> Vec<(u64, Due)> {
        let mut times_due = Vec::new();
        while let Some(due) = calls.next_due().filter(|_| times_due.len() < times) {
            times_due
                .push((due.since(Instant::EPOCH).as_nanos() / 1_000_000, calls.due(due).unwrap()));
        }
        times_due
    }

    fn again(sent: u64) -> Due {
        Due::Again { xid: 7, sent: at(sent) }
    }

    fn major(sent: u64) -> Due {
        Due::Major { xid: 7, sent: at(sent) }
    }

    fn given_up(millis: u64) -> Due {
        Due::GivenUp { xid: 7, limit: MS * millis }
    }

    #[test]
    fn a_soft_call_is_sent_again_ever_later_and_given_up_after_timeo_times_retrans() {
        let mut calls = datagrams(10, Recovery::Soft);
        calls.sent(at(0), 7, 1);
        let expected = [
            (1_000, again(0)),
            (3_000, again(1_000)),
            (7_000, again(3_000)),
            (10_000, given_up(10_000)),
        ];
        assert_eq!(due_times(&mut calls, 99), expected);
        assert_eq!(calls.answered(at(10_001), 7), None);
    }

    #[test]
    fn a_hard_call_is_never_given_up_and_says_so_every_timeo_times_retrans() {
        let mut calls = datagrams(3, Recovery::Hard);
        calls.sent(at(0), 7, 1);
        let expected = [
            (1_000, again(0)),
            (3_000, major(1_000)),
            (6_000, major(3_000)),
            (9_000, major(6_000)),
        ];
        assert_eq!(due_times(&mut calls, 4), expected);
    }

    #[test]
    fn a_server_that_never_answered_is_given_up_by_a_hard_client_too() {
        let mut calls = Retransmit::new(Rules::stream(&Options::stream()));
        calls.sent(at(0), 7, 1);
        assert_eq!(due_times(&mut calls, 9), [(20_000, given_up(20_000))]);
        calls.sent(at(0), 7, 1);
        calls.proven();
        assert_eq!(due_times(&mut calls, 1), [(20_000, major(0))]);
    }

    #[test]
    fn over_streams_a_call_waits_for_timeo_whatever_the_times_were() {
        let options = Options { insist: true, ..Options::stream() };
        let mut calls = Retransmit::new(Rules::stream(&options));
        calls.sent(at(0), 1, 1);
        calls.answered(at(1), 1);
        calls.sent(at(0), 7, 1);
        assert_eq!(due_times(&mut calls, 2), [(60_000, again(0)), (120_000, major(60_000))]);
    }

    #[test]
    fn a_call_that_a_new_connection_takes_again_keeps_its_major_timeout() {
        let options = Options { recovery: Recovery::Soft, ..Options::stream() };
        let mut calls = Retransmit::new(Rules::stream(&options));
        calls.sent(at(0), 7, 1);
        calls.sent_again(at(50_000), 7);
        assert_eq!(
            due_times(&mut calls, 2),
            [(110_000, again(50_000)), (120_000, given_up(120_000))]
        );
    }

    #[test]
    fn the_wait_follows_the_times_of_the_class() {
        let class = |procedure| (procedure < 10).then_some(procedure % 2);
        let traits = Traits { class, ..Traits::UNKNOWN };
        let (timeo, retrans) = (Nanos::from_secs(1), 60);
        let options = Options { traits, timeo, retrans, ..Options::datagrams() };
        let mut calls = Retransmit::new(Rules::datagrams(&options));
        for (xid, procedure, takes) in (0..64).flat_map(|n| [(2 * n, 1, 1), (2 * n + 1, 6, 300)]) {
            calls.sent(at(0), xid, procedure);
            calls.answered(at(takes), xid);
        }
        calls.sent(at(1_000), 1_000, 3);
        assert_eq!(calls.next_due(), Some(at(1_100)), "the least");
        calls.abandoned(1_000);
        calls.sent(at(1_000), 1_001, 4);
        let wait = calls.next_due().unwrap().since(at(1_000));
        assert!((MS * 300..MS * 310).contains(&wait), "{wait}: the deviation has shrunk");
        calls.abandoned(1_001);
        for xid in 1_002..1_010 {
            calls.sent(at(1_000), xid, 10);
            assert_eq!(calls.next_due(), Some(at(2_000)), "it has no class");
            calls.answered(at(1_001), xid);
        }
    }

    #[test]
    fn an_answer_to_a_call_sent_twice_tells_nothing_about_its_time() {
        let mut calls = datagrams(60, Recovery::Soft);
        calls.sent(at(0), 7, 1);
        assert_eq!(calls.due(at(1_000)), Some(again(0)));
        assert_eq!(calls.answered(at(1_001), 7), None);
        calls.sent(at(2_000), 2, 1);
        assert_eq!(calls.next_due(), Some(at(3_000)));
    }

    #[test]
    fn the_window_is_halved_once_per_round_trip_and_grows_by_one_per_window() {
        let mut calls = datagrams(60, Recovery::Soft);
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
