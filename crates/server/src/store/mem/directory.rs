//! The entries of one directory, by name and in the order of their cookies.
//!
//! A cookie is a number that is given out once in the directory's life, ascending. A listing that
//! goes on after a cookie therefore meets every entry that was there all the time exactly once,
//! whatever was made or removed in between; new entries come last.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A file's number, unique for the life of the store.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct FileId(pub(super) u64);

impl FileId {
    pub(super) const fn new(generation: u32, slot: u32) -> Self {
        Self((generation as u64) << 32 | slot as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the slot")]
    pub(super) const fn slot(self) -> u32 {
        self.0 as u32
    }

    pub(super) const fn index(self) -> usize {
        self.slot() as usize
    }
}

/// Cookies 1 and 2 belong to `.` and `..`, which are not stored.
const COOKIE_FIRST: u64 = 3;

/// What an entry counts beside its name against the store's bytes: about what it takes in both
/// maps.
const ENTRY_OVERHEAD: u64 = 128;

#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) parent: FileId,
    by_name: BTreeMap<Arc<[u8]>, Place>,
    by_cookie: BTreeMap<u64, (Arc<[u8]>, FileId)>,
    cookie_next: u64,
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    cookie: u64,
    id: FileId,
}

impl Directory {
    pub(super) fn new(parent: FileId) -> Self {
        Self {
            parent,
            by_name: BTreeMap::new(),
            by_cookie: BTreeMap::new(),
            cookie_next: COOKIE_FIRST,
            used: 0,
        }
    }

    /// Bytes an entry with this name counts.
    pub(super) fn entry_cost(name: &[u8]) -> u64 {
        name.len() as u64 + ENTRY_OVERHEAD
    }

    /// Bytes all entries count.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<FileId> {
        self.by_name.get(name).map(|place| place.id)
    }

    /// Enters a name, in place of whatever had it before.
    pub(super) fn insert(&mut self, name: &[u8], id: FileId) {
        self.remove(name);
        let cookie = self.cookie_next;
        self.cookie_next += 1;
        let name: Arc<[u8]> = name.into();
        self.used += Self::entry_cost(&name);
        self.by_cookie.insert(cookie, (Arc::clone(&name), id));
        self.by_name.insert(name, Place { cookie, id });
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<FileId> {
        let place = self.by_name.remove(name)?;
        self.by_cookie.remove(&place.cookie);
        self.used -= Self::entry_cost(name);
        Some(place.id)
    }

    /// Whether a listing can go on after this cookie: it was given out by this directory.
    pub(super) fn has_given_out(&self, cookie: u64) -> bool {
        cookie < self.cookie_next
    }

    /// Entries with cookies above `cookie`: cookie, name, file.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], FileId)> {
        self.by_cookie
            .range((Bound::Excluded(cookie), Bound::Unbounded))
            .map(|(&cookie, (name, id))| (cookie, &**name, *id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: FileId = FileId(1);

    fn names(directory: &Directory, cookie: u64) -> Vec<&[u8]> {
        directory.after(cookie).map(|(_, name, _)| name).collect()
    }

    #[test]
    fn a_listing_survives_changes_around_its_cookie() {
        let mut directory = Directory::new(ROOT);
        for (name, id) in [(b"b", 2), (b"a", 3), (b"c", 4)] {
            directory.insert(name, FileId(id));
        }
        let (cookie, name, _) = directory.after(0).next().unwrap();
        assert_eq!(name, b"b");
        directory.remove(b"b");
        directory.insert(b"0", FileId(5));
        assert_eq!(names(&directory, cookie), [b"a", b"c", b"0"]);
        assert!(directory.has_given_out(cookie));
        assert!(!directory.has_given_out(cookie + 4));
    }

    #[test]
    fn a_name_that_comes_back_has_a_new_cookie() {
        let mut directory = Directory::new(ROOT);
        directory.insert(b"a", FileId(2));
        let (first, ..) = directory.after(0).next().unwrap();
        directory.insert(b"a", FileId(3));
        let (second, _, id) = directory.after(0).next().unwrap();
        assert!(second > first);
        assert_eq!((id, directory.find(b"a")), (FileId(3), Some(FileId(3))));
    }

    #[test]
    fn what_entries_count_goes_with_them() {
        let mut directory = Directory::new(ROOT);
        directory.insert(b"name", FileId(2));
        directory.insert(b"name", FileId(3));
        assert_eq!(directory.used(), Directory::entry_cost(b"name"));
        assert_eq!(directory.remove(b"name"), Some(FileId(3)));
        assert_eq!(directory.remove(b"name"), None);
        assert!(directory.used() == 0 && directory.is_empty());
    }
}
