//! What sequential readers will ask for: fetched ahead of them, as a mount of ours does.
//!
//! A client's kernel keeps some 128 KiB outstanding, which fills a path to a proxy next door and
//! not the path of 10 ms behind it. So reads that follow one another are a stream
//! ([`client::read_ahead::streams`]), and chunks of it are fetched ahead, ever more of them while
//! the reader has to wait.
//!
//! What was fetched is served only to the caller in whose name it was fetched, and only of the
//! version of the file that clients saw last: every reply of the origin that passes tells
//! one ([`Ahead::note`]), and another than before drops what there is. So whoever opens a file,
//! which asks for its attributes, reads what they say. A reader who does not ask sees changes of
//! others after [`GOOD_FOR`] at the latest. A change by a client drops what there is in any case
//! ([`Ahead::changed`]): within a tick of the origin's clock two versions look the same.
//!
//! Replies overtake one another, so that the version may be an older one for a moment. Where a file
//! ends is therefore what the chunk says that has its last byte.
//!
//! Bounded: the files that are followed, the callers of each, and the bytes of all. Where there is
//! no room nothing is fetched ahead, and readers are served as they ask.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use client::error::Error;
use client::files::first::OPENING_READ_BYTES;
use client::ops::ReadOk;
use client::read_ahead::budget::{Budget, Permit};
use client::read_ahead::streams::{Plan, StreamId, Streams};
use client::session::Session;
use futures_util::future::{BoxFuture, FutureExt, Shared};
use lru::LruCache;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Instant;
use server::types::Caller;
use wire::nfs3::{Fattr3, FileHandle, NfsTime};

use crate::disk::Disk;
use crate::known::GOOD_FOR;
use crate::whole;

/// Bytes of a chunk: several are on the way together long before a call is worth its bytes.
const CHUNK_BYTES_MAX: u32 = 256 << 10;

/// Files whose readers are followed; the one that was read longest ago makes room.
const FILES_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");

/// Callers that read one file at a time.
const CALLERS_MAX: usize = 4;

/// See the module's head; clones are the same.
#[derive(Clone)]
pub(crate) struct Ahead {
    clock: Clock,
    budget: Budget,
    is_off: bool,
    disk: Option<Disk>,
    chunk_bytes: u32,
    /// Guards what is known and fetched of each file; held for looks and bookkeeping.
    files: Arc<Mutex<LruCache<FileHandle, File>>>,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").field("held_bytes", &self.budget.held_bytes()).finish()
    }
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Version {
    size: u64,
    modified: NfsTime,
    changed: NfsTime,
}

impl From<&Fattr3> for Version {
    fn from(of: &Fattr3) -> Self {
        Self { size: of.size, modified: of.mtime, changed: of.ctime }
    }
}

struct File {
    version: Version,
    /// When another version than before was reported last: what was requested earlier is not
    /// served.
    since: Instant,
    /// When it was read last.
    used: Instant,
    readers: Vec<Reader>,
}

struct Reader {
    caller: Caller,
    streams: Streams<Part>,
}

/// The content of a chunk, sooner or later.
#[derive(Clone)]
struct Part {
    content: Shared<BoxFuture<'static, Result<ReadOk, Error>>>,
    /// Room for it, as long as it is held.
    _permit: Arc<Permit>,
}

/// Who reads what.
#[derive(Clone, Debug)]
pub(crate) struct Read<'r> {
    pub(crate) session: &'r Session,
    pub(crate) caller: &'r Caller,
    pub(crate) file: FileHandle,
    pub(crate) offset: u64,
    pub(crate) count: u32,
}

impl Read<'_> {
    /// Whether a client of ours opens the file with it: the origin is to be queried for what it is.
    pub(crate) fn opens(&self) -> bool {
        (self.offset, self.count) == (0, OPENING_READ_BYTES)
    }
}

impl Ahead {
    /// Chunks of as many bytes as the origin takes, of `bytes_max` at most altogether; 0 reads
    /// nothing ahead.
    pub(crate) fn new(
        clock: &Clock,
        bytes_max: u64,
        read_bytes_max: u32,
        disk: Option<Disk>,
    ) -> Self {
        Self {
            clock: clock.clone(),
            budget: Budget::new(bytes_max),
            is_off: bytes_max == 0,
            disk,
            chunk_bytes: read_bytes_max.clamp(1, CHUNK_BYTES_MAX),
            files: Arc::new(Mutex::new(LruCache::new(FILES_MAX))),
        }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.budget.held_bytes()
    }

