//! All files of the store, by number, and what they count against its maximum.
//!
//! ```text
//!   handle    | fileid: 8 | instance: 8 |          instance: the store's, from its options
//!   fileid    | generation: 4 | slot: 4 |
//!   slots     [ none | root | file | free | file ...    a freed slot comes back with the next
//!                                                       generation, so old handles are stale
//! ```

use crate::types::{Attr, Handle, Status};

use super::directory::FileId;
use super::inode::Inode;

/// Slot 0 stays empty: clients take a fileid of 0 for no file.
pub(super) const ROOT: FileId = FileId(1);

/// What may be stored at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) bytes_max: u64,
    pub(super) files_max: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Inodes {
    instance: u64,
    pub(super) limits: Limits,
    slots: Vec<Slot>,
    free: Vec<u32>,
    bytes_used: u64,
    files_used: u64,
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    inode: Option<Box<Inode>>,
}

impl Inodes {
    /// A tree with the root alone, which `limits` do not bound.
    pub(super) fn new(instance: u64, limits: Limits, root: Inode) -> Self {
        let slot = |inode| Slot { generation: 0, inode };
        Self {
            instance,
            limits,
            slots: vec![slot(None), slot(Some(Box::new(root)))],
            free: Vec::new(),
            bytes_used: 0,
            files_used: 1,
        }
    }

