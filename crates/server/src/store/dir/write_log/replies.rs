//! Replies in the log. What a call did is made stable in its place while the record of its reply
//! is written, so that neither waits for the other, and it is answered when both are there. A
//! recovery looks in the file system whether a call was executed of which only the record is there.

use std::sync::Arc;

use log::EncodedReply;
use log::reply::Effect;
use tokio::sync::oneshot;

use super::Log;
use super::keys::key_of;
use super::shared::{Failed, Shared};
use super::ticket::Ticket;
use super::times::stamp;
use crate::replies::{Outcome, Recorded, Recording};
use crate::types::{Handle, Time};

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
