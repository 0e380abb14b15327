//! How stable WRITEs come into a log that fills: one behind the other, at the pace that
//! [`log::Pace`] decides, and when there is room. They wait before their data are in the page
//! cache, because the log has WRITEs in the order in which they came there. Stores have no clock:
//! a thread lets them in.
//!
//! No more can wait than the server executes calls at a time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use log::{Pace, frame, journal};
use parking_lot::MutexGuard;
use tokio::sync::oneshot;

use super::shared::{Shared, State};
use super::times::monotonic;
use crate::store::dir::objects::Object;

/// Who waits to come in, and how fast that goes.
#[derive(Default)]
pub(super) struct Entrance {
    pace: Pace,
    queue: VecDeque<Waiting>,
    /// When the first of them may come in, if there is room.
    due: Option<Duration>,
    /// What those take who are in and have not submitted their WRITE.
    entered: u64,
}

struct Waiting {
    bytes: u64,
    let_in: oneshot::Sender<Entry>,
}

/// A WRITE that is in; to be dropped when it was submitted, or made stable without the log.
#[must_use]
pub(in crate::store::dir) struct Entry {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.state.lock().entrance.entered -= self.bytes;
    }
}

/// What the first of those who wait may do.
enum Turn {
    ComeIn,
    WaitUntil(Duration),
    /// Until something has become free.
    WaitForRoom,
}

impl State {
    fn turn(&mut self, now: Duration, bytes: u64) -> Turn {
        let Self { journal, entrance, .. } = self;
        // It is not logged, or there is room while it lasts.
        if !journal.becomes_free() {
            return Turn::ComeIn;
        }
        if !journal.has_room_for(bytes + entrance.entered) {
            return Turn::WaitForRoom;
        }
        let mut load = journal.load();
        load.used += entrance.entered;
        let pace = &mut entrance.pace;
        match *entrance.due.get_or_insert_with(|| pace.admit(now, bytes, load)) {
            due if due > now => Turn::WaitUntil(due),
            _ => Turn::ComeIn,
        }
    }

    fn first_turn(&mut self) -> Option<Turn> {
        let bytes = self.entrance.queue.front()?.bytes;
        Some(self.turn(monotonic(), bytes))
    }

    fn let_in(&mut self, shared: &Arc<Shared>, bytes: u64) -> Entry {
        self.entrance.due = None;
        self.entrance.entered += bytes;
        Entry { shared: Arc::clone(shared), bytes }
    }

    pub(super) fn sweep_begins(&mut self) {
        let load = self.journal.load();
        self.entrance.pace.sweep_begins(monotonic(), load);
    }

    pub(super) fn sweep_ended(&mut self) {
        let (now, load) = (monotonic(), self.journal.load());
        let Entrance { pace, due, .. } = &mut self.entrance;
        pace.sweep_ended(now, load);
        *due = due.map(|_| now);
    }
}

impl Shared {
    /// Waits until a stable WRITE may come in. None: it is not for the log.
    pub(super) async fn entry(self: &Arc<Self>, object: &Object, len: usize) -> Option<Entry> {
        let is_rooted = object.is_rooted.load(Ordering::Acquire);
        if len > frame::DATA_BYTES_MAX || !is_rooted {
            return None;
        }
        let let_in = {
            let (bytes, mut state) = (journal::cost(len), self.state.lock());
            let is_first = state.entrance.queue.is_empty();
            if is_first && matches!(state.turn(monotonic(), bytes), Turn::ComeIn) {
                return Some(state.let_in(self, bytes));
            }
            let (waiter, let_in) = oneshot::channel();
            state.entrance.queue.push_back(Waiting { bytes, let_in: waiter });
            state.journal.is_held_back();
            let_in
        };
        self.to_let_in.notify_one();
        let_in.await.ok()
    }

    /// The thread that lets WRITEs in.
    pub(super) fn let_in(self: &Arc<Self>) {
        let mut state = self.state.lock();
        while !state.is_closed {
            match state.first_turn() {
                None => self.to_let_in.wait(&mut state),
                Some(Turn::ComeIn) => {
                    let Some(first) = state.entrance.queue.pop_front() else { continue };
                    let entry = state.let_in(self, first.bytes);
                    drop(state);
                    // Of a caller who went away it is dropped.
                    let _ = first.let_in.send(entry);
                    state = self.state.lock();
                }
                Some(Turn::WaitUntil(due)) => {
                    let is_filling = state.journal.load().is_filling();
                    self.sweep_if(&mut state, is_filling);
                    let _ = self.to_let_in.wait_for(&mut state, due.saturating_sub(monotonic()));
                }
                Some(Turn::WaitForRoom) => {
                    let helps = state.journal.make_room();
                    self.sweep_if(&mut state, helps);
                    self.wake(&mut state);
                    self.to_let_in.wait(&mut state);
                }
            }
        }
    }

    /// Something may have become free.
    pub(super) fn made_room(&self, state: MutexGuard<'_, State>) {
        let holds_back = !state.entrance.queue.is_empty();
        drop(state);
        if holds_back {
            self.to_let_in.notify_one();
        }
        self.room.notify_waiters();
    }
}
