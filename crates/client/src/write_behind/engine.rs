//! What writers, flusher and replies share, and the way of a writer through it.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use net::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use wire::nfs3::{FileHandle, NfsStat3, Procedure};

use super::file::{File, Heard, State};
use super::index::{Data, Sums};
use super::lock::{BigLock, Guard};
use super::policy::{Lock, Policy};
use super::room::{Room, Ticket};
use super::stages::{Stage, Stages, Timing};
use super::window::Window;
use super::{Counters, Observer, Options};
use crate::error::{Detail, Error};
use crate::session::Session;

/// Files whose error nobody has asked for, that are kept; beyond, one of them is forgotten.
pub(super) const ERRORS_MAX: usize = 4096;

/// Different callers that may have written to one file while it is not clean; the next waits.
const CALLERS_MAX: usize = 1024;

/// COMMITs that [`Engine::drain`] keeps outstanding.
const DRAINING_MAX: usize = 16;

pub(super) struct Engine {
    pub(super) clock: Clock,
    pub(super) options: Options,
    pub(super) policy: Box<dyn Policy>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) timing: Timing,
    /// Guards which files there are.
    pub(super) files: Mutex<HashMap<FileHandle, Arc<File>>>,
    /// Guards how much memory is in use, and who waits for it.
    room: Mutex<Memory>,
    /// Guards the window, and whose turn it is.
    pub(super) sending: Mutex<Sending>,
    /// There is something for the flusher to do.
    pub(super) work: Notify,
    /// The mount's lock of the paper's policies.
    pub(super) lock: BigLock,
    /// Requests of all files, and the news that there are fewer.
    requests: AtomicUsize,
    fewer: Notify,
    pub(super) sleepers: AtomicUsize,
    /// Errors there have been.
    errors: AtomicU64,
    pub(super) counts: Counts,
}

#[derive(Debug)]
struct Memory {
    room: Room,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

#[derive(Debug)]
pub(super) struct Sending {
    pub(super) window: Window,
    pub(super) outstanding: u32,
    /// Files with something to send, in turn; each stands here once.
    pub(super) queue: VecDeque<Arc<File>>,
}

/// Events since the start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) writes_sent: AtomicU64,
    pub(super) commits_sent: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    writer_waits: AtomicU64,
    forced_flushes: AtomicU64,
    pub(super) short_writes: AtomicU64,
    pub(super) jukebox_waits: AtomicU64,
    pub(super) lost_bytes: AtomicU64,
    pub(super) dropped_bytes: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Room that was given and is not used yet; what is not used is given back.
struct Admitted<'a> {
    engine: &'a Engine,
    bytes: u64,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.engine.adjust_room(self.bytes, 0, 0);
        }
    }
}

