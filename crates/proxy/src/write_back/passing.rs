//! Calls that are for the origin while their callers wait: after what is on its way of the same files
//! and names, and before what comes of them meanwhile.

use server::store::Store;
use server::types::{Handle, Status};

use super::Inner;
use super::order::Thing;
use super::state::named;

/// A name, and the directory it is in.
pub(super) type Place<'n> = (&'n Handle, &'n [u8]);

/// What the origin is changing for somebody, whose call is run to its end.
pub(super) struct Passing<'i, S: Store> {
    inner: &'i Inner<S>,
    things: Vec<Thing>,
    /// What the origin calls the directories of names.
    pub(super) dirs: Vec<Handle>,
}

impl<S: Store> Drop for Passing<'_, S> {
    fn drop(&mut self) {
        self.inner.state.lock().busy.retain(|thing| !self.things.contains(thing));
        self.inner.changed.notify_waiters();
    }
}

impl<S: Store> Inner<S> {
    /// Waits until the origin has these directories and nothing of these names and files is on its
    /// way; they are the caller's until what this gives is dropped. What clients have removed is
    /// stale, also while the origin has it still.
    pub(super) async fn pass<'i>(
        &'i self,
        places: &[Place<'_>],
        files: &[Handle],
    ) -> Result<Passing<'i, S>, Status> {
        let names = places.iter().map(|(dir, name)| named(dir, name));
        let things: Vec<_> = names.chain(files.iter().copied().map(Thing::File)).collect();
        let is_there = self.until(|state| {
            if places.iter().any(|(dir, _)| state.is_removed(dir)) {
                return Some(false);
            }
            let is_made =
                |dir: &Handle| state.nodes.find(dir).is_none_or(|node| node.origin.is_some());
            let is_free = places.iter().all(|(dir, _)| is_made(dir))
                && !things.iter().any(|thing| state.busy.contains(thing))
                && !state.uses(&things);
            is_free.then(|| {
                state.busy.extend(things.iter().cloned());
                state.counts.passed_through += 1;
                true
            })
        });
        if !is_there.await? {
            return Err(Status::Stale);
        }
        let mut passing = Passing { inner: self, things, dirs: Vec::new() };
        for (dir, _) in places {
            passing.dirs.push(self.there(dir)?);
        }
        Ok(passing)
    }

    /// A call on this file is for the origin, after all that was changed here has come there: what
    /// the origin calls the file, and what holds back other changes of it.
    pub(super) async fn through(&self, id: &Handle) -> Result<(Handle, Passing<'_, S>), Status> {
        let passing = self.pass(&[], &[*id]).await?;
        Ok((self.there(id)?, passing))
    }
}
