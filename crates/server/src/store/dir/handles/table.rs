//! Handles without privilege: a table says where each file was last seen.
//!
//! ```text
//!   'T' | device (8) | inode (8) | birth: seconds (8), nanoseconds (4) | serial (4)
//! ```
//!
//! The bytes say which file is meant ([`super::identity`] has the first four), the table where it
//! is: its names, each with the directory
//! it is in, up to the root. Opening a handle walks the names down from the root (never out of
//! the export) and then looks whether the file found is the one meant; any other is `Stale`. So a
//! stale table costs handles and never opens a wrong file.
//!
//! The serial is the table's own: a file removed and another made in the same clock tick can have
//! the same inode and the same birth, but not the same serial.
//!
//! What renames and removals of this store do is followed. What other processes do is found out
//! when a name is looked up again, or by a bounded search ([`super::search`]) when no place holds:
//! the handle is then the same as before. A file with several names is known by those this store
//! has met, up to [`PLACES_MAX`].
//!
//! The table has a maximum. When it is full, files not used lately are forgotten, and their
//! handles are `Stale` until they are looked up again; directories with known files stay. It lasts
//! as long as the process, unless it is stored ([`super::persisted`]).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use parking_lot::{RwLock, RwLockWriteGuard};

use super::Opened;
use super::identity::Identities;
use super::persisted::Persisted;
use super::search;
use crate::store::dir::OpenError;
use crate::store::dir::acting::Acting;
use crate::store::dir::beneath::{Beneath, Component};
use crate::store::dir::bounded::Bounded;
use crate::store::dir::errno::{stale_status, status};
use crate::store::dir::stat::{Identity, Stat};
use crate::store::state::StateError;
use crate::types::{Handle, Status};

pub(super) const MARKER: u8 = b'T';
const HANDLE_BYTES: usize = 33;

/// Names remembered of one file.
pub(super) const PLACES_MAX: usize = 8;

/// Directories above one another: 4096 bytes of path hold no more.
const DEPTH_MAX: usize = 2048;

/// The root's serial in every process, so that its handle survives a restart.
const ROOT_SERIAL: u32 = 0;

/// A file as the table knows it, which is also what a handle says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Key {
    pub(super) identity: Identity,
    pub(super) serial: u32,
}

/// A name in a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Place {
    pub(super) dir: Key,
    pub(super) name: Box<[u8]>,
}

pub(super) struct Entry {
    pub(super) serial: u32,
    /// Never empty, but for the root.
    pub(super) places: Vec<Place>,
    /// How many places of others lie in this directory.
    pub(super) children: usize,
}

pub(in crate::store::dir) struct Table {
    root: Key,
    identities: Identities,
    beneath: Beneath,
    /// Guards all that is known.
    known: RwLock<Known>,
    /// Shared while a handle is opened, exclusive from a rename or removal until `known` has it:
    /// between the two a file is not where it was, and would seem to be gone, or to be somewhere
    /// else.
    moves: RwLock<()>,
}

/// A rename or a removal under way.
pub(in crate::store::dir) type Moving<'a> = RwLockWriteGuard<'a, ()>;

struct Known {
    entries: Bounded<Identity, Entry>,
    serials: u32,
    /// What keeps it over a restart.
    stored: Option<Persisted>,
}

/// Serials left out at each start: those given to entries that a power failure made forgotten.
const SERIALS_SKIPPED: u32 = 1 << 20;

impl Table {
    /// A table of at most `entries_max` files. What it knows is stored in the directory, if there
    /// is one, and it begins with what was stored.
    pub(super) fn open(
        root: &OwnedFd,
        beneath: Beneath,
        entries_max: usize,
        state: Option<(&Path, Acting)>,
    ) -> Result<Self, OpenError> {
        let stat = Stat::of(root).map_err(OpenError::Stat)?;
        let identities = Identities::of(root).map_err(OpenError::Stat)?;
        let identities = identities.ok_or(OpenError::Indistinct)?;
        let root = identities.identify(root.as_fd(), &stat).map_err(OpenError::RootHandle)?;
        let table = Self::new(root, identities, beneath, entries_max);
        if let Some((dir, acting)) = state {
            table.keep_in(dir, acting, entries_max)?;
        }
        Ok(table)
    }

