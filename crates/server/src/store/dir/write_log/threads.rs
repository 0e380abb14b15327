//! What a log's users and its threads share: some write frames, one brings files to their
//! place.

use std::collections::HashMap;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use log::journal::Drafted;
use log::{EncodedReply, Journal, Key, Stamp};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::entry::Entrance;
use super::failure::GivenUp;
use super::file::{Aligned, LogFile};
use super::marker::Marker;
use super::{Failed, Waiter, now};
use crate::store::dir::objects::Object;
use crate::store::dir::sync::Syncer;
use crate::store::dir::sync::group::Need;

/// Half of the threads that sync, so that calls find some.
const SYNCS_AT_ONCE: usize = 8;

/// Replies are retained for so long, as in the reply cache.
const REPLY_SECONDS: i64 = 15 * 60;

pub(super) struct Shared {
    /// Guards the journal and who has records; held for a submission or while records are taken
    /// for a frame, never while its bytes are made, and never over I/O. It may be taken when a
    /// file's order is held.
    pub(super) state: Mutex<State>,
    /// There is something to write, or the end: for the threads of each log.
    pub(super) to_write: Vec<Condvar>,
    /// There is something to sync, or the end.
    pub(super) to_sync: Condvar,
    /// A WRITE waits to come in, or there may be room for one, or the end.
    pub(super) to_let_in: Condvar,
    /// The log may have room for replies that had none.
    pub(super) room: Notify,
    /// How often something was submitted.
    pub(super) submissions: AtomicU64,
    pub(super) root: OwnedFd,
    /// As the directory has it.
    pub(super) marker: Marker,
    pub(super) syncer: Syncer,
}

pub(super) struct State {
    pub(super) journal: Journal<Waiter>,
    /// Open as long as they have records: a file opened anew does not get their errors.
    pub(super) objects: HashMap<Key, Arc<Object>>,
    /// Of each log, threads that write frames and sleep, and whether one is about to be woken.
    /// Those that are awake look for more before they sleep.
    pub(super) idle: Vec<usize>,
    pub(super) is_called: Vec<bool>,
    pub(super) is_sweep_due: bool,
    pub(super) entrance: Entrance,
    /// Who wants the log to end.
    pub(super) ending: Option<oneshot::Sender<Result<(), String>>>,
    pub(super) is_closed: bool,
    pub(super) swept_at: u32,
    /// Which log could not be written first, and why.
    pub(super) failure: Option<String>,
    /// What came of a log that cannot be written, and who waits for it.
    pub(super) given_up: Option<GivenUp>,
    pub(super) to_hear: Vec<oneshot::Sender<GivenUp>>,
}

impl Shared {
    /// A thread of a log: one frame after the other.
    pub(super) fn write_frames(&self, log: usize, file: &LogFile) {
        let mut aligned = Aligned::default();
        let mut state = self.state.lock();
        loop {
            let (waiters, outcome) = match state.journal.draft(log) {
                Drafted::Idle if state.is_closed => return,
                Drafted::Idle => {
                    self.wake_others(log, &mut state);
                    state.idle[log] += 1;
                    self.to_write[log].wait(&mut state);
                    state.idle[log] -= 1;
                    state.is_called[log] = false;
                    continue;
                }
                Drafted::Write(draft) => {
                    self.wake_others(log, &mut state);
                    drop(state);
                    let written = file.write(draft.at(), aligned.frame(&draft));
                    state = self.state.lock();
                    let is_stable = written.is_ok();
                    written.unwrap_or_else(|cause| state.fails(file, &cause));
                    (state.journal.finish(draft.frame(), is_stable), is_stable)
                }
                Drafted::Stuck => {
                    state.fails(file, &"it has no room for a frame");
                    (state.journal.fail(), false)
                }
            };
            let gone = state.without_records();
            if state.must_give_up() {
                self.to_sync.notify_one();
            }
            self.made_room(state);
            for waiter in waiters.into_iter().flatten() {
                // A caller who went away is no reason not to tell the others.
                let _ = waiter.send(if outcome { Ok(()) } else { Err(Failed) });
            }
            if !gone.is_empty() {
                self.syncer.drop_aside(gone);
            }
            state = self.state.lock();
        }
    }

    /// Wakes a thread for the next frame, if one is needed and sleeps.
    pub(super) fn wake(&self, state: &mut State) {
        if let Some(log) = state.next_call() {
            self.to_write[log].notify_one();
        }
    }

    /// What waits, and is for another log than that of the caller, who looks after his own.
    fn wake_others(&self, own: usize, state: &mut State) {
        if state.idle.len() > 1
            && state.journal.is_waiting()
            && state.journal.emptiest().is_some_and(|log| log != own)
        {
            self.wake(state);
        }
    }

    /// The thread that brings what is logged to its place.
    pub(super) fn destage(&self) {
        loop {
            let mut state = self.state.lock();
            while !state.has_work() && !state.is_closed {
                self.to_sync.wait(&mut state);
            }
            if state.is_closed {
                return;
            }
            let (ending, must_give_up) = (state.ending.take(), state.must_give_up());
            state.sweep_begins();
            drop(state);
            let is_all_stable = self.sweep();
            if must_give_up {
                self.give_up(is_all_stable);
            }
            if let Some(done) = ending {
                let _ = done.send(self.end());
            }
            let mut state = self.state.lock();
            state.is_sweep_due = false;
            state.sweep_ended();
            self.made_room(state);
        }
    }

