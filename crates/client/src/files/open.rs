//! Files that are open.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::Instant;
use wire::nfs3::{FileHandle, NfsStat3, NfsTime, Sattr3, SetTime, access};

use super::attributes::Opened;
use super::busy::Leaving;
use super::options::Mistake;
use super::read::Reading;
use super::{Acting, Files};
use crate::error::Error;
use crate::read_ahead::holders::Holder;
use crate::session::{Credential, Session};
use crate::write_behind::{Heard, WriteBehind};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Mode {
    pub read: bool,
    pub write: bool,
}

impl Mode {
    /// What a caller needs for it (`ACCESS3_*`).
    pub fn rights(self) -> u32 {
        let read = if self.read { access::READ } else { 0 };
        let write = if self.write { access::MODIFY | access::EXTEND } else { 0 };
        read | write
    }
}

/// An open file; clones are the same one. Must be closed, or it stays open here until the end.
#[derive(Clone, Debug)]
pub struct Open {
    inner: Arc<OpenInner>,
}

#[derive(Debug)]
pub(super) struct OpenInner {
    number: u64,
    files: Files,
    who: Credential,
    file: FileHandle,
    is_closed: AtomicBool,
    /// Guards how far it is from its end.
    leaving: Mutex<Option<Leaving>>,
    reading: Mutex<Reading>,
    changes: Arc<AtomicU64>,
    heard: Heard,
    /// Where the next append goes, if one was requested.
    end: AtomicU64,
}

/// No append was requested.
const NO_END: u64 = u64::MAX;

impl Files {
    /// Opens a file: asks the server whether the caller may, and whether the file is still what it
    /// was (close-to-open). A small file that is only to be read is read in the same call.
    ///
    /// # Errors
    /// As the server says; `NFS3ERR_ACCES` when it grants less than `mode` asks for.
    pub async fn open(
        &self,
        who: &Credential,
        file: FileHandle,
        mode: Mode,
    ) -> Result<Open, Error> {
        let opening = self.opening(file).await;
        let opened = self.open_small(who, file, mode).await;
        opening.end().await;
        opened
    }

    async fn open_small(
        &self,
        who: &Credential,
        file: FileHandle,
        mode: Mode,
    ) -> Result<Open, Error> {
        self.finish_making(file).await;
        if mode.read && !mode.write {
            let acting = self.acting(who);
            if let Some(open) = self.open_by_read((who, &acting), file).await? {
                return Ok(open);
            }
        }
        self.open_for(who, file, mode.rights()).await
    }

    /// As [`Files::open`], by a caller that has the file's data, should it be what it was.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub async fn open_cached(
        &self,
        who: &Credential,
        file: FileHandle,
        mode: Mode,
    ) -> Result<Open, Error> {
        let opening = self.opening(file).await;
        let opened = self.open_for(who, file, mode.rights()).await;
        opening.end().await;
        opened
    }

    /// As [`Files::open`], of a program that is to be run. Who may run one need not be allowed to
    /// read it; the server lets it be read.
    ///
    /// # Errors
    /// As [`Files::open`].
    pub async fn open_to_run(&self, who: &Credential, file: FileHandle) -> Result<Open, Error> {
        let opening = self.opening(file).await;
        let opened = self.open_for(who, file, access::EXECUTE).await;
        opening.end().await;
        opened
    }

    /// As [`Files::open`], if that needs no call: when the program's open began, the look-up of the
    /// name that it opens had yet to request what it has of the file and of the caller's rights.
    pub async fn open_as_looked_up(
        &self,
        who: &Credential,
        file: FileHandle,
        (wanted, begun): (u32, Instant),
    ) -> Option<Open> {
        let opening = self.opening(file).await;
        self.finish_making(file).await;
        let acting = self.acting(who);
        let requested = self.requested_since(&acting, &file, (wanted, begun));
        let open = requested.map(|(attributes, sent)| {
            let opened = Opened { attributes: &attributes, sent, is_open: true };
            self.may(&acting, &file, opened, (wanted, wanted));
            self.open_made(who, file)
        });
        opening.end().await;
        open
    }

    /// Opens a file if the server grants all of the rights `wanted`.
    async fn open_for(
        &self,
        who: &Credential,
        file: FileHandle,
        wanted: u32,
    ) -> Result<Open, Error> {
        self.finish_making(file).await;
        let granted = if self.inner.options.close_to_open {
            self.ask_access(&self.acting(who), file, wanted, true).await?
        } else {
            self.access(who, file, wanted).await?
        };
        if granted != wanted {
            return Err(self.known_status("ACCESS", NfsStat3::Acces));
        }
        Ok(self.open_made(who, file))
    }

    /// Opens a file that was just made, whose maker may do with it as it likes.
    pub fn open_made(&self, who: &Credential, file: FileHandle) -> Open {
        let mut state = self.inner.state.lock();
        let changes = state.busy.opened(&file);
        state.attributes.pin(&file);
        drop(state);
        let chunk_bytes = self.inner.session.sizes().read_bytes_max;
        let inner = OpenInner {
            number: self.inner.holders.lock().number(),
            files: self.clone(),
            who: who.clone(),
            file,
            is_closed: AtomicBool::new(false),
            leaving: Mutex::new(None),
            reading: Mutex::new(Reading::new(chunk_bytes)),
            changes,
            heard: self.inner.write_behind.opened(file),
            end: AtomicU64::new(NO_END),
        };
        Open { inner: Arc::new(inner) }
    }
}

