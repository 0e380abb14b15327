//! WRITE, COMMIT and SETATTR: what clients change of files that are there.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use net::clock::Elapsed;
use server::durable::Durable;
use server::store::{Changed, Store};
use server::types::{
    Access, Attr, Before, Caller, FileKind, Handle, SetAttr, SetTime, Stability, Status, Time, Wcc,
};
use tokio::sync::oneshot;

use super::away::PATIENCE;
use super::nodes::Node;
use super::order::Thing;
use super::record::{Change, DATA_BYTES_MAX, Entry, timed};
use super::rights::Who;
use super::state::{State, Taken};
use super::{Inner, Mistake};
use crate::transfer::around;

/// Bits of a mode by which programs act as the owner or the group of their file.
pub(super) const SET_IDS: u32 = 0o6000;

/// In a directory with this bit, what is made has its group, and directories have the bit, too.
pub(super) const SET_GID: u32 = 0o2000;

/// What is to become of a call.
pub(super) enum Way<T> {
    /// It is done.
    Here(T),
    /// It is for the origin, while the caller waits.
    Origin,
}

/// What was passed through.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passed {
    Bytes,
    /// Names of a directory, in which there are so many more directories then.
    Names {
        dirs: i64,
    },
    /// Attributes, and among them the modification time or not.
    Set {
        time: bool,
    },
}

/// A file as a change has found it and left it.
#[derive(Clone, Copy)]
struct Around {
    before: Before,
    after: Attr,
}

impl Around {
    fn wcc(self) -> Wcc {
        Wcc { before: Some(self.before), after: Some(self.after) }
    }
}

