//! Which files are open here, and what is to be removed when they no longer are.
//!
//! NFS knows no open files: one whose last name is removed is gone, open or not. So a name that
//! would take an open file with it becomes a hidden one (`.nfs...`) until the file is closed, as
//! every NFS client since the first has done it (silly rename).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use net::clock::Clock;
use wire::nfs3::FileHandle;

use crate::session::Credential;

/// What hidden names begin with.
const HIDDEN_PREFIX: &str = ".nfs";

/// A name that stands for a removed file that is still open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Hidden {
    pub(super) dir: FileHandle,
    pub(super) name: Vec<u8>,
    /// Who has removed it: whoever closes the file last need not be allowed to.
    pub(super) by: Credential,
}

/// See the module's head. Bounded by what is open, and by calls under way.
#[derive(Debug)]
pub(super) struct Busy {
    /// Open, or being opened.
    open: HashMap<FileHandle, OpenFile>,
    /// Calls that take a name from a file, if it is known from which.
    removals: BTreeMap<u64, Option<FileHandle>>,
    removals_begun: u64,
    /// Makes hidden names differ from those of other mounts, and from each other.
    instance: u64,
    hidden: u32,
}

#[derive(Debug, Default)]
struct OpenFile {
    count: usize,
    /// Opens under way.
    opening: usize,
    hidden: Vec<Hidden>,
    changes: Arc<AtomicU64>,
    /// We have appended since all of ours was stable or given up, which it is when it is opened:
    /// until it is again, nobody else may take turns with us.
    has_appended: bool,
}

impl Busy {
    pub(super) fn new(clock: &Clock) -> Self {
        let since_1970 = clock.since_1970();
        let instance = since_1970.as_secs().rotate_left(32) ^ u64::from(since_1970.subsec_nanos());
        let removals = BTreeMap::new();
        Self { open: HashMap::new(), removals, removals_begun: 0, instance, hidden: 0 }
    }

    /// Gives the number of our own changes of the file's data, which all its opens share.
    pub(super) fn opened(&mut self, file: &FileHandle) -> Arc<AtomicU64> {
        let open = self.open.entry(*file).or_default();
        open.count += 1;
        open.has_appended = false;
        Arc::clone(&open.changes)
    }

    /// We have changed the file's data.
    pub(super) fn changed(&self, file: &FileHandle) {
        if let Some(open) = self.open.get(file) {
            open.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// All that was written to a file is stable, or given up.
    pub(super) fn settled(&mut self, file: &FileHandle) {
        if let Some(open) = self.open.get_mut(file) {
            open.has_appended = false;
        }
    }

    /// Something was written where the file ends.
    pub(super) fn appended(&mut self, file: &FileHandle) {
        if let Some(open) = self.open.get_mut(file) {
            open.has_appended = true;
        }
    }

    /// Whether an append needs a GETATTR before it. One that was made for anything else is not
    /// enough: another client may have appended since.
    pub(super) fn asks_end(&self, file: &FileHandle) -> bool {
        self.open.get(file).is_none_or(|open| !open.has_appended)
    }

    /// One of those who have it open has closed it. Gives what is to be removed now.
    pub(super) fn closed(&mut self, file: &FileHandle) -> Vec<Hidden> {
        let Some(open) = self.open.get_mut(file) else {
            return Vec::new();
        };
        open.count = open.count.saturating_sub(1);
        self.end_if_unused(file)
    }

    fn end_if_unused(&mut self, file: &FileHandle) -> Vec<Hidden> {
        let is_unused = |open: &OpenFile| open.count == 0 && open.opening == 0;
        match self.open.get(file).is_some_and(is_unused) {
            true => self.open.remove(file).map(|open| open.hidden).unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// An open begins: gives the number of the calls that take names and have begun before.
    pub(super) fn begin_opening(&mut self, file: &FileHandle) -> u64 {
        self.open.entry(*file).or_default().opening += 1;
        self.removals_begun
    }

    /// It has ended, well or not. Gives what is to be removed now.
    pub(super) fn end_opening(&mut self, file: &FileHandle) -> Vec<Hidden> {
        if let Some(open) = self.open.get_mut(file) {
            open.opening = open.opening.saturating_sub(1);
        }
        self.end_if_unused(file)
    }

    /// A call is to take a name from a file that is not used.
    pub(super) fn begin_removal(&mut self, of: Option<FileHandle>) -> u64 {
        self.removals_begun += 1;
        self.removals.insert(self.removals_begun, of);
        self.removals_begun
    }

    pub(super) fn end_removal(&mut self, number: u64) {
        self.removals.remove(&number);
    }

    /// Whether such a call is under way that may be of this file, among as many that had begun.
    pub(super) fn is_losing_name(&self, file: &FileHandle, begun: u64) -> bool {
        self.removals.range(..=begun).any(|(_, of)| of.is_none_or(|of| of == *file))
    }

    pub(super) fn is_open(&self, file: &FileHandle) -> bool {
        self.open.get(file).is_some_and(|open| open.count > 0)
    }

    /// Whether it is open, or being opened.
    pub(super) fn is_used(&self, file: &FileHandle) -> bool {
        self.open.contains_key(file)
    }

    pub(super) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A name that nobody has.
    pub(super) fn hidden_name(&mut self) -> Vec<u8> {
        self.hidden = self.hidden.wrapping_add(1);
        format!("{HIDDEN_PREFIX}{:016x}{:08x}", self.instance, self.hidden).into_bytes()
    }

    /// The file has this hidden name now. Gives it back when the file has been closed meanwhile.
    pub(super) fn hide(&mut self, file: &FileHandle, hidden: Hidden) -> Option<Hidden> {
        match self.open.get_mut(file) {
            Some(open) => {
                open.hidden.push(hidden);
                None
            }
            None => Some(hidden),
        }
    }

    /// Everything that is hidden, to be removed at the end of all.
    pub(super) fn take_hidden(&mut self) -> Vec<Hidden> {
        let mut hidden: Vec<_> = self.open.drain().flat_map(|(_, open)| open.hidden).collect();
        // In the order in which they were hidden: that of the table is another one in each run.
        hidden.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        hidden
    }
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    #[test]
    fn what_is_hidden_comes_in_the_order_in_which_it_was_hidden() {
        let mut busy = Busy::new(&World::new().clock());
        let dir = FileHandle::new(&[0]).unwrap();
        let names: Vec<_> = (0..100).map(|_| busy.hidden_name()).collect();
        let by = Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() };
        for (number, name) in (1..).zip(&names) {
            let file = FileHandle::new(&[number]).unwrap();
            busy.opened(&file);
            let (name, by) = (name.clone(), by.clone());
            assert_eq!(busy.hide(&file, Hidden { dir, name, by }), None);
        }
        let taken: Vec<_> = busy.take_hidden().into_iter().map(|hidden| hidden.name).collect();
        assert_eq!(taken, names);
    }
}
