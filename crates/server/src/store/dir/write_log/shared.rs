//! What a log's users and its threads share.

use std::collections::HashMap;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use log::{Journal, Key};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};

use super::entry::Entrance;
use super::file::LogFile;
use super::marker::Marker;
use crate::store::dir::objects::Object;
use crate::store::dir::sync::Syncer;

/// Notified when a frame is stable, or cannot be.
pub(super) type Waiter = Option<oneshot::Sender<Result<(), Failed>>>;

/// The log does not answer this caller, or nobody any more.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::dir) struct Failed;

/// What came of what was in a log that cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GivenUp {
    /// All of it is in its place, and the directory can be served without it.
    InPlace,
    /// Some file could not be synced: the next server needs it.
    Needed,
}

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
    /// Wakes a thread for the next frame, if one is needed and sleeps.
    pub(super) fn wake(&self, state: &mut State) {
        if let Some(log) = state.next_call() {
            self.to_write[log].notify_one();
        }
    }

    /// Has a sweep begin if it is due, unless one is.
    pub(super) fn sweep_if(&self, state: &mut State, is_due: bool) {
        if is_due && !state.is_sweep_due {
            state.is_sweep_due = true;
            self.to_sync.notify_one();
        }
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

    pub(super) fn fails(&mut self, file: &LogFile, why: &dyn Display) {
        let failure = || format!("{}: {why}", file.path().display());
        self.failure.get_or_insert_with(failure);
    }

    pub(super) fn has_work(&self) -> bool {
        self.is_sweep_due || self.ending.is_some() || self.must_give_up()
    }

    /// The log has failed, and its files are still to be brought to their place.
    pub(super) fn must_give_up(&self) -> bool {
        self.journal.is_failed() && self.given_up.is_none()
    }

    /// The files that have no records any more; to be closed outside of the lock.
    pub(super) fn without_records(&mut self) -> Vec<Arc<Object>> {
        if self.journal.files().len() == self.objects.len() {
            return Vec::new();
        }
        let Self { journal, objects, .. } = self;
        let gone = objects.extract_if(|key, _| journal.mark(key).is_none());
        gone.map(|(_, object)| object).collect()
    }
}
