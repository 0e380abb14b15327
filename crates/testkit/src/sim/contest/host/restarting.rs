//! A host with a local disk is started anew now and then, while its programs have nothing open: a
//! process that was killed, and another one that goes on with what the disk has.

use std::sync::atomic::{AtomicUsize, Ordering};

use cache::medium::Memory;
use client::files::{self, Files};
use client::session::Session;
use net::clock::Clock;
use parking_lot::Mutex;

use super::{Host, Kernel, Kind};
use crate::sim::on_disk;

/// Every so manieth time that something begins on an idle host.
const EVERY: usize = 3;

/// What a host by files has besides memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim::contest) enum Disk {
    Nothing,
    /// A disk.
    Kept,
    /// A disk, with which it is started anew.
    Restarted,
}

/// A mounted file system, and what another one is made with.
pub(super) struct Mounted {
    clock: Clock,
    session: Session,
    options: files::Options,
    /// Guards which one it is now, and its disk.
    current: Mutex<(Files, Option<Memory>)>,
    restarts: bool,
    /// What programs are at, and what they have open.
    busy: AtomicUsize,
    begun: AtomicUsize,
}

impl Mounted {
    pub(super) fn new(
        clock: &Clock,
        session: Session,
        options: files::Options,
        disk: Disk,
    ) -> Self {
        let memory = (disk != Disk::Nothing).then(Memory::default);
        let files = started(clock, &session, options, memory.as_ref());
        Self {
            clock: clock.clone(),
            session,
            options,
            current: Mutex::new((files, memory)),
            restarts: disk == Disk::Restarted,
            busy: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
        }
    }

    pub(super) fn now(&self) -> Files {
        self.current.lock().0.clone()
    }

    /// Gives whether it was.
    fn restart(&self) -> bool {
        let mut current = self.current.lock();
        let Some(memory) = current.1.as_ref().filter(|_| self.restarts) else { return false };
        if !current.0.write_behind().dirty_files().is_empty() {
            return false;
        }
        let memory = memory.copy();
        let files = started(&self.clock, &self.session, self.options, Some(&memory));
        *current = (files, Some(memory));
        true
    }
}

fn started(
    clock: &Clock,
    session: &Session,
    options: files::Options,
    memory: Option<&Memory>,
) -> Files {
    Files::on_disk(clock, session.clone(), options, memory.map(on_disk))
}

impl Host {
    /// A program begins to do something.
    pub(in crate::sim::contest) fn begins(&self) {
        let Kind::Files { files, kernel, silent, .. } = &self.kind else { return };
        if files.busy.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let begun = files.begun.fetch_add(1, Ordering::Relaxed) + 1;
        // Errors of which nobody has heard yet would be lost with the process.
        if begun.is_multiple_of(EVERY) && silent.lock().is_empty() && files.restart() {
            *kernel.lock() = Kernel::default();
        }
    }

    /// It has done it, and had so many files open before, and has now.
    pub(in crate::sim::contest) fn ended(&self, before: usize, now: usize) {
        if let Kind::Files { files, .. } = &self.kind {
            files.busy.fetch_add(now, Ordering::Relaxed);
            files.busy.fetch_sub(before + 1, Ordering::Relaxed);
        }
    }
}
