//! Changes of files go to the origin: what is written, and attributes.

use bytes::Bytes;
use server::durable::Committed;
use server::store::{Changed, Store};
use server::types::{Attr, Before, Caller, Handle, SetAttr, SetTime, Stability, Status, Time, Wcc};

use super::Came;
use crate::write_back::Inner;
use crate::write_back::conflicts::Sent;
use crate::write_back::events::Gone;
use crate::write_back::order::Thing;
use crate::write_back::record::{Change, Entry, Outcome};

impl<S: Store> Inner<S> {
    pub(super) async fn carry_write(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        offset: u64,
        data: &Bytes,
    ) -> Result<Came, Status> {
        let mut sent = self.target(entry, number, file).await?;
        loop {
            let (caller, target) = (&entry.caller, sent.target);
            let written =
                self.store.write(caller, &target, offset, data.clone(), Stability::FileSync);
            let changed = written.await;
            self.answered(file, &sent, &changed);
            let Changed { wcc, result } = changed;
            match result {
                Ok(written) => {
                    if matches!(written.committed, Committed::Unstable(_)) {
                        // RFC 1813 section 3.3.7 forbids it.
                        return Err(Status::ServerFault);
                    }
                    return Ok(self.changed_file(entry, 1, file, &target, wcc).await);
                }
                Err(Status::Stale | Status::BadHandle) => {
                    self.has_gone().await?;
                    if self.is_removed_for_us(number, file).await? {
                        return Ok(Came::dropping(*file));
                    }
                    sent = Sent::unobserved(self.beside_gone(entry, number, file, &target).await?);
                }
                Err(status) => {
                    self.tried(entry, file, &target, wcc.after).await;
                    return Err(status);
                }
            }
        }
    }

    /// Whether a client of ours has removed a file at the origin; a REMOVE that is under way tells.
    async fn is_removed_for_us(&self, number: u64, file: &Handle) -> Result<bool, Status> {
        let thing = Thing::File(*file);
        self.until(|state| (!state.busy.contains(&thing)).then(|| state.is_superfluous(number)))
            .await
    }

    /// A WRITE has failed, and left the file so: a full disk may have taken a part of it, and
    /// changes the modification time in any case. Whoever comes after a crash would take that for
    /// somebody else's change, so the time is set back.
    async fn tried(&self, entry: &Entry, file: &Handle, target: &Handle, after: Option<Attr>) {
        let Some(mut after) = after else { return };
        if self.origin(file).ok().flatten() != Some(*target) {
            return;
        }
        let base = self.state.lock().nodes.find(file).and_then(|node| node.base);
        let moved = |base: &Before| base.size == after.size && base.modified != after.modified;
        if let Some(base) = base.filter(moved) {
            let set = SetAttr { modified: SetTime::To(base.modified), ..SetAttr::default() };
            let owner = Caller { uid: after.uid, gid: after.gid, gids: Vec::new() };
            for caller in [&entry.caller, &owner] {
                let guard = Some(after.changed);
                let back = self.set_there(caller, file, target, set, guard).await;
                match (back.result, back.wcc.after) {
                    (Ok(()), Some(attr)) => {
                        after = attr;
                        break;
                    }
                    // Another WRITE has failed meanwhile, and does the same.
                    (Err(Status::NotSync), _) => return,
                    _ => {}
                }
            }
        }
        if let Some(node) = self.state.lock().nodes.find_mut(file) {
            node.left(Some(Before::from(&after)), false);
        }
    }

    pub(super) async fn carry_set(
        &self,
        entry: &Entry,
        (number, changes): (u64, usize),
        file: &Handle,
        set: &SetAttr,
    ) -> Result<Came, Status> {
        let sent = match self.target(entry, number, file).await {
            Err(Status::Stale) => return self.set_gone(&entry.change, file).await,
            sent => sent?,
        };
        let (target, sets) = (&sent.target, sent.takes(set));
        if sent.is_theirs() && sets == SetAttr::default() {
            return Ok(self.set_theirs(file, set, &sets));
        }
        let changed = self.store.set_attr(&entry.caller, target, sets, None).await;
        self.answered(file, &sent, &changed);
        match changed.result {
            Ok(()) if sent.is_theirs() => Ok(self.set_theirs(file, set, &sets)),
            Ok(()) => Ok(self.changed_file(entry, changes, file, target, changed.wcc).await),
            Err(Status::Stale | Status::BadHandle) => self.set_gone(&entry.change, file).await,
            Err(status) => Err(status),
        }
    }

    /// A SETATTR of a file that the origin does not have any more.
    async fn set_gone(&self, change: &Change, file: &Handle) -> Result<Came, Status> {
        self.has_gone().await?;
        Ok(Came::dropping(*file).lost(change, Gone::File))
    }

