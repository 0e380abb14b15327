//! A host with a local disk is started anew now and then, while its programs have nothing open: a
//! process that was killed, and another one that goes on with what the disk has.

use std::sync::atomic::{AtomicUsize, Ordering};

use cache::Cache;
use cache::medium::Memory;
use client::files::{self, Files};
use client::session::Session;
use net::clock::{Clock, Group};
use parking_lot::Mutex;

use super::kernel::Kernel;
use super::killing::Ends;
use super::{Host, Kind};
use crate::sim::planted::Planted;
use crate::sim::stage::on_disk;

/// Every so manieth time that something begins on an idle host.
const EVERY: usize = 3;

/// What a host by files has besides memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim::contest) enum Disk {
    Nothing,
    /// A disk.
    Steady,
    /// A disk, with which it is started anew.
    Restarted,
    /// A disk, with which it goes on when it is killed; what decides what power takes with it.
    Killed(u64),
}

/// A mounted file system, and what another one is made with.
pub(super) struct Mounted {
    clock: Clock,
    session: Session,
    options: files::Options,
    planted: Option<Planted>,
    /// Guards which one it is now, and its disk.
    current: Mutex<Life>,
    disk: Disk,
    /// What programs are at, and what they have open.
    busy: AtomicUsize,
    begun: AtomicUsize,
    /// Programs that others wait for.
    pub(super) awaited: AtomicUsize,
}

/// One process.
struct Life {
    files: Files,
    disk: Option<(Memory, Cache)>,
    /// Of one that may be killed: all that runs of it.
    group: Option<Group>,
    number: usize,
    hits_before: u64,
}

impl Mounted {
    pub(super) fn new(
        clock: &Clock,
        session: Session,
        options: files::Options,
        (disk, planted): (Disk, Option<Planted>),
    ) -> Self {
        let memory = (disk != Disk::Nothing).then(Memory::default);
        let is_killed = matches!(disk, Disk::Killed(_));
        let current =
            Mutex::new(Life::begin(clock, &session, options, (memory, planted), is_killed));
        Self {
            clock: clock.clone(),
            session,
            options,
            planted,
            current,
            disk,
            busy: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            awaited: AtomicUsize::new(0),
        }
    }

    pub(super) fn now(&self) -> Files {
        self.current.lock().files.clone()
    }

    /// Gives whether it was.
    fn restart(&self) -> bool {
        let mut current = self.current.lock();
        let disk = current.disk.as_ref().filter(|_| self.disk == Disk::Restarted);
        let Some((memory, _)) = disk else { return false };
        if !current.files.write_behind().dirty_files().is_empty() {
            return false;
        }
        let disk = (Some(memory.copy()), self.planted);
        *current = Life::begin(&self.clock, &self.session, self.options, disk, false);
        true
    }

    pub(super) fn kill(&self, ends: Ends) -> bool {
        let Disk::Killed(seed) = self.disk else { return false };
        let mut current = self.current.lock();
        let (Some(group), Some((memory, cache))) = (&current.group, &current.disk) else {
            return false;
        };
        group.kill();
        let left = match ends {
            Ends::Alone => memory.copy(),
            Ends::WithPower => {
                let mut random = fastrand::Rng::with_seed(seed ^ current.number as u64);
                // Of a thousand. A block is eight sectors, and its header three.
                let arrives = [0, 500, 900, 990, 1000][random.usize(..5)];
                let writes = memory.recorded();
                // Long before, everything has arrived.
                let synced = writes.saturating_sub(random.usize(..100));
                memory.after_power_loss(writes, synced, || random.u16(..1000) < arrives)
            }
        };
        let hits = if current.number > 0 { cache.statistics().hits } else { 0 };
        let (number, hits_before) = (current.number + 1, current.hits_before + hits);
        let disk = (Some(left), self.planted);
        let next = Life::begin(&self.clock, &self.session, self.options, disk, true);
        *current = Life { number, hits_before, ..next };
        true
    }

    pub(super) fn group(&self) -> Option<Group> {
        self.current.lock().group.clone()
    }

    pub(super) fn lives(&self) -> usize {
        self.current.lock().number
    }

    pub(super) fn hits_after_kills(&self) -> u64 {
        let current = self.current.lock();
        let now = current.disk.as_ref().filter(|_| current.number > 0);
        current.hits_before + now.map_or(0, |(_, cache)| cache.statistics().hits)
    }
}

impl Life {
    fn begin(
        clock: &Clock,
        session: &Session,
        options: files::Options,
        (memory, planted): (Option<Memory>, Option<Planted>),
        is_killed: bool,
    ) -> Self {
        let (clock, group) = match is_killed {
            true => {
                let (clock, group) = clock.group();
                (clock, Some(group))
            }
            false => (clock.clone(), None),
        };
        let disk = memory.map(|memory| {
            if is_killed {
                memory.record();
            }
            let cache = on_disk(&memory, planted);
            (memory, cache)
        });
        let cache = disk.as_ref().map(|(_, cache)| cache.clone());
        let files = Files::on_disk(&clock, session.clone(), options, cache);
        Self { files, disk, group, number: 0, hits_before: 0 }
    }
}

impl Host {
    /// A program begins to do something, and whether others wait for it.
    pub(in crate::sim::contest) fn begins(&self, is_awaited: bool) {
        let Kind::Files { files, kernel, silent, .. } = &self.kind else { return };
        files.awaited.fetch_add(usize::from(is_awaited), Ordering::Relaxed);
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
    pub(in crate::sim::contest) fn ended(&self, is_awaited: bool, before: usize, now: usize) {
        if let Kind::Files { files, .. } = &self.kind {
            files.awaited.fetch_sub(usize::from(is_awaited), Ordering::Relaxed);
            files.busy.fetch_add(now, Ordering::Relaxed);
            files.busy.fetch_sub(before + 1, Ordering::Relaxed);
        }
    }
}
