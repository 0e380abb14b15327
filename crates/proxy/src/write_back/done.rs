//! Which changes of a log the origin has done already, though the log has no note of it. What the
//! origin reports has them then, and clients are to see them once: a name that a file has lost, or
//! a directory has won, counts in its links.
//!
//! Of changes that follow one another at most the first is in doubt (see `notes`), and a LOOKUP of
//! its name tells. Attributes are those of the same reply, or are requested after it: so a call of
//! the killed proxy that comes to the origin meanwhile counts once, too.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::StreamExt;
use futures_util::stream;
use server::store::{Node, Store};
use server::types::{Attr, FileKind, Handle, Status};

use super::Inner;
use super::open::CALLS_AT_A_TIME;
use super::record::{Change, Made};
use super::recover::HeldEntry;
use super::state::State;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Done {
    changes: HashSet<u64>,
    /// Files that have lost a name by them.
    lost: HashSet<Handle>,
    /// Files that have the name still which they are to lose.
    found: HashMap<Handle, Attr>,
    /// Files of which it is not known whether they have lost one.
    unsure: HashSet<Handle>,
}

impl Done {
    pub(super) fn has(&self, number: u64) -> bool {
        self.changes.contains(&number)
    }

    pub(super) fn has_lost(&self, file: &Handle) -> bool {
        self.lost.contains(file)
    }

    pub(super) fn found(&self, file: &Handle) -> Option<Attr> {
        self.found.get(file).copied()
    }

    pub(super) fn is_unsure(&self, file: &Handle) -> bool {
        self.unsure.contains(file)
    }

    fn note(&mut self, number: u64, change: &Change, there: Result<Node, Status>, is_it: bool) {
        let is_there = match there {
            Ok(_) => true,
            Err(Status::NoEntry | Status::NotDirectory | Status::Stale) => false,
            Err(_) => return,
        };
        let (is_done, lost) = match change {
            Change::Make { .. } => (is_there && is_it, None),
            change => (!is_it, loses_name(change)),
        };
        if let Some(file) = lost {
            self.unsure.remove(file);
            self.found.extend(there.ok().filter(|_| is_it).map(|node| (*file, node.attr)));
        }
        if is_done {
            self.changes.insert(number);
            self.lost.extend(lost);
        }
    }
}

impl<S: Store> Inner<S> {
    /// What of these changes is done.
    pub(super) async fn done_of(&self, entries: &BTreeMap<u64, HeldEntry>) -> Done {
        let mut done = Done::default();
        let lost = entries.values().filter_map(|held| loses_name(&held.entry.change));
        done.unsure.extend(lost);
        let first = self.state.lock().first_of(entries);
        let looked = stream::iter(first)
            .map(|number| async move { (number, self.looked_for(&entries[&number]).await) })
            .buffer_unordered(CALLS_AT_A_TIME);
        let mut looked = std::pin::pin!(looked);
        while let Some((number, looked)) = looked.next().await {
            if let Some((there, is_it)) = looked {
                done.note(number, &entries[&number].entry.change, there, is_it);
            }
        }
        done
    }

    /// What has the name that a change is about; whether that is what it makes, or takes the name
    /// from. None: links are not concerned, or the origin has not even the directory.
    async fn looked_for(&self, held: &HeldEntry) -> Option<(Result<Node, Status>, bool)> {
        let entry = &held.entry;
        let (dir, name) = match &entry.change {
            Change::Make { dir, name, what: Made::Directory, .. }
            | Change::Remove { dir, name, .. } => (dir, name),
            Change::Rename { to, over: Some(_), .. } => (&to.0, &to.1),
            _ => return None,
        };
        let origin = |id: &Handle| self.origin(id).ok().flatten();
        let there = self.store.lookup(&entry.caller, &origin(dir)?, name).await.result;
        let is_it = there.as_ref().is_ok_and(|there| match loses_name(&entry.change) {
            Some(file) => origin(file) == Some(there.handle),
            None => there.attr.kind == FileKind::Directory,
        });
        Some((there, is_it))
    }
}

impl State {
    /// The changes that follow no other.
    fn first_of(&self, entries: &BTreeMap<u64, HeldEntry>) -> Vec<u64> {
        let mut order = super::order::Order::default();
        for (number, held) in entries {
            let made = self.identity(*number).0;
            order.add(*number, super::touches::uses(&held.entry.change, &made));
            order.stable(*number);
        }
        std::iter::from_fn(|| order.next()).collect()
    }

    /// Links are as before a change that the origin has done: clients are about to be shown it.
    pub(super) fn take_back(&mut self, change: &Change) {
        match change {
            Change::Remove { dir, is_dir: true, .. } => self.more_dirs(dir, 1),
            Change::Make { dir, what: Made::Directory, .. } => self.more_dirs(dir, -1),
            change => {
                let lost = loses_name(change).and_then(|file| self.nodes.find_mut(file));
                lost.into_iter().for_each(|node| node.attr.links += 1);
            }
        }
    }

    fn more_dirs(&mut self, dir: &Handle, dirs: i64) {
        self.nodes.find_mut(dir).into_iter().for_each(|node| node.more_dirs(dirs));
    }
}

/// The file that has a name less after a change.
fn loses_name(change: &Change) -> Option<&Handle> {
    match change {
        Change::Remove { file, .. } => Some(file),
        Change::Rename { over, .. } => over.as_ref(),
        _ => None,
    }
}
