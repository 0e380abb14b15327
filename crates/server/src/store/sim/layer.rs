//! The operations that are not those of memory alone: on the live image at once, answered when what
//! they did is as stable as was requested.

use bytes::Bytes;

use crate::durable::{Committed, Durable};
use crate::metrics::Reading;
use crate::store::layer::Layer;
use crate::store::mem::MemStore;
use crate::store::{Changed, Extent, Linked, Looked, Node, Renamed, Space, Store, Written};
use crate::types::{
    Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier, Wcc,
};

use super::journal::{Op, now};
use super::pipeline::Ticket;
use super::write_log::{Failed, LogTicket, WriteLog};
use super::{Begun, Due, SimStore, WriteBack};

/// How a WRITE is answered.
enum Answered {
    /// When there is room for more that is dirty.
    WithRoom(Option<Ticket>),
    FromFile(Result<Due, Status>),
    /// By the frame that has it, or else as from the file.
    FromLog(LogTicket, u64),
}

impl Layer for SimStore {
    type Beneath = MemStore;

    fn beneath(&self) -> &MemStore {
        &self.live
    }

    fn verifier(&self) -> Verifier {
        self.verifier_of(&self.begin())
    }

    fn sync_failures(&self) -> u64 {
        self.begin().pipeline.failures
    }

    fn readings(&self) -> Vec<Reading> {
        let mut readings = self.live.readings();
        let stats = self.stats();
        readings.extend([
            Reading::new(
                "nfskit_store_disk_utilization",
                "Share of the time in which the emulated disk worked.",
                stats.disk_utilization,
            ),
            Reading::new(
                "nfskit_store_unstable_bytes",
                "Bytes of data that a crash could lose.",
                stats.unstable_bytes as f64,
            ),
        ]);
        readings.extend(self.begin().write_log.iter().flat_map(WriteLog::readings));
        readings
    }

    async fn set_attr(
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

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let (mut looked, ready_at) = {
            let mut begun = self.begin();
            let looked = now(self.live.read(caller, handle, offset, count));
            let ready_at = match (&looked.result, &looked.attr) {
                (Ok(extent), Some(attr)) => {
                    self.fetch(&mut begun, attr.fileid, offset, extent.data.len() as u64)
                }
                _ => Ok(begun.now),
            };
            (looked, ready_at.map(|at| (at > begun.now).then_some(at)))
        };
        match ready_at {
            Ok(None) => {}
            Ok(Some(at)) => self.machine.until(at).await,
            Err(status) => looked.result = Err(status),
        }
        looked
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        let stability = match (self.options.write_back, stability) {
            (WriteBack::Through, Stability::Unstable) => Stability::FileSync,
            (_, requested) => requested,
        };
        let stable = |proof| Committed::Stable(stability, proof);
        let (mut changed, answered, verifier) = {
            let mut begun = self.begin();
            let verifier = self.verifier_of(&begun);
            if let Err(status) = self.check_write(caller, handle, offset, &data) {
                return Changed { wcc: self.unchanged(caller, handle), result: Err(status) };
            }
            let live = self.live.write(caller, handle, offset, data.clone(), Stability::Unstable);
            let changed = now(live);
            let (Ok(written), Some(attr)) = (&changed.result, &changed.wcc.after) else {
                return changed;
            };
            let (id, bytes, at) = (attr.fileid, u64::from(written.count), begun.now);
            begun.wrote(handle, attr, id, offset, bytes);
            begun.cache.fill(id, offset, bytes, at);
            let answered = match stability {
                Stability::Unstable => {
                    Answered::WithRoom(begun.write_back(at, &self.live, id, &self.options))
                }
                _ => match begun.submit(at, (handle, id, attr), offset, &data) {
                    Some(ticket) => Answered::FromLog(ticket, id),
                    None => Answered::FromFile(self.stabilise(&mut begun, id)),
                },
            };
            (changed, answered, verifier)
        };
        let committed = match answered {
            Answered::WithRoom(room) => {
                // The outcome goes to who commits.
                if let Some(room) = room {
                    self.wait(room).await.ok();
                }
                Ok(Committed::Unstable(verifier))
            }
            Answered::FromFile(Ok(due)) => self.durable(due, verifier).await.map(stable),
            Answered::FromFile(Err(status)) => Err(status),
            Answered::FromLog(ticket, id) => {
                match Durable::after_log(self.logged(ticket).await, verifier) {
                    Ok(proof) => Ok(stable(proof)),
                    Err(Failed) => {
                        let due = self.stabilise(&mut self.begin(), id);
                        match due {
                            Ok(due) => self.durable(due, verifier).await.map(stable),
                            Err(status) => Err(status),
                        }
                    }
                }
            }
        };
        changed.result = changed
            .result
            .and_then(|written| committed.map(|committed| Written { committed, ..written }));
        changed
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Changed<Durable> {
        let (Wcc { before, .. }, due, verifier) = {
            let mut begun = self.begin();
            let verifier = self.verifier_of(&begun);
            // Whether he may; what memory says of durability is worth nothing here.
            let Changed { wcc, result } = now(self.live.commit(caller, handle, offset, count));
            if let Err(status) = result {
                return Changed { wcc, result: Err(status) };
            }
            let id = wcc.after.map_or(0, |attr| attr.fileid);
            (wcc, self.stabilise(&mut begun, id), verifier)
        };
        let result = match due {
            Ok(due) => self.durable(due, verifier).await,
            Err(status) => Err(status),
        };
        // As servers do it that clients meet: others may have written to it meanwhile.
        let wcc = Wcc { before, after: now(self.live.attr(caller, handle)).ok() };
        Changed { wcc, result }
    }

    async fn create(
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

    async fn make_dir(
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

    async fn symlink(
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

    async fn make_node(
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

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
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

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let own_name = Bytes::copy_from_slice(name);
        let op = Op::RemoveDir { caller: caller.clone(), dir: *dir, name: own_name };
        self.change(op, |_| now(self.live.remove_dir(caller, dir, name))).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let (from, to) = ((from_dir, from_name), (to_dir, to_name));
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

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
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

    async fn settle(&self, _handle: &Handle) -> Result<(), Status> {
        let ticket = {
            let mut begun = self.begin();
            let at = begun.now;
            begun.pipeline.start(at, true)
        };
        self.wait(ticket).await
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let mut looked = self.live.space(caller, handle).await;
        if let Ok(space) = &mut looked.result
            && self.faults.switches().full
        {
            (space.bytes_free, space.bytes_available) = (0, 0);
        }
        looked
    }
}