impl Engine {
    pub(super) fn new(clock: &Clock, options: Options, observer: Arc<dyn Observer>) -> Self {
        let policy = options.policy.policy();
        // More than memory has room for would only wait.
        let fits = options.dirty_bytes_max / 2 / u64::from(options.wsize.max(1));
        let fits = u32::try_from(fits).unwrap_or(u32::MAX);
        let window = match options.outstanding {
            Some(outstanding) => Window::fixed(outstanding),
            None => policy.window(options.outstanding_max.min(fits)),
        };
        let sending = Sending { window, outstanding: 0, queue: VecDeque::new() };
        let room = Memory { room: Room::new(options.dirty_bytes_max), waiting: HashMap::new() };
        Self {
            clock: clock.clone(),
            timing: Timing::new(options.timing),
            options,
            policy,
            observer,
            files: Mutex::new(HashMap::new()),
            room: Mutex::new(room),
            sending: Mutex::new(sending),
            work: Notify::new(),
            lock: BigLock::default(),
            requests: AtomicUsize::new(0),
            fewer: Notify::new(),
            sleepers: AtomicUsize::new(0),
            errors: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// Tells of an error of before that nobody was told of.
    pub(super) fn tell_anybody(&self, handle: FileHandle) -> Result<(), Error> {
        self.known(handle).map_or(Ok(()), |file| file.state.lock().tell_anybody())
    }

    /// Tells a descriptor of an error of before.
    pub(super) fn tell(&self, handle: FileHandle, heard: &Heard, again: bool) -> Result<(), Error> {
        self.known(handle).map_or(Ok(()), |file| file.state.lock().tell(heard, again))
    }

    /// For a descriptor that is opened now: an error that nobody was told of concerns it, too.
    pub(super) fn opened(&self, handle: FileHandle) -> Heard {
        let is_untold = |state: &State| state.failed.as_ref().is_some_and(|one| !one.is_told);
        match self.look(handle, is_untold) {
            Some(true) => Heard::until(0),
            _ => Heard::until(self.errors.load(Ordering::Acquire)),
        }
    }

    /// Whether bytes of a file were given up since this was asked last.
    pub(super) fn take_given_up(&self, handle: FileHandle) -> bool {
        let take = |file: Arc<File>| std::mem::take(&mut file.state.lock().has_given_up);
        self.known(handle).is_some_and(take)
    }

    /// The number of an error that has come now.
    pub(super) fn error_number(&self) -> u64 {
        self.errors.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub(super) async fn write(
        self: &Arc<Self>,
        session: &Session,
        handle: FileHandle,
        offset: u64,
        data: Data<'_>,
    ) -> Result<(), Error> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            let procedure = Procedure::Write.name();
            let (server, status) = (session.server(), NfsStat3::FBig);
            return Err(Error::Status {
                procedure,
                server,
                status,
                detail: Detail::Nothing.into(),
            });
        }
        let file = self.file(handle);
        let piece_bytes = self.policy.piece_bytes_max().min(self.piece_bytes_max());
        let mut at = 0;
        while at < data.len() {
            // To the next multiple, so that pieces are pages where the policy wants pages.
            let from = offset + at as u64;
            let left = usize::try_from(piece_bytes - from % piece_bytes).unwrap_or(usize::MAX);
            let until = at.saturating_add(left).min(data.len());
            self.write_piece(session, &file, from, &data.slice(at..until)).await?;
            at = until;
        }
        Ok(())
    }

    async fn write_piece(
        self: &Arc<Self>,
        session: &Session,
        file: &Arc<File>,
        offset: u64,
        data: &Data<'_>,
    ) -> Result<(), Error> {
        let charge = file.state.lock().index.charge(offset, data.len());
        let mut admitted = self.admit(charge).await;
        self.sleep_at_hard_limit().await;
        loop {
            let lock = self.lock_as_writer().await;
            let begun = self.now_if_timing();
            let taken = self.update(file, &mut admitted.bytes, |state| {
                let Some(caller) = state.caller(session, CALLERS_MAX) else { return false };
                state.on_insert(self.clock.now());
                state.index.insert(offset, data, caller).is_ok()
            });
            self.time_since(Stage::IndexLookup, begun);
            drop(lock);
            if taken {
                break;
            }
            // Something is in the way that must be stable first.
            self.settle_all(file).await;
        }
        self.flush_at_soft_limit(file).await;
        Ok(())
    }

    /// The mount's lock, if the policy has one.
    async fn lock_as_writer(&self) -> Option<Guard<'_>> {
        if self.policy.lock() == Lock::None {
            return None;
        }
        let begun = self.now_if_timing();
        let guard = self.lock.lock(&self.clock).await;
        self.time_since(Stage::LockWait, begun);
        Some(guard)
    }

    async fn sleep_at_hard_limit(&self) {
        let Some(requests_max) = self.policy.mount_requests_max() else { return };
        let mut counted = false;
        loop {
            let fewer = self.fewer.notified();
            let mut fewer = std::pin::pin!(fewer);
            fewer.as_mut().enable();
            if self.requests.load(Ordering::Acquire) < requests_max {
                return;
            }
            if !std::mem::replace(&mut counted, true) {
                count(&self.counts.writer_waits, 1);
            }
            let _sleeper = Sleeper::new(self);
            fewer.await;
        }
    }