impl<S: Store> Inner<S> {
    /// Who calls, as far as the origin has shown it.
    pub(super) fn who<'c>(&self, caller: &'c Caller) -> Who<'c> {
        Who { caller, is_himself: self.is_known(caller) }
    }

    /// What the caller may: as the origin has granted lately or grants now, or by what is on its
    /// way there. While the origin is away, its last reply stands.
    pub(super) async fn rights(&self, caller: &Caller, id: &Handle) -> Result<u32, Status> {
        loop {
            self.load(caller, id).await?;
            let (who, now) = (self.who(caller), self.now());
            let state = self.state.lock();
            let known = state.nodes.find(id).and_then(|node| node.rights(who, now));
            if let Some((granted, _)) = known {
                return Ok(granted);
            }
        }
    }

    /// When the origin has a file, and the mode and owner that it was given here.
    pub(super) async fn has_rights_there(&self, id: &Handle) -> Result<(), Status> {
        // What it never makes is not waited for.
        let is_there = |node: &Node| node.has_rights_there() || node.pending == 0;
        self.until(|state| match state.nodes.find(id).is_none_or(is_there) {
            true => Some(()),
            false => {
                self.hurry(state);
                None
            }
        })
        .await
    }

    /// A node of this file is known, and what the caller may.
    pub(super) async fn load(&self, caller: &Caller, id: &Handle) -> Result<(), Status> {
        loop {
            let old = {
                let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
                match state.nodes.find(id).and_then(|node| node.rights(who, now)) {
                    Some((_, true)) => return Ok(()),
                    known => known.is_some(),
                }
            };
            self.has_rights_there(id).await?;
            let origin = self.there(id)?;
            let epoch = self.epoch();
            let access = self.granted_there(caller, &origin);
            let looked = match old {
                // While the origin is away, its last reply stands.
                true => match self.clock.within(PATIENCE, std::pin::pin!(access)).await {
                    Ok(looked) => looked,
                    Err(Elapsed { .. }) => return Ok(()),
                },
                false => access.await,
            };
            let granted = looked.result?;
            let attr = match looked.attr {
                Some(attr) => attr,
                None => self.store.attr(caller, &origin).await?,
            };
            if self.met(caller, id, &origin, attr, epoch, granted) {
                return Ok(());
            }
        }
    }

    /// False: the file may be gone since it was requested, or other rights be given.
    fn met(
        &self,
        caller: &Caller,
        id: &Handle,
        origin: &Handle,
        attr: Attr,
        epoch: u64,
        granted: Access,
    ) -> bool {
        let now = self.now();
        let fileid = self.aliases.fileid_of(id, attr.fileid);
        let (base, known) = (Before::from(&attr), Attr { fileid, ..attr });
        let mut state = self.state.lock();
        if state.nodes.find(id).is_some() {
            state.learn(id, known, epoch);
        } else if state.is_touched(&Thing::File(*id), epoch) {
            return false;
        } else {
            let mut node = Node::met(known, *origin, base, now);
            node.place = state.place(id).cloned();
            state.nodes.insert(*id, node);
        }
        state.nodes.find_mut(id).is_none_or(|node| {
            node.used = now;
            node.rights.note(caller, granted.0, epoch, now)
        })
    }

    /// Takes up a change of a file as soon as there is room. `None` from `make`: the file is not
    /// known any more.
    async fn take_up(
        &self,
        id: &Handle,
        mut make: impl FnMut(&Node, Time) -> Option<Change>,
        caller: &Caller,
    ) -> Result<Option<(Around, Taken)>, Status> {
        let (mut waited, mut turn) = (false, self.turn());
        turn.wants(&[], &[*id]);
        self.until(|state| {
            if state.journal.is_failed() {
                return Some(None);
            }
            let is_free = !state.is_busy(&[], &[*id]);
            if !turn.has_come(state, is_free) {
                return None;
            }
            let (now, time) = (self.now(), self.time());
            let is_there = |node: &&Node| node.attr.links > 0 && !node.is_leaving;
            let Some(node) = state.nodes.find(id).filter(is_there) else { return Some(None) };
            let at = node.next_time(time);
            let Some(change) = make(node, at) else { return Some(None) };
            let (before, base) = (Before::from(&node.attr), node.base);
            let owed = node.owed_after(&change, at);
            let entry = Entry { caller: caller.clone(), at, base, owed, change };
            let Some(taken) = state.take(entry, now) else {
                state.counts.held_back += u64::from(!std::mem::replace(&mut waited, true));
                return None;
            };
            self.to_write.notify_one();
            let after = state.nodes.find(id)?.attr;
            Some(Some((Around { before, after }, taken)))
        })
        .await
    }

    /// Waits until a change is stable here or there.
    pub(super) async fn stable(&self, hears: oneshot::Receiver<()>) -> Result<(), Status> {
        if self.options.mistake == Some(Mistake::AnswerEarly) {
            return Ok(());
        }
        hears.await.map_err(|_| Status::ServerFault)
    }

    pub(super) async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
    ) -> Result<Changed<Durable>, Status> {
        let id = self.id(handle);
        match self.write_here(caller, &id, offset, &data).await? {
            Way::Here(wcc) => Ok(Changed { wcc, result: Ok(self.durable()) }),
            Way::Origin => self.write_through(caller, &id, offset, data).await,
        }
    }

    async fn write_here(
        &self,
        caller: &Caller,
        id: &Handle,
        offset: u64,
        data: &Bytes,
    ) -> Result<Way<Wcc>, Status> {
        let end = offset.checked_add(data.len() as u64).filter(|end| i64::try_from(*end).is_ok());
        let Some(end) = end.filter(|_| !data.is_empty()) else { return Ok(Way::Origin) };
        self.load(caller, id).await?;
        if !self.may_write(caller, id) || !self.takes_length(caller, id, end).await? {
            return Ok(Way::Origin);
        }
        let (mut wcc, mut all) = (None::<Wcc>, Vec::new());
        for from in (0..data.len()).step_by(DATA_BYTES_MAX) {
            let part = data.slice(from..data.len().min(from + DATA_BYTES_MAX));
            let at = offset + from as u64;
            let make = |_: &Node, _| {
                let (file, data) = (*id, part.clone());
                Some(Change::Write { file, offset: at, data })
            };
            let Some((part, (_, hears))) = self.take_up(id, make, caller).await? else {
                return Ok(Way::Origin);
            };
            let part = part.wcc();
            // Others may come between.
            wcc = Some(wcc.map_or(part, |before| around(before, part)));
            all.push(hears);
        }
        for hears in all {
            self.stable(hears).await?;
        }
        wcc.map(Way::Here).ok_or(Status::ServerFault)
    }

    /// Whether it is certain that the origin would let the caller write.
    fn may_write(&self, caller: &Caller, id: &Handle) -> bool {
        let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
        let Some(node) = state.nodes.find(id) else { return false };
        let granted = node.granted(who, now);
        // Who has made a file writes to it whatever its mode is.
        let is_own = node.is_made_here && who.owns(&node.attr);
        // Which bits are left when somebody writes is the origin's affair.
        let keeps_mode = who.is_root() || node.attr.mode & SET_IDS == 0;
        node.attr.kind == FileKind::Regular
            && node.attr.links > 0
            && !node.is_leaving
            && keeps_mode
            && (is_own || granted & Access::MODIFY != 0)
    }

    async fn write_through(
        &self,
        caller: &Caller,
        id: &Handle,
        offset: u64,
        data: Bytes,
    ) -> Result<Changed<Durable>, Status> {
        let (origin, passing) = self.through(id).await?;
        let epoch = self.epoch();
        // Nothing is unstable here, so that a COMMIT has nothing to do.
        let written = self.store.write(caller, &origin, offset, data, Stability::FileSync).await;
        let wcc = self.reported_around(id, written.wcc, epoch, Passed::Bytes);
        drop(passing);
        Ok(Changed { wcc, result: written.result.map(|_| self.durable()) })
    }

    /// The states that the origin tells around a change that was passed through.
    pub(super) fn reported_around(&self, id: &Handle, wcc: Wcc, epoch: u64, what: Passed) -> Wcc {
        let mut state = self.state.lock();
        if let Passed::Names { dirs } = what
            && let Some(node) = state.nodes.find_mut(id)
        {
            node.more_dirs(dirs);
        }
        if let Some(after) = &wcc.after {
            state.epoch += 1;
            let (epoch, now, time) = (state.epoch, self.now(), self.time());
            let mut node = state.nodes.find_mut(id);
            // Changes of its names are under way beside this one, and all of them are ours.
            if let Some(node) = node.as_mut().filter(|node| node.is_dir() && node.is_pending()) {
                node.left(Some(Before::from(after)), false);
                // What clients have of its names is old.
                if wcc.before != Some(Before::from(after)) {
                    node.touch(node.next_time(time).max(after.changed));
                }
            }
            let nobody_else = |node: &&mut Node| wcc.before.is_some() && wcc.before == node.base;
            if let Some(node) = node.filter(|node| !node.is_pending()).filter(nobody_else) {
                // What was made here stays so.
                node.left(Some(Before::from(after)), true);
                node.confirmed = Some(now);
                node.epoch = epoch;
                let changed = node.attr.changed.max(after.changed);
                let is_moved = wcc.before.is_some_and(|before| before.modified != after.modified);
                let modified = match what {
                    Passed::Names { .. } => changed,
                    Passed::Set { time: true } => after.modified,
                    // Only what changes a file's bytes moves its time on.
                    Passed::Bytes | Passed::Set { time: false } if is_moved => after.modified,
                    Passed::Bytes | Passed::Set { time: false } => node.attr.modified,
                };
                let Attr { fileid, mode, uid, gid, .. } = node.attr;
                if (mode, uid, gid) != (after.mode, after.uid, after.gid) {
                    node.rights.forget(epoch);
                }
                node.attr = Attr { fileid, modified, changed, ..*after };
            }
        }
        drop(state);
        let after = wcc.after.map(|after| self.tell(id, after, epoch));
        // Clients may see other times before.
        Wcc { before: wcc.before.filter(|_| after == wcc.after), after }
    }

    /// Whether a caller may not even say that a file is to be stable. An owner may, whatever the
    /// mode is, and who that is at the origin is the origin's affair.
    async fn refuses_commit(&self, caller: &Caller, id: &Handle) -> bool {
        if self.may(caller, id, Access::MODIFY).await != Err(Status::Access) {
            return false;
        }
        match self.origin(id) {
            Ok(Some(origin)) => {
                let committed = self.store.commit(caller, &origin, 0, 0).await;
                matches!(committed.result, Err(Status::Access))
            }
            _ => true,
        }
    }

    pub(super) async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
    ) -> Result<Changed<Durable>, Status> {
        // All that was written was stable when it was answered.
        let (id, now) = (self.id(handle), self.now());
        let known =
            self.state.lock().nodes.find(&id).map(|node| (node.attr, node.is_answered_here(now)));
        let attr = match known {
            Some((attr, true)) => Some(attr),
            Some((_, false)) => None,
            None => Some(self.attr(caller, handle).await?),
        };
        let is_owner = known.map(|(attr, _)| attr).or(attr).is_some_and(|of| of.uid == caller.uid);
        if !is_owner && self.refuses_commit(caller, &id).await {
            return Err(Status::Access);
        }
        let wcc = Wcc { before: attr.as_ref().map(Before::from), after: attr };
        Ok(Changed { wcc, result: Ok(self.durable()) })
    }

    pub(super) async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        set: SetAttr,
        guard: Option<Time>,
    ) -> Result<Changed<()>, Status> {
        let id = self.id(handle);
        if guard.is_none()
            && let Way::Here(around) = self.set_here(caller, &id, set).await?
        {
            return Ok(Changed { wcc: around.wcc(), result: Ok(()) });
        }
        if let Some(size) = set.size.filter(|_| guard.is_none())
            && self.state.lock().lacks_room(&id)
        {
            // Who may write may cut, whatever becomes of the rest.
            let cut = SetAttr { size: Some(size), ..SetAttr::default() };
            self.set_here(caller, &id, cut).await?;
        }
        let (origin, passing) = self.through(&id).await?;
        let epoch = self.epoch();
        let guard = guard.map(|guard| self.guard(&id, guard));
        let Changed { wcc, result } = self.store.set_attr(caller, &origin, set, guard).await;
        let time = set.modified != SetTime::Keep && result.is_ok();
        let wcc = self.reported_around(&id, wcc, epoch, Passed::Set { time });
        drop(passing);
        Ok(Changed { wcc, result })
    }

    /// The time at the origin that a client means by one that it has seen here.
    fn guard(&self, id: &Handle, guard: Time) -> Time {
        let state = self.state.lock();
        let node = state.nodes.find(id).filter(|node| node.attr.changed == guard);
        node.and_then(|node| node.base).map_or(guard, |base| base.changed)
    }

    async fn set_here(
        &self,
        caller: &Caller,
        id: &Handle,
        set: SetAttr,
    ) -> Result<Way<Around>, Status> {
        self.load(caller, id).await?;
        let length = set.size.unwrap_or(0);
        if !self.may_set(caller, id, &set) || !self.takes_length(caller, id, length).await? {
            return Ok(Way::Origin);
        }
        if let Some(size) = set.size {
            self.state.lock().give_up_behind(id, size);
            self.changed.notify_waiters();
        }
        let make = |_: &Node, at| Some(Change::Set { file: *id, set: timed(set, at) });
        let Some((around, (_, hears))) = self.take_up(id, make, caller).await? else {
            return Ok(Way::Origin);
        };
        self.stable(hears).await?;
        Ok(Way::Here(around))
    }

    /// Whether it is certain that the origin would let the caller set this.
    fn may_set(&self, caller: &Caller, id: &Handle, set: &SetAttr) -> bool {
        let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
        let is_there = |node: &&Node| node.attr.links > 0 && !node.is_leaving;
        let Some(node) = state.nodes.find(id).filter(is_there) else { return false };
        let SetAttr { mode, uid, gid, size, accessed, modified } = *set;
        let is_regular = node.attr.kind == FileKind::Regular;
        // Most origins have no mode of a symbolic link.
        if node.attr.kind == FileKind::Symlink && mode.is_some() {
            return false;
        }
        if size.is_some_and(|size| !is_regular || i64::try_from(size).is_err()) {
            return false;
        }
        // Bits that a chown takes, or a chmod by who is not of the group, are the origin's affair.
        let is_plain = mode.unwrap_or(node.attr.mode) & SET_IDS == 0;
        let has_bits = is_regular && node.attr.mode & SET_IDS != 0;
        let takes_bits = has_bits && (uid.is_some() || gid.is_some() || size.is_some());
        if who.is_root() {
            return !takes_bits;
        }
        let is_owner = who.owns(&node.attr);
        let granted = node.granted(who, now);
        let is_own = node.is_made_here && is_owner;
        let may_resize = size.is_none() || is_own || granted & Access::MODIFY != 0;
        let keeps_owner = uid.is_none_or(|uid| uid == node.attr.uid);
        let sets_times = accessed != SetTime::Keep || modified != SetTime::Keep;
        let needs_owner = mode.is_some() || uid.is_some() || gid.is_some() || sets_times;
        may_resize
            && (!needs_owner || is_owner)
            && keeps_owner
            && gid.is_none_or(|gid| caller.is_member(gid))
            && (is_plain || (mode.is_none() && uid.is_none() && gid.is_none() && size.is_none()))
    }

    /// Whether the origin takes this caller for who he says he is.
    pub(super) fn is_known(&self, caller: &Caller) -> bool {
        self.callers.lock().get(caller) == Some(&true)
    }

    /// Learns that by what the origin has made anew for him. It is his who has made it; in a
    /// set-group-ID directory its group is the directory's, and says nothing.
    pub(super) fn learn(&self, caller: &Caller, made: &Attr, dir: Option<&Attr>) {
        /// Callers that are remembered; one more begins anew.
        const CALLERS_MAX: usize = 4096;
        let dir = dir.filter(|dir| dir.mode & SET_GID != 0);
        if let Some(dir) = dir.filter(|_| made.kind == FileKind::Directory) {
            let keeps = made.mode & SET_GID != 0 && made.gid == dir.gid;
            self.dirs_keep_set_gid.store(keeps, Ordering::Relaxed);
        }
        let mut callers = self.callers.lock();
        if callers.len() >= CALLERS_MAX {
            callers.clear();
        }
        let is_same = made.uid == caller.uid
            && match dir.filter(|dir| dir.gid == made.gid) {
                Some(_) => callers.get(caller) != Some(&false),
                None => made.gid == caller.gid,
            };
        callers.insert(caller.clone(), is_same);
    }

    /// The files that no change uses.
    pub(super) async fn settled_all(&self) {
        loop {
            let left = |state: &mut State| match state.ops.is_empty() {
                true => Some(()),
                false => {
                    self.hurry(state);
                    None
                }
            };
            if self.until(left).await.is_ok() {
                return;
            }
        }
    }
}
