//! The persistent cache: blocks of an origin's files on a local disk, and what is known of its
//! directories, which survive restarts, and of which nothing is ever served that cannot be proved
//! to be what it should be. It knows no NFS: a file is the bytes of its handle ([`Key`]), and what
//! its data are of is a [`Token`], which the caller makes of the attributes that the origin tells.
//!
//! ```text
//!   read ──► table of open segments ──► preadv2 at once, else on a thread ──► checked ──► hit
//!              │ token, key, checksum wrong: a miss, with its cause
//!   store ─► queue ──► keeper (one thread): room, blocks, header ──► segment files
//! ```
//!
//! - [`key`]: files, origins, states of files. [`settle`]: which states can be distinguished.
//! - [`catalog`]: the bytes of what is known of a directory.
//! - [`header`]: the bytes of a segment's header; `docs/formats/cache.md` has them.
//! - [`evict`], [`limits`]: what goes, and when. Pure.
//! - [`medium`]: where segments lie. [`place`]: a cache's directory: whose it is, who has it.
//! - `segment`: reading with verification. `keeper`: what is stored and what goes. `holes`: what is
//!   zero is not written. `change`: what a change of the caller's own leaves. `threads`: where they
//!   block.
//! - [`survey`], [`offline`], [`orders`], [`pins`]: what commands see and do in a directory.
//!
//! **The rules** that whoever uses it keeps:
//!
//! 1. What is stored under a token was read while the file was in that state: the token was known
//!    before the data were requested, the reply had the same, and it was settled
//!    ([`settle::OriginTime`]).
//! 2. What is read is looked up under the token that the file has now, as far as the consistency
//!    that is promised wants it known.
//! 3. Who may read is decided before the cache is used.

pub mod catalog;
mod catalogs;
mod change;
mod counts;
pub mod evict;
pub mod fuzzing;
pub mod header;
mod holes;
mod keeper;
pub mod key;
pub mod limits;
pub mod medium;
pub mod missed;
mod mistake;
pub mod offline;
pub mod orders;
pub mod pins;
pub mod place;
mod segment;
pub mod settle;
mod shared;
pub mod survey;
mod texts;
mod threads;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use self::catalog::Catalog;
pub use self::counts::{Cause, Sample, Statistics};
pub use self::header::Geometry;
pub use self::keeper::Part;
use self::keeper::{Job, Keeper};
pub use self::key::{FileHash, Key, Origin, Time, Token};
use self::limits::Cleaner;
pub use self::limits::{Filled, Limits};
use self::medium::{Medium, Memory};
pub use self::mistake::Mistake;
use self::place::{FolderId, OpenError, Place};
pub use self::settle::{Now, OriginTime};
use self::shared::Shared;
pub use self::shared::{Event, Hear};
use self::threads::Threads;

/// An origin's cache that is open; clones are the same one. The last that goes waits up to five
/// seconds for what is still to be stored.
#[derive(Clone, Debug)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    keeping: Keeping,
    shared: Arc<Shared>,
    /// Locked as long as this lives; none in memory.
    place: Option<Place>,
}

/// Who changes it.
#[derive(Debug)]
enum Keeping {
    Thread(Threads),
    /// Whoever asks: a world has no threads. Guards the keeper.
    InPlace(Mutex<Keeper>),
}

impl Cache {
    /// Opens what lies in `dir` of this origin, and makes it if there is nothing. Reads of
    /// the origin have up to `read_bytes`: blocks of a new one are parts of them.
    ///
    /// # Errors
    /// The directory cannot be used: [`OpenError`] says why, and nothing was changed in it.
    pub fn open(
        dir: &Path,
        origin: &Origin,
        read_bytes: u32,
        limits: Limits,
        hear: Hear,
    ) -> Result<Self, OpenError> {
        let geometry = Geometry::of_reads_of(read_bytes);
        let place = Place::open(dir, origin, geometry)?;
        let folder = place.folder()?;
        let shared = Arc::new(Shared::new(Arc::new(folder), place.geometry(), hear));
        let keeper = Keeper::new(Cleaner::new(limits));
        if place.was_damaged() {
            shared.tell(Event::Identity);
        }
        let threads = Threads::start(&shared, keeper).map_err(OpenError::Threads)?;
        let keeping = Keeping::Thread(threads);
        Ok(Self { inner: Arc::new(Inner { keeping, shared, place: Some(place) }) })
    }

