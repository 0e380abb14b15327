//! Replies in the log. What a call did is made stable in its place while the record of its reply
//! is written, so that neither waits for the other, and it is answered when both are there. A
//! recovery looks in the file system whether a call was executed of which only the record is there.

use std::sync::Arc;

use log::reply::Effect;
use log::{EncodedReply, Stamp};
use tokio::sync::oneshot;

use super::Log;
use super::keys::key_of;
use super::shared::{Failed, Shared};
use super::ticket::Ticket;
use super::times::stamp;
use crate::replies::{OUTAGE_SECS_MAX, Outcome, Recorded, Recording};
use crate::types::{Handle, Time};

/// What the log had, as if no time had passed since the newest call that was answered: while no
/// server could be called, no client has come round its XIDs. So they are written again, and age by
/// the clock from now on, as calls of this process do. After a day they are forgotten.
pub(super) fn without_outage(replies: Vec<EncodedReply>, now: Stamp) -> Vec<EncodedReply> {
    // A clock that was set back leaves some that are still to come.
    let past = replies.iter().map(|reply| reply.came).filter(|&came| came <= now);
    let Some(ended) = past.max() else { return replies };
    // Not into the future by parts of a second.
    let outage = now.seconds - ended.seconds - i64::from(ended.nanos > now.nanos);
    let oldest = now.seconds.saturating_sub_unsigned(OUTAGE_SECS_MAX);
    let recent = replies.into_iter().filter(|reply| reply.came.seconds >= oldest);
    let shifted = |reply: EncodedReply| match reply.came <= now {
        true => {
            let seconds = reply.came.seconds + outage;
            EncodedReply { came: Stamp { seconds, ..reply.came }, ..reply }
        }
        false => reply,
    };
    recent.map(shifted).collect()
}

/// A reply that is on its way to the log. Dropped without [`Self::decide`], it is that of a call of
/// which nobody knows.
#[must_use]
pub(in crate::store::dir) struct Noted {
    shared: Arc<Shared>,
    reply: u64,
    is_stable: bool,
}

impl Noted {
    /// What the call did was made stable, or could not be.
    pub(in crate::store::dir) fn decide(mut self, is_stable: bool) {
        self.is_stable = is_stable;
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.journal.decide(self.reply, self.is_stable);
        self.shared.made_room(state);
    }
}

impl Log {
    /// The reply to the call that is served, if it is to be recorded: it has done something to what
    /// `of` names.
    pub(in crate::store::dir) fn encode_reply(
        &self,
        of: &Handle,
        effect: Effect<'_>,
        outcome: &Outcome<'_>,
    ) -> Option<EncodedReply> {
        let recording = Recording::current().filter(|_| self.keeps_replies)?;
        let (bytes, call) = (recording.reply(outcome)?, recording.call);
        let is_write = matches!(outcome, Outcome::Written { .. });
        let reply = log::Reply { call, effect, is_decided: false, is_write, bytes: &bytes };
        EncodedReply::new(key_of(of.as_bytes())?, stamp(recording.came), &reply)
    }

    /// Takes up a reply whose call has done something that is not in the log, when there is room,
    /// and waits until its record is stable, or cannot be: a log that has failed retains no reply,
    /// and what the call did is stable without it.
    pub(in crate::store::dir) async fn note(&self, reply: EncodedReply) -> Option<Noted> {
        let mut is_first = true;
        loop {
            let room = self.shared.room.notified();
            if let Some((noted, ticket)) = self.note_now(&reply, is_first)? {
                let _: Result<(), Failed> = ticket.outcome().await;
                return Some(noted);
            }
            is_first = false;
            room.await;
        }
    }

    /// None: no reply is retained any more. Some of none: there is no room now.
    fn note_now(&self, reply: &EncodedReply, is_first: bool) -> Option<Option<(Noted, Ticket)>> {
        let mut state = self.shared.state.lock();
        if !state.journal.admits_reply(reply, 0) {
            let retains = state.journal.becomes_free();
            return retains.then(|| {
                self.shared.make_room(&mut state, reply, is_first);
                None
            });
        }
        let (waiter, heard) = oneshot::channel();
        let reply = state.journal.submit_reply(reply.clone(), true, Some(waiter));
        let noted = Noted { shared: Arc::clone(&self.shared), reply, is_stable: false };
        Some(Some((noted, self.waking(state, heard))))
    }

    pub(in crate::store::dir) fn keeps_replies(&self) -> bool {
        self.keeps_replies
    }

    /// Those that were found at the start; once.
    pub(in crate::store::dir) fn recorded(&self) -> Vec<Recorded> {
        let found = std::mem::take(&mut *self.found.lock());
        let recorded = found.iter().filter_map(|reply| {
            let came = Time { secs: reply.came.seconds, nanos: reply.came.nanos };
            Some(Recorded::new(&log::Reply::decode(&reply.bytes)?, came))
        });
        recorded.collect()
    }
}

#[cfg(test)]
mod tests {
    use log::Key;

    use super::*;

    #[test]
    fn replies_do_not_age_while_no_server_can_be_called() {
        let at = |seconds, nanos| Stamp { seconds, nanos };
        let reply = |came| EncodedReply {
            key: Key::new(b"dir").unwrap(),
            came,
            bytes: bytes::Bytes::new(),
            is_write: false,
        };
        let came = |times: &[Stamp], now| {
            let replies = times.iter().map(|&came| reply(came)).collect();
            let left = without_outage(replies, now).into_iter().map(|reply| reply.came);
            left.collect::<Vec<_>>()
        };
        let hours = 3600 * 20;
        // The newest is as good as new, and the other is older by as much as it was.
        let now = at(1_000_000 + hours, 5);
        let times = [at(999_400, 7), at(1_000_000, 5)];
        assert_eq!(came(&times, now), [at(999_400 + hours, 7), now]);
        // A clock that was set back, and none at all.
        let to_come = at(1_000_000 + hours, 6);
        assert_eq!(came(&[at(1_000_000, 6), to_come], now), [at(999_999 + hours, 6), to_come]);
        assert_eq!(came(&[to_come], now), [to_come]);
        assert_eq!(came(&times, at(1_000_000 + 24 * 3600, 5)), [at(1_000_000 + 24 * 3600, 5)]);
    }
}
