//! Everything that changes a cache, one after the other: on a thread of its own, or in a world in
//! place.
//!
//! Nothing here has to be in order for a reader's sake: a block is good if its segment's header
//! names this file, this state of it and this content, wherever a crash has cut.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::counts::Cause;
use crate::header::{Geometry, Header};
use crate::holes;
use crate::key::{FileHash, Key, Name, Token};
use crate::limits::{Cleaner, Filled};
use crate::orders::Order;
use crate::segment::Segment;
use crate::shared::{Event, Shared};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Job {
    /// These bytes of the file in this state are worth keeping.
    Store {
        key: Key,
        token: Token,
        offset: u64,
        data: Bytes,
    },
    /// We have changed the file from one state to another: what is given as new is, and what is
    /// not given stays.
    Changed {
        key: Key,
        from: Token,
        to: Token,
        parts: Vec<Part>,
    },
    /// What is known of a directory now, as bytes of a catalog.
    Catalog {
        name: Name,
        bytes: Bytes,
    },
    /// All segments of a file, or of all.
    Forget {
        file: Option<FileHash>,
    },
    Pin {
        file: FileHash,
        is_pinned: bool,
    },
    /// Down to so many bytes.
    Clean {
        bytes_max: u64,
    },
    /// Whether all of a file in this state is there, after what was to be done before.
    Holds {
        key: Key,
        token: Token,
        done: oneshot::Sender<bool>,
    },
    /// Some time has gone by.
    Tick,
}

/// What a change of ours has left of a range.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    pub offset: u64,
    /// As long as the range.
    pub bytes: u64,
    /// What stands there now, if that is known.
    pub data: Option<Bytes>,
}

impl Job {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Store { data, .. } => data.len(),
            Self::Catalog { bytes, .. } => bytes.len(),
            Self::Changed { parts, .. } => {
                parts.iter().filter_map(|part| part.data.as_ref()).map(Bytes::len).sum()
            }
            _ => 0,
        }
    }
}

/// Segments that go at once while it is cleaned, so that storing goes on meanwhile.
const EVICTED_AT_ONCE: usize = 8;

/// The same once a second, where the cache is above its limits without anything to store.
const CLEANED_AT_ONCE: usize = 1024;

/// Errors of the disk one after the other after which nothing is stored any more.
const FAILURES_MAX: u32 = 3;

/// Bytes stored after which is looked how much is free.
const LOOK_BYTES: u64 = 16 << 20;

/// A fiftieth of the file system stays free at most, however much was requested.
const FREE_PARTS: u64 = 50;

#[derive(Debug)]
pub(crate) struct Keeper {
    cleaner: Cleaner,
    /// Stored since it was opened, while it is not known what was there.
    new: Filled,
    failures: u32,
    is_off: bool,
    is_full: bool,
    looked_bytes: u64,
    noted: Option<Filled>,
}

impl Keeper {
    pub(crate) fn new(cleaner: Cleaner) -> Self {
        Self {
            cleaner,
            new: Filled::default(),
            failures: 0,
            is_off: false,
            is_full: false,
            looked_bytes: u64::MAX,
            noted: None,
        }
    }

    pub(crate) fn run(&mut self, shared: &Shared, job: Job) {
        match job {
            Job::Store { key, token, offset, data } => {
                self.store(shared, (&key, &token), offset, &data);
            }
            Job::Changed { key, from, to, parts } => {
                self.changed(shared, &key, (&from, &to), &parts);
            }
            Job::Catalog { name, bytes } => self.keep_catalog(shared, name, &bytes),
            Job::Forget { file } => forget(shared, file),
            Job::Pin { file, is_pinned } => shared.evictor.lock().pin(file, is_pinned),
            Job::Clean { bytes_max } => clean(shared, bytes_max),
            // Nobody may wait for it any more.
            Job::Holds { key, token, done } => drop(done.send(shared.holds(&key, &token))),
            Job::Tick => self.tick(shared),
        }
    }

    fn tick(&mut self, shared: &Shared) {
        self.looked_bytes = u64::MAX;
        self.is_full = false;
        if let Some(pins) = shared.medium.pins() {
            if !pins.is_whole {
                shared.tell(Event::Pins);
            }
            shared.evictor.lock().set_pins(pins.files.into_keys());
        }
        let orders = orders(shared);
        for order in &orders {
            match *order {
                Order::Forget(file) => forget(shared, file),
                Order::Clean(bytes_max) => clean(shared, bytes_max),
            }
        }
        self.clean_if_due(shared);
        for segment in shared.with_news() {
            let done = segment.save();
            self.took(shared, done);
        }
        let missed = shared.missed.lock().news();
        if let Some(missed) = missed {
            shared.medium.note_missed(&missed);
        }
        if let Some(filled) = self.filled(shared)
            && self.noted != Some(filled)
        {
            shared.medium.note(filled);
            self.noted = Some(filled);
        }
        if !orders.is_empty() {
            shared.medium.ordered();
        }
    }

