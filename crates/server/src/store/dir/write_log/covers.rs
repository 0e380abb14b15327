//! What goes through the log beside stable WRITEs, and of which files: SETATTRs, and COMMITs of a
//! little.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use log::unstable::{Budget, Unstable};
use log::{Attributes, BLOCK, EncodedReply, Stamp};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{Log, Ticket, key, now, stamp, waits_for_last};
use crate::store::dir::objects::Object;
use crate::store::dir::stat::Stat;
use crate::types::{Attr, FileKind, SetAttr, SetTime};

/// What is retained of UNSTABLE WRITEs of all files together.
const UNSTABLE_BYTES_MAX: usize = 16 << 20;

/// More than is cut off of a time that has fractions of a second.
const FINE_NS: i128 = 1_000_000;

/// As much as is cut off of one in whole seconds; FAT's are two.
const WHOLE_SECONDS_NS: i128 = 2_000_000_000;

pub(super) struct Covers {
    /// SETATTRs and COMMITs are answered sooner from the log.
    is_faster: bool,
    budget: Budget,
    since: Mutex<Since>, // guards itself
}

/// What was not changed since then was stable then.
struct Since {
    /// None: that is not known of anything.
    synced: Option<Stamp>,
    /// The newest time that was seen: who sets the clock back makes changes look old.
    newest: Stamp,
}

impl Covers {
    /// Syncs all of the file system, so that files are known to be stable that nobody changes.
    pub(super) fn from_now(root: &OwnedFd, is_faster: bool) -> Self {
        let began = now();
        let is_synced = rustix::fs::syncfs(root).is_ok();
        let since = Since { synced: is_synced.then_some(began), newest: began };
        Self { is_faster, budget: Budget::of(UNSTABLE_BYTES_MAX), since: Mutex::new(since) }
    }

    /// To be called about once a second.
    pub(super) fn tend(&self) {
        let (mut since, now) = (self.since.lock(), now());
        if now < since.newest {
            since.synced = None;
        }
        since.newest = now;
    }

    /// A change has the time of the kernel's coarse clock, as `synced` has, but cut off to the unit
    /// of the file system: to whole seconds, or to something below a millisecond.
    fn is_older(&self, attr: &Attr) -> bool {
        let changed = stamp(attr.changed);
        let cut_ns = if changed.nanos == 0 { WHOLE_SECONDS_NS } else { FINE_NS };
        let ns = |of: Stamp| i128::from(of.seconds) * 1_000_000_000 + i128::from(of.nanos);
        self.since.lock().synced.is_some_and(|synced| ns(changed) + cut_ns < ns(synced))
    }
}

/// Whether a replay would find the file as it was when it was changed from `before` to `after`: its
/// inode will be there, and the times of its changes tell their order.
pub(super) fn may(object: &Object, before: &Stat, after: &Attr) -> bool {
    object.is_rooted.load(Ordering::Acquire)
        && !object.has_failed.load(Ordering::Acquire)
        && before.attr().changed <= after.changed
}

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
        if !is_found || !self.covers.is_faster || !may(object, before, after) {
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
