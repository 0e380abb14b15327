//! What a table knows: the places of files, each in a directory, up to the root. Without locks, and
//! without looking at the file system.

use super::persisted::Persisted;
use crate::store::dir::beneath::Component;
use crate::store::dir::bounded::Bounded;
use crate::store::dir::stat::Identity;
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

/// All files of a table.
pub(super) struct Known {
    entries: Bounded<Identity, Entry>,
    serials: u32,
    /// What keeps it over a restart.
    stored: Option<Persisted>,
}

/// Serials left out at each start: those given to entries that a power failure made forgotten.
const SERIALS_SKIPPED: u32 = 1 << 20;

impl Known {
    /// One that knows only the root, and its key.
    pub(super) fn new(root: Identity, entries_max: usize) -> (Self, Key) {
        let mut entries = Bounded::new(entries_max);
        let entry = Entry { serial: ROOT_SERIAL, places: Vec::new(), children: 0 };
        entries.insert(root, entry, Entry::may_go);
        let known = Self { entries, serials: ROOT_SERIAL, stored: None };
        (known, Key { identity: root, serial: ROOT_SERIAL })
    }

    /// Of files that are met from now on.
    pub(super) fn begin_serials_at(&mut self, serial: u32) {
        self.serials = serial;
    }

    pub(super) fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Entries that a restart may forget, after another try to write them.
    pub(super) fn unstored(&mut self) -> usize {
        self.stored.as_mut().map_or(0, Persisted::unstored)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn key(&self, file: Identity) -> Option<Key> {
        let entry = self.entries.find(&file)?;
        Some(Key { identity: file, serial: entry.serial })
    }

    /// The file's key if it is known at this place already.
    pub(super) fn key_at(&self, file: Identity, place: &Place) -> Option<Key> {
        let entry = self.entries.find(&file)?;
        entry.places.contains(place).then_some(Key { identity: file, serial: entry.serial })
    }

    pub(super) fn seen(&mut self, file: Identity, place: Place) -> Key {
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

    pub(super) fn unlinked(&mut self, key: Key, place: &Place, deleted: bool) {
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

    /// What was known of `file` is not so.
    pub(super) fn forget(&mut self, file: Identity) {
        if let Some(gone) = self.entries.remove(&file) {
            self.note(file);
            self.release(gone);
        }
    }

    /// The entry of `file` has changed, or gone.
    fn note(&mut self, file: Identity) {
        if let Some(stored) = &mut self.stored {
            stored.note(file, self.entries.find(&file));
        }
    }

    /// Takes over what an earlier process knew.
    pub(super) fn restore(
        &mut self,
        stored: Persisted,
        entries: Vec<(Identity, Entry)>,
        entries_max: usize,
    ) {
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
    pub(super) fn path(&self, key: Key, index: usize) -> Option<Vec<Box<[u8]>>> {
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

    pub(super) fn find(&self, key: Key) -> Option<&Entry> {
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
    pub(super) fn new(dir: &Handle, name: Component<'_>) -> Result<Self, Status> {
        Ok(Self { dir: Key::parse(dir)?, name: name.as_bytes().into() })
    }
}

impl Key {
    pub(super) fn handle(self) -> Handle {
        let mut bytes = [0; HANDLE_BYTES];
        bytes[0] = MARKER;
        bytes[1..29].copy_from_slice(&self.identity.to_bytes());
        bytes[29..33].copy_from_slice(&self.serial.to_le_bytes());
        Handle::new(&bytes).expect("33 bytes are fewer than 48")
    }

    pub(super) fn parse(handle: &Handle) -> Result<Self, Status> {
        let bytes: &[u8; HANDLE_BYTES] =
            handle.as_bytes().try_into().map_err(|_| Status::BadHandle)?;
        let (named, serial) = bytes.split_last_chunk::<4>().ok_or(Status::BadHandle)?;
        Ok(Self {
            identity: Identity::from_bytes(&named[1..]).ok_or(Status::BadHandle)?,
            serial: u32::from_le_bytes(*serial),
        })
    }
}