impl Drop for OpenInner {
    fn drop(&mut self) {
        self.files.inner.holders.lock().ends(self.number);
    }
}

impl Holder for OpenInner {
    fn gives_way(&self) {
        self.reading.lock().clear();
    }
}

impl Open {
    pub fn file(&self) -> FileHandle {
        self.inner.file
    }

    pub(super) fn files(&self) -> &Files {
        &self.inner.files
    }

    pub(super) fn acting(&self) -> Acting {
        self.inner.files.acting(&self.inner.who)
    }

    pub(super) fn reading(&self) -> &Mutex<Reading> {
        &self.inner.reading
    }

    /// Something is held ahead of whoever reads it.
    pub(super) fn is_read(&self) {
        let files = self.files();
        let reader: Weak<OpenInner> = Arc::downgrade(&self.inner);
        files.inner.holders.lock().reads(self.inner.number, reader, files.now());
    }

    /// How often we have changed the file's data.
    pub(super) fn changes(&self) -> u64 {
        self.inner.changes.load(Ordering::Acquire)
    }

    /// Writes. Returns when the policy lets the writer go on; with `sync`, when the bytes are
    /// stable.
    ///
    /// # Errors
    /// That of a write of this file, whoever wrote, which this descriptor has not reported. A flush
    /// reports it again: who makes several writes of one may not pass on what a later of them gave.
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let session = self.begin_write()?;
        self.write_behind().take(&session, self.inner.file, offset, data).await?;
        self.wrote(offset).await
    }

    /// As [`Open::write`]; the bytes may be held instead of copied.
    ///
    /// # Errors
    /// As [`Open::write`].
    pub async fn write_bytes(&self, offset: u64, data: Bytes) -> Result<(), Error> {
        let session = self.begin_write()?;
        self.write_behind().take_bytes(&session, self.inner.file, offset, data).await?;
        self.wrote(offset).await
    }

    /// As [`Open::write_bytes`], and the server has the bytes when it returns (O_DIRECT).
    ///
    /// # Errors
    /// As [`Open::write`], that of this write among them.
    pub async fn write_past_caches(&self, offset: u64, data: Bytes) -> Result<(), Error> {
        let count = data.len() as u64;
        self.write_bytes(offset, data).await?;
        self.files().arrive(&self.inner.file, offset, count).await;
        self.tell(WriteBehind::tell_at_write)
    }

    /// As [`Open::write_bytes`], of bytes that a cache has held and that no program waits for: it
    /// gets no earlier error, which stays for a flush. Whose they are is not known where `others`
    /// have the file open for writing: they are sent on behalf of one of these if this caller is
    /// refused.
    ///
    /// # Errors
    /// The bytes were not taken.
    pub async fn write_back(
        &self,
        offset: u64,
        data: Bytes,
        mut others: Vec<Credential>,
    ) -> Result<(), Error> {
        let inner = &*self.inner;
        let session = |who: &Credential| self.files().acting(who).session.impatient();
        self.files().is_written(&inner.file);
        if others.len() > 1 {
            // Its owner is the last whom a server refuses.
            let owner = self.files().last(&inner.file).map(|last| last.uid);
            others.sort_by_key(|who| (Some(who.uid) != owner, who.uid, who.gid));
        }
        let others: Vec<Session> = others.iter().map(session).collect();
        let by = (&session(&inner.who), &others[..]);
        self.write_behind().take_shared(by, inner.file, offset, data).await?;
        self.inner.changes.fetch_add(1, Ordering::Release);
        if inner.files.inner.options.sync {
            self.write_behind().settle(inner.file).await;
        }
        Ok(())
    }

    /// A write begins; its calls go through this session.
    fn begin_write(&self) -> Result<Session, Error> {
        let session = self.acting().session.impatient();
        self.is_used();
        self.tell(WriteBehind::tell_at_write)?;
        self.files().is_written(&self.inner.file);
        Ok(session)
    }

    async fn wrote(&self, offset: u64) -> Result<(), Error> {
        let inner = &*self.inner;
        inner.changes.fetch_add(1, Ordering::Release);
        if inner.end.load(Ordering::Acquire) <= offset {
            inner.end.store(NO_END, Ordering::Release);
            self.files().inner.state.lock().busy.appended(&inner.file);
        }
        if self.files().inner.options.sync { self.flush_at_write().await } else { Ok(()) }
    }

    /// As [`Open::flush`], before a write returns.
    ///
    /// # Errors
    /// As [`Open::write`].
    pub async fn flush_at_write(&self) -> Result<(), Error> {
        self.settle_all().await;
        self.tell(WriteBehind::tell_at_write)
    }

    /// Sets a time of modification with what else is to be set of the file before it is closed for
    /// the first time. False where there is nothing else.
    pub fn set_time_later(&self, time: NfsTime) -> bool {
        let new = Sattr3 { mtime: SetTime::ClientTime(time), ..Sattr3::default() };
        self.files().set_later(&self.inner.who, &self.inner.file, &new).is_some()
    }

    /// What was written is on stable storage; for fsync(2).
    ///
    /// # Errors
    /// That of a write of this file, whoever wrote, which this descriptor has not reported.
    pub async fn flush(&self) -> Result<(), Error> {
        self.settle_all().await;
        self.tell(WriteBehind::tell)
    }

    /// As [`Open::flush`], for close(2) before it returns: who has the same descriptor open besides
    /// gets errors, too.
    ///
    /// # Errors
    /// As [`Open::flush`].
    pub async fn flush_at_close(&self) -> Result<(), Error> {
        self.settle_all().await;
        self.tell(WriteBehind::tell_at_close)
    }

    /// As [`Open::flush`], and tells nobody of errors.
    pub async fn settle(&self) {
        self.settle_all().await;
        if self.files().makes(Mistake::UnheardErrors) {
            self.tell(WriteBehind::tell).ok();
        }
    }

    async fn settle_all(&self) {
        self.write_behind().settle(self.inner.file).await;
        self.settled();
        self.files().finish_making(self.inner.file).await;
    }

    /// Tells of an error that has come since it was opened, as often as `teller` does.
    fn tell(
        &self,
        teller: fn(&WriteBehind, FileHandle, &Heard) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.files().makes(Mistake::ErrorsReportedOnce) {
            true => self.write_behind().tell_anybody(self.inner.file),
            false => teller(self.write_behind(), self.inner.file, &self.inner.heard),
        }
    }

    fn write_behind(&self) -> &WriteBehind {
        &self.inner.files.inner.write_behind
    }

    /// All is stable, or was given up.
    fn settled(&self) {
        self.inner.files.inner.state.lock().busy.settled(&self.inner.file);
    }

    /// Where the file ends, for who appends there next. The server is queried until something of
    /// ours that is not stable stands at the end: another client may have appended before.
    ///
    /// # Errors
    /// As the server says.
    pub async fn end(&self) -> Result<u64, Error> {
        let (files, file) = (&self.inner.files, self.inner.file);
        let (asks, last) = {
            let state = files.inner.state.lock();
            (state.busy.asks_end(&file), state.attributes.last(&file))
        };
        let asks = asks || !self.write_behind().is_dirty(file);
        let known = last.map(|last| files.with_own_data(&file, last));
        let end = match known.filter(|_| !asks || files.makes(Mistake::UncheckedEnds)) {
            Some(known) => known.size,
            None => files.fetch(&self.acting(), file).await?.attributes.size,
        };
        self.inner.end.store(end, Ordering::Release);
        Ok(end)
    }

    /// This error, which a flush or write gave, has reached nobody.
    pub fn not_heard(&self, error: Error) {
        if !self.files().makes(Mistake::UnheardErrors) {
            self.write_behind().not_heard(self.inner.file, &self.inner.heard, error);
        }
    }

    /// Bytes that no program waits for were not taken: whoever has the file open is to hear of it.
    pub fn fail(&self, error: Error) {
        self.write_behind().fail(self.inner.file, error);
    }

    /// A program has closed it, and may have other descriptors of it.
    pub fn is_left(&self) {
        self.leave(Some(Leaving::Left));
    }

    /// Nobody can use it any more; [`Open::close`] follows.
    pub fn end_begins(&self) {
        self.leave(Some(Leaving::Closing));
    }

    /// A program uses it.
    pub(super) fn is_used(&self) {
        self.leave(None);
    }

    fn leave(&self, to: Option<Leaving>) {
        let mut leaving = self.inner.leaving.lock();
        if *leaving != to && *leaving != Some(Leaving::Closing) {
            let from = std::mem::replace(&mut *leaving, to);
            self.files().inner.state.lock().busy.leaves(&self.inner.file, from, to);
        }
    }

    /// Nobody uses it any more; a name that stood for the file goes. What was written and not
    /// flushed is written all the same, but errors are not reported.
    pub async fn close(&self) {
        if self.inner.is_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let (files, file) = (&self.inner.files, self.inner.file);
        self.end_begins();
        files.finish_making(file).await;
        let (hidden, was_last) = {
            let mut state = files.inner.state.lock();
            state.attributes.unpin(&file);
            (state.busy.closed(&file), !state.busy.is_open(&file))
        };
        if was_last {
            files.inner.write_behind.closed(file);
        }
        files.unhide_of(file, hidden).await;
    }
}