    /// As soon as it is known what lies there: the limits may be lower than they were before.
    fn clean_if_due(&mut self, shared: &Shared) {
        if self.is_off || !shared.is_counted.load(Relaxed) {
            return;
        }
        let mut is_due = || {
            let filled = shared.evictor.lock().filled();
            self.cleaner.is_due(filled, Filled::default())
        };
        let _ = (0..CLEANED_AT_ONCE).all(|_| is_due() && evict(shared));
    }

    /// What lies there, as far as is known.
    fn filled(&self, shared: &Shared) -> Option<Filled> {
        if shared.is_counted.load(Relaxed) {
            return Some(shared.evictor.lock().filled());
        }
        shared.noted.map(|noted| Filled {
            bytes: noted.bytes.saturating_add(self.new.bytes),
            files: noted.files.saturating_add(self.new.files),
        })
    }

    fn store(&mut self, shared: &Shared, of: (&Key, &Token), offset: u64, data: &Bytes) {
        for (segment, blocks) in blocks(shared.geometry, of.1.size, offset, data) {
            let bytes: usize = blocks.iter().map(|(_, data)| data.len()).sum();
            let is_stored = !self.is_at_rest() && self.store_in(shared, of, segment, blocks);
            if !is_stored {
                shared.counts.unstored_bytes.fetch_add(bytes as u64, Relaxed);
            }
        }
    }

    pub(crate) fn store_in(
        &mut self,
        shared: &Shared,
        (key, token): (&Key, &Token),
        segment: u32,
        blocks: Vec<(usize, Bytes)>,
    ) -> bool {
        let found = shared.find(key, segment);
        let name = Name { file: key.hash(), segment };
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.took(shared, Err(error)),
        };
        let found = found.filter(|found| {
            let is_same = {
                let head = found.head.lock();
                head.header.key == *key && head.header.token == *token
            };
            if !is_same {
                drop_segment(shared, name, Cause::Changed);
            }
            is_same
        });
        let header = match &found {
            Some(found) => found.head.lock().header.clone(),
            None => Header::new(shared.geometry, *key, segment, *token),
        };
        let blocks: Vec<_> = blocks
            .into_iter()
            .map(|(index, data)| (index, header.crc_of(index, &data), data))
            .filter(|(index, crc, _)| header.crc(*index) != Some(*crc))
            .collect();
        let new_bytes: u64 = blocks.iter().map(|(_, _, data)| holes::disk_bytes(data)).sum();
        let more = match &found {
            Some(_) => Filled { bytes: new_bytes, files: 0 },
            None => Filled { bytes: new_bytes + crate::header::DATA_AT, files: 1 },
        };
        if blocks.is_empty() {
            return true;
        }
        if !self.make_room(shared, more) {
            return false;
        }
        // It may have gone to make room for itself.
        let found = found.filter(|found| shared.is_open(found));
        let done = put(shared, header, found, (&blocks, new_bytes));
        if done.is_err() {
            drop_segment(shared, name, Cause::Failed);
        } else {
            let stored: u64 = blocks.iter().map(|(_, _, data)| data.len() as u64).sum();
            shared.counts.stored_blocks.fetch_add(blocks.len() as u64, Relaxed);
            shared.counts.stored_bytes.fetch_add(stored, Relaxed);
            self.looked_bytes = self.looked_bytes.saturating_add(stored);
            self.new.bytes = self.new.bytes.saturating_add(more.bytes);
            self.new.files += more.files;
        }
        self.took(shared, done)
    }

    /// Takes in how a call to the disk has ended; gives whether it was done.
    pub(crate) fn took(&mut self, shared: &Shared, done: io::Result<()>) -> bool {
        let Err(error) = done else {
            self.failures = 0;
            return true;
        };
        shared.counts.failures.fetch_add(1, Relaxed);
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            self.is_full = true;
            evict_some(shared);
            shared.tell(Event::Full);
            return false;
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX && !self.is_off {
            self.is_off = true;
            shared.tell(Event::Off { error: error.to_string() });
        } else {
            shared.tell(Event::Failed { error: error.to_string() });
        }
        false
    }

    /// Whether nothing is stored for now.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_off || self.is_full
    }

    /// Makes room for so much; false: there is none.
    pub(crate) fn make_room(&mut self, shared: &Shared, more: Filled) -> bool {
        if self.looked_bytes >= LOOK_BYTES {
            self.looked_bytes = 0;
            if self.is_tight(shared, more) {
                self.is_full = true;
                evict_some(shared);
                shared.tell(Event::Full);
                return false;
            }
        }
        let mut went = 0;
        loop {
            // Nobody knows what is there: it is being counted.
            let Some(filled) = self.filled(shared) else { return false };
            let is_due = self.cleaner.is_due(filled, more);
            let has_room = self.cleaner.has_room(filled, more);
            if !is_due || has_room && went == EVICTED_AT_ONCE {
                return has_room;
            }
            if !evict(shared) {
                return has_room;
            }
            went += 1;
            if !shared.is_counted.load(Relaxed) {
                self.new.bytes = self.new.bytes.saturating_sub(shared.geometry.block_bytes());
            }
        }
    }

    fn is_tight(&self, shared: &Shared, more: Filled) -> bool {
        let wanted = self.cleaner.limits().free_bytes_min;
        shared.medium.free().is_ok_and(|free| {
            free.bytes < wanted.min(free.all_bytes / FREE_PARTS).saturating_add(more.bytes)
        })
    }
}