    /// A SETATTR was carried out on what somebody else has changed; all that it has not done is
    /// reported.
    fn set_theirs(&self, file: &Handle, set: &SetAttr, done: &SetAttr) -> Came {
        let left = SetAttr {
            mode: set.mode.filter(|_| set.mode != done.mode),
            modified: if set.modified == done.modified { SetTime::Keep } else { set.modified },
            ..SetAttr::default()
        };
        let came = Came::dropping(*file);
        match left == SetAttr::default() {
            true => came,
            false => came.lost(&Change::Set { file: *file, set: left }, Gone::Changed),
        }
    }

    /// A file was changed at the origin. If that was the last of what was on its way, it gets the
    /// modification time that clients have seen, which is not that of now. What comes meanwhile
    /// may be answered first, and leaves the time to this one.
    async fn changed_file(
        &self,
        entry: &Entry,
        changes: usize,
        file: &Handle,
        target: &Handle,
        wcc: Wcc,
    ) -> Came {
        let mut after = wcc.after;
        let is_alone = loop {
            let (modified, guard) = match self.owed_time(file, changes, after.as_ref()) {
                Ok(owed) => owed,
                Err(is_alone) => break is_alone,
            };
            let doubts = self.store.doubts();
            let set = self.set_time(&entry.caller, file, target, modified, guard).await;
            let is_in_doubt = self.store.doubts() != doubts;
            if let Some(node) = self.state.lock().nodes.find_mut(file) {
                let is_elsewhere = node.beside.is_some() || node.origin != Some(*target);
                match set {
                    (true, set) => {
                        after = set.or(after);
                        node.owes_time &= node.attr.modified != modified;
                    }
                    // It has the time of what somebody else has written meanwhile; or this one,
                    // by a call that was made twice.
                    _ if is_elsewhere || is_in_doubt => node.owes_time = false,
                    // Perhaps a change of ours that came meanwhile.
                    _ if node.base.is_some_and(|base| Some(base.changed) > guard) => {}
                    // Or one that is done and not answered yet: its reply tells.
                    _ if node.trail.is_under_way() => {}
                    // Its mode, or a name.
                    (_, Some(now)) if after.is_some_and(|after| has_same_bytes(&after, &now)) => {
                        after = Some(now);
                    }
                    _ => node.trail.tear(),
                }
            }
        };
        let is_there = self.origin(file).ok().flatten() == Some(*target);
        let after = after.filter(|_| is_there).as_ref().map(Before::from);
        let is_last = is_alone || matches!(entry.change, Change::Set { .. });
        let outcome = Outcome { file: Some(*file), after };
        Came { outcome, is_last, answered: changes, ..Came::default() }
    }

    /// The modification time that a file is to get now, and when it was changed last by our doing:
    /// what somebody else has changed since keeps its time. `Err`: none, and whether so many
    /// changes, which are one call, are all that are on their way.
    fn owed_time(
        &self,
        file: &Handle,
        changes: usize,
        after: Option<&Attr>,
    ) -> Result<(Time, Option<Time>), bool> {
        let mut state = self.state.lock();
        let Some(node) = state.nodes.find_mut(file) else { return Err(false) };
        let is_alone = node.pending == node.answered + changes;
        if is_alone && node.owes_time && !node.trail.is_torn() {
            let base = node.base.filter(|_| node.beside.is_none()).map(|base| base.changed);
            let guard = after.map(|after| Some(after.changed).max(base));
            return Ok((node.attr.modified, guard.flatten()));
        }
        node.answered += changes;
        Err(is_alone)
    }

    /// Whether the file has it, as far as the caller and the owner may set that, or somebody has
    /// changed it since; and how it is now, if that is known.
    async fn set_time(
        &self,
        caller: &Caller,
        file: &Handle,
        target: &Handle,
        modified: Time,
        guard: Option<Time>,
    ) -> (bool, Option<Attr>) {
        let set = SetAttr { modified: SetTime::To(modified), ..SetAttr::default() };
        let Changed { wcc, result } = self.set_there(caller, file, target, set, guard).await;
        let now = match wcc.after {
            Some(now) => Some(now),
            None => self.store.attr(caller, target).await.ok(),
        };
        let attr = match (result, now) {
            (Err(Status::NotSync), now) => return (false, now),
            (Err(_), Some(attr)) => attr,
            (_, now) => return (true, now),
        };
        // Who may only write sets no time: its owner does, and no other than the WRITE has set.
        let owner = Caller { uid: attr.uid, gid: attr.gid, gids: Vec::new() };
        let Changed { wcc, result } = self.set_there(&owner, file, target, set, guard).await;
        match result {
            Err(Status::NotSync) => (false, wcc.after),
            result => (true, Some(wcc.after.filter(|_| result.is_ok()).unwrap_or(attr))),
        }
    }

    /// A SETATTR of a file beside a change of it.
    async fn set_there(
        &self,
        caller: &Caller,
        file: &Handle,
        target: &Handle,
        set: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let sent = self.sent(file, target);
        let changed = self.store.set_attr(caller, target, set, guard).await;
        self.answered(file, &sent, &changed);
        changed
    }
}

/// As far as size and time tell.
fn has_same_bytes(one: &Attr, other: &Attr) -> bool {
    (one.size, one.modified) == (other.size, other.modified)
}