    /// After a sweep: a last frame, and the directory forgets its log.
    fn end(&self) -> Result<(), String> {
        let (waiter, written) = oneshot::channel();
        let mut state = self.state.lock();
        match state.given_up {
            Some(GivenUp::InPlace) => return Ok(()),
            // No frame can say that this is the end.
            Some(GivenUp::Needed) => drop(waiter),
            None => state.journal.end(Some(waiter)),
        }
        self.wake(&mut state);
        drop(state);
        if !matches!(written.blocking_recv(), Ok(Ok(()))) {
            return Err("the write log cannot be written".to_owned());
        }
        if self.state.lock().journal.files().len() > 0 {
            return Err("not all that the write log holds could be brought to its place".to_owned());
        }
        self.marker.remove(&self.root).map_err(|errno| format!("the mark of the log: {errno}"))
    }

    /// Syncs all files that have records, some at a time, and waits; whether all could be.
    fn sweep(&self) -> bool {
        let mut is_all_stable = true;
        let state = self.state.lock();
        let objects = &state.objects;
        // What holds the oldest frames goes first, so that room is made meanwhile.
        let files = state.journal.oldest_first().into_iter();
        let files: Vec<_> =
            files.filter_map(|key| Some((key, Arc::clone(objects.get(&key)?)))).collect();
        drop(state);
        let mut recorded = Vec::with_capacity(files.len());
        for some in files.chunks(SYNCS_AT_ONCE) {
            let syncs = some.iter().filter_map(|(key, object)| {
                let state = self.state.lock();
                let (mark, is_doubtful) =
                    (state.journal.mark(key)?, state.journal.is_doubtful(key));
                drop(state);
                is_all_stable &= !is_doubtful;
                // Another sync of a doubtful one would say nothing.
                (!is_doubtful).then(|| (*key, object, mark, self.syncer.ask(object, Need::File)))
            });
            for (key, object, mark, outcome) in syncs.collect::<Vec<_>>() {
                let is_ok = matches!(outcome.blocking_recv(), Ok(Ok(_)));
                is_all_stable &= is_ok;
                let (waiter, is_recorded) = oneshot::channel();
                self.synced(object, key, mark, is_ok, Some(waiter));
                recorded.push(is_recorded);
            }
        }
        // Nobody would write it any more.
        if !self.state.lock().is_closed {
            // An error is that of the log, or of the file.
            recorded.into_iter().for_each(|one| drop(one.blocking_recv()));
        }
        self.carry();
        is_all_stable
    }

    /// Writes replies again when all that was swept is needed no more.
    fn carry(&self) {
        let mut state = self.state.lock();
        let now = now();
        let oldest = Stamp { seconds: now.seconds.saturating_sub(REPLY_SECONDS), ..now };
        state.journal.carry(oldest, || None);
        self.wake(&mut state);
    }

    /// A reply has found no room: has some made, where that helps.
    pub(super) fn make_room(&self, state: &mut State, reply: &EncodedReply, is_first: bool) {
        let helps = state.journal.awaits_room(reply, is_first);
        self.sweep_if(state, helps);
        self.wake(state);
    }

    /// Has a sweep begin if it is due, unless one is.
    pub(super) fn sweep_if(&self, state: &mut State, is_due: bool) {
        if is_due && !state.is_sweep_due {
            state.is_sweep_due = true;
            self.to_sync.notify_one();
        }
    }

    /// A sync that began after `through` was known has ended. The waiter is dropped if the file is
    /// not past it.
    pub(super) fn synced(
        &self,
        object: &Object,
        key: Key,
        through: u64,
        is_ok: bool,
        waiter: Waiter,
    ) {
        // Records that came before it began are in their place, too.
        let through = through.max(object.unstable.lock().synced());
        let mut state = self.state.lock();
        // The kernel tells an error once: also one that another sync has met counts.
        if !is_ok || object.has_failed.load(Ordering::Acquire) {
            state.journal.doubt(&key);
        } else if !state.journal.is_failed() {
            state.journal.past(key, through, waiter);
        }
        self.wake(&mut state);
    }
}

impl State {
    pub(super) fn new(journal: Journal<Waiter>, logs: usize) -> Self {
        Self {
            journal,
            objects: HashMap::new(),
            idle: vec![0; logs],
            is_called: vec![false; logs],
            is_sweep_due: false,
            entrance: Entrance::default(),
            ending: None,
            is_closed: false,
            swept_at: 0,
            failure: None,
            given_up: None,
            to_hear: Vec::new(),
        }
    }

    /// The log whose thread is to be woken by the caller.
    pub(super) fn next_call(&mut self) -> Option<usize> {
        if self.idle.iter().all(|&idle| idle == 0) {
            return None;
        }
        let log = match self.idle.len() {
            1 => 0,
            _ => self.journal.emptiest().unwrap_or(0),
        };
        let sleeps = self.idle[log] > 0;
        (sleeps && !std::mem::replace(&mut self.is_called[log], true)).then_some(log)
    }

    fn fails(&mut self, file: &LogFile, why: &dyn Display) {
        let failure = || format!("{}: {why}", file.path().display());
        self.failure.get_or_insert_with(failure);
    }

    fn has_work(&self) -> bool {
        self.is_sweep_due || self.ending.is_some() || self.must_give_up()
    }

    /// The log has failed, and its files are still to be brought to their place.
    pub(super) fn must_give_up(&self) -> bool {
        self.journal.is_failed() && self.given_up.is_none()
    }

    /// The files that have no records any more; to be closed outside of the lock.
    fn without_records(&mut self) -> Vec<Arc<Object>> {
        if self.journal.files().len() == self.objects.len() {
            return Vec::new();
        }
        let Self { journal, objects, .. } = self;
        let gone = objects.extract_if(|key, _| journal.mark(key).is_none());
        gone.map(|(_, object)| object).collect()
    }
}