    fn keep_in(&self, dir: &Path, acting: Acting, entries_max: usize) -> Result<(), StateError> {
        let (stored, entries) =
            Persisted::open(dir, (self.identities.file_system, self.root.identity.inode), acting)?;
        self.known.write().restore(stored, entries, entries_max);
        Ok(())
    }

    /// One that knows only the root.
    fn new(root: Identity, identities: Identities, beneath: Beneath, entries_max: usize) -> Self {
        let entries = Bounded::new(entries_max);
        let mut known = Known { entries, serials: ROOT_SERIAL, stored: None };
        let entry = Entry { serial: ROOT_SERIAL, places: Vec::new(), children: 0 };
        known.entries.insert(root, entry, Entry::may_go);
        Self {
            root: Key { identity: root, serial: ROOT_SERIAL },
            identities,
            beneath,
            known: RwLock::new(known),
            moves: RwLock::new(()),
        }
    }

    pub(super) fn identify(&self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<Identity, Status> {
        self.identities.identify(fd, stat)
    }

    pub(super) fn survives_restart(&self) -> bool {
        self.known.read().stored.is_some()
    }

    /// Entries that a restart may forget, after another try to write them.
    pub(super) fn unstored(&self) -> usize {
        self.known.write().stored.as_mut().map_or(0, Persisted::unstored)
    }

    pub(super) fn root(&self) -> Handle {
        self.root.handle()
    }

    /// The file was seen at this place.
    pub(super) fn name(
        &self,
        dir: &Handle,
        name: Component<'_>,
        file: Identity,
    ) -> Result<Handle, Status> {
        let place = Place::new(dir, name)?;
        // Mostly nothing is new, and a shared lock will do.
        let old = self.known.read().key_at(file, &place);
        let key = old.unwrap_or_else(|| self.known.write().seen(file, place));
        Ok(key.handle())
    }

    /// The file that has this handle was seen at this place.
    pub(super) fn name_again(
        &self,
        dir: &Handle,
        name: Component<'_>,
        known: &Handle,
    ) -> Result<Handle, Status> {
        self.name(dir, name, Key::parse(known)?.identity)
    }

    /// The handle of a file that is known already.
    pub(super) fn known(&self, file: Identity) -> Result<Handle, Status> {
        let known = self.known.read();
        let entry = known.entries.find(&file).ok_or(Status::Stale)?;
        let key = Key { identity: file, serial: entry.serial };
        Ok(key.handle())
    }

    pub(super) fn open_known(
        &self,
        root: BorrowedFd<'_>,
        handle: &Handle,
    ) -> Result<Opened, Status> {
        let key = Key::parse(handle)?;
        let _still = self.moves.read();
        let mut outcome = Status::Stale;
        for index in 0..PLACES_MAX {
            let Some(path) = self.known.read().path(key, index) else {
                break;
            };
            match self.open_at(root, &path, key.identity) {
                Err(Status::Stale) => {}
                Err(other) => outcome = other,
                Ok(found) => return Ok(Opened::Found(found)),
            }
        }
        match outcome {
            // It is where no place says. What this table never met is not looked for.
            Status::Stale if self.known.read().find(key).is_some() => Ok(Opened::Lost),
            outcome => Err(outcome),
        }
    }

    /// Another process may have moved it. What is not found is forgotten, so that it is not
    /// searched for again. Renames go on meanwhile: a place that they have reported is looked at
    /// last.
    pub(super) fn search(&self, root: BorrowedFd<'_>, handle: &Handle) -> Result<OwnedFd, Status> {
        let key = Key::parse(handle)?;
        let identify = |fd: BorrowedFd<'_>| {
            let stat = Stat::of(fd).map_err(status)?;
            self.identify(fd, &stat)
        };
        let found = search::search(self.beneath, root, key.identity, &identify);
        if matches!(found, Err(Status::Stale))
            && let Opened::Found(found) = self.open_known(root, handle)?
        {
            return Ok(found);
        }
        let mut known = self.known.write();
        match found {
            Ok(found) => {
                let mut dir = self.root;
                for (name, file) in found.steps {
                    dir = known.seen(file, Place { dir, name });
                }
                // Another one that had the same identity may have taken its place.
                if dir == key { Ok(found.fd) } else { Err(Status::Stale) }
            }
            Err(Status::Stale) => {
                if known.find(key).is_some()
                    && let Some(gone) = known.entries.remove(&key.identity)
                {
                    known.note(key.identity);
                    known.release(gone);
                }
                Err(Status::Stale)
            }
            Err(status) => Err(status),
        }
    }