    /// One in memory, that does everything in place: for worlds and tests.
    pub fn in_memory(memory: Memory, geometry: Geometry, limits: Limits) -> Self {
        Self::in_memory_heard(memory, geometry, limits, Box::new(|_| ()))
    }

    /// As [`Cache::in_memory`], with a mistake.
    pub fn mistaken(memory: Memory, geometry: Geometry, limits: Limits, mistake: Mistake) -> Self {
        let mut shared = Shared::new(Arc::new(memory), geometry, Box::new(|_| ()));
        shared.mistake = Some(mistake);
        Self::in_place(shared, limits)
    }

    /// As [`Cache::in_memory`], and somebody hears of events.
    pub fn in_memory_heard(memory: Memory, geometry: Geometry, limits: Limits, hear: Hear) -> Self {
        let medium: Arc<dyn Medium> = Arc::new(memory);
        Self::in_place(Shared::new(medium, geometry, hear), limits)
    }

    fn in_place(shared: Shared, limits: Limits) -> Self {
        let shared = Arc::new(shared);
        shared.count();
        let keeping = Keeping::InPlace(Mutex::new(Keeper::new(Cleaner::new(limits))));
        Self { inner: Arc::new(Inner { keeping, shared, place: None }) }
    }

    pub fn geometry(&self) -> Geometry {
        self.inner.shared.geometry
    }

    /// Which folder it has; none in memory.
    pub fn folder(&self) -> Option<FolderId> {
        self.inner.place.as_ref()?.id()
    }

    /// Bytes of the file from `offset`, fewer than `count` only at the end that its state says.
    /// Never waits longer than the local disk takes.
    ///
    /// # Errors
    /// It has not got all of them: the cause is counted.
    pub async fn read(
        &self,
        key: &Key,
        token: &Token,
        offset: u64,
        count: u32,
    ) -> Result<Bytes, Cause> {
        let shared = &self.inner.shared;
        let end = offset.saturating_add(u64::from(count)).min(token.size);
        if offset >= end {
            return Ok(Bytes::new());
        }
        let range = (offset, end);
        let mut read = shared.read((key, token), range, true);
        if read == Ok(None) {
            read = self.read_waiting((*key, *token), range).await;
        }
        let counts = &shared.counts;
        match read {
            Ok(Some(data)) => {
                counts.hit(data.len() as u64);
                Ok(data)
            }
            Ok(None) => {
                self.missed(key, token.fileid, Cause::Failed);
                Err(Cause::Failed)
            }
            Err(cause) => {
                self.missed(key, token.fileid, cause);
                Err(cause)
            }
        }
    }

    /// What is known of a directory that is in this state now. Never waits longer than the local
    /// disk takes.
    ///
    /// # Errors
    /// There is nothing: the cause is counted.
    pub async fn catalog(&self, key: &Key, token: &Token) -> Result<Catalog, Cause> {
        let (shared, key, token) = (Arc::clone(&self.inner.shared), *key, *token);
        let read = match &self.inner.keeping {
            Keeping::InPlace(_) => shared.catalog(&key, &token),
            Keeping::Thread(threads) => {
                let (done, answer) = oneshot::channel();
                // Nobody may wait for it any more.
                let read = move || drop(done.send(shared.catalog(&key, &token)));
                let is_taken = threads.read(Box::new(read));
                let failed = Err(Cause::Failed);
                if is_taken { answer.await.unwrap_or(failed) } else { failed }
            }
        };
        let counts = &self.inner.shared.counts;
        match &read {
            Ok(_) => &counts.catalog_hits,
            Err(cause) => &counts.catalog_misses[*cause as usize],
        }
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        read
    }

    /// Keeps what is known of a directory, in place of what was. Returns at once; what is too much
    /// is not stored.
    ///
    /// The caller holds to rule 1 above, of each name.
    pub fn keep_catalog(&self, catalog: &Catalog) {
        if let Some(bytes) = catalog.encode() {
            let name = catalogs::name_of(&catalog.key);
            self.submit(Job::Catalog { name, bytes: bytes.into() });
        }
    }

    async fn read_waiting(
        &self,
        (key, token): (Key, Token),
        range: (u64, u64),
    ) -> Result<Option<Bytes>, Cause> {
        let shared = Arc::clone(&self.inner.shared);
        let Keeping::Thread(threads) = &self.inner.keeping else {
            return shared.read((&key, &token), range, false);
        };
        let (done, answer) = oneshot::channel();
        let is_taken = threads.read(Box::new(move || {
            // Nobody may wait for it any more.
            done.send(shared.read((&key, &token), range, false)).ok();
        }));
        if !is_taken {
            return Ok(None);
        }
        answer.await.unwrap_or(Ok(None))
    }

