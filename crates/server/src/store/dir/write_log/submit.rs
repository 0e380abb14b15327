//! What comes into the log: stable WRITEs, SETATTRs, and COMMITs of a little.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use log::unstable::Unstable;
use log::{Attributes, BLOCK, EncodedReply, Key};
use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use super::keys::key;
use super::shared::{Failed, State};
use super::ticket::{Call, Ticket};
use super::times::stamp;
use super::{Log, covers};
use crate::store::dir::objects::Object;
use crate::store::dir::stat::Stat;
use crate::types::{Attr, FileKind, SetAttr, SetTime};

impl Log {
    /// What a file that was just opened begins with.
    pub(in crate::store::dir) fn unstable(&self) -> Unstable {
        match self.covers.is_faster {
            true => Unstable::within(self.covers.budget.clone()),
            false => Unstable::default(),
        }
    }

    /// A file is about to be changed: it may be known that all of it is stable. The caller holds
    /// its order.
    pub(in crate::store::dir) fn meets(&self, object: &Object, before: &Stat) {
        if !object.is_rooted.load(Ordering::Acquire) && self.covers.is_older(&before.attr()) {
            object.is_rooted.store(true, Ordering::Release);
            object.unstable.lock().is_clean();
        }
    }

    /// Takes up a stable WRITE whose data are in the page cache, if it may be logged. The caller
    /// holds the file's order, so that the log has its WRITEs in the order of the page cache.
    pub(in crate::store::dir) fn submit(
        &self,
        object: &Arc<Object>,
        offset: u64,
        data: &Bytes,
        (before, after): (&Stat, &Attr),
        reply: Option<EncodedReply>,
    ) -> Option<Ticket> {
        let key = key(object)?;
        if before.attr().mode != after.mode || !covers::may(object, before, after) {
            return None;
        }
        // First this: a sync that begins now must know of the record.
        let mut unstable = object.unstable.lock();
        let mut state = self.shared.state.lock();
        if !state.journal.admits(&key, data.len()) {
            return None;
        }
        let (waiter, outcome) = oneshot::channel();
        let stamps = (stamp(after.modified), stamp(after.changed));
        let reply = reply.filter(|reply| state.journal.admits_reply(reply, data.len()));
        let (own, behind) = waits_for_last(waiter, reply);
        unstable.logged(state.journal.submit(key, offset, stamps, data.clone(), own));
        if let Some((reply, waiter)) = behind {
            state.journal.submit_reply(reply, false, waiter);
        }
        Some(self.submitted(state, key, object, outcome))
    }

    /// Takes up a SETATTR that was done, if it may be logged. The caller holds the file's order.
    pub(in crate::store::dir) fn submit_attributes(
        &self,
        object: &Arc<Object>,
        changes: &SetAttr,
        (before, after): (&Stat, &Attr),
        reply: Option<EncodedReply>,
    ) -> Option<Ticket> {
        object.unstable.lock().touched(stamp(after.changed));
        // Others cannot be opened at a replay.
        let is_found = matches!(object.kind, FileKind::Regular | FileKind::Directory);
        self.meets(object, before);
        if !is_found || !self.covers.is_faster || !covers::may(object, before, after) {
            return None;
        }
        let key = key(object)?;
        // First this: a sync that begins now must know of the record.
        let mut unstable = object.unstable.lock();
        let mut state = self.shared.state.lock();
        // A crash could keep what is cut off now, and a replay write older bytes behind the end.
        let is_cut = changes.size.is_some() && state.journal.mark(&key).is_some();
        if is_cut || !state.journal.admits(&key, 0) {
            return None;
        }
        let (waiter, outcome) = oneshot::channel();
        let stamps = (stamp(after.modified), stamp(after.changed));
        let reply = reply.filter(|reply| state.journal.admits_reply(reply, 0));
        let (own, behind) = waits_for_last(waiter, reply);
        let set = attributes(changes, after);
        unstable.logged(state.journal.submit_attributes(key, set, stamps, own));
        if let Some((reply, waiter)) = behind {
            state.journal.submit_reply(reply, false, waiter);
        }
        Some(self.submitted(state, key, object, outcome))
    }

    /// Takes up what of a file is unstable, if that is known and little.
    pub(in crate::store::dir) fn submit_commit(&self, object: &Arc<Object>) -> Option<Ticket> {
        let _order = object.order.lock();
        let attr = object.stat().ok()?.attr();
        let mut unstable = object.unstable.lock();
        let is_lasting =
            object.is_rooted.load(Ordering::Acquire) && !object.has_failed.load(Ordering::Acquire);
        let key = key(object).filter(|_| is_lasting)?;
        let mut state = self.shared.state.lock();
        let records = state.journal.records(&key);
        let (writes, bytes) = unstable.committable(stamp(attr.changed), records)?;
        if !state.journal.admits(&key, bytes + writes * BLOCK) {
            return None;
        }
        let (waiter, outcome) = oneshot::channel();
        let stamps = (stamp(attr.modified), stamp(attr.changed));
        let mut waiter = Some(waiter);
        let all: Vec<(u64, Bytes)> = unstable.take();
        let last = all.len().saturating_sub(1);
        for (index, (offset, data)) in all.into_iter().enumerate() {
            // Frames are answered in order: the last speaks for all.
            let waiter = waiter.take_if(|_| index == last);
            let record = state.journal.submit(key, offset, stamps, data, waiter);
            unstable.logged(record);
        }
        Some(self.submitted(state, key, object, outcome))
    }

    /// What is left to do when records of an object were submitted.
    fn submitted(
        &self,
        mut state: MutexGuard<'_, State>,
        key: Key,
        object: &Arc<Object>,
        outcome: oneshot::Receiver<Result<(), Failed>>,
    ) -> Ticket {
        state.objects.entry(key).or_insert_with(|| Arc::clone(object));
        self.waking(state, outcome)
    }

    /// Has what was submitted written.
    pub(super) fn waking(
        &self,
        mut state: MutexGuard<'_, State>,
        outcome: oneshot::Receiver<Result<(), Failed>>,
    ) -> Ticket {
        let is_filling = state.journal.is_filling() || state.journal.load().is_filling();
        self.shared.sweep_if(&mut state, is_filling);
        self.shared.submissions.fetch_add(1, Ordering::Relaxed);
        let calls = state.next_call();
        drop(state);
        Ticket { outcome, call: calls.map(|log| Call(Arc::clone(&self.shared), log)) }
    }
}

/// Frames are answered in order: a record and the reply behind it are there when the last one is.
fn waits_for_last<W>(
    waiter: W,
    reply: Option<EncodedReply>,
) -> (Option<W>, Option<(EncodedReply, Option<W>)>) {
    match reply {
        Some(reply) => (None, Some((reply, Some(waiter)))),
        None => (Some(waiter), None),
    }
}

/// What a replay is to set: what was requested, and the mode, from which a change of owner or size
/// may have taken bits.
fn attributes(changes: &SetAttr, after: &Attr) -> Attributes {
    let has_owner = changes.uid.is_some() || changes.gid.is_some();
    let has_mode = changes.mode.is_some() || has_owner || changes.size.is_some();
    let has_accessed = changes.accessed != SetTime::Keep;
    Attributes {
        size: changes.size.map(|_| after.size),
        mode: has_mode.then_some(after.mode & 0o7777),
        uid: changes.uid.map(|_| after.uid),
        gid: changes.gid.map(|_| after.gid),
        accessed: has_accessed.then(|| stamp(after.accessed)),
    }
}