    fn open_at(
        &self,
        root: BorrowedFd<'_>,
        path: &[Box<[u8]>],
        meant: Identity,
    ) -> Result<OwnedFd, Status> {
        let fd = self.beneath.path(root, path).map_err(stale_status)?;
        let found = Stat::of(&fd).map_err(status)?;
        // Mostly the numbers tell, and no further call is needed.
        if found.inode() != meant.inode {
            return Err(Status::Stale);
        }
        if self.identify(fd.as_fd(), &found)? == meant { Ok(fd) } else { Err(Status::Stale) }
    }

    /// The file was made at this place: what is known of its identity elsewhere is of another,
    /// which others removed. (What is known of it here is of itself: someone looked it up.)
    pub(super) fn name_new(
        &self,
        dir: &Handle,
        name: Component<'_>,
        file: Identity,
    ) -> Result<Handle, Status> {
        let place = Place::new(dir, name)?;
        let mut known = self.known.write();
        if known.key_at(file, &place).is_none()
            && let Some(gone) = known.entries.remove(&file)
        {
            known.note(file);
            known.release(gone);
        }
        Ok(known.seen(file, place).handle())
    }

    pub(super) fn moving(&self) -> Moving<'_> {
        self.moves.write()
    }

    /// The name is gone; with `deleted`, so is the file.
    pub(super) fn unlinked(&self, dir: &Handle, name: Component<'_>, file: &Handle, deleted: bool) {
        if let (Ok(place), Ok(key)) = (Place::new(dir, name), Key::parse(file)) {
            self.known.write().unlinked(key, &place, deleted);
        }
    }
}

impl Known {
    /// The file's key if it is known at this place already.
    fn key_at(&self, file: Identity, place: &Place) -> Option<Key> {
        let entry = self.entries.find(&file)?;
        entry.places.contains(place).then_some(Key { identity: file, serial: entry.serial })
    }

    fn seen(&mut self, file: Identity, place: Place) -> Key {
        if let Some(entry) = self.entries.find_mut(&file) {
            let key = Key { identity: file, serial: entry.serial };
            // The root's entry has no place and must not get one (it cannot be met below itself).
            if entry.places.is_empty() || entry.places.contains(&place) {
                return key;
            }
            // The latest name is tried first: it is the likeliest to be true.
            entry.places.insert(0, place.clone());
            let dropped = (entry.places.len() > PLACES_MAX).then(|| entry.places.pop()).flatten();
            self.count_child(&place, 1);
            if let Some(dropped) = dropped {
                self.count_child(&dropped, -1);
            }
            self.note(file);
            return key;
        }
        self.serials = self.serials.wrapping_add(1).max(ROOT_SERIAL + 1);
        let key = Key { identity: file, serial: self.serials };
        self.count_child(&place, 1);
        let entry = Entry { serial: key.serial, places: vec![place], children: 0 };
        for (forgotten, gone) in self.entries.insert(file, entry, Entry::may_go) {
            self.note(forgotten);
            self.release(gone);
        }
        self.note(file);
        key
    }

    fn unlinked(&mut self, key: Key, place: &Place, deleted: bool) {
        let Some(entry) = self.find_mut(key) else {
            return;
        };
        let had = entry.places.len();
        // A file that has other names, which only others know, is found from the last one we knew.
        if !deleted && entry.places == [place.clone()] {
            return;
        }
        entry.places.retain(|known| known != place);
        let lost = had - entry.places.len();
        let last = deleted;
        if lost > 0 {
            self.count_child(place, -1);
        }
        if last && let Some(entry) = self.entries.remove(&key.identity) {
            self.release(entry);
        }
        if last || lost > 0 {
            self.note(key.identity);
        }
    }

    /// The entry of `file` has changed, or gone.
    fn note(&mut self, file: Identity) {
        if let Some(stored) = &mut self.stored {
            stored.note(file, self.entries.find(&file));
        }
    }

