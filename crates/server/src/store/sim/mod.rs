//! Files in memory behind an emulated disk, for worlds: what is stable is known, and a crash can be
//! had at any moment.
//!
//! ```text
//!   SimStore --> live image (a MemStore): what everybody sees         options.rs  disk, sizes
//!      |           |-- page cache: which READs wait for the disk      cache.rs
//!      |           '-- dirty extents of each file                     extents.rs, state.rs
//!      '--> journal --> pipeline: batches, flights, the disk's time   journal.rs, pipeline.rs
//!      |                  '--> stable image (a second MemStore)       crash.rs: what is left
//!      '--> write log, if it has one: frames on a disk of its own     write_log.rs
//! ```
//!
//! - A change of names or attributes is answered when the journal with it is synced; those that
//!   come during a sync share the next one.
//! - Data are dirty until a COMMIT, a stable WRITE, early write-back or too much of them starts
//!   them for the disk. They go to their places before the journal that follows them. What the
//!   disk has written survives a crash; a sync is what it costs to be sure.
//! - A [`Durable`] is made after the disk's sync, and says the verifier from before it.
//! - READs wait for pages that are not in the cache. Names and attributes are always in memory.
//!   There is no read-ahead, and a part of a page is written without reading the rest of it.
//! - Access times are not written to the disk.
//!
//! Data are held once in the live image, a second time in the stable one, and while they are on
//! their way, once more if they were changed meanwhile. Both images stay in the limits of
//! [`SimOptions::memory`], what is on its way in `dirty_bytes_max` and the calls in service.
//!
//! The store has no clock: [`Machine`] tells the time and waits. In a world that is exact; in the
//! real world (`serve sim:`) it is as exact as its timers.

mod blocks;
mod cache;
mod changes;
mod crash;
mod extents;
mod faults;
mod journal;
mod layer;
mod options;
mod pipeline;
mod state;
mod write_log;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use perf::model::disk::{Counts, Disk};
use perf::units::{Instant, Nanos};

use crate::durable::Durable;
use crate::types::{Status, Time, Verifier};

use self::cache::Cache;
use self::journal::{Stable, Stamp};
use self::pipeline::{Pipeline, Ticket};
use self::state::State;
use self::write_log::{Failed, LogTicket, WriteLog};
use super::mem::{MemOptions, MemStore, TimeSource};

pub use self::faults::{DRIVE_CACHE_BYTES, Faults, Switches};
pub use self::options::{AfterFailedSync, Machine, SimOptions, WriteBack};
pub use self::write_log::LogSpec;

/// See the module's head.
pub struct SimStore {
    options: SimOptions,
    time: TimeSource,
    machine: Arc<dyn Machine>,
    faults: Faults,
    live: MemStore,
    stamp: Arc<Stamp>,
    /// How many crashes came before.
    life: u64,
    state: Mutex<State>, // guards all that changes, the order of operations on the images with it
}

/// What a store did and holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    pub disk: Counts,
    /// Work of the disk that is done, over all that it does at once.
    pub disk_busy: Nanos,
    /// How long the disk's rate was used.
    pub disk_transferred: Nanos,
    /// Share of the time in which the disk worked, of 1.
    pub disk_utilization: f64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cache_bytes: u64,
    /// Of the write log's disk.
    pub log_disk: Counts,
    /// Data that a crash now could lose.
    pub unstable_bytes: u64,
    pub failed_syncs: u64,
    /// Operations that the stable image could not repeat: always 0, or the store is wrong.
    pub divergences: u64,
}

/// The state, in order as of `now`.
struct Begun<'s> {
    state: MutexGuard<'s, State>,
    now: Instant,
    time: Time,
}

impl Deref for Begun<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Begun<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStore").field("options", &self.options).finish_non_exhaustive()
    }
}

impl SimStore {
    /// An empty store.
    pub fn new(options: SimOptions, time: TimeSource, machine: Arc<dyn Machine>) -> Self {
        let stamp = Arc::new(Stamp::default());
        stamp.set(time());
        let stable = options.crashes.then(|| {
            let stamp = Arc::new(Stamp::default());
            stamp.set(time());
            Stable { store: MemStore::new(Self::unbounded(&options), stamp.source()), stamp }
        });
        let live = MemStore::new(options.memory, stamp.source());
        Self::with(options, time, machine, Faults::default(), (live, stamp), stable, 0)
    }

    fn with(
        options: SimOptions,
        time: TimeSource,
        machine: Arc<dyn Machine>,
        faults: Faults,
        (live, stamp): (MemStore, Arc<Stamp>),
        stable: Option<Stable>,
        life: u64,
    ) -> Self {
        let pipeline = Pipeline::new(Disk::new(options.disk), stable, faults.clone());
        let write_log = options.write_log.map(|spec| WriteLog::new(&spec, options.crashes));
        let cache = Cache::new(options.cache_bytes_max);
        let state = Mutex::new(State::new(pipeline, cache, write_log));
        Self { options, time, machine, faults, live, stamp, life, state }
    }