    pub(super) fn handle(&self, id: FileId) -> Handle {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&id.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.instance.to_be_bytes());
        Handle::new(&bytes).expect("16 bytes are less than Handle::BYTES_MAX")
    }

    /// The file a handle names.
    ///
    /// # Errors
    /// `BadHandle` when no store of this kind made it, `Stale` when the file is gone or belonged
    /// to an earlier instance.
    pub(super) fn resolve(&self, handle: &Handle) -> Result<FileId, Status> {
        let bytes: &[u8; 16] = handle.as_bytes().try_into().map_err(|_| Status::BadHandle)?;
        let (id, instance) = bytes.split_at(8);
        let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        if word(instance) != self.instance {
            return Err(Status::Stale);
        }
        let id = FileId(word(id));
        self.inode(id).map(|_| id)
    }

    pub(super) fn inode(&self, id: FileId) -> Result<&Inode, Status> {
        self.slots
            .get(id.index())
            .filter(|slot| FileId::new(slot.generation, id.slot()) == id)
            .and_then(|slot| slot.inode.as_deref())
            .ok_or(Status::Stale)
    }

    pub(super) fn inode_mut(&mut self, id: FileId) -> Result<&mut Inode, Status> {
        self.slots
            .get_mut(id.index())
            .filter(|slot| FileId::new(slot.generation, id.slot()) == id)
            .and_then(|slot| slot.inode.as_deref_mut())
            .ok_or(Status::Stale)
    }

    pub(super) fn attr(&self, id: FileId) -> Result<Attr, Status> {
        self.inode(id).map(|inode| inode.attr(self.instance, id.0))
    }

    /// Checks that this much more may be stored.
    pub(super) fn check_room(&self, bytes: u64, files: u64) -> Result<(), Status> {
        let room = self.bytes_free() >= bytes && self.files_free() >= files;
        room.then_some(()).ok_or(Status::NoSpace)
    }

    pub(super) fn bytes_free(&self) -> u64 {
        self.limits.bytes_max.saturating_sub(self.bytes_used)
    }

    pub(super) fn files_free(&self) -> u64 {
        self.limits.files_max.saturating_sub(self.files_used)
    }

    /// Changes an inode and accounts for the bytes it takes more or less.
    pub(super) fn with_mut<T>(
        &mut self,
        id: FileId,
        change: impl FnOnce(&mut Inode) -> T,
    ) -> Result<T, Status> {
        let inode = self.inode_mut(id)?;
        let before = inode.used();
        let result = change(inode);
        let after = inode.used();
        self.bytes_used = self.bytes_used - before + after;
        Ok(result)
    }

    /// Takes a new file in; the caller has checked that there is room.
    pub(super) fn add(&mut self, inode: Inode) -> Result<FileId, Status> {
        let used = inode.used();
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.push_slot()?,
        };
        let place = &mut self.slots[slot as usize];
        place.inode = Some(Box::new(inode));
        self.bytes_used += used;
        self.files_used += 1;
        Ok(FileId::new(place.generation, slot))
    }

    fn push_slot(&mut self) -> Result<u32, Status> {
        let slot = u32::try_from(self.slots.len()).map_err(|_| Status::NoSpace)?;
        self.slots.push(Slot { generation: 0, inode: None });
        Ok(slot)
    }

    /// Every file there is.
    pub(super) fn inodes(&self) -> impl Iterator<Item = (FileId, &Inode)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(index, slot)| {
            let inode = slot.inode.as_deref()?;
            Some((FileId::new(slot.generation, index), inode))
        })
    }

    /// Bytes and files counted against the limits.
    pub(super) fn counted(&self) -> (u64, u64) {
        (self.bytes_used, self.files_used)
    }

    /// Lets a file go that no name refers to any more.
    pub(super) fn discard(&mut self, id: FileId) {
        let Ok(inode) = self.inode(id) else {
            return;
        };
        self.bytes_used -= inode.used();
        self.files_used -= 1;
        let place = &mut self.slots[id.index()];
        place.inode = None;
        // A slot whose generations are used up is never used again.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(id.slot());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mem::inode::tests::{directory, file};

    fn tree() -> Inodes {
        let limits = Limits { bytes_max: 10_000, files_max: 3 };
        Inodes::new(77, limits, directory(0o755, 0, 0))
    }

    #[test]
    fn the_handle_of_a_file_that_is_gone_is_stale_though_its_slot_is_taken_again() {
        let mut tree = tree();
        let first = tree.add(file(0o644, 1, 1)).unwrap();
        let handle = tree.handle(first);
        assert_eq!(tree.resolve(&handle), Ok(first));
        tree.discard(first);
        assert_eq!(tree.resolve(&handle), Err(Status::Stale));
        let second = tree.add(file(0o644, 1, 1)).unwrap();
        assert_eq!(second.slot(), first.slot());
        assert_ne!(second, first);
        assert_eq!(tree.resolve(&handle), Err(Status::Stale));
        assert!(tree.attr(second).is_ok());
    }

    #[test]
    fn handles_of_another_instance_are_stale_and_other_bytes_are_bad() {
        let tree = tree();
        let mut bytes = tree.handle(ROOT).as_bytes().to_vec();
        assert_eq!(tree.resolve(&Handle::new(&bytes).unwrap()), Ok(ROOT));
        bytes[15] ^= 1;
        let other = Handle::new(&bytes).unwrap();
        assert_eq!(tree.resolve(&other), Err(Status::Stale));
        for len in [0, 15, 17, 48] {
            let bad = Handle::new(&[0; 48][..len]).unwrap();
            assert_eq!(tree.resolve(&bad), Err(Status::BadHandle));
        }
        let none = tree.handle(FileId(0));
        assert_eq!(tree.resolve(&none), Err(Status::Stale));
        let far = tree.handle(FileId(u64::MAX));
        assert_eq!(tree.resolve(&far), Err(Status::Stale));
    }

    #[test]
    fn bytes_and_files_are_given_back() {
        let mut tree = tree();
        assert_eq!(tree.check_room(10_000, 2), Ok(()));
        let id = tree.add(file(0o644, 1, 1)).unwrap();
        let write = |inode: &mut Inode| inode.regular_mut().unwrap().write(0, b"x");
        tree.with_mut(id, write).unwrap();
        assert_eq!((tree.bytes_free(), tree.files_free()), (10_000 - 4096, 1));
        assert_eq!(tree.check_room(0, 2), Err(Status::NoSpace));
        assert_eq!(tree.check_room(6_000, 1), Err(Status::NoSpace));
        tree.discard(id);
        assert_eq!((tree.bytes_free(), tree.files_free()), (10_000, 2));
    }
}
