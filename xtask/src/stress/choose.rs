//! What a client does next: at random, but nothing whose right answer would be uncertain.

use fastrand::Rng;
use wire::nfs3::{FileHandle, StableHow};

use super::model::{FILE_BYTES_MAX, Kind, Model, Object};
use super::operation::{How, Id, Name, Operation};

/// Objects of a client at once: folders of several pages, and every file is met again soon.
const OBJECTS_MAX: usize = 120;
const WRITE_BYTES_MAX: usize = 32 << 10;
/// Tries before the client waits for an answer first.
const TRIES: usize = 8;
/// Folders of each client.
pub(super) const FOLDERS: usize = 2;

/// Makes names that never come again, and picks operations.
#[derive(Debug)]
pub(super) struct Chooser {
    pub(super) rng: Rng,
    prefix: String,
    names: u64,
    /// Removed objects, whose handles must be stale.
    pub(super) removed: Vec<FileHandle>,
    /// How many of the next operations only look.
    pub(super) looks: u32,
}

impl Chooser {
    pub(super) fn new(seed: u64, prefix: String) -> Self {
        let rng = Rng::with_seed(seed);
        Self { rng, prefix, names: 0, removed: Vec::new(), looks: 0 }
    }

    fn name(&mut self) -> Name {
        self.names += 1;
        let text = format!("{}{:07}", self.prefix, self.names);
        Name { folder: self.rng.usize(..FOLDERS), text }
    }

    /// Something that may be done now, its locks taken; `None` when too much is in progress.
    pub(super) fn next(&mut self, model: &mut Model) -> Option<Operation> {
        (0..TRIES).find_map(|_| self.attempt(model))
    }

    fn attempt(&mut self, model: &mut Model) -> Option<Operation> {
        if self.looks > 0 {
            let look = self.look(model)?;
            self.looks -= 1;
            return Some(look);
        }
        let there = model.there().count();
        let make = if there < OBJECTS_MAX / 2 { 30 } else { 8 };
        match self.rng.u32(..100) {
            n if n < make && there < OBJECTS_MAX => Some(self.make(model)),
            0..50 => self.write(model),
            50..60 => self.commit(model),
            60..66 => self.rename(model),
            66..70 => self.link(model),
            70..76 => self.remove(model),
            76..79 => self.truncate(model),
            79..82 => self.guard(model),
            _ => self.look(model),
        }
    }

    fn make(&mut self, model: &mut Model) -> Operation {
        let name = self.name();
        match self.rng.u32(..10) {
            0 => Operation::Mkdir { id: model.add(Kind::Folder), name },
            1 => Operation::Symlink { id: model.add(Kind::Symlink), name },
            2 => Operation::Mkfifo { id: model.add(Kind::Fifo), name },
            n => {
                let how = [How::Guarded, How::Exclusive, How::Unchecked][n as usize % 3];
                Operation::Create { id: model.add(Kind::File), name, how }
            }
        }
    }

