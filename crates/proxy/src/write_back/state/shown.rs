//! What clients see of what is on its way, and of what the origin has returned: names, and what
//! has them.

use bytes::Bytes;
use perf::units::Instant;
use server::types::{Handle, Status, Time};

use super::{PLACES_MAX, State};
use crate::write_back::names::Named;
use crate::write_back::nodes::{LINGER, Node};
use crate::write_back::record::{Change, Entry};
use crate::write_back::touches::{Place, involved, named, names};

impl State {
    /// Lets clients see a change.
    pub(super) fn show(&mut self, number: u64, entry: &Entry, now: Instant) {
        self.epoch += 1;
        for id in self.touched(number, &entry.change) {
            if let Some(node) = self.nodes.find_mut(&id) {
                node.pending += 1;
                (node.used, node.ours_at) = (now, now);
            }
        }
        for (dir, name) in names(&entry.change) {
            self.recent.pop(&(*dir, name.clone()));
            self.touched.note(named(dir, name), self.epoch);
        }
        let (at, when) = (entry.at, (number, entry.at, now));
        match &entry.change {
            Change::Write { file, offset, data } => {
                if let Some(node) = self.nodes.find_mut(file) {
                    node.write(*offset, data.clone(), number, at);
                }
            }
            Change::Set { file, set } => {
                if let Some(node) = self.nodes.find_mut(file) {
                    node.set(set, number, at);
                    // A recovery may have lost the WRITE that it is of.
                    node.attr.modified = entry.owed.unwrap_or(node.attr.modified);
                    node.owes_time |= entry.owed.is_some();
                }
            }
            Change::Make { dir, name, .. } => {
                let (id, _) = self.identity(number);
                let is_dir = self.nodes.find(&id).is_some_and(Node::is_dir);
                self.name(dir, name, Some(id), when, i64::from(is_dir));
            }
            Change::Remove { dir, name, file, is_dir } => {
                self.name(dir, name, None, when, -i64::from(*is_dir));
                self.unlink(file, *is_dir, at);
            }
            Change::Rename { from, to, file, over } => {
                self.name(&from.0, &from.1, None, when, 0);
                self.name(&to.0, &to.1, Some(*file), when, 0);
                if let Some(node) = self.nodes.find_mut(file) {
                    node.attr.changed = at;
                }
                over.iter().for_each(|over| self.unlink(over, false, at));
            }
        }
    }

    fn name(
        &mut self,
        dir: &Handle,
        name: &Bytes,
        child: Option<Handle>,
        (number, at, now): (u64, Time, Instant),
        dirs: i64,
    ) {
        if let Some(node) = self.nodes.find_mut(dir) {
            node.name(name.clone(), child, number, now);
            node.touch(at);
            node.more_dirs(dirs);
        }
        if let Some(child) = child {
            self.moved(&child, (*dir, name.clone()));
        }
    }

    /// A file is here from now on.
    pub(crate) fn moved(&mut self, file: &Handle, place: (Handle, Bytes)) {
        if let Some(node) = self.nodes.find_mut(file) {
            node.place = Some(place.clone());
        }
        self.places.put(*file, place);
        if self.places.len() > PLACES_MAX {
            self.places.pop_lru();
        }
    }

    /// The origin has returned a file under this name. Where one is with changes on their way is
    /// known better here.
    pub(crate) fn met_at(&mut self, file: &Handle, (dir, name): Place<'_>) {
        let is_pending = self.nodes.find(file).is_some_and(Node::is_pending);
        match self.place(file) {
            Some((at, called)) if is_pending || (at, &called[..]) == (dir, name) => {
                self.places.promote(file);
            }
            _ => self.moved(file, (*dir, Bytes::copy_from_slice(name))),
        }
    }

    /// Where a file was seen last.
    pub(crate) fn place(&self, file: &Handle) -> Option<&(Handle, Bytes)> {
        let own = self.nodes.find(file).and_then(|node| node.place.as_ref());
        own.or_else(|| self.places.peek(file))
    }

    /// Its name; of one whose name is not known, its number.
    pub(crate) fn called(&self, file: &Handle) -> Bytes {
        match (self.place(file), self.nodes.find(file)) {
            (Some((_, name)), _) => name.clone(),
            (None, Some(node)) => Bytes::from(format!(".unnamed-{}", node.attr.fileid)),
            (None, None) => Bytes::from_static(b".unnamed"),
        }
    }

