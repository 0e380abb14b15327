//! The flusher: sends what is ready, file by file, and looks after those that nobody waits for.
//!
//! Each call runs in a task of its own, so that replies are handled as they come, on whichever
//! thread is free. Only the lock of the paper's policies makes them wait for each other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use net::call::Answer;
use perf::units::{Instant, Nanos};
use tokio::sync::oneshot;
use wire::nfs3::{FileHandle, NfsStat3, StableHow};

use super::counts::count;
use super::engine::{ERRORS_MAX, Engine};
use super::file::{Due, File, State};
use super::index::{Chunk, Promise};
use super::policy::Lock;
use super::stages::Stage;
use crate::error::{Detail, Error};
use crate::session::Session;

/// How often files are looked at that nobody waits for; and how often while writers wait.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);
const LOOK_EVERY_PRESSED: Nanos = Nanos::from_millis(5);

/// Waits after NFS3ERR_JUKEBOX: the first, and the longest, which is that of Linux.
const JUKEBOX_WAIT: Nanos = Nanos::from_millis(100);
const JUKEBOX_WAIT_MAX: Nanos = Nanos::from_secs(5);

/// A COMMIT is sent when a file has this share of the bound of memory unstable, or the most bytes.
const COMMIT_SHARE: u64 = 8;
const COMMIT_BYTES_MOST: u64 = 64 << 20;

pub(super) async fn run(engine: Arc<Engine>) {
    let mut look_at = Instant::EPOCH;
    let mut is_needed = false;
    loop {
        while let Some(file) = engine.next_file() {
            engine.send_one(&file).await;
        }
        let now = engine.clock.now();
        let pressed = engine.is_pressed();
        if now >= look_at || pressed {
            is_needed = engine.look_after(now, pressed);
            let every = if pressed { LOOK_EVERY_PRESSED } else { LOOK_EVERY };
            look_at = now + every;
        }
        if is_needed || pressed {
            let span = look_at.since(engine.clock.now());
            woken_or_after(&engine, span).await;
        } else {
            engine.work.notified().await;
            is_needed = true;
        }
    }
}

async fn woken_or_after(engine: &Engine, span: Nanos) {
    let mut timer: Pin<Box<dyn Future<Output = ()> + Send + '_>> =
        Box::pin(engine.clock.sleep(span));
    let mut woken = std::pin::pin!(engine.work.notified());
    std::future::poll_fn(|cx| {
        if woken.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        timer.as_mut().poll(cx)
    })
    .await;
}

/// One call of a chunk.
struct Call {
    engine: Arc<Engine>,
    file: Arc<File>,
    session: Session,
    /// Who stands in for it, should it be refused.
    others: std::vec::IntoIter<Session>,
    chunk: Chunk,
    stable: StableHow,
}

impl Engine {
    /// Whose turn it is, if one more call may be outstanding.
    fn next_file(&self) -> Option<Arc<File>> {
        let mut sending = self.sending.lock();
        if sending.outstanding >= sending.window.limit() {
            return None;
        }
        let next = sending.queue.pop_front();
        if next.is_none() {
            sending.window.on_idle(self.clock.now());
        }
        next
    }

    /// Before whoever waits for that goes on.
    fn tell_if_clean(&self, file: &File, is_clean: bool) {
        if is_clean {
            self.observer.is_clean(&file.handle);
        }
    }

