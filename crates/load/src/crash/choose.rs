//! What a caller does next: at random, of what has nothing to do with its calls under way.

use std::ops::Range;

use fastrand::Rng;
use wire::nfs3::StableHow;

use super::content::Generation;
use super::object::{Body, Object};
use super::operation::{How, Key, Number, Operation};
use super::options::Options;
use super::tree::{ROOT, Tree};
use crate::weighted::weighted;

/// Names of a directory: few, so that they are used again and again.
const NAMES: u32 = 16;
/// Fewer names are not left alone where names are not what is wanted.
const FILES_LEAST: usize = 8;
/// Directories in the one at the top.
const DIRS_MAX: usize = 4;
/// Most bytes of a WRITE.
const WRITE_BYTES_MAX: u64 = 64 << 10;
/// Most bytes of a READ.
const READ_BYTES_MAX: u64 = 128 << 10;
/// With more contents that a byte may have, the next WRITE there is stable.
const OPEN_MAX: usize = 8;
/// The block of file systems and logs.
const BLOCK: u64 = 4096;
/// How often something is drawn that cannot be done now, before there is nothing to do.
const DRAWS_MAX: u32 = 100;

/// Parts of a hundred, and reads besides.
const SHARES: [(Sort, u32); 14] = [
    (Sort::WriteStable, 26),
    (Sort::WriteUnstable, 22),
    (Sort::Commit, 8),
    (Sort::Read, 30),
    (Sort::Create, 12),
    (Sort::Remove, 7),
    (Sort::Rename, 6),
    (Sort::Truncate, 5),
    (Sort::SetMode, 3),
    (Sort::SetTime, 3),
    (Sort::Link, 3),
    (Sort::Symlink, 2),
    (Sort::MakeDir, 2),
    (Sort::RemoveDir, 1),
];

#[derive(Clone, Copy, Debug)]
enum Sort {
    WriteStable,
    WriteUnstable,
    Commit,
    Read,
    Create,
    Remove,
    Rename,
    Truncate,
    SetMode,
    SetTime,
    Link,
    Symlink,
    MakeDir,
    RemoveDir,
}

/// The next call; none while all that there is is in use.
pub(super) fn next(
    tree: &Tree,
    rng: &mut Rng,
    generation: Generation,
    options: &Options,
) -> Option<Operation> {
    let mut chooser = Chooser { tree, rng, options };
    (0..DRAWS_MAX).find_map(|_| chooser.draw(generation))
}

struct Chooser<'a> {
    tree: &'a Tree,
    rng: &'a mut Rng,
    options: &'a Options,
}

