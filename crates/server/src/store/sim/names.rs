//! Operations on names and attributes: on the live image at once, answered when they are stable.
//! And what READ and WRITE ask of the disk.

use bytes::Bytes;
use perf::units::Instant;

use crate::store::{Changed, Linked, Node, Renamed, Store};
use crate::types::{Before, Caller, CreateHow, Handle, SetAttr, Special, Status, Time, Wcc};

use super::journal::{Op, now};
use super::state::State;
use super::{Begun, SimStore};

/// A place for a name.
type Spot<'n> = (&'n Handle, &'n [u8]);

/// A file that may lose its last name.
type Victim = Option<(Handle, u64)>;

impl SimStore {
    /// Does a change, and waits until it is stable. What `work` gives is what `Changed` is made
    /// of; `op` says it again for the journal.
    async fn change<T>(
        &self,
        op: Op,
        work: impl FnOnce(&mut Begun<'_>) -> Changed<T>,
    ) -> Changed<T> {
        let (mut changed, ticket) = {
            let mut begun = self.begin();
            let changed = work(&mut begun);
            if changed.result.is_err() {
                return changed;
            }
            let (at, time) = (begun.now, begun.time);
            (changed, begun.log(at, op, time))
        };
        if let Err(status) = self.wait(ticket).await {
            changed.result = Err(status);
        }
        changed
    }

    /// The same for what takes room.
    async fn grow<T>(
        &self,
        caller: &Caller,
        dir: &Handle,
        op: Op,
        work: impl FnOnce(&mut Begun<'_>) -> Changed<T>,
    ) -> Changed<T> {
        if self.faults.switches().full {
            return Changed { wcc: self.unchanged(caller, dir), result: Err(Status::NoSpace) };
        }
        self.change(op, work).await
    }

    /// Attributes around what was not done.
    pub(super) fn unchanged(&self, caller: &Caller, handle: &Handle) -> Wcc {
        let attr = now(self.live.attr(caller, handle)).ok();
        Wcc { before: attr.as_ref().map(Before::from), after: attr }
    }

    /// Whether a WRITE meets a fault.
    pub(super) fn check_write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: &Bytes,
    ) -> Result<(), Status> {
        if self.faults.takes(|switches| &mut switches.failing_writes) {
            return Err(Status::Io);
        }
        if self.faults.switches().full {
            let size = now(self.live.attr(caller, handle))?.size;
            let end = offset.saturating_add(data.len() as u64);
            return if end > size { Err(Status::NoSpace) } else { Ok(()) };
        }
        Ok(())
    }

    /// Has the disk read what the cache has not: when all is there.
    pub(super) fn fetch(
        &self,
        begun: &mut Begun<'_>,
        file: u64,
        offset: u64,
        bytes: u64,
    ) -> Result<Instant, Status> {
        let at = begun.now;
        let look = begun.cache.look(file, offset, bytes);
        let mut ready_at = look.ready_at.max(at);
        for (offset, bytes) in look.missing {
            let runs = begun.pipeline.blocks.find(file, offset, bytes);
            if !runs.is_empty() && self.faults.takes(|switches| &mut switches.failing_reads) {
                return Err(Status::Io);
            }
            let disk = &mut begun.pipeline.disk;
            let ends = runs.iter().map(|run| disk.read(at, run.address, run.bytes));
            ready_at = ends.fold(ready_at, Instant::max);
            begun.cache.fill(file, offset, bytes, ready_at);
        }
        Ok(ready_at)
    }

    fn victim(&self, (dir, name): Spot<'_>) -> Victim {
        let root = Caller { uid: 0, gid: 0, gids: Vec::new() };
        let found = now(self.live.lookup(&root, dir, name)).result.ok()?;
        Some((found.handle, found.attr.fileid))
    }

    fn forget(&self, state: &mut State, victim: Victim) {
        if let Some((handle, id)) = victim {
            state.forget_if_gone(&self.live, &handle, id);
        }
    }

    /// A file that had records is past them with a change that was made stable.
    async fn past_change<T>(&self, past: Option<(u64, u64)>, result: &Result<T, Status>) {
        if let Some((file, through)) = past {
            self.past(file, Some(through), result.is_ok()).await;
        }
    }

    pub(super) async fn change_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let op = Op::SetAttr { caller: caller.clone(), handle: *handle, changes };
        let mut past = None;
        let changed = self
            .change(op, |begun| {
                let changed = now(self.live.set_attr(caller, handle, changes, guard));
                if let (Ok(()), Some(attr)) = (&changed.result, &changed.wcc.after) {
                    begun.cut(attr);
                    let (at, file) = (begun.now, attr.fileid);
                    past = begun.send_logged(at, &self.live, file).map(|through| (file, through));
                }
                changed
            })
            .await;
        self.past_change(past, &changed.result).await;
        changed
    }

