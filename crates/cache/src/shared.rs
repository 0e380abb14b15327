//! What readers and the keeper share.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use lru::LruCache;
use parking_lot::Mutex;

use crate::counts::{Cause, Counts};
use crate::evict::Evictor;
use crate::header::{BLOCKS, Geometry};
use crate::key::{Key, Name, Token};
use crate::limits::Filled;
use crate::medium::Medium;
use crate::missed::Missed;
use crate::mistake::Mistake;
use crate::segment::{Loaded, Refused, Segment, Unusable};

/// Local files that stay open: each is a descriptor, and 2 KiB for its header.
const OPEN_MAX: usize = 256;

/// Names of which it is remembered why they have gone.
const GONE_MAX: usize = 1 << 16;

/// How often a segment is opened while others keep going.
const TRIES_MAX: u32 = 3;

/// Notices to whoever runs it; each at most once until it changes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Blocks or headers were not what they should be: they are missed and dropped.
    Damaged { name: Name, what: String },
    /// The list of pinned files is not what it should be: what can be read of it holds.
    Pins,
    /// Whose the folder is was not what it should be, and was written anew.
    Identity,
    /// The local file system has no room: what is there is used, and nothing is stored for now.
    Full,
    /// A call to the local disk has failed.
    Failed { error: String },
    /// The local disk keeps failing: nothing is stored any more.
    Off { error: String },
}

/// Hears of events.
pub type Hear = Box<dyn Fn(&Event) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) geometry: Geometry,
    pub(crate) counts: Counts,
    /// Guards what may go, and what has been used.
    pub(crate) evictor: Mutex<Evictor>,
    /// Guards why names have gone.
    pub(crate) gone: Mutex<LruCache<Name, Cause>>,
    /// Guards what was missed of which files.
    pub(crate) missed: Mutex<Missed>,
    /// What lay there according to the last process.
    pub(crate) noted: Option<Filled>,
    /// Whether all that lay there is in the evictor.
    pub(crate) is_counted: AtomicBool,
    /// What lies there is being counted, or will be.
    pub(crate) is_counting: AtomicBool,
    /// Guards the segments that are open.
    table: Mutex<Table>,
    hear: Hear,
    pub(crate) mistake: Option<Mistake>,
    /// Guards the notices that were given.
    notified: Mutex<Vec<std::mem::Discriminant<Event>>>,
}

struct Table {
    open: LruCache<Name, Arc<Segment>>,
    /// Counts segments that were replaced or removed, so that one that was opened before is not
    /// taken for what has its name now.
    replaced: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("medium", &self.medium).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(medium: Arc<dyn Medium>, geometry: Geometry, hear: Hear) -> Self {
        let most = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let noted = medium.noted();
        let missed = Missed::of(medium.missed().as_deref());
        let table = Table { open: LruCache::new(most(OPEN_MAX)), replaced: 0 };
        Self {
            medium,
            geometry,
            counts: Counts::default(),
            evictor: Mutex::default(),
            gone: Mutex::new(LruCache::new(most(GONE_MAX))),
            missed: Mutex::new(missed),
            noted,
            is_counted: AtomicBool::new(false),
            is_counting: AtomicBool::new(true),
            table: Mutex::new(table),
            hear,
            mistake: None,
            notified: Mutex::default(),
        }
    }

    /// Counts what lies there.
    pub(crate) fn count(&self) {
        let counted = self.medium.list(&mut |found| {
            let mut evictor = self.evictor.lock();
            found.iter().for_each(|(name, bytes)| evictor.found(*name, *bytes));
        });
        match counted {
            Ok(()) => self.is_counted.store(true, Relaxed),
            Err(error) => self.tell(Event::Failed { error: error.to_string() }),
        }
        self.is_counting.store(false, Relaxed);
    }

    pub(crate) fn tell(&self, event: Event) {
        let kind = std::mem::discriminant(&event);
        let mut notified = self.notified.lock();
        if !notified.contains(&kind) {
            notified.push(kind);
            drop(notified);
            (self.hear)(&event);
        }
    }

    /// Reads bytes of a file, all before its end, or says why not. None: the disk has to be read.
    pub(crate) fn read(
        &self,
        of: (&Key, &Token),
        (from, to): (u64, u64),
        at_once: bool,
    ) -> Result<Option<Bytes>, Cause> {
        let mut whole: Option<BytesMut> = None;
        let mut at = from;
        while at < to {
            let segment = self.geometry.segment_of(at).ok_or(Cause::Cold)?;
            let end =
                (u64::from(segment) + 1).saturating_mul(self.geometry.segment_bytes()).min(to);
            let Some(part) = self.read_segment(of, segment, (at, end), at_once)? else {
                return Ok(None);
            };
            match &mut whole {
                None if end == to => return Ok(Some(part)),
                None => {
                    let mut begun =
                        BytesMut::with_capacity(usize::try_from(to - from).unwrap_or(0));
                    begun.extend_from_slice(&part);
                    whole = Some(begun);
                }
                Some(whole) => whole.extend_from_slice(&part),
            }
            at = end;
        }
        Ok(Some(whole.unwrap_or_default().freeze()))
    }