    async fn flush_at_soft_limit(self: &Arc<Self>, file: &Arc<File>) {
        let Some(requests_max) = self.policy.file_requests_max() else { return };
        if file.state.lock().index.sums().requests > requests_max {
            count(&self.counts.forced_flushes, 1);
            self.settle_all(file).await;
        }
    }

    /// Waits until memory has room for so many bytes.
    async fn admit(&self, bytes: u64) -> Admitted<'_> {
        let ticket = {
            let mut memory = self.room.lock();
            let ticket = memory.room.ask(bytes);
            ticket.map(|ticket| {
                let (go, gone) = oneshot::channel();
                memory.waiting.insert(ticket, go);
                (ticket, gone)
            })
        };
        if let Some((ticket, gone)) = ticket {
            count(&self.counts.writer_waits, 1);
            self.work.notify_one();
            let mut waiting = Waiting { engine: self, ticket: Some(ticket), bytes };
            gone.await.ok();
            waiting.ticket = None;
        }
        Admitted { engine: self, bytes }
    }

    /// `admitted` bytes that were let in have become `became`; so many were acknowledged.
    fn adjust_room(&self, admitted: u64, became: i64, acknowledged: u64) {
        let mut woken = Vec::new();
        {
            let mut memory = self.room.lock();
            memory.room.adjust(admitted, became);
            if acknowledged > 0 {
                memory.room.on_acknowledged(acknowledged);
            }
            while let Some(ticket) = memory.room.admitted() {
                woken.extend(memory.waiting.remove(&ticket));
            }
        }
        for go in woken {
            // One who has gone away gives back what it was let in for.
            go.send(()).ok();
        }
    }

    /// Does something with a file's state, and draws the consequences: of its sums, and of what
    /// there is to send now.
    pub(super) fn update<T>(
        &self,
        file: &Arc<File>,
        admitted: &mut u64,
        change: impl FnOnce(&mut State) -> T,
    ) -> T {
        let mut state = file.state.lock();
        let before = state.index.sums();
        let result = change(&mut state);
        let after = state.index.sums();
        let to_queue = !state.queued && state.index.is_ready(state.urgent_age);
        state.queued |= to_queue;
        drop(state);
        if to_queue {
            self.sending.lock().queue.push_back(Arc::clone(file));
        }
        // The flusher looks at no clock while there is nothing to write.
        if to_queue || (before.held_bytes == 0 && after.held_bytes > 0) {
            self.work.notify_one();
        }
        self.draw(before, after, std::mem::take(admitted));
        result
    }

    fn draw(&self, before: Sums, after: Sums, admitted: u64) {
        let became = after.held_bytes.wrapping_sub(before.held_bytes).cast_signed();
        let acknowledged = before.unanswered_bytes.saturating_sub(after.unanswered_bytes);
        if admitted.cast_signed() != became || acknowledged > 0 {
            self.adjust_room(admitted, became, acknowledged);
        }
        if after.requests > before.requests {
            self.requests.fetch_add(after.requests - before.requests, Ordering::AcqRel);
        } else if after.requests < before.requests {
            self.requests.fetch_sub(before.requests - after.requests, Ordering::AcqRel);
            self.fewer.notify_waiters();
        }
    }

    pub(super) async fn flush(
        self: &Arc<Self>,
        handle: FileHandle,
        range: Option<Range<u64>>,
    ) -> Result<(), Error> {
        let Some(file) = self.known(handle) else { return Ok(()) };
        self.arrive_all(&file, range).await;
        file.state.lock().tell_anybody()
    }

    pub(super) async fn arrive(self: &Arc<Self>, handle: FileHandle, range: Option<Range<u64>>) {
        if let Some(file) = self.known(handle) {
            self.arrive_all(&file, range).await;
        }
    }

    async fn arrive_all(self: &Arc<Self>, file: &Arc<File>, range: Option<Range<u64>>) {
        let age = self.update(file, &mut 0, State::hurry);
        self.until(file, |state| match &range {
            None => state.index.oldest_unanswered().is_none_or(|oldest| oldest > age),
            Some(range) => !state.index.is_unanswered(range, age),
        })
        .await;
    }

    pub(super) async fn commit(self: &Arc<Self>, handle: FileHandle) -> Result<(), Error> {
        match self.known(handle) {
            Some(file) => self.commit_all(&file).await,
            None => Ok(()),
        }
    }

    /// Nobody has the file open any more: an error that was told is done with.
    pub(super) fn closed(&self, handle: FileHandle) {
        if let Some(file) = self.known(handle) {
            file.state.lock().failed.take_if(|failed| failed.is_told);
        }
    }

    /// A descriptor has not heard of the error that it was told. Meanwhile all may have closed the
    /// file: then it is one that nobody was told of.
    pub(super) fn not_heard(&self, handle: FileHandle, heard: &Heard, error: Error) {
        let number = self.error_number();
        self.file(handle).state.lock().not_heard(heard, error, number);
        self.work.notify_one();
    }

    /// An error of a file, which nobody was told of.
    pub(super) fn fail(&self, handle: FileHandle, error: Error) {
        self.file(handle).state.lock().fail(error, self.error_number());
        self.work.notify_one();
    }

    pub(super) async fn settle(self: &Arc<Self>, handle: FileHandle) {
        if let Some(file) = self.known(handle) {
            self.settle_all(&file).await;
        }
    }

    /// Commits what has been written so far.
    async fn commit_all(self: &Arc<Self>, file: &Arc<File>) -> Result<(), Error> {
        self.settle_all(file).await;
        file.state.lock().tell_anybody()
    }

    async fn settle_all(self: &Arc<Self>, file: &Arc<File>) {
        let hurry = match self.policy.writes_stably() {
            true => State::hurry_to_be_stable,
            false => State::hurry,
        };
        let age = self.update(file, &mut 0, hurry);
        self.until(file, |state| {
            if state.index.oldest_unanswered().is_some_and(|oldest| oldest <= age) {
                return false;
            }
            if state.index.oldest_unstable().is_none_or(|oldest| oldest > age) {
                return true;
            }
            self.start_commit(file, state);
            false
        })
        .await;
    }

    /// Waits until `is_done` says so; it is asked whenever a reply has come.
    async fn until(&self, file: &File, mut is_done: impl FnMut(&mut State) -> bool) {
        loop {
            let changed = file.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if is_done(&mut file.state.lock()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn discard(&self, handle: FileHandle, from: u64) {
        if let Some(file) = self.known(handle) {
            self.update(&file, &mut 0, |state| state.index.discard(from));
            file.changed.notify_waiters();
        }
    }

    pub(super) async fn drain(self: &Arc<Self>) -> Vec<(FileHandle, Error)> {
        let mut files = self.all_files();
        files.sort_unstable_by_key(|file| file.handle.as_bytes().to_vec());
        for file in &files {
            self.update(file, &mut 0, State::hurry);
        }
        let mut lost = Vec::new();
        let mut committing = FuturesUnordered::new();
        for file in files {
            if committing.len() >= DRAINING_MAX {
                lost.extend(committing.next().await.flatten());
            }
            committing.push(async move {
                let outcome = self.commit_all(&file).await;
                outcome.err().map(|error| (file.handle, error))
            });
        }
        while let Some(outcome) = committing.next().await {
            lost.extend(outcome);
        }
        lost
    }

    pub(super) fn look<T>(&self, handle: FileHandle, ask: impl FnOnce(&State) -> T) -> Option<T> {
        self.known(handle).map(|file| ask(&file.state.lock()))
    }

    fn known(&self, handle: FileHandle) -> Option<Arc<File>> {
        self.files.lock().get(&handle).cloned()
    }

    fn file(&self, handle: FileHandle) -> Arc<File> {
        let mut files = self.files.lock();
        let new = || Arc::new(File::new(handle, self.policy.index(self.options.wsize)));
        Arc::clone(files.entry(handle).or_insert_with(new))
    }

    /// Most bytes that are let in at once.
    fn piece_bytes_max(&self) -> u64 {
        self.room.lock().room.piece_bytes_max()
    }

    /// Writers wait for memory or requests.
    pub(super) fn is_pressed(&self) -> bool {
        self.sleepers.load(Ordering::Acquire) > 0 || self.room.lock().room.waiting() > 0
    }

    pub(super) fn now_if_timing(&self) -> Option<perf::units::Instant> {
        self.timing.is_on().then(|| self.clock.now())
    }

    pub(super) fn time_since(&self, stage: Stage, begun: Option<perf::units::Instant>) {
        if let Some(begun) = begun {
            self.timing.record(stage, self.clock.now().since(begun));
        }
    }

    pub(super) fn stages(&self) -> Stages {
        self.timing.snapshot()
    }

    fn all_files(&self) -> Vec<Arc<File>> {
        self.files.lock().values().cloned().collect()
    }

    pub(super) fn dirty_files(&self) -> Vec<(FileHandle, u64)> {
        let sums = |file: Arc<File>| (file.handle, file.state.lock().index.sums());
        let bytes = |sums: Sums| sums.unanswered_bytes + sums.unstable_bytes;
        let files = self.all_files().into_iter().map(sums);
        files.map(|(handle, sums)| (handle, bytes(sums))).filter(|(_, bytes)| *bytes > 0).collect()
    }

    pub(super) fn take_peak_bytes(&self) -> (u64, u64) {
        self.room.lock().room.take_peak_bytes()
    }

    pub(super) fn counters(&self) -> Counters {
        let files = self.all_files();
        let (mut dirty_bytes, mut uncommitted_bytes) = (0, 0);
        for file in &files {
            let sums = file.state.lock().index.sums();
            dirty_bytes += sums.unanswered_bytes;
            uncommitted_bytes += sums.unstable_bytes;
        }
        let (outstanding, window) = {
            let sending = self.sending.lock();
            (sending.outstanding, sending.window.limit())
        };
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            outstanding,
            window,
            dirty_bytes,
            uncommitted_bytes,
            files: files.len(),
            writers_waiting: self.room.lock().room.waiting(),
            writes_sent: of(&self.counts.writes_sent),
            commits_sent: of(&self.counts.commits_sent),
            bytes_sent: of(&self.counts.bytes_sent),
            writer_waits: of(&self.counts.writer_waits),
            forced_flushes: of(&self.counts.forced_flushes),
            short_writes: of(&self.counts.short_writes),
            jukebox_waits: of(&self.counts.jukebox_waits),
            lost_bytes: of(&self.counts.lost_bytes),
            dropped_bytes: of(&self.counts.dropped_bytes),
        }
    }
}

/// A writer that waits for room; if it goes away, its place does, too.
struct Waiting<'a> {
    engine: &'a Engine,
    ticket: Option<Ticket>,
    bytes: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let was_let_in = {
            let mut memory = self.engine.room.lock();
            memory.room.forget(ticket);
            memory.waiting.remove(&ticket).is_none()
        };
        self.engine.adjust_room(if was_let_in { self.bytes } else { 0 }, 0, 0);
    }
}

/// A writer that sleeps at the limit of requests.
struct Sleeper<'a>(&'a Engine);

impl<'a> Sleeper<'a> {
    fn new(engine: &'a Engine) -> Self {
        engine.sleepers.fetch_add(1, Ordering::AcqRel);
        engine.work.notify_one();
        Self(engine)
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.sleepers.fetch_sub(1, Ordering::AcqRel);
    }
}
