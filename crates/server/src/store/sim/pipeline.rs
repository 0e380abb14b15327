//! The way to the disk: entries in order, in batches, each with one sync at most.
//!
//! ```text
//!   entries --> batch that gathers --> flight: data, journal, sync --> stable image, in order
//!                 |  ^ while a sync flies      '- done_at is known when it starts
//!                 '- data start for the disk at once
//! ```
//!
//! A plain state machine: it takes `now`, and says when it will be worth looking again. Nothing
//! runs by itself, so a caller who goes away leaves it in order: whoever comes next finds what is
//! due done as of when it was due.
//!
//! Whoever wants something stable joins the batch that gathers. While a flight with a sync is
//! under way the batch waits, and all who come meanwhile share its sync; without (the disk's sync
//! takes no time, or nobody requested one) it starts at once. Flights end in the order in which
//! they started, so what is stable is always a beginning of what happened.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use perf::model::disk::Disk;
use perf::units::{Instant, Nanos};

use crate::types::Status;

use super::blocks::{Blocks, Run};
use super::faults::{DRIVE_CACHE_BYTES, Faults};
use super::journal::{Entry, Stable};

/// A batch that somebody waits for.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) batch: u64,
    outcome: Arc<OnceLock<Result<(), Status>>>,
}

impl Ticket {
    pub(super) fn outcome(&self) -> Option<Result<(), Status>> {
        self.outcome.get().copied()
    }
}

#[derive(Debug)]
struct Batch {
    ticket: Ticket,
    entries: Vec<Entry>,
    /// When the last of its data are on the disk.
    data_end: Instant,
    wants_sync: bool,
}

#[derive(Debug)]
struct Flight {
    batch: Batch,
    done_at: Instant,
    /// Its sync takes time, so the next batch gathers until it is done.
    holds_up: bool,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) disk: Disk,
    pub(super) blocks: Blocks,
    pub(super) stable: Option<Stable>,
    pub(super) faults: Faults,
    gathering: Batch,
    flights: VecDeque<Flight>,
    /// Stable by what a lying drive says, and in its own memory only.
    in_drive: VecDeque<Entry>,
    in_drive_bytes: u64,
    /// The last batch after which a sync has succeeded: it and all before it are stable.
    pub(super) synced_batch: u64,
    /// Data on their way.
    pub(super) data_bytes: u64,
    /// What failed flights should have made stable, for the owner to take.
    pub(super) failed: Vec<Entry>,
    pub(super) failures: u64,
    pub(super) divergences: u64,
}

impl Pipeline {
    pub(super) fn new(disk: Disk, stable: Option<Stable>, faults: Faults) -> Self {
        let blocks = Blocks::new(disk.profile().capacity_bytes);
        Self {
            disk,
            blocks,
            stable,
            faults,
            gathering: Batch::new(1),
            flights: VecDeque::new(),
            in_drive: VecDeque::new(),
            in_drive_bytes: 0,
            synced_batch: 0,
            data_bytes: 0,
            failed: Vec::new(),
            failures: 0,
            divergences: 0,
        }
    }

    /// Adds an entry to the batch that gathers; its data start for the disk. The number of that
    /// batch.
    pub(super) fn push(&mut self, now: Instant, entry: Entry) -> u64 {
        if let Entry::Data { file, offset, len, .. } = &entry {
            for Run { address, bytes } in self.blocks.place(*file, *offset, *len) {
                let end = self.disk.write(now, address, bytes);
                self.gathering.data_end = self.gathering.data_end.max(end);
            }
            self.data_bytes += len;
        }
        self.gathering.entries.push(entry);
        self.gathering.ticket.batch
    }

    /// The number of the batch that gathers.
    pub(super) fn gathers(&self) -> u64 {
        self.gathering.ticket.batch
    }

    /// The batch that gathers starts, now or when it may; with a sync, if anybody wants one.
    pub(super) fn start(&mut self, now: Instant, sync: bool) -> Ticket {
        self.gathering.wants_sync |= sync;
        let ticket = self.gathering.ticket.clone();
        self.start_if_possible(now);
        ticket
    }

    /// The first flight whose sync covers this batch.
    pub(super) fn syncing(&self, batch: u64) -> Option<Ticket> {
        let mut later = self.flights.iter().skip(self.index(batch).unwrap_or(0));
        later.find(|flight| flight.batch.wants_sync).map(|flight| flight.batch.ticket.clone())
    }