    async fn send_one(self: &Arc<Self>, file: &Arc<File>) {
        let lock = match self.policy.lock() {
            Lock::None => None,
            Lock::Released | Lock::Held => Some(self.lock.lock(&self.clock).await),
        };
        let begun = self.now_if_timing();
        let taken = {
            let mut state = file.state.lock();
            let urgent_age = state.urgent_age;
            // Less than wsize where large datagrams are being lost.
            let fits =
                state.callers.first().map(|caller| caller.session.sizes_now().write_bytes_max);
            let bytes_max = self.options.wsize.min(fits.unwrap_or(u32::MAX));
            let before = state.index.sums();
            let taken = state.index.take(bytes_max, urgent_age);
            // Pieces are joined for it, or cut.
            self.draw(before, state.index.sums(), 0);
            let taken = taken.and_then(|chunk| {
                let caller = usize::try_from(chunk.caller).ok()?;
                let sessions: Vec<Session> =
                    state.callers.get(caller)?.sessions().cloned().collect();
                let stable = state.stable(self.options.stable, chunk.data.len());
                Some((chunk, sessions, stable))
            });
            state.queued = state.index.is_ready(urgent_age);
            if state.queued {
                self.sending.lock().queue.push_back(Arc::clone(file));
            }
            taken
        };
        self.time_since(Stage::Coalesce, begun);
        let Some((chunk, sessions, stable)) = taken else { return };
        let mut others = sessions.into_iter();
        let Some(session) = others.next() else { return };
        self.sending.lock().outstanding += 1;
        count(&self.counts.writes_sent, 1);
        count(&self.counts.bytes_sent, chunk.data.len() as u64);
        let (engine, file) = (Arc::clone(self), Arc::clone(file));
        let call = Call { engine, file, session, others, chunk, stable };
        if self.policy.lock() == Lock::Held {
            let (handed, is_handed) = oneshot::channel();
            let (relay, relayed) = oneshot::channel();
            self.clock.spawn(call.run(Some(handed), Some(relayed)));
            // Not handed over means that the call failed, which ends the wait as well.
            if let Ok(at) = is_handed.await {
                relay.send(at).ok();
            }
            drop(lock);
        } else {
            drop(lock);
            let (handed, is_handed) = self.timing.is_on().then(oneshot::channel).unzip();
            self.clock.spawn(call.run(handed, is_handed));
        }
    }

    fn time_call(&self, answer: &Answer, handed: Option<oneshot::Receiver<Instant>>) {
        if self.timing.is_on() {
            let handed = handed.and_then(|mut at| at.try_recv().ok()).unwrap_or(answer.sent);
            self.timing.record(Stage::Encode, answer.encoded.since(answer.called));
            self.timing.record(Stage::Send, handed.since(answer.encoded));
            self.timing.record(Stage::Wait, answer.received.since(handed));
        }
    }

    /// Starts a COMMIT of what is unstable, unless one is outstanding.
    pub(super) fn start_commit(self: &Arc<Self>, file: &Arc<File>, state: &mut State) {
        if state.commit_running {
            return;
        }
        let sessions = state.committers();
        if sessions.is_empty() {
            return;
        }
        state.commit_running = true;
        state.index.begin_commit();
        self.clock.spawn(commit(Arc::clone(self), Arc::clone(file), sessions));
    }

    /// Unstable bytes at which a file is committed; fewer when writers wait and there are many
    /// files.
    fn commit_bytes(&self) -> u64 {
        let pressed = self.is_pressed();
        if !pressed && !self.policy.commits_early() {
            return u64::MAX;
        }
        let bytes = (self.options.dirty_bytes_max / COMMIT_SHARE).clamp(1, COMMIT_BYTES_MOST);
        let sharers = if pressed { self.files.lock().len().max(1) as u64 } else { 1 };
        (bytes / sharers).max(1)
    }

