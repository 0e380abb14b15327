//! When a connection is given up: it asks for nothing, takes nothing, or never finishes asking.
//!
//! A plain state machine that is shown the connection's counters from time to time, so that the
//! way of a call costs nothing for it. It is late by at most the time between two looks, a quarter
//! of the shorter limit, and sooner while a peer is behind. Where others wait for what the
//! connection holds, there is less patience ([`SHORT_STALL_MAX`]).

use perf::units::{Instant, Nanos};

use super::Limits;
use crate::error::TransportError;

/// How long a peer may take nothing, or not finish a record, while others wait for the memory or
/// the seat that it holds. Above what TCP needs to send a lost segment for the fourth time.
pub(crate) const SHORT_STALL_MAX: Nanos = Nanos::from_secs(5);

/// What a connection has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Observed {
    /// Records received.
    pub(crate) records: u64,
    /// A record has begun and is not complete, though we would take the rest of it.
    pub(crate) within_record: bool,
    /// Bytes of replies given to the system.
    pub(crate) sent_bytes: u64,
    pub(crate) unsent_bytes: usize,
    pub(crate) calls: usize,
}

#[derive(Debug)]
pub(crate) struct Patience {
    idle_max: Nanos,
    stall_max: Nanos,
    last: Observed,
    /// When it last did anything, or had a call in progress.
    active_at: Instant,
    /// When it last took anything, or had nothing to take.
    taking_at: Instant,
    /// When it last completed a record, or was not within one.
    giving_at: Instant,
}

impl Patience {
    pub(crate) fn new(limits: &Limits, now: Instant) -> Self {
        Self {
            idle_max: limits.idle_max,
            stall_max: limits.stall_max,
            last: Observed::default(),
            active_at: now,
            taking_at: now,
            giving_at: now,
        }
    }

    /// Time between two looks.
    pub(crate) fn interval(&self) -> Nanos {
        let shorter = self.idle_max.min(self.stall_max).as_nanos();
        Nanos::from_nanos((shorter / 4).max(1))
    }

    /// The same, for one that is behind.
    pub(crate) fn interval_soon(&self) -> Nanos {
        Nanos::from_nanos(self.interval().as_nanos().min(SHORT_STALL_MAX.as_nanos() / 4))
    }

    /// `is_short` says that others wait for what this one may hold.
    ///
    /// # Errors
    /// The connection is to be given up, and why.
    pub(crate) fn look(
        &mut self,
        now: Instant,
        seen: Observed,
        is_short: bool,
    ) -> Result<(), TransportError> {
        let completed = seen.records != self.last.records;
        let took = seen.sent_bytes != self.last.sent_bytes;
        self.last = seen;
        if completed || took || seen.calls > 0 {
            self.active_at = now;
        }
        if took || seen.unsent_bytes == 0 {
            self.taking_at = now;
        }
        if completed || !seen.within_record {
            self.giving_at = now;
        }
        let (idle, stall) = match is_short {
            true => (self.idle_max, self.stall_max.min(SHORT_STALL_MAX)),
            false => (self.idle_max, self.stall_max),
        };
        if now.since(self.taking_at) >= stall {
            Err(TransportError::TakesNothing { limit: stall })
        } else if now.since(self.giving_at) >= stall {
            Err(TransportError::Unfinished { limit: stall })
        } else if now.since(self.active_at) >= idle {
            Err(TransportError::Idle { limit: idle })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections_max: 1,
        connections_per_host_max: 1,
        calls_per_connection_max: 1,
        bytes_in_flight_max: 1,
        idle_max: Nanos::from_secs(360),
        stall_max: Nanos::from_secs(60),
    };

    /// When it is given up, being seen like this for ever, and why.
    fn given_up(mut seen: impl FnMut(u64) -> Observed) -> Option<(u64, TransportError)> {
        let mut patience = Patience::new(&LIMITS, Instant::EPOCH);
        let interval = patience.interval();
        let mut now = Instant::EPOCH;
        for look in 0..1000 {
            now += interval;
            if let Err(error) = patience.look(now, seen(look), false) {
                return Some((now.as_nanos() / 1_000_000_000, error));
            }
        }
        None
    }

    #[test]
    fn who_asks_for_nothing_is_given_up_after_the_idle_limit() {
        let (secs, error) = given_up(|_| Observed::default()).unwrap();
        assert!(matches!(error, TransportError::Idle { .. }), "{error}");
        assert_eq!(secs, 360);
    }

    #[test]
    fn a_call_in_progress_or_now_and_then_keeps_a_connection() {
        assert!(given_up(|_| Observed { calls: 1, ..Observed::default() }).is_none());
        assert!(given_up(|look| Observed { records: look / 20, ..Observed::default() }).is_none());
    }

    #[test]
    fn who_takes_nothing_is_given_up_and_who_takes_a_little_is_not() {
        let stuck = Observed { unsent_bytes: 1, calls: 1, ..Observed::default() };
        let (secs, error) = given_up(|_| stuck).unwrap();
        assert!(matches!(error, TransportError::TakesNothing { .. }), "{error}");
        assert_eq!(secs, 60);
        assert!(given_up(|look| Observed { sent_bytes: look / 3, ..stuck }).is_none());
    }

    #[test]
    fn who_keeps_others_waiting_is_given_up_sooner() {
        let mut patience = Patience::new(&LIMITS, Instant::EPOCH);
        let stuck = Observed { unsent_bytes: 1, calls: 1, ..Observed::default() };
        let at = |secs| Instant::EPOCH + Nanos::from_secs(secs);
        assert!(patience.look(at(4), stuck, true).is_ok());
        assert!(patience.look(at(6), stuck, false).is_ok());
        let error = patience.look(at(6), stuck, true).unwrap_err();
        assert!(matches!(error, TransportError::TakesNothing { limit: SHORT_STALL_MAX }));
    }

    #[test]
    fn a_record_has_to_be_completed_in_time() {
        let within = Observed { within_record: true, calls: 1, ..Observed::default() };
        let (secs, error) = given_up(|_| within).unwrap();
        assert!(matches!(error, TransportError::Unfinished { .. }), "{error}");
        assert_eq!(secs, 60);
        assert!(given_up(|look| Observed { records: look / 3, ..within }).is_none());
    }
}