    /// When to look again for this ticket: it is done then, or begins.
    pub(super) fn due(&self, ticket: &Ticket, now: Instant) -> Instant {
        let own = self.index(ticket.batch).and_then(|index| self.flights.get(index));
        // Where it does not fly it is held up, by the last that does. If not it would have started;
        // a look later does no harm.
        let flight = own.or_else(|| self.flights.back());
        flight.map_or(now + Nanos::from_millis(1), |flight| flight.done_at)
    }

    /// Where a batch is among the flights, which have numbers in a row; none for one that is over.
    fn index(&self, batch: u64) -> Option<usize> {
        let first = self.flights.front()?.batch.ticket.batch;
        usize::try_from(batch.checked_sub(first)?).ok()
    }

    /// Does what is due by `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        while self.flights.front().is_some_and(|flight| flight.done_at <= now)
            && let Some(flight) = self.flights.pop_front()
        {
            let done_at = flight.done_at;
            self.land(flight);
            self.start_if_possible(done_at);
        }
    }

    fn start_if_possible(&mut self, now: Instant) {
        let is_empty = self.gathering.entries.is_empty() && !self.gathering.wants_sync;
        // Nothing starts after one that holds up, so it is the last.
        if is_empty || self.flights.back().is_some_and(|flight| flight.holds_up) {
            return;
        }
        let next = Batch::new(self.gathering.ticket.batch + 1);
        let batch = std::mem::replace(&mut self.gathering, next);
        let before = self.flights.back().map_or(now, |flight| flight.done_at);
        let mut done_at = now.max(before).max(batch.data_end);
        let journal: u64 = batch.entries.iter().map(Entry::journal_bytes).sum();
        if journal > 0 {
            // The journal is written in blocks.
            let Run { address, bytes } = self.blocks.journal(journal.next_multiple_of(4096));
            done_at = done_at.max(self.disk.write(now, address, bytes));
        }
        let sync_takes_time = self.disk.profile().sync > Nanos::ZERO;
        if batch.wants_sync && !self.faults.switches().lying {
            done_at = done_at.max(self.disk.sync(now));
        }
        let holds_up = batch.wants_sync && sync_takes_time;
        self.flights.push_back(Flight { batch, done_at, holds_up });
    }

    /// A flight is done.
    fn land(&mut self, flight: Flight) {
        let Batch { ticket, entries, wants_sync, .. } = flight.batch;
        self.data_bytes -= entries.iter().map(Entry::data_bytes).sum::<u64>();
        if wants_sync && self.faults.takes(|switches| &mut switches.failing_syncs) {
            self.failures += 1;
            self.fail(entries);
            ticket.outcome.set(Err(Status::Io)).ok();
            return;
        }
        let lying = self.faults.switches().lying;
        for entry in entries {
            self.in_drive_bytes += entry.data_bytes() + entry.journal_bytes();
            self.in_drive.push_back(entry);
        }
        let held = if lying { DRIVE_CACHE_BYTES } else { 0 };
        while self.in_drive_bytes > held || !lying {
            let Some(entry) = self.in_drive.pop_front() else {
                break;
            };
            self.in_drive_bytes -= entry.data_bytes() + entry.journal_bytes();
            self.keep(&entry);
        }
        if wants_sync {
            self.synced_batch = ticket.batch;
        }
        ticket.outcome.set(Ok(())).ok();
    }

    /// Names are tried again, before all that came later; what becomes of data is the owner's to
    /// say.
    fn fail(&mut self, entries: Vec<Entry>) {
        let (names, data): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| matches!(entry, Entry::Names { .. }));
        self.failed.extend(data);
        let next = match self.flights.front_mut() {
            Some(flight) => &mut flight.batch.entries,
            None => &mut self.gathering.entries,
        };
        next.splice(0..0, names);
    }

    fn keep(&mut self, entry: &Entry) {
        if let Some(stable) = &self.stable
            && stable.apply(entry).is_err()
        {
            self.divergences += 1;
        }
    }

    /// What is on its way, oldest first: what a crash may leave, or not.
    pub(super) fn on_its_way(&self) -> impl Iterator<Item = &Entry> {
        let flying = self.flights.iter().flat_map(|flight| flight.batch.entries.iter());
        self.in_drive.iter().chain(flying).chain(&self.gathering.entries)
    }
}

impl Batch {
    fn new(batch: u64) -> Self {
        Self {
            ticket: Ticket { batch, outcome: Arc::default() },
            entries: Vec::new(),
            data_end: Instant::EPOCH,
            wants_sync: false,
        }
    }
}
