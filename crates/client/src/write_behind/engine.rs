//! What writers, flusher and replies share, and the way of a writer through it. The rest of its
//! ways: `admission.rs` (who waits before), `settle.rs` (who waits afterwards), `errors.rs` (who
//! gets them) and `counts.rs`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use net::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::nfs3::{FileHandle, NfsStat3, Procedure};

use super::admission::Memory;
use super::counts::{Counts, count};
use super::file::{By, File, State};
use super::index::{Data, Sums};
use super::lock::{BigLock, Guard};
use super::options::{Observer, Options};
use super::policy::{Lock, Policy};
use super::stages::{Stage, Stages, Timing};
use super::window::Window;
use crate::error::{Detail, Error};

/// Files whose error nobody has been given, that are remembered; beyond, one of them is forgotten.
pub(super) const ERRORS_MAX: usize = 4096;

/// Different callers that may have written to one file while it is not clean; the next waits.
const CALLERS_MAX: usize = 1024;

pub(super) struct Engine {
    pub(super) clock: Clock,
    pub(super) options: Options,
    pub(super) policy: Box<dyn Policy>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) timing: Timing,
    /// Guards which files there are.
    pub(super) files: Mutex<HashMap<FileHandle, Arc<File>>>,
    /// Guards how much memory is in use, and who waits for it.
    pub(super) room: Mutex<Memory>,
    /// Guards the window, and whose turn it is.
    pub(super) sending: Mutex<Sending>,
    /// There is something for the flusher to do.
    pub(super) work: Notify,
    /// The mount's lock of the paper's policies.
    pub(super) lock: BigLock,
    /// Requests of all files, and the news that there are fewer.
    pub(super) requests: AtomicUsize,
    pub(super) fewer: Notify,
    pub(super) sleepers: AtomicUsize,
    /// Errors there have been.
    pub(super) errors: AtomicU64,
    pub(super) counts: Counts,
}

#[derive(Debug)]
pub(super) struct Sending {
    pub(super) window: Window,
    pub(super) outstanding: u32,
    /// Files with something to send, in turn; each stands here once.
    pub(super) queue: VecDeque<Arc<File>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("options", &self.options).finish_non_exhaustive()
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
        let room = Memory::new(options.dirty_bytes_max);
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

    pub(super) async fn write(
        self: &Arc<Self>,
        by: By<'_>,
        handle: FileHandle,
        offset: u64,
        data: Data<'_>,
    ) -> Result<(), Error> {
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > i64::MAX as u64) {
            let procedure = Procedure::Write.name();
            let (server, status) = (by.session.server(), NfsStat3::FBig);
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
            self.write_piece(by, &file, from, &data.slice(at..until)).await?;
            at = until;
        }
        Ok(())
    }

    async fn write_piece(
        self: &Arc<Self>,
        by: By<'_>,
        file: &Arc<File>,
        offset: u64,
        data: &Data<'_>,
    ) -> Result<(), Error> {
        let (charge, of_file) = {
            let index = &file.state.lock().index;
            (index.charge(offset, data.len()), index.sums().held_bytes)
        };
        let mut admitted = self.admit(charge, of_file).await;
        self.sleep_at_hard_limit().await;
        loop {
            let lock = self.lock_as_writer().await;
            let begun = self.now_if_timing();
            let taken = self.update(file, &mut admitted.bytes, |state| {
                let Some(caller) = state.caller(by, CALLERS_MAX) else { return false };
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

    async fn flush_at_soft_limit(self: &Arc<Self>, file: &Arc<File>) {
        let Some(requests_max) = self.policy.file_requests_max() else { return };
        if file.state.lock().index.sums().requests > requests_max {
            count(&self.counts.forced_flushes, 1);
            self.settle_all(file).await;
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
        // In the order in which the file changes: what is taken away was counted when it came.
        self.draw(before, after, std::mem::take(admitted));
        drop(state);
        if to_queue {
            self.sending.lock().queue.push_back(Arc::clone(file));
        }
        // The flusher looks at no clock while there is nothing to write.
        if to_queue || (before.held_bytes == 0 && after.held_bytes > 0) {
            self.work.notify_one();
        }
        result
    }

    /// The consequences of a change of a file's sums, while its state is locked.
    pub(super) fn draw(&self, before: Sums, after: Sums, admitted: u64) {
        let became = after.held_bytes.wrapping_sub(before.held_bytes).cast_signed();
        let acknowledged = before.unanswered_bytes.saturating_sub(after.unanswered_bytes);
        if admitted.cast_signed() != became || acknowledged > 0 {
            self.adjust_room(admitted, became, acknowledged);
        }
        if after.requests > before.requests {
            self.requests.fetch_add(after.requests - before.requests, Ordering::AcqRel);
        } else if after.requests < before.requests {
            let fewer = before.requests - after.requests;
            let all = self.requests.fetch_sub(fewer, Ordering::AcqRel);
            debug_assert!(fewer <= all, "{fewer} of {all} requests are done");
            self.fewer.notify_waiters();
        }
    }

    pub(super) fn discard(&self, handle: FileHandle, from: u64) {
        if let Some(file) = self.known(handle) {
            self.update(&file, &mut 0, |state| state.index.discard(from));
            file.changed.notify_waiters();
        }
    }

    pub(super) fn look<T>(&self, handle: FileHandle, ask: impl FnOnce(&State) -> T) -> Option<T> {
        self.known(handle).map(|file| ask(&file.state.lock()))
    }

    pub(super) fn known(&self, handle: FileHandle) -> Option<Arc<File>> {
        self.files.lock().get(&handle).cloned()
    }

    pub(super) fn file(&self, handle: FileHandle) -> Arc<File> {
        let mut files = self.files.lock();
        let new = || Arc::new(File::new(handle, self.policy.index(self.options.wsize)));
        Arc::clone(files.entry(handle).or_insert_with(new))
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

    pub(super) fn all_files(&self) -> Vec<Arc<File>> {
        self.files.lock().values().cloned().collect()
    }
}
