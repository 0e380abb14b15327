//! Calls that are for the origin while their callers wait: after what is on its way of the same
//! files and names, and before what comes of them meanwhile.
//!
//! While the origin is away, or does not take a change that such a call has to follow, the call may
//! wait for long, and changes do not wait behind it.

use server::store::Store;
use server::types::{Caller, Handle, Status};

use super::Inner;
use super::order::Thing;
use super::state::State;
use super::touches::{Place, named};
use super::turns::Claim;

/// What the origin is changing for somebody, whose call is run to its end.
pub(super) struct Passing<'i, S: Store> {
    inner: &'i Inner<S>,
    things: Vec<Thing>,
    /// What the origin calls the directories of names.
    pub(super) dirs: Vec<Handle>,
}

impl<S: Store> Drop for Passing<'_, S> {
    fn drop(&mut self) {
        let mut state = self.inner.state.lock();
        state.busy.retain(|thing| !self.things.contains(thing));
        state.touch(std::mem::take(&mut self.things));
        drop(state);
        self.inner.changed.notify_waiters();
    }
}

/// A caller who may have to wait for others, in the order in which they came. While it lives, the
/// caller waits for nothing else.
pub(super) struct Turn<'i, S: Store> {
    inner: &'i Inner<S>,
    claim: Claim,
}

impl<S: Store> Turn<'_, S> {
    /// These names and files are wanted now.
    pub(super) fn wants(&mut self, places: &[Place<'_>], files: &[Handle]) {
        self.inner.state.lock().turns.want(&mut self.claim, places, files);
    }

    /// Whether it has come, what is wanted being free. Who comes later waits behind it, if not.
    pub(super) fn has_come(&mut self, state: &mut State, is_free: bool) -> bool {
        let is_behind = || !state.turns.is_next(&self.claim);
        let has_come = is_free && (!self.claim.passes && state.is_stuck() || !is_behind());
        if !has_come {
            state.turns.wait(&mut self.claim);
            if self.claim.passes && state.hold_up(&self.claim) {
                self.inner.changed.notify_waiters();
            }
        }
        has_come
    }
}

impl<S: Store> Drop for Turn<'_, S> {
    fn drop(&mut self) {
        if self.claim.has_place() {
            self.inner.state.lock().turns.end(&mut self.claim);
            self.inner.changed.notify_waiters();
        }
    }
}

impl<S: Store> Inner<S> {
    /// For a change that is for the log.
    pub(super) fn turn(&self) -> Turn<'_, S> {
        Turn { inner: self, claim: Claim::new(false) }
    }

    fn passing_turn(&self) -> Turn<'_, S> {
        Turn { inner: self, claim: Claim::new(true) }
    }

    /// Waits until the origin has these directories, with the rights and the group that they have
    /// here, and nothing of these names and files is on its way, nor would be after a crash; they
    /// are the caller's until what this gives is dropped.
    /// What clients have removed is stale, also while the origin has it still.
    pub(super) async fn pass(
        &self,
        places: &[Place<'_>],
        files: &[Handle],
    ) -> Result<Passing<'_, S>, Status> {
        let mut turn = self.passing_turn();
        let begun = self.pass_since(&mut turn, places, files, (u64::MAX, false)).await?;
        begun.ok_or(Status::ServerFault)
    }

    /// The same of names that are taken away, and of what has them; bytes of that which wait for
    /// room are not waited for.
    pub(super) async fn pass_found<const N: usize>(
        &self,
        caller: &Caller,
        places: [Place<'_>; N],
    ) -> Result<(Passing<'_, S>, [Option<Handle>; N]), Status> {
        let mut turn = self.passing_turn();
        loop {
            let epoch = self.epoch();
            let mut found = [None; N];
            for (found, (dir, name)) in found.iter_mut().zip(places) {
                *found = self.resolve(caller, dir, name).await.ok().and_then(|(child, _)| child);
            }
            let files: Vec<_> = found.iter().copied().flatten().collect();
            if let Some(passing) =
                self.pass_since(&mut turn, &places, &files, (epoch, true)).await?
            {
                return Ok((passing, found));
            }
        }
    }

    /// `None`: a name was changed since this epoch.
    async fn pass_since(
        &self,
        turn: &mut Turn<'_, S>,
        places: &[Place<'_>],
        files: &[Handle],
        (epoch, makes_room): (u64, bool),
    ) -> Result<Option<Passing<'_, S>>, Status> {
        turn.wants(places, files);
        let names: Vec<_> = places.iter().map(|(dir, name)| named(dir, name)).collect();
        let files = files.iter().copied().map(Thing::File);
        let things: Vec<_> = names.iter().cloned().chain(files).collect();
        let begun = self.until(|state| {
            if places.iter().any(|(dir, _)| state.is_removed(dir)) {
                return Some(Err(Status::Stale));
            }
            let is_made =
                |dir: &Handle| state.nodes.find(dir).is_none_or(|node| node.origin.is_some());
            let is_as_here = |dir: &Handle| is_made(dir) && !state.changes(dir);
            let is_free = places.iter().all(|(dir, _)| is_as_here(dir))
                && !things.iter().any(|thing| state.busy.contains(thing))
                && !things.iter().any(|thing| {
                    let waits = |file: &Handle| makes_room && state.lacks_room(file);
                    let waits = matches!(thing, Thing::File(file) if waits(file));
                    state.order.uses(thing) && !waits
                });
            if !turn.has_come(state, is_free) {
                self.hurry(state);
                return None;
            }
            let is_as_found = !names.iter().any(|name| state.is_touched(name, epoch));
            if is_as_found {
                state.busy.extend(things.iter().cloned());
                state.counts.passed_through += 1;
            }
            Some(Ok(is_as_found))
        });
        if !begun.await?? {
            return Ok(None);
        }
        let mut passing = Passing { inner: self, things, dirs: Vec::new() };
        for (dir, _) in places {
            passing.dirs.push(self.there(dir)?);
        }
        Ok(Some(passing))
    }

    /// A call on this file is for the origin, after all that was changed here has come there: what
    /// the origin calls the file, and what holds back other changes of it.
    pub(super) async fn through(&self, id: &Handle) -> Result<(Handle, Passing<'_, S>), Status> {
        let passing = self.pass(&[], &[*id]).await?;
        Ok((self.there(id)?, passing))
    }
}