/// Writes blocks, which take so many bytes of the disk, and then the header that names them.
fn put(
    shared: &Shared,
    mut header: Header,
    found: Option<Arc<Segment>>,
    (blocks, disk_bytes): (&[(usize, u32, Bytes)], u64),
) -> io::Result<()> {
    let (name, is_new) = (header.name(), found.is_none());
    let segment = match found {
        Some(found) => found,
        None => {
            // What has gone to make room leaves none of its blocks.
            header = Header::new(header.geometry, header.key, header.segment, header.token);
            let stored = shared.medium.make(name)?;
            stored.write(0, &header.encode())?;
            let made = Arc::new(Segment::new(name, stored, header));
            shared.opened(&made);
            made
        }
    };
    let whole_len = segment.head.lock().header.whole_len();
    segment.stored.lengthen(whole_len)?;
    let geometry = shared.geometry;
    for (index, _, data) in blocks {
        holes::write(&*segment.stored, geometry.place(*index), data, is_new)?;
    }
    let most = {
        let mut head = segment.head.lock();
        for (index, crc, _) in blocks {
            head.header.put(*index, *crc);
        }
        head.header.disk_bytes()
    };
    {
        let mut evictor = shared.evictor.lock();
        // Of blocks that have gone from the header the disk still has the room. Which pages of
        // what was there were holes is not known: at most as many as are written now.
        let before = evictor.bytes(&name).unwrap_or(crate::header::DATA_AT);
        evictor.stored(name, (before + disk_bytes).min(most.max(before)));
    }
    segment.save()
}

/// The whole blocks among these bytes, by segment: those that the file's end cuts are whole.
fn blocks(
    geometry: Geometry,
    file_bytes: u64,
    offset: u64,
    data: &Bytes,
) -> Vec<(u32, Vec<(usize, Bytes)>)> {
    let mut found: Vec<(u32, Vec<(usize, Bytes)>)> = Vec::new();
    let block_bytes = geometry.block_bytes();
    let Some(end) = offset.checked_add(data.len() as u64) else { return found };
    let end = end.min(file_bytes);
    let mut at = offset.next_multiple_of(block_bytes);
    while at < end {
        let to = at.saturating_add(block_bytes).min(file_bytes);
        let Some(segment) = geometry.segment_of(at).filter(|_| to <= end) else { break };
        let place = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
        let within = at - u64::from(segment) * geometry.segment_bytes();
        let index = usize::try_from(within / block_bytes).unwrap_or(usize::MAX);
        let block = (index, data.slice(place(at)..place(to)));
        match found.last_mut().filter(|(last, _)| *last == segment) {
            Some((_, blocks)) => blocks.push(block),
            None => found.push((segment, vec![block])),
        }
        at = to;
    }
    found
}

/// Evicts what goes first; false: nothing may go.
fn evict(shared: &Shared) -> bool {
    let victim = shared.evictor.lock().evict();
    victim.is_some_and(|name| {
        remove(shared, name, Cause::Evicted);
        true
    })
}

fn evict_some(shared: &Shared) {
    let _ = (0..EVICTED_AT_ONCE).all(|_| evict(shared));
}