    fn read_segment(
        &self,
        of: (&Key, &Token),
        segment: u32,
        range: (u64, u64),
        at_once: bool,
    ) -> Result<Option<Bytes>, Cause> {
        let name = Name { file: of.0.hash(), segment };
        let open = self.table.lock().open.get(&name).cloned();
        let found = match open {
            Some(open) => open,
            None if self.is_missing(&name) => return Err(self.why_missing(&name)),
            None if at_once => return Ok(None),
            None => match self.find(of.0, segment) {
                Ok(Some(found)) => found,
                Ok(None) => return Err(self.why_missing(&name)),
                Err(error) => return Err(self.failed(&error)),
            },
        };
        match found.read(of, range, at_once, self.mistake) {
            Ok(data) => {
                let start = u64::from(segment) * self.geometry.segment_bytes();
                // Pages: a segment has no more than 2^16 of them.
                let place = |at: u64| u32::try_from((at - start) >> 12).unwrap_or(u32::MAX);
                self.evictor.lock().used(&name, place(range.0), place(range.1));
                Ok(Some(data))
            }
            Err(Refused::Waits) => Ok(None),
            Err(Refused::Missed(cause)) => Err(cause),
            Err(Refused::Damaged) => {
                self.tell(Event::Damaged { name, what: "blocks of it were changed".to_owned() });
                Err(Cause::Damaged)
            }
            Err(Refused::Failed(error)) => Err(self.failed(&error)),
        }
    }

    pub(crate) fn failed(&self, error: &io::Error) -> Cause {
        self.counts.failures.fetch_add(1, Relaxed);
        self.tell(Event::Failed { error: error.to_string() });
        Cause::Failed
    }

    /// Whether it is known that there is none, without asking the disk.
    pub(crate) fn is_missing(&self, name: &Name) -> bool {
        self.is_counted.load(Relaxed) && self.evictor.lock().bytes(name).is_none()
    }

    pub(crate) fn why_missing(&self, name: &Name) -> Cause {
        self.gone.lock().get(name).copied().unwrap_or(Cause::Cold)
    }

    /// The segment, opened if it is not; none if there is none that can be used.
    pub(crate) fn find(&self, key: &Key, segment: u32) -> io::Result<Option<Arc<Segment>>> {
        let name = Name { file: key.hash(), segment };
        for _ in 0..TRIES_MAX {
            let replaced = {
                let mut table = self.table.lock();
                if let Some(open) = table.open.get(&name) {
                    return Ok(Some(Arc::clone(open)));
                }
                table.replaced
            };
            if self.is_missing(&name) {
                return Ok(None);
            }
            let loaded = match Segment::load(&*self.medium, (key, segment), self.geometry)? {
                Loaded::Whole(loaded) => loaded,
                Loaded::Nothing => return Ok(None),
                Loaded::Unusable(why) => {
                    self.is_unusable(name, why);
                    return Ok(None);
                }
            };
            let mut table = self.table.lock();
            if table.replaced == replaced {
                let displaced = table.open.push(name, Arc::clone(&loaded));
                drop(table);
                if let Some((_, displaced)) = displaced.filter(|(_, one)| one.head.lock().has_news)
                {
                    // What it was used for is all that would be lost.
                    displaced.save().ok();
                }
                return Ok(Some(loaded));
            }
        }
        Ok(None)
    }

    /// Whether all blocks of a file in this state are there, by their headers.
    pub(crate) fn holds(&self, key: &Key, token: &Token) -> bool {
        let Some(last) = token.size.checked_sub(1) else { return true };
        let last = self.geometry.segment_of(last);
        last.is_some_and(|last| (0..=last).all(|segment| self.holds_segment((key, token), segment)))
    }

    fn holds_segment(&self, (key, token): (&Key, &Token), segment: u32) -> bool {
        let Ok(Some(found)) = self.find(key, segment) else { return false };
        let header = &found.head.lock().header;
        let is_behind = |index| self.geometry.block_len(segment, index, token.size) == 0;
        header.token == *token && (0..BLOCKS).all(|index| header.has(index) || is_behind(index))
    }

    /// What lies there is taken for missing until something takes its place.
    fn is_unusable(&self, name: Name, why: Unusable) {
        if why == Unusable::Key {
            return;
        }
        self.gone.lock().put(name, Cause::Damaged);
        self.tell(Event::Damaged { name, what: why.to_string() });
    }

    /// A segment was made.
    pub(crate) fn opened(&self, segment: &Arc<Segment>) {
        let mut table = self.table.lock();
        table.replaced += 1;
        table.open.put(segment.name, Arc::clone(segment));
    }

    /// A segment was removed.
    pub(crate) fn closed(&self, name: &Name) {
        let mut table = self.table.lock();
        table.replaced += 1;
        table.open.pop(name);
    }

    /// Whether it is what its name means.
    pub(crate) fn is_open(&self, segment: &Arc<Segment>) -> bool {
        let table = self.table.lock();
        table.open.peek(&segment.name).is_some_and(|open| Arc::ptr_eq(open, segment))
    }

    /// Those whose headers are to be written.
    pub(crate) fn with_news(&self) -> Vec<Arc<Segment>> {
        let table = self.table.lock();
        let open = table.open.iter().map(|(_, segment)| segment);
        open.filter(|segment| segment.head.lock().has_news).cloned().collect()
    }
}