impl Chooser<'_> {
    fn draw(&mut self, generation: Generation) -> Option<Operation> {
        match self.sort()? {
            Sort::WriteStable => self.write(generation, true),
            Sort::WriteUnstable => self.write(generation, false),
            Sort::Commit => self.commit(),
            Sort::Read => self.read(),
            Sort::Create => {
                let how = [How::Unchecked, How::Guarded, How::Exclusive][self.rng.usize(0..3)];
                Some(Operation::Create { name: self.free(None)?, how, mode: self.mode() })
            }
            Sort::Remove => {
                let (name, ..) = self.entry(|object| !matches!(object.body, Body::Dir))?;
                Some(Operation::Remove { name })
            }
            Sort::Rename => self.rename(),
            Sort::Truncate => {
                let (_, file, _) = self.entry(|object| object.content().is_some())?;
                let size = self.rng.u64(0..=self.options.file_bytes_max);
                Some(Operation::Truncate { file, size })
            }
            Sort::SetMode => {
                let (_, object, _) = self.entry(|object| object.content().is_some())?;
                Some(Operation::SetMode { object, mode: self.mode() })
            }
            Sort::SetTime => {
                let (_, object, _) = self.entry(|object| object.content().is_some())?;
                Some(Operation::SetTime { object, seconds: self.rng.u32(1_000_000..1 << 30) })
            }
            Sort::Link => {
                let (_, file, _) = self.entry(|object| object.content().is_some())?;
                Some(Operation::Link { file, name: self.free(None)? })
            }
            Sort::Symlink => {
                let target = format!("to/{generation}");
                Some(Operation::Symlink { name: self.free(None)?, target })
            }
            Sort::MakeDir => {
                let is_full = self.tree.dirs().len() > DIRS_MAX;
                let name = self.free(Some(ROOT)).filter(|_| !is_full)?;
                Some(Operation::MakeDir { name, mode: 0o700 | self.mode() })
            }
            Sort::RemoveDir => {
                let (name, dir, _) = self.entry(|object| matches!(object.body, Body::Dir))?;
                self.tree.is_empty(dir).then_some(Operation::RemoveDir { name })
            }
        }
    }

    /// One of those that are wanted.
    fn sort(&mut self) -> Option<Sort> {
        let has_files = self.tree.settled().nth(FILES_LEAST).is_some();
        let calls = self.options.calls;
        let is_wanted = |sort: &Sort| match sort {
            Sort::WriteStable | Sort::WriteUnstable | Sort::Commit => calls.data,
            Sort::Read => calls.reads,
            Sort::Truncate | Sort::SetMode | Sort::SetTime => calls.attributes,
            Sort::Create => calls.names || !has_files,
            _ => calls.names,
        };
        let share = |(sort, share): &(Sort, u32)| if is_wanted(sort) { *share } else { 0 };
        let at = weighted(self.rng, SHARES.iter().map(share))?;
        SHARES.get(at).map(|(sort, _)| *sort)
    }

    /// Its owner may always read and write.
    fn mode(&mut self) -> u32 {
        0o600 | self.rng.u32(0..0o200)
    }

    /// A name whose object nobody uses.
    fn entry(&mut self, is_one: impl Fn(&Object) -> bool) -> Option<(Key, Number, &Object)> {
        let is_ours = |(key, _, object): &(Key, Number, &Object)| {
            object.is_idle() && object.handle.is_some() && self.is_usable(key.dir) && is_one(object)
        };
        let all: Vec<(Key, Number, &Object)> = self.tree.settled().filter(is_ours).collect();
        (!all.is_empty()).then(|| all[self.rng.usize(0..all.len())])
    }

    fn is_usable(&self, dir: Number) -> bool {
        self.tree.dirs().contains(&dir)
    }

    /// A name that is not there.
    fn free(&mut self, dir: Option<Number>) -> Option<Key> {
        let dirs = self.tree.dirs();
        let dir = dir.unwrap_or_else(|| dirs[self.rng.usize(0..dirs.len())]);
        let key = Key { dir, name: self.rng.u32(0..NAMES) };
        let is_free = self.tree.named(key).is_none() && !self.tree.is_doubted(key);
        let has_handle = self.tree.object(dir)?.handle.is_some();
        (is_free && has_handle).then_some(key)
    }

    /// Files anywhere, also over another file; directories to a free name beside them.
    fn rename(&mut self) -> Option<Operation> {
        let (from, number, object) = self.entry(|_| true)?;
        let is_dir = matches!(object.body, Body::Dir);
        let to = match is_dir || self.rng.u32(0..3) > 0 {
            true => self.free(is_dir.then_some(ROOT))?,
            false => {
                let (to, other, _) = self.entry(|object| !matches!(object.body, Body::Dir))?;
                // Two names of one file stay as they are.
                (other != number).then_some(to)?
            }
        };
        Some(Operation::Rename { from, to })
    }

    fn file(&mut self) -> Option<(Number, u64)> {
        let files = self.tree.settled().filter(|(.., object)| object.content().is_some());
        let files: Vec<(Number, u64)> = files
            .filter(|(.., object)| object.handle.is_some() && object.admits(&(0..0)))
            .filter_map(|(_, number, object)| Some((number, object.content()?.size())))
            .collect();
        (!files.is_empty()).then(|| files[self.rng.usize(0..files.len())])
    }

    fn write(&mut self, generation: Generation, is_stable: bool) -> Option<Operation> {
        let (file, size) = self.file()?;
        let span = self.span(size);
        let object = self.tree.object(file).filter(|object| object.admits(&span))?;
        let is_stable = is_stable || object.content()?.open(span.clone()) > OPEN_MAX;
        let stable = match is_stable {
            false => StableHow::Unstable,
            true if self.rng.u32(0..8) == 0 => StableHow::DataSync,
            true => StableHow::FileSync,
        };
        let (offset, bytes) = (span.start, u32::try_from(span.end - span.start).ok()?);
        Some(Operation::Write { file, offset, bytes, generation, stable })
    }

    /// What a WRITE covers, of a file of this size: over what is there, at the end, or behind it.
    fn span(&mut self, size: u64) -> Range<u64> {
        let most = self.options.file_bytes_max;
        let bytes = match self.rng.u32(0..4) {
            0 => BLOCK,
            1 => self.rng.u64(1..=BLOCK),
            2 => BLOCK * self.rng.u64(1..=WRITE_BYTES_MAX / BLOCK),
            _ => self.rng.u64(1..=WRITE_BYTES_MAX),
        };
        let bytes = bytes.min(most);
        let offset = match self.rng.u32(0..4) {
            0 => size,
            1 => self.rng.u64(0..=most),
            _ => self.rng.u64(0..=size),
        };
        let offset = if self.rng.bool() { offset / BLOCK * BLOCK } else { offset };
        let offset = offset.min(most - bytes);
        offset..offset + bytes
    }

    /// Bytes that nobody is writing.
    fn read(&mut self) -> Option<Operation> {
        let (file, size) = self.file()?;
        let offset = self.rng.u64(0..=size.saturating_sub(1)) / BLOCK * BLOCK;
        let span = offset..size.min(offset + READ_BYTES_MAX);
        let object = self.tree.object(file)?;
        let bytes = u32::try_from(span.end - span.start).ok()?;
        (bytes > 0 && object.admits(&span)).then_some(Operation::Read { file, offset, bytes })
    }

    fn commit(&mut self) -> Option<Operation> {
        let (file, size) = self.file()?;
        if !self.tree.object(file)?.content()?.has_unstable() {
            return None;
        }
        if self.rng.u32(0..4) > 0 {
            return Some(Operation::Commit { file, offset: 0, bytes: 0 });
        }
        let offset = self.rng.u64(0..=size);
        let bytes = u32::try_from(self.rng.u64(1..=WRITE_BYTES_MAX)).ok()?;
        Some(Operation::Commit { file, offset, bytes })
    }
}
