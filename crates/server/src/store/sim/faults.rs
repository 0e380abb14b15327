//! What can go wrong with a disk, as a switchboard that a test or a plan holds.

use std::sync::Arc;

use parking_lot::Mutex;

/// Clones share the switches, and so do the stores before and after a crash.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Switches>>); // guards the switches; held for one look

/// The faults that are on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Switches {
    /// So many of the next WRITEs fail with an I/O error and write nothing.
    pub failing_writes: u32,
    /// So many of the next READs fail of what is not in memory.
    pub failing_reads: u32,
    /// So many of the next syncs fail, for all whom they cover: the write verifier changes. A
    /// change of names that such a sync should have made stable is reported as failed, stays, and
    /// is tried again with the next.
    pub failing_syncs: u32,
    /// Nothing new has room: no name, and no byte behind the end of a file.
    pub full: bool,
    /// Everything takes so many percent of its time; 0 is as it should be.
    pub slow_percent: u64,
    /// The drive says that it has synced and has not: what it was given last is only in its own
    /// memory ([`DRIVE_CACHE_BYTES`]), and a crash loses it although it was reported as stable.
    pub lying: bool,
    /// COMMITs and stable WRITEs are answered when their data start for the disk, not when they
    /// are there: a server that does not wait for its fsync.
    pub committing_early: bool,
    /// The write verifier is the same after a crash: a server that does not notice that it has
    /// lost something.
    pub keeping_verifier: bool,
}

/// What a drive that lies holds back: a typical size of a disk's own memory (guess).
pub const DRIVE_CACHE_BYTES: u64 = 32 << 20;

impl Faults {
    pub fn switches(&self) -> Switches {
        *self.0.lock()
    }

    pub fn set(&self, change: impl FnOnce(&mut Switches)) {
        change(&mut self.0.lock());
    }

    /// Whether this one fails, of those that are to.
    pub(super) fn takes(&self, which: impl FnOnce(&mut Switches) -> &mut u32) -> bool {
        let mut switches = self.0.lock();
        let left = which(&mut switches);
        let fails = *left > 0;
        *left = left.saturating_sub(1);
        fails
    }
}