    /// A read of a file was not served, or not even tried.
    pub fn missed(&self, key: &Key, fileid: u64, cause: Cause) {
        let shared = &self.inner.shared;
        shared.counts.missed(cause);
        shared.missed.lock().count(key.hash(), fileid, cause);
    }

    /// Keeps bytes of a file: the whole blocks among them, and the one that the file's end cuts.
    /// Returns at once; what comes faster than the disk takes it is not stored, and counted.
    ///
    /// The caller holds to rule 1 above.
    pub fn store(&self, key: &Key, token: &Token, offset: u64, data: Bytes) {
        let bytes = data.len() as u64;
        if !self.submit(Job::Store { key: *key, token: *token, offset, data }) {
            let unstored = &self.inner.shared.counts.unstored_bytes;
            unstored.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Keeps whole blocks of what the caller has written, under a draft of the file's next state,
    /// and drops what is there of others. False: they are not stored.
    pub fn store_draft(&self, key: &Key, draft: &Token, offset: u64, data: Bytes) -> bool {
        self.submit(Job::Store { key: *key, token: *draft, offset, data })
    }

    /// A change of the caller's own, and of nobody else's, has taken the file from one state, or
    /// from a draft, to another. All bytes that it may have changed are in `parts`, none twice,
    /// with what stands there now if that is known and stable; what is in no part is as it was.
    pub fn changed(&self, key: &Key, from: &Token, to: &Token, parts: Vec<Part>) {
        // What is not updated is found to be of another state, and dropped.
        self.submit(Job::Changed { key: *key, from: *from, to: *to, parts });
    }

    /// Whether all of a file in this state is there, once what was handed in is done. False, too,
    /// where too much waits.
    pub async fn holds(&self, key: &Key, token: &Token) -> bool {
        let (done, answer) = oneshot::channel();
        self.submit(Job::Holds { key: *key, token: *token, done }) && answer.await == Ok(true)
    }

    /// Drops what there is of a file, or of all files, as far as it [is counted](Self::is_counted).
    pub fn invalidate(&self, file: Option<FileHash>) {
        self.submit(Job::Forget { file });
    }

    /// What there is of the file stays, or does not any more.
    pub fn pin(&self, file: FileHash, is_pinned: bool) {
        self.submit(Job::Pin { file, is_pinned });
    }

    /// Drops what is least wanted until no more than so many bytes [are counted](Self::is_counted).
    pub fn clean(&self, bytes_max: u64) {
        self.submit(Job::Clean { bytes_max });
    }

    /// The range of whole blocks around these bytes, as far as `most` bytes go from where it
    /// begins: what is worth asking the origin for instead. Never less than was requested.
    pub fn around(&self, offset: u64, count: u32, most: u32) -> (u64, u32) {
        let block_bytes = self.geometry().block_bytes();
        let from = offset / block_bytes * block_bytes;
        let end = offset.checked_add(u64::from(count));
        let to = end.and_then(|end| end.checked_next_multiple_of(block_bytes));
        match to.and_then(|to| u32::try_from(to - from).ok()) {
            Some(whole) if whole <= most => (from, whole),
            _ => (offset, count),
        }
    }

    pub fn statistics(&self) -> Statistics {
        let filled = self.inner.shared.evictor.lock().filled();
        Statistics { filled, ..self.inner.shared.counts.now() }
    }

    /// Whether all that lies there is known by now; until then statistics tell less.
    pub fn is_counted(&self) -> bool {
        self.inner.shared.is_counted.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Waits, and blocks the thread, until all that was handed in is done and what was counted is
    /// written; up to five seconds, so that a disk that hangs does not hang a program.
    pub fn settle(&self) {
        self.submit(Job::Tick);
        if let Keeping::Thread(threads) = &self.inner.keeping {
            threads.settle();
        }
    }

    fn submit(&self, job: Job) -> bool {
        match &self.inner.keeping {
            Keeping::Thread(threads) => threads.submit(job),
            Keeping::InPlace(keeper) => {
                keeper.lock().run(&self.inner.shared, job);
                true
            }
        }
    }
}
