//! Who waits before more is written: for room in memory, and at the limit of requests.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::counts::count;
use super::engine::Engine;
use super::room::{Room, Ticket};

#[derive(Debug)]
pub(super) struct Memory {
    room: Room,
    waiting: HashMap<Ticket, oneshot::Sender<()>>,
}

impl Memory {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { room: Room::new(bytes_max), waiting: HashMap::new() }
    }

    pub(super) fn writers_waiting(&self) -> usize {
        self.room.waiting()
    }
}

/// Room that was given and is not used yet; what is not used is given back.
pub(super) struct Admitted<'a> {
    engine: &'a Engine,
    pub(super) bytes: u64,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.engine.adjust_room(self.bytes, 0, 0);
        }
    }
}

impl Engine {
    pub(super) async fn sleep_at_hard_limit(&self) {
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

    /// Waits until memory has room for so many bytes of a file of which `of_file` are held.
    pub(super) async fn admit(&self, bytes: u64, of_file: u64) -> Admitted<'_> {
        let ticket = {
            let mut memory = self.room.lock();
            let ticket = memory.room.ask(bytes, of_file);
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
    pub(super) fn adjust_room(&self, admitted: u64, became: i64, acknowledged: u64) {
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

    /// Most bytes that are let in at once.
    pub(super) fn piece_bytes_max(&self) -> u64 {
        self.room.lock().room.piece_bytes_max()
    }

    /// Writers wait for memory or requests.
    pub(super) fn is_pressed(&self) -> bool {
        self.sleepers.load(Ordering::Acquire) > 0 || self.room.lock().room.waiting() > 0
    }

    pub(super) fn take_peak_bytes(&self) -> (u64, u64) {
        self.room.lock().room.take_peak_bytes()
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
