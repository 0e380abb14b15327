//! Write-behind: writers go on at once, and WRITEs and COMMITs follow.
//!
//! - [`WriteBehind::take`] puts bytes into the file's index and returns as soon as the policy
//!   lets it.
//! - One task, the flusher, takes from the indices what fills a WRITE, or what somebody waits for,
//!   from each file in turn, and keeps as many calls outstanding as the policy's window says.
//! - What is acknowledged as unstable stays until a COMMIT covers it, and written again when the
//!   verifier says that the server lost it (RFC 1813 section 3.3.7).
//!
//! Decisions are plain structs: `extents.rs` and `pages.rs` (what to send next), `window.rs` (how
//! many calls), `room.rs` (who waits for memory), `file.rs` (what is due for a file that nobody
//! waits for), `policy.rs` (what the five policies decide). `engine.rs` and `flusher.rs` wait, send
//! and note.
//!
//! **Errors.** When a WRITE or COMMIT fails, what it was for is dropped and counted, and the file
//! keeps the first error. Each descriptor that has the file open gets it at its next write, flush
//! or close, once ([`Heard`]); a later open gets it only if no descriptor has.
//! NFS3ERR_JUKEBOX is not an error but a request to come back later, for as long as the options
//! say.
//!
//! **Bounds.** All data count against `dirty_bytes_max`, the unstable too. Files are forgotten
//! when they are clean; of those with an error that nobody asks for, 4096 are remembered.
//!
//! Not done: what was acknowledged as unstable and is then overwritten is not held any longer, so
//! a commit that began before the overwriting does not wait for the newer bytes.

mod admission;
mod counts;
mod engine;
mod errors;
mod extents;
mod file;
mod flusher;
mod index;
mod lock;
mod options;
mod pages;
mod policy;
mod room;
mod settle;
mod spans;
mod stages;
mod window;

#[cfg(test)]
mod model_tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use net::clock::{Clock, Task};
use wire::nfs3::FileHandle;

pub use self::counts::Counters;
use self::engine::Engine;
use self::file::By;
use self::index::Data;
pub use self::options::{Observer, Options};
use crate::error::Error;
use crate::session::Session;

pub use self::file::Heard;
use self::file::Teller;
pub use self::policy::{PolicyName, UnknownPolicy};
pub use self::stages::{Stage, Stages};

/// See the module's head; clones share everything. What is not drained when the last clone goes
/// is lost.
#[derive(Clone)]
pub struct WriteBehind {
    engine: Arc<Engine>,
    _flusher: Arc<Flusher>,
}

impl fmt::Debug for WriteBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteBehind").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

/// Ends the flusher with the last handle.
struct Flusher(Task);

impl Drop for Flusher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl WriteBehind {
    /// Starts the flusher, as a task of the clock's.
    pub fn new(clock: &Clock, options: Options, observer: Arc<dyn Observer>) -> Self {
        let engine = Arc::new(Engine::new(clock, options, observer));
        let flusher = clock.spawn(flusher::run(Arc::clone(&engine)));
        Self { engine, _flusher: Arc::new(Flusher(flusher)) }
    }

    pub fn options(&self) -> &Options {
        self.engine.options()
    }

    /// For a descriptor of a file that is opened now: which errors it gets.
    pub fn opened(&self, file: FileHandle) -> Heard {
        self.engine.opened(file)
    }

    /// Tells a descriptor of an error of a WRITE or COMMIT of its file, once.
    ///
    /// # Errors
    /// That error.
    pub fn tell(&self, file: FileHandle, heard: &Heard) -> Result<(), Error> {
        self.engine.tell(file, heard, Teller::Flush)
    }

    /// As [`WriteBehind::tell`], for a write: [`WriteBehind::tell`] tells it again, since a kernel
    /// that has made several writes of one may answer with the bytes of those before and drop it.
    ///
    /// # Errors
    /// As [`WriteBehind::tell`].
    pub fn tell_at_write(&self, file: FileHandle, heard: &Heard) -> Result<(), Error> {
        self.engine.tell(file, heard, Teller::Write)
    }

    /// As [`WriteBehind::tell`], and tells it again: one descriptor may be closed several times
    /// (dup(2), fork(2)), and whoever closes it need not be who asks.
    ///
    /// # Errors
    /// As [`WriteBehind::tell`].
    pub fn tell_at_close(&self, file: FileHandle, heard: &Heard) -> Result<(), Error> {
        self.engine.tell(file, heard, Teller::Close)
    }

    /// Reports an error that was not reported yet.
    ///
    /// # Errors
    /// That error.
    pub fn tell_anybody(&self, file: FileHandle) -> Result<(), Error> {
        self.engine.tell_anybody(file)
    }

    /// Whether bytes of the file were given up since it was last read: copies of them that somebody
    /// has for reading are of data that the file does not have.
    pub fn take_given_up(&self, file: FileHandle) -> bool {
        self.engine.take_given_up(file)
    }

    /// The report of this error did not reach its descriptor.
    pub fn not_heard(&self, file: FileHandle, heard: &Heard, error: Error) {
        self.engine.not_heard(file, heard, error);
    }