fn clean(shared: &Shared, bytes_max: u64) {
    while shared.evictor.lock().filled().bytes > bytes_max && evict(shared) {}
}

/// What commands have ordered: of all that lies there, so that they wait until that is known.
fn orders(shared: &Shared) -> Vec<Order> {
    if shared.is_counting.load(Relaxed) {
        return Vec::new();
    }
    let orders = shared.medium.orders();
    if !orders.is_empty() && !shared.is_counted.load(Relaxed) {
        // The disk has failed before.
        shared.count();
    }
    orders
}

fn forget(shared: &Shared, file: Option<FileHash>) {
    let mut names = shared.evictor.lock().names(file);
    names.sort_unstable();
    for name in names {
        drop_segment(shared, name, Cause::Invalidated);
    }
}

pub(crate) fn drop_segment(shared: &Shared, name: Name, cause: Cause) {
    shared.evictor.lock().removed(&name);
    remove(shared, name, cause);
}

/// Its place in the eviction's queues is gone already.
fn remove(shared: &Shared, name: Name, cause: Cause) {
    shared.closed(&name);
    // What cannot be removed is found again by the next process, and judged then.
    if shared.medium.remove(name).is_ok() {
        shared.counts.dropped(cause);
        shared.gone.lock().put(name, cause);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::limits::Limits;
    use crate::medium::{Each, Free, Medium, Memory, Stored};

    /// Has one order: forget all.
    #[derive(Debug, Default)]
    struct Ordered {
        memory: Memory,
        is_taken: AtomicBool,
        is_done: AtomicBool,
    }

    impl Medium for Ordered {
        fn open(&self, name: Name) -> io::Result<Option<Arc<dyn Stored>>> {
            self.memory.open(name)
        }

        fn make(&self, name: Name) -> io::Result<Arc<dyn Stored>> {
            self.memory.make(name)
        }

        fn remove(&self, name: Name) -> io::Result<()> {
            self.memory.remove(name)
        }

        fn list(&self, each: &mut Each<'_>) -> io::Result<()> {
            self.memory.list(each)
        }

        fn free(&self) -> io::Result<Free> {
            self.memory.free()
        }

        fn orders(&self) -> Vec<Order> {
            let is_first = !self.is_taken.swap(true, Relaxed);
            is_first.then_some(Order::Forget(None)).into_iter().collect()
        }

        fn ordered(&self) {
            self.is_done.store(true, Relaxed);
        }
    }

    fn segments(medium: &Ordered) -> usize {
        let mut count = 0;
        medium.list(&mut |found| count += found.len()).unwrap();
        count
    }

    #[test]
    fn what_is_above_limits_that_were_lowered_goes_without_anything_to_store() {
        let memory = Arc::new(Memory::default());
        for number in 0..100 {
            memory.make(Name { file: FileHash::from_bytes([number; 16]), segment: 0 }).unwrap();
        }
        let geometry = Geometry::from_log2(12).unwrap();
        let shared = Shared::new(Arc::<Memory>::clone(&memory), geometry, Box::new(|_| ()));
        let filled = || shared.evictor.lock().filled().files;
        let limits = |files_max| Limits { files_max, ..Limits::default() };
        Keeper::new(Cleaner::new(limits(10))).run(&shared, Job::Tick);
        shared.count();
        assert_eq!(filled(), 100, "it is not known before what lies there");
        Keeper::new(Cleaner::new(limits(106))).run(&shared, Job::Tick);
        assert_eq!(filled(), 100, "below the high mark");
        Keeper::new(Cleaner::new(limits(10))).run(&shared, Job::Tick);
        assert_eq!(filled(), 9);
    }

    #[test]
    fn an_order_waits_until_all_that_lies_there_is_known() {
        for fails in [false, true] {
            let medium = Arc::new(Ordered::default());
            let file = FileHash::from_bytes([9; 16]);
            for segment in 0..3 {
                medium.make(Name { file, segment }).unwrap();
            }
            let geometry = Geometry::from_log2(12).unwrap();
            let shared = Shared::new(Arc::<Ordered>::clone(&medium), geometry, Box::new(|_| ()));
            let mut keeper = Keeper::new(Cleaner::new(Limits::default()));
            keeper.run(&shared, Job::Tick);
            assert!(!medium.is_done.load(Relaxed), "it says that it is done");
            if fails {
                medium.memory.fail(Some(io::ErrorKind::Other));
            }
            shared.count();
            medium.memory.fail(None);
            keeper.run(&shared, Job::Tick);
            assert!(medium.is_done.load(Relaxed));
            assert_eq!(segments(&medium), 0);
        }
    }
}
