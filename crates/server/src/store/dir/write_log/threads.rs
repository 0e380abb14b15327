//! A log's threads: some write frames, one brings files to their place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use log::journal::Drafted;
use log::{EncodedReply, Key, Stamp};
use tokio::sync::oneshot;

use super::file::{Aligned, LogFile};
use super::shared::{Failed, GivenUp, Shared, State, Waiter};
use super::times::now;
use crate::store::dir::objects::Object;
use crate::store::dir::sync::group::Need;

/// Half of the threads that sync, so that calls find some.
const SYNCS_AT_ONCE: usize = 8;

/// Replies are retained for so long, as in the reply cache.
const REPLY_SECONDS: i64 = 15 * 60;

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