    /// Takes bytes to be written. Returns when the policy lets the writer go on, and tells nobody
    /// of errors of before: see [`WriteBehind::tell`].
    ///
    /// # Errors
    /// The bytes lie too far behind.
    pub async fn take(
        &self,
        session: &Session,
        file: FileHandle,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        let by = By { session, others: &[] };
        self.engine.write(by, file, offset, Data::Lent(data)).await
    }

    /// As [`WriteBehind::take`]; the bytes may be held instead of copied.
    ///
    /// # Errors
    /// As [`WriteBehind::take`].
    pub async fn take_bytes(
        &self,
        session: &Session,
        file: FileHandle,
        offset: u64,
        data: Bytes,
    ) -> Result<(), Error> {
        self.take_shared((session, &[]), file, offset, data).await
    }

    /// As [`WriteBehind::take_bytes`], from a cache that several callers share: any of them may
    /// have written the bytes. Should the first be refused, they are sent on behalf of the others.
    ///
    /// # Errors
    /// As [`WriteBehind::take`].
    pub async fn take_shared(
        &self,
        (session, others): (&Session, &[Session]),
        file: FileHandle,
        offset: u64,
        data: Bytes,
    ) -> Result<(), Error> {
        let of_bytes = data.len();
        let (by, data) = (By { session, others }, Data::Given { bytes: data, of_bytes });
        self.engine.write(by, file, offset, data).await
    }

    /// Returns when every byte of `range` (or of the file) that was written before is answered
    /// for.
    ///
    /// # Errors
    /// That of a WRITE or COMMIT of this file, which was not reported yet.
    pub async fn flush(&self, file: FileHandle, range: Option<Range<u64>>) -> Result<(), Error> {
        self.engine.flush(file, range).await
    }

    /// As [`WriteBehind::flush`], for somebody whom the errors of writers do not concern: they are
    /// reserved for those.
    pub async fn arrive(&self, file: FileHandle, range: Option<Range<u64>>) {
        self.engine.arrive(file, range).await;
    }

    /// Returns when everything of the file that was written before is stable.
    ///
    /// # Errors
    /// As [`WriteBehind::flush`].
    pub async fn commit(&self, file: FileHandle) -> Result<(), Error> {
        self.engine.commit(file).await
    }

    /// As [`WriteBehind::commit`], for somebody whom the errors of writers do not concern: they are
    /// reserved for those.
    pub async fn settle(&self, file: FileHandle) {
        self.engine.settle(file).await;
    }

    /// Nobody has the file open any more.
    pub fn closed(&self, file: FileHandle) {
        self.engine.closed(file);
    }

    /// An error that a file has had otherwise, which was not reported yet.
    pub fn fail(&self, file: FileHandle, error: Error) {
        self.engine.fail(file, error);
    }

    /// The end of the last byte of a file that the server has not for good.
    pub fn own_end(&self, file: FileHandle) -> Option<u64> {
        let end = |state: &file::State| state.index.dirty_end().max(state.index.unstable_end());
        self.engine.look(file, end).flatten()
    }

    /// What the server has acknowledged of a range and may still lose, in order: where each part
    /// begins, and its bytes. A server that has lost it has another verifier at the next COMMIT; a
    /// READ does not show it.
    pub fn unstable(&self, file: FileHandle, range: &Range<u64>) -> Vec<(u64, Bytes)> {
        self.engine.look(file, |state| state.index.unstable(range)).unwrap_or_default()
    }

    /// Is there anything of the file that is not stable?
    pub fn is_dirty(&self, file: FileHandle) -> bool {
        let sums = self.engine.look(file, |state| state.index.sums());
        sums.is_some_and(|sums| sums.held_bytes > 0)
    }

    /// Is there a byte in the range that the server has not answered for?
    pub fn overlaps(&self, file: FileHandle, range: Range<u64>) -> bool {
        self.engine.look(file, |state| state.index.is_unanswered(&range, u64::MAX)) == Some(true)
    }

    /// Drops what lies at `from` or beyond and is not under way (the file is removed or
    /// truncated). What is under way there is not written again.
    pub fn discard(&self, file: FileHandle, from: u64) {
        self.engine.discard(file, from);
    }

    /// Commits everything of all files; gives what was lost and why.
    pub async fn drain(&self) -> Vec<(FileHandle, Error)> {
        self.engine.drain().await
    }

    /// Files with data that are not stable, and how many bytes of each: lost if it crashed now.
    pub fn dirty_files(&self) -> Vec<(FileHandle, u64)> {
        self.engine.dirty_files()
    }

    /// What the stages have cost, when [`Options::timing`] was requested.
    pub fn stages(&self) -> Stages {
        self.engine.stages()
    }

    pub fn counters(&self) -> Counters {
        self.engine.counters()
    }

    /// The most that was held since it was last read, and what is now: bytes.
    pub fn take_peak_bytes(&self) -> (u64, u64) {
        self.engine.take_peak_bytes()
    }
}