    fn pick<'m>(&mut self, model: &'m mut Model) -> Option<(Id, &'m mut Object)> {
        let there: Vec<Id> = model.there().map(|(id, _)| id).collect();
        let id = *there.get(self.rng.usize(..there.len().max(1)))?;
        Some((id, &mut model.objects[id]))
    }

    fn pick_file<'m>(&mut self, model: &'m mut Model) -> Option<(Id, &'m mut Object)> {
        let (id, object) = self.pick(model)?;
        (object.kind == Kind::File && object.handle.is_some()).then_some((id, object))
    }

    fn write(&mut self, model: &mut Model) -> Option<Operation> {
        let (id, file) = self.pick_file(model)?;
        let (range, again) = match file.lost.pop() {
            Some(lost) => (lost, true),
            None => {
                let start = self.rng.usize(..FILE_BYTES_MAX - WRITE_BYTES_MAX);
                // Not always at a block's border.
                let start = if self.rng.bool() { start & !0xfff } else { start };
                (start..start + self.rng.usize(1..=WRITE_BYTES_MAX), false)
            }
        };
        if !file.may_touch(&range) {
            file.lost.extend(again.then_some(range));
            return None;
        }
        let data = match again {
            true => file.content[range.clone()].to_vec(),
            false => {
                let tag = self.rng.u64(..).to_ne_bytes();
                tag.iter().copied().cycle().take(range.len()).collect()
            }
        };
        let stable = match self.rng.u32(..10) {
            0 => StableHow::FileSync,
            1 => StableHow::DataSync,
            _ => StableHow::Unstable,
        };
        file.ranges.push(range.clone());
        Some(Operation::Write { id, range, data, stable, again })
    }

    fn commit(&mut self, model: &mut Model) -> Option<Operation> {
        let upto = model.order;
        let (id, file) = self.pick_file(model)?;
        if file.committing || file.alone || file.dirty.is_empty() {
            return None;
        }
        file.committing = true;
        Some(Operation::Commit { id, upto })
    }

    fn rename(&mut self, model: &mut Model) -> Option<Operation> {
        let fresh = self.name();
        let onto = self.rng.u32(..4) == 0;
        let target = onto.then(|| self.replaceable(model)).flatten();
        let (id, object) = self.pick(model)?;
        if !object.may_rename() || target.as_ref().is_some_and(|(other, _)| *other == id) {
            return None;
        }
        // What replaces another must be of its sort, and rename(2) does nothing when both names
        // are of one file.
        let target = target.filter(|_| object.kind != Kind::Folder);
        let from = object.names[self.rng.usize(..object.names.len())].clone();
        object.naming = true;
        let (to, replaced) = match target {
            Some((other, name)) => {
                let other_object = &mut model.objects[other];
                other_object.naming = true;
                other_object.alone = true;
                (name, Some(other))
            }
            None => (fresh, None),
        };
        Some(Operation::Rename { id, from, to, replaced })
    }

    /// A file at rest with a single name.
    fn replaceable(&mut self, model: &mut Model) -> Option<(Id, Name)> {
        let (id, object) = self.pick(model)?;
        let at_rest = object.kind != Kind::Folder && object.may_rename() && object.is_quiet();
        (at_rest && object.names.len() == 1).then(|| (id, object.names[0].clone()))
    }

    fn link(&mut self, model: &mut Model) -> Option<Operation> {
        let name = self.name();
        let (id, file) = self.pick_file(model)?;
        if !file.may_rename() || file.names.len() >= 4 {
            return None;
        }
        file.naming = true;
        Some(Operation::Link { id, name })
    }

    fn remove(&mut self, model: &mut Model) -> Option<Operation> {
        let (id, object) = self.pick(model)?;
        if !object.may_rename() || !object.is_quiet() {
            return None;
        }
        object.naming = true;
        object.alone = true;
        let name = object.names[self.rng.usize(..object.names.len())].clone();
        match object.kind {
            Kind::Folder => Some(Operation::Rmdir { id, name }),
            _ => Some(Operation::Remove { id, name }),
        }
    }

    fn truncate(&mut self, model: &mut Model) -> Option<Operation> {
        let size = self.rng.usize(..FILE_BYTES_MAX);
        let (id, file) = self.pick_file(model).filter(|(_, file)| file.is_quiet())?;
        file.alone = true;
        Some(Operation::Truncate { id, size })
    }

    fn guard(&mut self, model: &mut Model) -> Option<Operation> {
        let (id, file) = self.pick_file(model)?;
        if !file.is_quiet() || !file.may_rename() {
            return None;
        }
        file.alone = true;
        file.naming = true;
        Some(Operation::GuardTime { id })
    }

    fn look(&mut self, model: &mut Model) -> Option<Operation> {
        if self.rng.u32(..10) == 0
            && let Some(handle) = self.removed.pop()
        {
            return Some(Operation::GetattrRemoved { handle });
        }
        let what = self.rng.u32(..4);
        let (id, object) = self.pick(model)?;
        if object.handle.is_none() || what == 0 {
            if !object.may_rename() {
                return None;
            }
            object.naming = true;
            let name = object.names[self.rng.usize(..object.names.len())].clone();
            return Some(Operation::Lookup { id, name });
        }
        if what == 1 || object.kind != Kind::File {
            if !object.is_quiet() || !object.may_rename() {
                return None;
            }
            object.alone = true;
            object.naming = true;
            return Some(Operation::Getattr { id });
        }
        let start = self.rng.usize(..=object.content.len());
        let range = start..start + self.rng.usize(1..WRITE_BYTES_MAX);
        // Its end depends on the size, which only a quiet file keeps.
        if !object.is_quiet() {
            return None;
        }
        object.alone = true;
        Some(Operation::Read { id, range })
    }
}
