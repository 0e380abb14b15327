//! A file that one client writes and all read: what close-to-open promises.
//!
//! Its writer fills it with the number of its session, from the first byte to the last. Whoever
//! opens it after session N was closed sees N, or what came after.

use perf::units::{Instant, Nanos};
use wire::nfs3::NfsStat3;

/// A session of the writer's.
#[derive(Clone, Copy, Debug)]
struct Session {
    number: u8,
    bytes: usize,
    opened: Instant,
    /// None while it is open, and when it ended with an error.
    closed: Option<Instant>,
}

/// All sessions of a file.
#[derive(Clone, Debug, Default)]
pub struct Sessions(Vec<Session>);

impl Sessions {
    /// The next session begins; gives its number, from 1 to 250 and again from 1.
    pub fn opened(&mut self, now: Instant, bytes: usize) -> u8 {
        let number = u8::try_from(self.0.len() % 250).unwrap_or(0) + 1;
        self.0.push(Session { number, bytes, opened: now, closed: None });
        number
    }

    /// The session has ended, and all it wrote is stable.
    pub fn closed(&mut self, now: Instant) {
        if let Some(last) = self.0.last_mut() {
            last.closed = Some(now);
        }
    }

    /// Whether `seen`, from an open at `began` to a close at `ended`, is what is promised.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, began: Instant, ended: Instant, seen: &[u8]) -> Result<(), String> {
        let is_closed = |one: &Session| one.closed.is_some_and(|closed| closed < began);
        let last = self.0.iter().rposition(is_closed);
        // Whatever was there before the last that was closed is gone.
        let later = &self.0[last.map_or(0, |last| last + 1)..];
        let may_be = later.iter().filter(|one| one.opened <= ended);
        let numbers: Vec<u8> = may_be.map(|one| one.number).collect();
        let last = last.map(|last| self.0[last]);
        let (number, bytes) = last.map_or((0, 0), |last| (last.number, last.bytes));
        if numbers.is_empty() {
            return check_closed(number, bytes, seen);
        }
        // Somebody is writing: 0 is a hole, or a file that was cut.
        let is_known = |byte: &u8| *byte == 0 || *byte == number || numbers.contains(byte);
        match seen.iter().find(|byte| !is_known(byte)) {
            None => Ok(()),
            Some(old) => Err(format!("{old} was seen, not {number} or of {numbers:?}")),
        }
    }
}

impl Sessions {
    /// Whether there may be no such file, or only one that is stale, from `began` to `ended`. That
    /// it is missing may be remembered for `patience` by who has looked before.
    ///
    /// # Errors
    /// It is there.
    pub fn check_missing(
        &self,
        status: NfsStat3,
        began: Instant,
        ended: Instant,
        patience: Nanos,
    ) -> Result<(), String> {
        let first = self.0.iter().filter_map(|one| one.closed).min();
        let is_there = first.is_some_and(|closed| closed + patience < began);
        let is_changing = self
            .0
            .iter()
            .any(|one| one.opened <= ended && one.closed.is_none_or(|closed| closed >= began));
        match status {
            NfsStat3::NoEnt if !is_there => Ok(()),
            NfsStat3::Stale if is_changing => Ok(()),
            status => Err(format!("{status}, although a session was closed at {first:?}")),
        }
    }
}

/// Nobody is writing: these are the bytes of the last session, and all of them.
fn check_closed(number: u8, bytes: usize, seen: &[u8]) -> Result<(), String> {
    let wrong = seen.iter().position(|byte| *byte != number);
    match (wrong, seen.len() == bytes) {
        (None, true) => Ok(()),
        (wrong, _) => Err(format!(
            "session {number} of {bytes} bytes was closed, and {} were seen, of which {wrong:?} is \
             {:?}",
            seen.len(),
            wrong.map(|at| seen[at])
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::EPOCH + Nanos::from_secs(secs)
    }

    #[test]
    fn what_was_closed_is_seen_or_what_came_after() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.opened(at(1), 3), 1);
        assert!(sessions.check(at(2), at(3), &[0, 1]).is_ok(), "it is being written");
        sessions.closed(at(4));
        assert!(sessions.check(at(5), at(6), &[1, 1, 1]).is_ok());
        assert!(sessions.check(at(5), at(6), &[1, 1]).is_err());
        assert!(sessions.check(at(4), at(6), &[1, 1]).is_ok(), "opened before it was closed");
        assert_eq!(sessions.opened(at(7), 2), 2);
        assert!(sessions.check(at(5), at(8), &[1, 2, 1]).is_ok());
        sessions.closed(at(9));
        assert!(sessions.check(at(10), at(11), &[2, 1]).is_err());
        assert!(sessions.check(at(10), at(11), &[2, 2]).is_ok());
    }
}
