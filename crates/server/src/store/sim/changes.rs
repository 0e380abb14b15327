//! What operations are made of: changes that wait until they are stable, and what READ and WRITE
//! ask of the disk.

use bytes::Bytes;
use perf::units::Instant;

use crate::store::{Changed, Store};
use crate::types::{Before, Caller, Handle, Status, Wcc};

use super::journal::{Op, now};
use super::state::State;
use super::{Begun, SimStore};

/// A place for a name.
type Spot<'n> = (&'n Handle, &'n [u8]);

/// A file that may lose its last name.
pub(super) type Victim = Option<(Handle, u64)>;

impl SimStore {
    /// Does a change, and waits until it is stable. What `work` gives is what `Changed` is made
    /// of; `op` says it again for the journal.
    pub(super) async fn change<T>(
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
    pub(super) async fn grow<T>(
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
            if self.faults.takes(|switches| &mut switches.failing_reads) {
                return Err(Status::Io);
            }
            let runs = begun.pipeline.blocks.find(file, offset, bytes);
            let disk = &mut begun.pipeline.disk;
            let ends = runs.iter().map(|run| disk.read(at, run.address, run.bytes));
            ready_at = ends.fold(ready_at, Instant::max);
            begun.cache.fill(file, offset, bytes, ready_at);
        }
        Ok(ready_at)
    }

    pub(super) fn victim(&self, (dir, name): Spot<'_>) -> Victim {
        let root = Caller { uid: 0, gid: 0, gids: Vec::new() };
        let found = now(self.live.lookup(&root, dir, name)).result.ok()?;
        Some((found.handle, found.attr.fileid))
    }

    pub(super) fn forget(&self, state: &mut State, victim: Victim) {
        if let Some((handle, id)) = victim {
            state.forget_if_gone(&self.live, &handle, id);
        }
    }

    /// A file that had records is past them with a change that was made stable.
    pub(super) async fn past_change<T>(
        &self,
        past: Option<(u64, u64)>,
        result: &Result<T, Status>,
    ) {
        if let Some((file, through)) = past {
            self.past(file, Some(through), result.is_ok()).await;
        }
    }
}