    /// Takes over what an earlier process knew.
    fn restore(&mut self, stored: Persisted, entries: Vec<(Identity, Entry)>, entries_max: usize) {
        let mut places = Vec::new();
        let mut too_many = Vec::new();
        for (file, entry) in entries {
            // The root is known already, and has no place.
            if self.entries.find(&file).is_some() {
                continue;
            }
            self.serials = self.serials.max(entry.serial);
            // The maximum was larger then.
            if self.entries.len() >= entries_max {
                too_many.push(file);
                continue;
            }
            places.extend(entry.places.iter().cloned());
            self.entries.insert(file, entry, |_| false);
        }
        places.iter().for_each(|place| self.count_child(place, 1));
        self.serials = self.serials.saturating_add(SERIALS_SKIPPED);
        self.stored = Some(stored);
        too_many.into_iter().for_each(|file| self.note(file));
    }

    /// The names from the root down to the file, by its place number `index`. `None`: there is no
    /// such place, or the way is not known any more.
    fn path(&self, key: Key, index: usize) -> Option<Vec<Box<[u8]>>> {
        let mut names = Vec::new();
        let mut entry = self.find(key)?;
        if entry.places.is_empty() {
            return (index == 0).then_some(names);
        }
        let mut index = index;
        while let Some(place) = entry.places.get(index) {
            names.push(place.name.clone());
            entry = self.find(place.dir)?;
            index = 0;
            if entry.places.is_empty() {
                names.reverse();
                return Some(names);
            }
            // Moves by other processes can leave a circle behind.
            if names.len() > DEPTH_MAX {
                break;
            }
        }
        None
    }

    fn find(&self, key: Key) -> Option<&Entry> {
        let entry = self.entries.find(&key.identity)?;
        (entry.serial == key.serial).then_some(entry)
    }

    fn find_mut(&mut self, key: Key) -> Option<&mut Entry> {
        let entry = self.entries.find_mut(&key.identity)?;
        (entry.serial == key.serial).then_some(entry)
    }

    fn count_child(&mut self, place: &Place, change: isize) {
        if let Some(dir) = self.find_mut(place.dir) {
            dir.children = dir.children.saturating_add_signed(change);
        }
    }

    fn release(&mut self, gone: Entry) {
        for place in gone.places {
            self.count_child(&place, -1);
        }
    }
}

impl Entry {
    /// Directories on the way to others stay, and so does the root.
    fn may_go(&self) -> bool {
        self.children == 0 && !self.places.is_empty()
    }
}

impl Place {
    fn new(dir: &Handle, name: Component<'_>) -> Result<Self, Status> {
        Ok(Self { dir: Key::parse(dir)?, name: name.as_bytes().into() })
    }
}

impl Key {
    fn handle(self) -> Handle {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[0] = MARKER;
        bytes[1..29].copy_from_slice(&self.identity.to_bytes());
        bytes[29..33].copy_from_slice(&self.serial.to_le_bytes());
        Handle::new(&bytes).expect("33 bytes are fewer than 48")
    }