    /// The origin has returned these attributes of a file.
    pub(crate) fn note(&self, file: &FileHandle, returned: Option<&Fattr3>) {
        let mut files = self.files.lock();
        let Some(known) = files.peek_mut(file) else { return };
        let returned = returned.map(Version::from);
        if returned == Some(known.version) {
            return;
        }
        known.clear(self.clock.now());
        match returned {
            Some(returned) => known.version = returned,
            // It was changed, and nobody knows to what.
            None => drop(files.pop(file)),
        }
    }

    /// The same in reply to a change of it.
    pub(crate) fn changed(&self, file: &FileHandle, returned: Option<&Fattr3>) {
        if let Some(known) = self.files.lock().peek_mut(file) {
            known.clear(self.clock.now());
        }
        self.note(file, returned);
    }

    /// Any file may have been changed.
    pub(crate) fn all_changed(&self) {
        self.files.lock().clear();
    }

    /// Gives back what nobody has requested lately.
    pub(crate) fn tend(&self) {
        let oldest = self.clock.now() - GOOD_FOR;
        let mut files = self.files.lock();
        while files.peek_lru().is_some_and(|(_, file)| file.used < oldest) {
            files.pop_lru();
        }
    }

    /// The bytes, if they were or are being fetched; and whether that was ahead of this read.
    pub(crate) async fn read(&self, read: &Read<'_>) -> Option<(ReadOk, bool)> {
        if self.is_off {
            return None;
        }
        let plan = self.plan(read)?;
        let stream = plan.stream?;
        plan.needed.iter().chain(&plan.ahead).all(|&at| self.fetch(read, stream, at));
        let was_ahead = plan.needed.is_empty();
        self.assembled(read, stream).await.map(|read| (read, was_ahead))
    }

    /// A read has been answered by the origin: what follows it is worth fetching, perhaps.
    pub(crate) fn answered(&self, read: &Read<'_>, returned: Option<&Fattr3>) {
        let Some(returned) = returned.filter(|_| !self.is_off) else { return };
        self.note(&read.file, Some(returned));
        let now = self.clock.now();
        let is_new = {
            let mut files = self.files.lock();
            let is_new = files.peek(&read.file).is_none();
            if is_new {
                let version = returned.into();
                let file = File { version, since: now, used: now, readers: Vec::new() };
                files.put(read.file, file);
            }
            is_new
        };
        // Others were planned before they were answered.
        if is_new
            && let Some(plan) = self.plan(read)
            && let Some(stream) = plan.stream
        {
            plan.ahead.iter().all(|&at| self.fetch(read, stream, at));
        }
    }

    /// What the read comes to.
    fn plan(&self, read: &Read<'_>) -> Option<Plan> {
        let now = self.clock.now();
        let mut files = self.files.lock();
        let file = files.get_mut(&read.file)?;
        file.used = now;
        let size = file.version.size;
        if read.offset >= size {
            return None;
        }
        let oldest = (now - GOOD_FOR).max(file.since);
        let streams = file.streams(read.caller, self.chunk_bytes);
        Some(streams.read(read.offset, read.count, size, oldest))
    }

    /// Begins to fetch a chunk, if there is room for it.
    fn fetch(&self, read: &Read<'_>, stream: StreamId, at: u64) -> bool {
        let Some(permit) = self.budget.take(u64::from(self.chunk_bytes)) else { return false };
        let (own, session) = (self.clone(), read.session.clone());
        let (file, caller) = (read.file, read.caller.clone());
        let content = async move {
            let chunk = own.chunk(&session, file, at).await;
            let now = own.clock.now();
            own.with_streams((&file, &caller), |streams| streams.arrived(stream, at, now));
            chunk
        };
        let content = content.boxed().shared();
        let part = Part { content: content.clone(), _permit: Arc::new(permit) };
        let now = self.clock.now();
        let fetching =
            |streams: &mut Streams<Part>| streams.fetching(stream, at, part.clone(), now);
        if self.with_streams((&read.file, read.caller), fetching).is_none() {
            return false;
        }
        self.clock.spawn(content.map(drop));
        true
    }

    /// What a file has from an offset on, as the origin has it, also for the disk.
    async fn chunk(&self, session: &Session, file: FileHandle, at: u64) -> Result<ReadOk, Error> {
        let state = self.disk.as_ref().and_then(|disk| disk.state(&file));
        let read = whole::read_whole(session, file, at, self.chunk_bytes).await;
        let returned = read.as_ref().ok().and_then(|read| read.file_attributes.as_ref());
        self.note(&file, returned);
        if let (Some(disk), Ok(read)) = (&self.disk, &read) {
            if let Some(returned) = returned {
                disk.known.note(&file, returned, None);
            }
            disk.keep(&file, state, at, read);
        }
        read
    }

    fn with_streams<T>(
        &self,
        (file, caller): (&FileHandle, &Caller),
        with: impl FnOnce(&mut Streams<Part>) -> T,
    ) -> Option<T> {
        let mut files = self.files.lock();
        let file = files.peek_mut(file)?;
        let reader = file.readers.iter_mut().find(|reader| reader.caller == *caller)?;
        Some(with(&mut reader.streams))
    }