    /// Looks at all files; true when there is something to look at again.
    fn look_after(self: &Arc<Self>, now: Instant, pressed: bool) -> bool {
        let mut files: Vec<Arc<File>> = self.files.lock().values().cloned().collect();
        files.sort_unstable_by(|a, b| a.handle.as_bytes().cmp(b.handle.as_bytes()));
        let mut clean: Vec<(FileHandle, bool)> = Vec::new();
        let mut errors = 0;
        let mut is_needed = false;
        for file in files {
            let due = self.update(&file, &mut 0, |state| {
                let due = state.due(now, pressed);
                if due == Due::Commit {
                    self.start_commit(&file, state);
                }
                due
            });
            match due {
                Due::Later | Due::Send | Due::Commit => is_needed = true,
                Due::Nothing => clean.push((file.handle, false)),
                Due::Error if errors >= ERRORS_MAX => clean.push((file.handle, true)),
                Due::Error => errors += 1,
            }
        }
        let mut files = self.files.lock();
        for (handle, with_error) in clean {
            // Whoever holds it besides the table may be about to write, or has written meanwhile.
            let is_unused = files.get(&handle).is_some_and(|file| {
                let state = file.state.lock();
                Arc::strong_count(file) == 1
                    && state.index.sums().held_bytes == 0
                    && (with_error || state.failed.is_none())
            });
            if is_unused {
                files.remove(&handle);
            } else {
                is_needed = true;
            }
        }
        is_needed
    }
}

impl Call {
    async fn run(
        self,
        handed: Option<oneshot::Sender<Instant>>,
        is_handed: Option<oneshot::Receiver<Instant>>,
    ) {
        let Self { engine, file, mut session, mut others, chunk, stable } = self;
        let (mut handed, mut later) = (handed, Later::default());
        let (sent, outcome) = loop {
            let sent = engine.clock.now();
            let data = chunk.data.clone();
            let write = session.write_sent(file.handle, chunk.offset, data, stable, handed.take());
            let outcome = write.await;
            let Some(wait) = later.wait(&engine, &session, &outcome, "WRITE") else {
                match others.next().filter(|_| is_of_caller(&outcome)) {
                    Some(next) => session = next,
                    None => break (sent, outcome),
                }
                count(&engine.counts.writes_sent, 1);
                continue;
            };
            // Others may use its place in the window.
            engine.sending.lock().outstanding -= 1;
            engine.work.notify_one();
            engine.clock.sleep(wait).await;
            engine.sending.lock().outstanding += 1;
        };
        let now = engine.clock.now();
        if let Ok(timed) = &outcome {
            engine.time_call(&timed.answer, is_handed);
        }
        let lock = match engine.policy.lock() {
            Lock::None => None,
            Lock::Released | Lock::Held => Some(engine.lock.lock(&engine.clock).await),
        };
        let begun = engine.now_if_timing();
        let commit_bytes = engine.commit_bytes();
        let count_written = outcome.as_ref().map_or(0, |timed| timed.reply.count);
        {
            let mut sending = engine.sending.lock();
            sending.outstanding -= 1;
            sending.window.on_reply(sent, now, u64::from(count_written));
        }
        let wcc = outcome.as_ref().map_or_else(wcc_of, |timed| Some(timed.reply.file_wcc));
        if let Some(wcc) = wcc {
            engine.observer.wrote(&file.handle, &wcc, sent);
        }
        match &outcome {
            Ok(timed) => {
                let count = chunk.data.len().min(timed.reply.count as usize);
                engine.observer.written(&file.handle, chunk.offset, chunk.data.slice(..count));
            }
            Err(_) => engine.observer.failed(&file.handle),
        }
        let is_clean = engine.update(&file, &mut 0, |state| {
            match outcome {
                Ok(timed) => {
                    let reply = timed.reply;
                    if (reply.count as usize) < chunk.data.len() {
                        count(&engine.counts.short_writes, 1);
                    }
                    let promise = match reply.committed {
                        StableHow::Unstable => Promise::Unstable { verifier: reply.verf },
                        StableHow::DataSync | StableHow::FileSync => Promise::Stable,
                    };
                    state.index.written(chunk.offset, reply.count, promise);
                }
                Err(error) => {
                    count(&engine.counts.dropped_bytes, state.index.failed(chunk.offset));
                    state.fail(error, engine.error_number());
                }
            }
            if state.index.sums().held_unstable_bytes >= commit_bytes {
                engine.start_commit(&file, state);
            }
            state.index.sums().held_bytes == 0
        });
        engine.time_since(Stage::ReplyHandling, begun);
        drop(lock);
        engine.tell_if_clean(&file, is_clean);
        file.changed.notify_waiters();
        engine.work.notify_one();
    }
}

