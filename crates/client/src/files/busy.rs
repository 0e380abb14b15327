//! Which files are open here, and what is to be removed when they no longer are.
//!
//! NFS knows no open files: one whose last name is removed is gone, open or not. So a name that
//! would take an open file with it becomes a hidden one (`.nfs...`) until the file is closed, as
//! every NFS client since the first has done it (silly rename).

use std::collections::hash_map::Entry;
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
    /// Directories, and how many hidden names that nobody needs any more they still have.
    leaving: HashMap<FileHandle, usize>,
    /// Makes hidden names differ from those of other mounts, and from each other.
    instance: u64,
    hidden: u32,
}

#[derive(Debug, Default)]
struct OpenFile {
    count: usize,
    /// Opens under way.
    opening: usize,
    /// Opens that a program has closed and not used since, and those that end.
    left: usize,
    closing: usize,
    hidden: Vec<Hidden>,
    changes: Arc<AtomicU64>,
    /// We have appended since all of ours was stable or given up, which it is when it is opened:
    /// until it is again, nobody else may take turns with us.
    has_appended: bool,
}

/// What becomes of the hidden names that a directory has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Going {
    /// It has none.
    Gone,
    /// They go as soon as calls under way are answered.
    Surely,
    /// Programs have closed their files, and may have them open by other descriptors.
    Perhaps,
    /// A program has such a file open.
    Not,
}

/// How far an open file is from its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Leaving {
    /// A program has closed it.
    Left,
    /// And nobody can use it any more.
    Closing,
}

impl Busy {
    pub(super) fn new(clock: &Clock) -> Self {
        let since_1970 = clock.since_1970();
        let instance = since_1970.as_secs().rotate_left(32) ^ u64::from(since_1970.subsec_nanos());
        let (removals, leaving) = (BTreeMap::new(), HashMap::new());
        Self { open: HashMap::new(), removals, removals_begun: 0, leaving, instance, hidden: 0 }
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

    /// One of those who have it open comes nearer to its end, or goes on to use it.
    pub(super) fn leaves(&mut self, file: &FileHandle, from: Option<Leaving>, to: Option<Leaving>) {
        let Some(open) = self.open.get_mut(file) else { return };
        for (leaving, is_left) in [(from, false), (to, true)] {
            let count = match leaving {
                Some(Leaving::Left) => &mut open.left,
                Some(Leaving::Closing) => &mut open.closing,
                None => continue,
            };
            *count = if is_left { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    /// One of those who have it open, and were closing it, has closed it. Gives what is to be
    /// removed now.
    pub(super) fn closed(&mut self, file: &FileHandle) -> Vec<Hidden> {
        let Some(open) = self.open.get_mut(file) else {
            return Vec::new();
        };
        open.count = open.count.saturating_sub(1);
        open.closing = open.closing.saturating_sub(1);
        self.end_if_unused(file)
    }

    fn end_if_unused(&mut self, file: &FileHandle) -> Vec<Hidden> {
        let is_unused = |open: &OpenFile| open.count == 0 && open.opening == 0;
        if !self.open.get(file).is_some_and(is_unused) {
            return Vec::new();
        }
        let hidden = self.open.remove(file).map(|open| open.hidden).unwrap_or_default();
        for Hidden { dir, .. } in &hidden {
            *self.leaving.entry(*dir).or_default() += 1;
        }
        hidden
    }

    /// A hidden name that was to be removed is gone from its directory, or stays.
    pub(super) fn has_left(&mut self, dir: &FileHandle) {
        if let Entry::Occupied(mut leaving) = self.leaving.entry(*dir) {
            *leaving.get_mut() -= 1;
            if *leaving.get() == 0 {
                leaving.remove();
            }
        }
    }

    /// What becomes of the hidden names that a directory has.
    pub(super) fn going(&self, dir: &FileHandle) -> Going {
        let is_in = |hidden: &Hidden| hidden.dir == *dir;
        let of_open = self.open.values().filter(|open| open.hidden.iter().any(is_in));
        let states = of_open.map(|open| match open.count + open.opening {
            all if all == open.closing => Going::Surely,
            all if all == open.closing + open.left => Going::Perhaps,
            _ => Going::Not,
        });
        let removed = if self.leaving.contains_key(dir) { Going::Surely } else { Going::Gone };
        states.fold(removed, Going::max)
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

    fn hidden(dir: FileHandle, name: Vec<u8>) -> Hidden {
        let by = Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() };
        Hidden { dir, name, by }
    }

    #[test]
    fn what_a_directory_hides_goes_when_all_who_have_it_open_end() {
        let mut busy = Busy::new(&World::new().clock());
        let [dir, other, file] = [0, 1, 2].map(|number| FileHandle::new(&[number]).unwrap());
        (0..2).for_each(|_| drop(busy.opened(&file)));
        assert_eq!(busy.going(&dir), Going::Gone);
        assert_eq!(busy.hide(&file, hidden(dir, b"a".to_vec())), None);
        assert_eq!((busy.going(&dir), busy.going(&other)), (Going::Not, Going::Gone));
        let (left, closing) = (Some(Leaving::Left), Some(Leaving::Closing));
        busy.leaves(&file, None, left);
        assert_eq!(busy.going(&dir), Going::Not, "another has it open");
        busy.leaves(&file, None, left);
        assert_eq!(busy.going(&dir), Going::Perhaps);
        busy.leaves(&file, left, None);
        assert_eq!(busy.going(&dir), Going::Not, "it is used after all");
        busy.leaves(&file, left, closing);
        busy.leaves(&file, None, closing);
        assert_eq!(busy.going(&dir), Going::Surely);
        busy.begin_opening(&file);
        assert_eq!(busy.going(&dir), Going::Not, "and is opened again");
        busy.end_opening(&file);
        assert!(busy.closed(&file).is_empty());
        assert_eq!(busy.closed(&file).len(), 1);
        assert_eq!(busy.going(&dir), Going::Surely, "its REMOVE is under way");
        busy.has_left(&dir);
        assert_eq!(busy.going(&dir), Going::Gone);
    }

    #[test]
    fn what_is_hidden_comes_in_the_order_in_which_it_was_hidden() {
        let mut busy = Busy::new(&World::new().clock());
        let dir = FileHandle::new(&[0]).unwrap();
        let names: Vec<_> = (0..100).map(|_| busy.hidden_name()).collect();
        for (number, name) in (1..).zip(&names) {
            let file = FileHandle::new(&[number]).unwrap();
            busy.opened(&file);
            assert_eq!(busy.hide(&file, hidden(dir, name.clone())), None);
        }
        let taken: Vec<_> = busy.take_hidden().into_iter().map(|hidden| hidden.name).collect();
        assert_eq!(taken, names);
    }
}