    fn unlink(&mut self, file: &Handle, is_dir: bool, at: Time) {
        if let Some(node) = self.nodes.find_mut(file) {
            if is_dir {
                node.attr.links = 0;
            } else {
                let least = u32::from(node.is_unsure);
                node.is_leaving = node.is_unsure;
                node.attr.links = node.attr.links.saturating_sub(1).max(least);
            }
            node.attr.changed = at;
        }
    }

    /// Whether clients have removed a directory that the origin may still have.
    pub(crate) fn is_removed(&self, dir: &Handle) -> bool {
        self.nodes.find(dir).is_some_and(|node| node.attr.links == 0)
    }

    /// What has a name by what is on its way, or by what nobody but us has changed: that,
    /// nothing, or it is not known.
    pub(crate) fn own_name(
        &self,
        dir: &Handle,
        name: &[u8],
        now: Instant,
    ) -> Option<Option<Handle>> {
        let node = self.nodes.find(dir)?;
        let names = node.names.as_ref()?;
        let is_fresh = self.is_away || node.is_answered_here(now);
        match names.find(name) {
            Some(named) => (named.is_recent(now) || is_fresh).then_some(named.child),
            None => (names.is_complete && is_fresh).then_some(None),
        }
    }

    /// What had a name in the origin's reply a moment ago.
    pub(crate) fn recent_name(
        &mut self,
        dir: &Handle,
        name: &[u8],
        now: Instant,
    ) -> Option<Option<Handle>> {
        let (child, at) = self.recent.get(&(*dir, Bytes::copy_from_slice(name)))?;
        (self.is_away || now.since(*at) <= LINGER).then_some(*child)
    }

    /// The origin has returned what has a name.
    pub(crate) fn met_name(
        &mut self,
        dir: &Handle,
        name: &[u8],
        child: Option<Handle>,
        at: Instant,
    ) {
        self.recent.put((*dir, Bytes::copy_from_slice(name)), (child, at));
    }

    /// The origin has changed a name for a caller who has waited for it.
    pub(crate) fn passed_name(
        &mut self,
        dir: &Handle,
        name: &[u8],
        child: Option<Handle>,
        now: Instant,
    ) {
        self.recent.pop(&(*dir, Bytes::copy_from_slice(name)));
        if let Some(child) = &child {
            self.moved(child, (*dir, Bytes::copy_from_slice(name)));
        }
        let number = self.journal.skip_record();
        let names = self.nodes.find_mut(dir).and_then(|node| node.names.as_mut());
        if let Some(names) = names {
            let named = Named { child, number, is_pending: false, at: now, left: None };
            names.insert(Bytes::copy_from_slice(name), named);
        }
    }

    /// A call for a name has failed at the origin, which tells whether something has it. What was
    /// not changed stays known, for listings that are under way.
    pub(crate) fn failed_name(&mut self, (dir, name): Place<'_>, status: Status) {
        use Status::{Away, Exists, Io, Jukebox, NoDevice, NoEntry, ServerFault};
        self.recent.pop(&(*dir, Bytes::copy_from_slice(name)));
        let names = self.nodes.find(dir).and_then(|node| node.names.as_ref());
        let known = names.and_then(|names| match names.find(name) {
            Some(named) => Some(named.child.is_some()),
            None => names.is_complete.then_some(false),
        });
        let is_unknown = match status {
            Exists => known == Some(false),
            NoEntry => known == Some(true),
            // It may have been done.
            Away | Io | Jukebox | NoDevice | ServerFault => true,
            _ => false,
        };
        if is_unknown {
            self.unknown_names(dir);
        }
    }

    /// The origin has changed names of a directory, or perhaps so, and not returned to what.
    pub(crate) fn unknown_names(&mut self, dir: &Handle) {
        self.recent.clear();
        let Some(node) = self.nodes.find_mut(dir) else { return };
        node.forget_names(|named| named.is_pending);
        if let Some(names) = &mut node.names {
            names.is_complete = false;
        }
    }

    /// A change was not made as clients were shown it: the names and files that it was of are as
    /// the origin has them.
    pub(crate) fn forget_shown(&mut self, change: &Change) {
        let dirs: Vec<_> = names(change).map(|(dir, _)| *dir).collect();
        dirs.iter().for_each(|dir| self.unknown_names(dir));
        for file in involved(change).iter().filter(|file| !dirs.contains(file)) {
            self.forget_file(file);
        }
    }

    /// Of these files and directories the origin has refused to make some, and nothing is on its
    /// way any more.
    pub(crate) fn forget_refused(&mut self, number: u64, change: &Change) {
        for id in self.touched(number, change) {
            let is_over = |node: &Node| node.is_refused && node.pending == 0;
            if self.nodes.find(&id).is_some_and(is_over) {
                self.forget_file(&id);
            }
        }
    }
}