    pub(super) async fn make_file(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let (caller_of, own_name) = (caller.clone(), Bytes::copy_from_slice(name));
        let op = Op::Create { caller: caller_of, dir: *dir, name: own_name, how };
        let mut past = None;
        let changed = self
            .grow(caller, dir, op, |begun| {
                let changed = now(self.live.create(caller, dir, name, how));
                if let Ok(node) = &changed.result {
                    begun.cut(&node.attr);
                    let (at, file) = (begun.now, node.attr.fileid);
                    // One that was there may have lost its content.
                    past = begun.send_logged(at, &self.live, file).map(|through| (file, through));
                    let batch = begun.pipeline.gathers();
                    begun.made(file, batch);
                }
                changed
            })
            .await;
        self.past_change(past, &changed.result).await;
        changed
    }

    pub(super) async fn make_directory(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller_of, own_name) = (caller.clone(), Bytes::copy_from_slice(name));
        let op = Op::MakeDir { caller: caller_of, dir: *dir, name: own_name, attrs };
        let work = |_: &mut Begun<'_>| now(self.live.make_dir(caller, dir, name, attrs));
        self.grow(caller, dir, op, work).await
    }

    pub(super) async fn make_symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller_of, own_name) = (caller.clone(), Bytes::copy_from_slice(name));
        let own_target = Bytes::copy_from_slice(target);
        let op =
            Op::Symlink { caller: caller_of, dir: *dir, name: own_name, target: own_target, attrs };
        let work = |_: &mut Begun<'_>| now(self.live.symlink(caller, dir, name, target, attrs));
        self.grow(caller, dir, op, work).await
    }

    pub(super) async fn make_special(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller_of, own_name) = (caller.clone(), Bytes::copy_from_slice(name));
        let op = Op::MakeNode { caller: caller_of, dir: *dir, name: own_name, what, attrs };
        let work = |_: &mut Begun<'_>| now(self.live.make_node(caller, dir, name, what, attrs));
        self.grow(caller, dir, op, work).await
    }

    pub(super) async fn remove_file(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> Changed<()> {
        let own_name = Bytes::copy_from_slice(name);
        let op = Op::Remove { caller: caller.clone(), dir: *dir, name: own_name };
        self.change(op, |begun| {
            let victim = self.victim((dir, name));
            let changed = now(self.live.remove(caller, dir, name));
            self.forget(begun, victim);
            changed
        })
        .await
    }

    pub(super) async fn remove_directory(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> Changed<()> {
        let own_name = Bytes::copy_from_slice(name);
        let op = Op::RemoveDir { caller: caller.clone(), dir: *dir, name: own_name };
        self.change(op, |_| now(self.live.remove_dir(caller, dir, name))).await
    }

    pub(super) async fn move_name(&self, caller: &Caller, from: Spot<'_>, to: Spot<'_>) -> Renamed {
        let op = Op::Rename {
            caller: caller.clone(),
            from_dir: *from.0,
            from: Bytes::copy_from_slice(from.1),
            to_dir: *to.0,
            to: Bytes::copy_from_slice(to.1),
        };
        let (mut renamed, ticket) = {
            let mut begun = self.begin();
            let victim = self.victim(to);
            let renamed = now(self.live.rename(caller, from.0, from.1, to.0, to.1));
            if renamed.result.is_err() {
                return renamed;
            }
            self.forget(&mut begun, victim);
            let (at, time) = (begun.now, begun.time);
            (renamed, begun.log(at, op, time))
        };
        if let Err(status) = self.wait(ticket).await {
            renamed.result = Err(status);
        }
        renamed
    }

    pub(super) async fn add_name(
        &self,
        caller: &Caller,
        handle: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Linked {
        let own_name = Bytes::copy_from_slice(name);
        let op = Op::Link { caller: caller.clone(), handle: *handle, dir: *dir, name: own_name };
        let (mut linked, ticket) = {
            let mut begun = self.begin();
            if self.faults.switches().full {
                let attr = now(self.live.attr(caller, handle)).ok();
                let dir = self.unchanged(caller, dir);
                return Linked { attr, dir, result: Err(Status::NoSpace) };
            }
            let linked = now(self.live.link(caller, handle, dir, name));
            if linked.result.is_err() {
                return linked;
            }
            let (at, time) = (begun.now, begun.time);
            (linked, begun.log(at, op, time))
        };
        if let Err(status) = self.wait(ticket).await {
            linked.result = Err(status);
        }
        linked
    }
}