    fn parse(handle: &Handle) -> Result<Self, Status> {
        let bytes: &[u8; HANDLE_BYTES] =
            handle.as_bytes().try_into().map_err(|_| Status::BadHandle)?;
        let (named, serial) = bytes.split_last_chunk::<4>().ok_or(Status::BadHandle)?;
        Ok(Self {
            identity: Identity::from_bytes(&named[1..]).ok_or(Status::BadHandle)?,
            serial: u32::from_le_bytes(*serial),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64) -> Identity {
        Identity { device: 1, inode, born_secs: 100, born_nanos: 5 }
    }

    fn table(entries_max: usize) -> Table {
        Table::new(file(2), Identities::plain(), Beneath::by_component(), entries_max)
    }

    fn name(text: &str) -> Component<'_> {
        Component::new(text.as_bytes()).unwrap()
    }

    fn path(table: &Table, handle: &Handle, index: usize) -> Option<String> {
        let names = table.known.read().path(Key::parse(handle).unwrap(), index)?;
        let names: Vec<_> = names.iter().map(|name| str::from_utf8(name).unwrap()).collect();
        Some(names.join("/"))
    }

    #[test]
    fn a_renamed_directory_takes_its_files_along() {
        let table = table(100);
        let root = table.root();
        let dir = table.name(&root, name("old"), file(3)).unwrap();
        let inner = table.name(&dir, name("file"), file(4)).unwrap();
        assert_eq!(path(&table, &inner, 0).unwrap(), "old/file");
        assert_eq!(table.name(&root, name("new"), file(3)).unwrap(), dir);
        table.unlinked(&root, name("old"), &dir, false);
        assert_eq!(path(&table, &inner, 0).unwrap(), "new/file");
        assert_eq!(path(&table, &inner, 1), None);
    }

    #[test]
    fn a_file_is_known_by_each_of_its_names_until_the_last_goes() {
        let table = table(100);
        let root = table.root();
        let handle = table.name(&root, name("a"), file(3)).unwrap();
        table.name(&root, name("b"), file(3)).unwrap();
        assert_eq!(path(&table, &handle, 0).unwrap(), "b");
        assert_eq!(path(&table, &handle, 1).unwrap(), "a");
        table.unlinked(&root, name("b"), &handle, false);
        assert_eq!(path(&table, &handle, 0).unwrap(), "a");
        table.unlinked(&root, name("a"), &handle, true);
        assert_eq!(path(&table, &handle, 0), None);
    }

    /// Another process has given it a name that the table never met.
    #[test]
    fn a_file_that_keeps_a_name_is_known_though_none_of_those_we_knew_is_left() {
        let table = table(100);
        let root = table.root();
        let handle = table.name(&root, name("a"), file(3)).unwrap();
        table.unlinked(&root, name("a"), &handle, false);
        assert_eq!(path(&table, &handle, 0).unwrap(), "a", "from where it is searched for");
        assert_eq!(table.name(&root, name("b"), file(3)).unwrap(), handle);
        table.unlinked(&root, name("a"), &handle, false);
        assert_eq!(path(&table, &handle, 0).unwrap(), "b");
        assert_eq!(path(&table, &handle, 1), None);
    }

    #[test]
    fn a_twin_born_in_the_same_tick_with_the_same_inode_is_another_handle() {
        let table = table(100);
        let root = table.root();
        let first = table.name(&root, name("a"), file(3)).unwrap();
        table.unlinked(&root, name("a"), &first, true);
        let second = table.name(&root, name("a"), file(3)).unwrap();
        assert_ne!(first, second);
        assert_eq!(path(&table, &first, 0), None);
    }

    #[test]
    fn a_file_made_with_the_identity_of_one_that_others_removed_is_another_handle() {
        let table = table(100);
        let root = table.root();
        let first = table.name(&root, name("a"), file(3)).unwrap();
        let second = table.name_new(&root, name("b"), file(3)).unwrap();
        assert_ne!(first, second);
        assert_eq!(path(&table, &first, 0), None);
        assert_eq!(table.name_new(&root, name("b"), file(3)).unwrap(), second);
    }

    #[test]
    fn a_full_table_forgets_files_but_not_the_way_to_others() {
        let table = table(10);
        let mut dir = table.root();
        for depth in 0..5 {
            dir = table.name(&dir, name("d"), file(10 + depth)).unwrap();
        }
        let deep = table.name(&dir, name("deep"), file(99)).unwrap();
        for index in 0..100 {
            table.name(&table.root(), name(&index.to_string()), file(1000 + index)).unwrap();
            assert!(path(&table, &deep, 0).is_some(), "requested again and again");
        }
        assert_eq!(table.known.read().entries.len(), 10);
    }

    #[test]
    fn a_table_that_was_larger_is_cut_to_its_maximum() {
        let dir = tempfile::tempdir().unwrap();
        let open = |max| {
            let table = table(max);
            table.keep_in(dir.path(), Acting::Process, max).unwrap();
            table
        };
        let table = open(100);
        for inode in 0..50 {
            table.name(&table.root(), name(&inode.to_string()), file(10 + inode)).unwrap();
        }
        drop(table);
        let table = open(10);
        assert_eq!(table.known.read().entries.len(), 10);
        drop(table);
        assert_eq!(open(100).known.read().entries.len(), 10, "the others were forgotten");
    }

    #[test]
    fn circles_left_by_others_end() {
        let table = table(100);
        let root = table.root();
        let a = table.name(&root, name("a"), file(3)).unwrap();
        let b = table.name(&a, name("b"), file(4)).unwrap();
        table.name(&b, name("a"), file(3)).unwrap();
        assert_eq!(path(&table, &b, 0), None);
    }
}