async fn commit(engine: Arc<Engine>, file: Arc<File>, sessions: Vec<Session>) {
    let mut sessions = sessions.into_iter();
    let Some(mut session) = sessions.next() else { return };
    let mut later = Later::default();
    count(&engine.counts.commits_sent, 1);
    let (outcome, sent) = loop {
        let sent = engine.clock.now();
        let outcome = session.commit(file.handle, 0, 0).await;
        if let Some(wait) = later.wait(&engine, &session, &outcome, "COMMIT") {
            engine.clock.sleep(wait).await;
            continue;
        }
        // Who may write no longer may not COMMIT; whose bytes are unstable besides may.
        match sessions.next().filter(|_| is_of_caller(&outcome)) {
            Some(next) => session = next,
            None => break (outcome, sent),
        }
        count(&engine.counts.commits_sent, 1);
    };
    let wcc = outcome.as_ref().map_or_else(wcc_of, |timed| Some(timed.reply.file_wcc));
    if let Some(wcc) = wcc {
        engine.observer.committed(&file.handle, &wcc, sent);
    }
    if outcome.is_err() {
        engine.observer.failed(&file.handle);
    }
    let is_clean = engine.update(&file, &mut 0, |state| {
        state.commit_running = false;
        match outcome {
            Ok(timed) => {
                let lost_bytes = state.index.committed(timed.reply.verf);
                state.on_committed(lost_bytes);
                count(&engine.counts.lost_bytes, lost_bytes);
            }
            Err(error) => {
                count(&engine.counts.dropped_bytes, state.index.commit_failed());
                state.fail(error, engine.error_number());
            }
        }
        state.index.sums().held_bytes == 0
    });
    engine.tell_if_clean(&file, is_clean);
    file.changed.notify_waiters();
    engine.work.notify_one();
}

/// Whether a call has failed for who makes it, and not for what it asks.
fn is_of_caller<T>(outcome: &Result<T, Error>) -> bool {
    let status = outcome.as_ref().err().and_then(Error::status);
    matches!(status, Some(NfsStat3::Acces | NfsStat3::Perm))
}

/// When to come back to a server that has answered JUKEBOX: later each time.
struct Later {
    wait: Nanos,
    waited: Nanos,
}

impl Default for Later {
    fn default() -> Self {
        Self { wait: JUKEBOX_WAIT, waited: Nanos::ZERO }
    }
}

impl Later {
    /// How long to wait before the call is made again; none if it was answered, or put off for too
    /// long.
    fn wait<T>(
        &mut self,
        engine: &Engine,
        session: &Session,
        outcome: &Result<T, Error>,
        procedure: &'static str,
    ) -> Option<Nanos> {
        let is_jukebox =
            outcome.as_ref().is_err_and(|error| error.status() == Some(NfsStat3::Jukebox));
        let left = engine.options.put_off_max.map_or(self.wait, |most| most - self.waited);
        if !is_jukebox || left == Nanos::ZERO {
            return None;
        }
        count(&engine.counts.jukebox_waits, 1);
        // A few times is how a server waits for a disk or a tape.
        if self.wait == JUKEBOX_WAIT_MAX {
            session.is_put_off(procedure);
        }
        let wait = self.wait.min(left);
        self.waited += wait;
        self.wait = (self.wait + self.wait).min(JUKEBOX_WAIT_MAX);
        Some(wait)
    }
}

/// The file's attributes in a reply that refuses.
fn wcc_of(error: &Error) -> Option<wire::nfs3::WccData> {
    match error.detail() {
        Detail::Changed(wcc) => Some(wcc),
        _ => None,
    }
}
