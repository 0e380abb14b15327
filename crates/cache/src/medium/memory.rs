//! Segments in memory: for worlds, which have no disks, and for tests, which break them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Each, Free, Medium, Stored};
use crate::key::Name;

/// What a disk writes as a whole, or not at all.
const SECTOR: usize = 512;

/// Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guards which segments there are.
    segments: Mutex<BTreeMap<Name, Arc<Bytes>>>,
    /// Guards what the next calls fail with.
    failing: Mutex<Option<io::ErrorKind>>,
    /// Guards all that was done since [`Memory::record`].
    recorded: Mutex<Option<Recorded>>,
}

struct Bytes {
    name: Name,
    shared: std::sync::Weak<Shared>,
    /// Guards the content.
    content: Mutex<Vec<u8>>,
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bytes").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a medium was, and what was done to it, in order.
#[derive(Debug)]
struct Recorded {
    before: Memory,
    writes: Vec<Write>,
}

/// What was done to a medium.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Write {
    Made(Name),
    Removed(Name),
    /// Into the segment that has this name now.
    Wrote {
        name: Name,
        at: u64,
        bytes: Vec<u8>,
    },
}

impl Memory {
    /// Calls fail with this from now on, or no more.
    pub fn fail(&self, with: Option<io::ErrorKind>) {
        *self.shared.failing.lock() = with;
    }

    /// Keeps what is done from now on.
    pub fn record(&self) {
        let before = self.copy();
        *self.shared.recorded.lock() = Some(Recorded { before, writes: Vec::new() });
    }

    /// How many writes were recorded.
    pub fn recorded(&self) -> usize {
        self.shared.recorded.lock().as_ref().map_or(0, |recorded| recorded.writes.len())
    }

    /// What a disk has after a loss of power that came after so many of the recorded writes. The
    /// first `synced` of them have arrived; of the others those sectors, names and removals for
    /// which `arrives` is true, in any order, as nothing was synced.
    pub fn after_power_loss(
        &self,
        writes: usize,
        synced: usize,
        mut arrives: impl FnMut() -> bool,
    ) -> Self {
        let recorded = self.shared.recorded.lock();
        let Some(Recorded { before, writes: all }) = &*recorded else { return self.copy() };
        let left = before.copy();
        // Names whose file goes on: what is written to the one in its place is lost.
        let mut goes_on = BTreeSet::new();
        for (number, write) in all.iter().take(writes).enumerate() {
            let is_synced = number < synced;
            match write {
                Write::Made(name) | Write::Removed(name) => {
                    if is_synced || arrives() {
                        left.drop_segment(*name);
                        goes_on.remove(name);
                        if matches!(write, Write::Made(_)) {
                            left.put(*name, |_| ());
                        }
                    } else {
                        goes_on.insert(*name);
                    }
                }
                Write::Wrote { name, .. } if goes_on.contains(name) && !is_synced => {}
                Write::Wrote { name, at, bytes } => {
                    let from = usize::try_from(*at).unwrap_or(usize::MAX);
                    for (sector, part) in (from..).step_by(SECTOR).zip(bytes.chunks(SECTOR)) {
                        if is_synced || arrives() {
                            left.put(*name, |content| {
                                let end = sector + part.len();
                                content.resize(content.len().max(end), 0);
                                content[sector..end].copy_from_slice(part);
                            });
                        }
                    }
                }
            }
        }
        left
    }

    /// The names of all segments.
    pub fn names(&self) -> Vec<Name> {
        self.shared.segments.lock().keys().copied().collect()
    }

    /// Changes the bytes of a segment, also of one that is open.
    pub fn change(&self, name: Name, change: impl FnOnce(&mut Vec<u8>)) {
        let segment = self.shared.segments.lock().get(&name).cloned();
        if let Some(segment) = segment {
            change(&mut segment.content.lock());
        }
    }

    /// As [`Memory::change`], of one that is made if it is not there.
    pub fn put(&self, name: Name, change: impl FnOnce(&mut Vec<u8>)) {
        let shared = Arc::downgrade(&self.shared);
        let new = || Arc::new(Bytes { name, shared, content: Mutex::default() });
        let segment = Arc::clone(self.shared.segments.lock().entry(name).or_insert_with(new));
        change(&mut segment.content.lock());
    }

    /// What a process leaves that has been killed: another one that begins as this is now.
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for name in self.names() {
            let mut content = Vec::new();
            self.change(name, |bytes| content.clone_from(bytes));
            copy.put(name, |bytes| *bytes = content);
        }
        copy
    }

    pub fn drop_segment(&self, name: Name) {
        self.shared.segments.lock().remove(&name);
    }
}

impl Shared {
    fn or_fail(&self) -> io::Result<()> {
        let failing = *self.failing.lock();
        failing.map_or(Ok(()), |kind| Err(io::Error::from(kind)))
    }

    fn keep(&self, write: impl FnOnce() -> Write) {
        if let Some(recorded) = &mut *self.recorded.lock() {
            recorded.writes.push(write());
        }
    }
}

impl Medium for Memory {
    fn open(&self, name: Name) -> io::Result<Option<Arc<dyn Stored>>> {
        self.shared.or_fail()?;
        let found = self.shared.segments.lock().get(&name).cloned();
        Ok(found.map(|found| found as Arc<dyn Stored>))
    }

    fn make(&self, name: Name) -> io::Result<Arc<dyn Stored>> {
        self.shared.or_fail()?;
        self.shared.keep(|| Write::Made(name));
        let shared = Arc::downgrade(&self.shared);
        let made = Arc::new(Bytes { name, shared, content: Mutex::default() });
        self.shared.segments.lock().insert(name, Arc::clone(&made));
        Ok(made)
    }

    fn remove(&self, name: Name) -> io::Result<()> {
        self.shared.or_fail()?;
        self.shared.keep(|| Write::Removed(name));
        self.shared.segments.lock().remove(&name);
        Ok(())
    }

    fn list(&self, each: &mut Each<'_>) -> io::Result<()> {
        self.shared.or_fail()?;
        let all: Vec<_> = {
            let segments = self.shared.segments.lock();
            // As on a disk, what nobody has written takes no room.
            let is_written = |page: &&[u8]| page.iter().any(|byte| *byte != 0);
            let pages = |content: &[u8]| content.chunks(4096).filter(is_written).count() as u64;
            let bytes = |segment: &Bytes| pages(&segment.content.lock()) * 4096;
            segments.iter().map(|(name, segment)| (*name, bytes(segment))).collect()
        };
        each(&all);
        Ok(())
    }

    fn free(&self) -> io::Result<Free> {
        Ok(Free { bytes: u64::MAX, all_bytes: u64::MAX })
    }
}

impl Stored for Bytes {
    fn read(&self, at: u64, into: &mut [u8], _: bool) -> io::Result<usize> {
        if let Some(shared) = self.shared.upgrade() {
            shared.or_fail()?;
        }
        let content = self.content.lock();
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let rest = content.get(from..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(shared) = self.shared.upgrade() {
            shared.or_fail()?;
            // Nobody reads what is written to one that was replaced.
            let is_named = shared
                .segments
                .lock()
                .get(&self.name)
                .is_some_and(|named| std::ptr::eq(Arc::as_ptr(named), self));
            if is_named {
                shared.keep(|| Write::Wrote { name: self.name, at, bytes: bytes.to_vec() });
            }
        }
        let mut content = self.content.lock();
        let from = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if content.len() < from + bytes.len() {
            content.resize(from + bytes.len(), 0);
        }
        content[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}
