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
use super::known::{Key, Known, PLACES_MAX, Place};
use super::persisted::Persisted;
use super::search;
use crate::store::dir::acting::Acting;
use crate::store::dir::beneath::{Beneath, Component};
use crate::store::dir::errno::{stale_status, status};
use crate::store::dir::stat::{Identity, Stat};
use crate::store::dir::{OpenError, random};
use crate::store::state::StateError;
use crate::types::{Handle, Status};

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

/// Three bytes, so that handles of version 2 have room for the first sixteen million.
const SERIALS_MASK: u64 = 0xff_ffff;

/// A rename or a removal under way.
pub(in crate::store::dir) type Moving<'a> = RwLockWriteGuard<'a, ()>;

impl Table {
    /// A table of at most `entries_max` files. What it knows is stored in the directory, if there
    /// is one, and it begins with what was stored. Without, its serials are other ones than those
    /// of an earlier process: identities need not last longer than this one.
    pub(super) fn open(
        root: &OwnedFd,
        identities: Identities,
        beneath: Beneath,
        entries_max: usize,
        state: Option<(&Path, Acting)>,
    ) -> Result<Self, OpenError> {
        let stat = Stat::of(root).map_err(OpenError::Stat)?;
        let root = identities.identify(root.as_fd(), &stat).map_err(OpenError::RootHandle)?;
        let table = Self::new(root, identities, beneath, entries_max);
        match state {
            Some((dir, acting)) => table.keep_in(dir, acting, entries_max)?,
            None => table.known.write().begin_serials_at((random()? & SERIALS_MASK) as u32),
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
        let (known, root) = Known::new(root, entries_max);
        Self { root, identities, beneath, known: RwLock::new(known), moves: RwLock::new(()) }
    }

    pub(super) fn identify(&self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<Identity, Status> {
        self.identities.identify(fd, stat)
    }

    pub(super) fn survives_restart(&self) -> bool {
        self.known.read().is_stored()
    }

    /// Entries that a restart may forget, after another try to write them.
    pub(super) fn unstored(&self) -> usize {
        self.known.write().unstored()
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
        self.known.read().key(file).map(Key::handle).ok_or(Status::Stale)
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
                if known.find(key).is_some() {
                    known.forget(key.identity);
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
        if known.key_at(file, &place).is_none() {
            known.forget(file);
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
        assert_eq!(table.known.read().len(), 10);
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
        assert_eq!(table.known.read().len(), 10);
        drop(table);
        assert_eq!(open(100).known.read().len(), 10, "the others were forgotten");
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