    /// Waits for the chunks of a read; none when they have not got what they should have.
    async fn assembled(&self, read: &Read<'_>, stream: StreamId) -> Option<ReadOk> {
        let end = read.offset.saturating_add(u64::from(read.count));
        let mut whole = BytesMut::new();
        let mut from = read.offset;
        loop {
            let ReadOk { data, eof, file_attributes } = self.piece(read, stream, from..end).await?;
            from += data.len() as u64;
            let is_over = eof || from >= end;
            if is_over && whole.is_empty() {
                return Some(ReadOk { file_attributes, eof, data });
            }
            whole.extend_from_slice(&data);
            if is_over {
                return Some(ReadOk { file_attributes, eof, data: whole.freeze() });
            }
        }
    }

    /// The first of these bytes, as many as one chunk has; none when it has not got any.
    async fn piece(
        &self,
        read: &Read<'_>,
        stream: StreamId,
        Range { start, end }: Range<u64>,
    ) -> Option<ReadOk> {
        let of = (&read.file, read.caller);
        let (at, part) = self.with_streams(of, |streams| streams.chunk(stream, start)).flatten()?;
        if part.content.peek().is_none() {
            self.with_streams(of, |streams| streams.waited(stream));
        }
        let piece = part.content.await.ok().and_then(|content| piece_of(&content, at, start..end));
        let taken = piece.as_ref().map(|piece| piece.data.len() as u64);
        self.with_streams(of, |streams| match taken {
            Some(taken) => streams.taken(stream, at, taken),
            // It failed, or the file has another length by now.
            None => streams.failed(stream, at),
        });
        piece
    }
}

/// The first of these bytes, of what a file has from `at` on.
fn piece_of(content: &ReadOk, at: u64, Range { start, end }: Range<u64>) -> Option<ReadOk> {
    let there = at + content.data.len() as u64;
    let end = end.min(there);
    let within = usize::try_from(start - at).ok()?..usize::try_from(end.checked_sub(at)?).ok()?;
    let data = content.data.get(within).filter(|data| !data.is_empty())?;
    let eof = match &content.file_attributes {
        Some(returned) => end >= returned.size,
        None => content.eof && end == there,
    };
    let data = content.data.slice_ref(data);
    Some(ReadOk { file_attributes: content.file_attributes, eof, data })
}

impl File {
    /// What was fetched, or is requested already, counts no more.
    fn clear(&mut self, now: Instant) {
        self.since = now;
        self.readers.iter_mut().for_each(|reader| reader.streams.clear());
    }

    /// What this caller reads; who was the first makes room.
    fn streams(&mut self, caller: &Caller, chunk_bytes: u32) -> &mut Streams<Part> {
        let at = self.readers.iter().position(|reader| reader.caller == *caller);
        let at = at.unwrap_or_else(|| {
            if self.readers.len() == CALLERS_MAX {
                self.readers.remove(0);
            }
            let streams = Streams::new(chunk_bytes);
            self.readers.push(Reader { caller: caller.clone(), streams });
            self.readers.len() - 1
        });
        &mut self.readers[at].streams
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_was_fetched_goes_with_a_change_within_a_tick_of_the_origins_clock() {
        let clock = net::clock::world::World::new().clock();
        let ahead = Ahead::new(&clock, 1 << 20, 1 << 16, None);
        let file = FileHandle::new(&[1]).unwrap();
        let returned = Fattr3::of_file(5, NfsTime { seconds: 1, nseconds: 0 });
        let mut streams = Streams::new(1 << 16);
        let stream = streams.read(0, 5, 5, Instant::EPOCH).stream.unwrap();
        let fetched =
            ReadOk { file_attributes: None, eof: true, data: Bytes::from_static(b"12345") };
        let content = std::future::ready(Ok(fetched)).boxed().shared();
        let _permit = Arc::new(ahead.budget.take(5).unwrap());
        streams.fetching(stream, 0, Part { content, _permit }, Instant::EPOCH);
        let caller = Caller { uid: 0, gid: 0, gids: Vec::new() };
        let (since, used, readers) = Default::default();
        let mut known = File { version: Version::from(&returned), since, used, readers };
        known.readers.push(Reader { caller, streams });
        ahead.files.lock().put(file, known);
        let is_there = || {
            let mut files = ahead.files.lock();
            let known = files.get_mut(&file).unwrap();
            known.readers[0].streams.chunk(stream, 0).is_some()
        };
        ahead.note(&file, Some(&returned));
        assert!(is_there());
        ahead.changed(&file, Some(&returned));
        assert!(!is_there());
    }
}