    /// The next life of a store, with what is stable as all that it has.
    fn reborn(before: &Self, stable: Option<Stable>) -> Self {
        let stamp = Arc::new(Stamp::default());
        stamp.set((before.time)());
        let memory = before.options.memory;
        let live = match &stable {
            Some(stable) => stable.store.image(memory, stamp.source()),
            None => MemStore::new(memory, stamp.source()),
        };
        let (time, machine) = (Arc::clone(&before.time), Arc::clone(&before.machine));
        let faults = before.faults.clone();
        Self::with(before.options, time, machine, faults, (live, stamp), stable, before.life + 1)
    }

    /// The stable image has room for whatever the live one had.
    fn unbounded(options: &SimOptions) -> MemOptions {
        MemOptions { bytes_max: u64::MAX, files_max: u64::MAX, ..options.memory }
    }

    /// The switches for what can go wrong.
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    pub fn options(&self) -> &SimOptions {
        &self.options
    }

    pub fn stats(&self) -> Stats {
        let state = self.begin();
        let pipeline = &state.pipeline;
        Stats {
            disk: pipeline.disk.counts(),
            disk_busy: pipeline.disk.busy_by(state.now),
            disk_transferred: pipeline.disk.transferred_by(state.now),
            disk_utilization: pipeline.disk.utilization(state.now),
            cache_hits: state.cache.hits,
            cache_misses: state.cache.misses,
            cache_bytes: state.cache.bytes(),
            log_disk: state.write_log.as_ref().map_or_else(Counts::default, WriteLog::disk_counts),
            unstable_bytes: state.unstable_bytes(),
            failed_syncs: pipeline.failures,
            divergences: pipeline.divergences,
        }
    }

    /// Checks the books of what everybody sees; see [`MemStore::audit`].
    ///
    /// # Errors
    /// What does not add up.
    pub fn audit(&self) -> Result<(), &'static str> {
        self.live.audit()
    }

    /// Every operation begins here: with the disk in order, and one moment for all it does.
    fn begin(&self) -> Begun<'_> {
        let mut state = self.state.lock();
        let now = self.machine.now();
        let time = (self.time)();
        self.stamp.set(time);
        let slow = self.faults.switches().slow_percent;
        state.pipeline.disk.slow_down(if slow == 0 { 100 } else { slow });
        state.settle(now, &self.live, self.options.after_failed_sync);
        Begun { state, now, time }
    }

    fn verifier_of(&self, state: &State) -> Verifier {
        let life = if self.faults.switches().keeping_verifier { 0 } else { self.life };
        let lives = (life << 32) ^ state.pipeline.failures;
        Verifier(mixed(self.options.memory.instance ^ lives).to_be_bytes())
    }

    /// Waits until a batch has ended.
    async fn wait(&self, ticket: Ticket) -> Result<(), Status> {
        loop {
            let due = {
                let begun = self.begin();
                if let Some(outcome) = ticket.outcome() {
                    return outcome;
                }
                begun.pipeline.due(&ticket, begun.now)
            };
            self.machine.until(due).await;
        }
    }

    /// Begins to make a file stable as it is now.
    fn stabilise(&self, begun: &mut Begun<'_>, file: u64) -> Result<Due, Status> {
        if begun.is_doubtful(file) {
            return Err(Status::Io);
        }
        let (at, past) = (begun.now, begun.mark(file));
        Ok(Due { ticket: begun.stabilise(at, &self.live, file), file, past })
    }

    /// Waits for what a file needs to be stable, if anything, and for its log to know.
    async fn durable(&self, due: Due, verifier: Verifier) -> Result<Durable, Status> {
        let outcome = match due.ticket {
            Some(ticket) => self.wait(ticket).await,
            None => Ok(()),
        };
        self.past(due.file, due.past, outcome.is_ok()).await;
        Durable::after_sync(outcome, verifier)
    }

    /// Waits until a log knows that a file is past its records, or is not.
    async fn past(&self, file: u64, through: Option<u64>, is_ok: bool) {
        let Some(through) = through else { return };
        let ticket = {
            let mut begun = self.begin();
            let at = begun.now;
            let Some(write_log) = &mut begun.write_log else { return };
            write_log.synced(at, file, through, is_ok)
        };
        // Where the log has failed nobody will replay it.
        self.logged(ticket).await.ok();
    }

    /// Waits until a frame is there.
    async fn logged(&self, ticket: LogTicket) -> Result<(), Failed> {
        loop {
            let due = {
                let begun = self.begin();
                if let Some(outcome) = ticket.outcome() {
                    return outcome;
                }
                begun.write_log.as_ref().map_or(begun.now, |log| log.due(begun.now))
            };
            self.machine.until(due).await;
        }
    }
}

/// What a file needs to be stable: a sync, and that its log knows that it is past its records.
struct Due {
    ticket: Option<Ticket>,
    file: u64,
    past: Option<u64>,
}

/// Another number for each (the finalizer of splitmix64, Steele et al. 2014), which tells nothing
/// of how it was made.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
