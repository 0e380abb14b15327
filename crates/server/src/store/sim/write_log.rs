//! A write log on an emulated disk of its own: what `serve DIR --write-log` has on a real one, with
//! the same decisions ([`log::Journal`]) and the times of a model.
//!
//! ```text
//!   stable WRITE --> live image, dirty extents --> journal --> frame --> the log's disk: answered
//!                                                     '- half full, or 5 s: its files start for
//!                                                        their disk; then they are past
//! ```
//!
//! As the pipeline to the other disk, it takes `now`, and nothing runs by itself.
//!
//! **What is logged**: a stable WRITE of at most 256 KiB to a file whose creation is stable. What
//! becomes stable without the log while its file has records is answered when the log knows.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use log::journal::Begin;
use log::{Journal, Key, Limits, Set, Stamp};
use perf::model::disk::{Counts, Disk, Profile};
use perf::model::write_log::LogDevice;
use perf::units::{Instant, Nanos};

use crate::metrics::Reading;
use crate::store::logged;
use crate::types::{Attr, Time};

use super::journal::Entry;
use super::pipeline::Ticket;

/// Files do not have records for longer.
const SWEEP_INTERVAL: Nanos = Nanos::from_secs(5);

/// A log's device and how long it is.
#[derive(Clone, Copy, Debug)]
pub struct LogSpec {
    pub disk: Profile,
    /// At least [`log::SIZE_MIN`].
    pub bytes: u64,
}

impl LogSpec {
    /// How long a log may be.
    pub const BYTES: RangeInclusive<u64> = log::SIZE_MIN..=log::SIZE_MAX;

    /// As long as `serve` makes one.
    pub fn new(disk: Profile) -> Self {
        Self { disk, bytes: 64 << 20 }
    }
}

/// Somebody who waits for a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct LogTicket(Arc<OnceLock<Result<(), Failed>>>);

/// The log does not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed;

impl LogTicket {
    pub(super) fn outcome(&self) -> Option<Result<(), Failed>> {
        self.0.get().copied()
    }

    fn tell(&self, outcome: Result<(), Failed>) {
        self.0.set(outcome).ok();
    }
}

/// A file that is on its way to its disk, and up to which record that makes it past them.
#[derive(Debug)]
struct Leaving {
    ticket: Ticket,
    key: Key,
    through: u64,
}

/// A file that is past its records when the ticket is done.
#[derive(Debug)]
struct Passing {
    ticket: LogTicket,
    key: Key,
    through: u64,
}

/// A frame on its way.
#[derive(Debug)]
struct Flight {
    frame: u64,
    done_at: Instant,
}

/// What a crash has to do again, if its frame is there and its file not past it.
#[derive(Debug)]
struct LogRecord {
    sequence: u64,
    key: Key,
    entry: Entry,
    ticket: LogTicket,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct WriteLog {
    journal: Journal<LogTicket>,
    disk: Disk,
    /// In the order of their beginning, and of their end.
    flights: VecDeque<Flight>,
    buffer: Vec<u8>,
    /// Only where crashes are requested; at most what fits in the log.
    records: Option<VecDeque<LogRecord>>,
    leaving: Vec<Leaving>,
    /// Records that files are past as soon as a frame notes it; only where some are recorded.
    passing: Vec<Passing>,
    swept_at: Instant,
    /// Files whose creation may not be stable yet, with the batch of the pipeline that has it.
    unrooted: BTreeMap<u64, u64>,
}

impl WriteLog {
    pub(super) fn new(spec: &LogSpec, crashes: bool) -> Self {
        let at_a_time = LogDevice::of(&spec.disk).at_a_time();
        let limits = Limits { in_flight_max: at_a_time as usize, ..Limits::default() };
        let bytes = spec.bytes.max(log::SIZE_MIN);
        let set = Set { id: [0; 16], bytes: vec![bytes] };
        Self {
            journal: Journal::new(&set, [0; 16], None, limits),
            disk: Disk::new(spec.disk),
            flights: VecDeque::new(),
            buffer: Vec::new(),
            records: crashes.then(VecDeque::new),
            leaving: Vec::new(),
            passing: Vec::new(),
            swept_at: Instant::EPOCH,
            unrooted: BTreeMap::new(),
        }
    }

    pub(super) fn disk_counts(&self) -> Counts {
        self.disk.counts()
    }

    /// As those of a log in a file.
    pub(super) fn readings(&self) -> Vec<Reading> {
        let mut readings = logged::readings(&self.journal);
        readings.push(Reading::new(
            "nfskit_log_sync_microseconds",
            "What a write of 4 KiB to the log takes.",
            LogDevice::of(self.disk.profile()).write_us,
        ));
        readings
    }

    /// A file is made by this batch of the pipeline, of which `synced` are stable.
    pub(super) fn made(&mut self, file: u64, batch: u64, synced: u64) {
        self.unrooted.retain(|_, batch| *batch > synced);
        self.unrooted.insert(file, batch);
    }

    /// Whether a WRITE may be answered from the log.
    pub(super) fn admits(&mut self, file: u64, len: usize, synced: u64) -> bool {
        let is_rooted = self.unrooted.get(&file).is_none_or(|batch| *batch <= synced);
        is_rooted && self.journal.admits(&key(file), len)
    }

    /// Takes up a WRITE that is admitted and in the live image.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        (file, attr): (u64, &Attr),
        offset: u64,
        data: Bytes,
        entry: impl FnOnce() -> Entry,
    ) -> LogTicket {
        let ticket = LogTicket::default();
        let (key, stamps) = (key(file), (stamp(attr.modified), stamp(attr.changed)));
        let sequence = self.journal.submit(key, offset, stamps, data, ticket.clone());
        if let Some(records) = &mut self.records {
            records.push_back(LogRecord { sequence, key, entry: entry(), ticket: ticket.clone() });
        }
        self.begin(now);
        ticket
    }

    /// Before a file starts for its disk: up to which record that makes it past its records.
    pub(super) fn mark(&self, file: u64) -> Option<u64> {
        self.journal.mark(&key(file))
    }

    pub(super) fn is_doubtful(&self, file: u64) -> bool {
        self.journal.is_doubtful(&key(file))
    }

    /// A file is past its records up to `through`, or could not be made stable: the ticket is that
    /// of the frame that notes it.
    pub(super) fn synced(
        &mut self,
        now: Instant,
        file: u64,
        through: u64,
        is_ok: bool,
    ) -> LogTicket {
        let ticket = LogTicket::default();
        self.past(key(file), through, is_ok, ticket.clone());
        self.begin(now);
        ticket
    }

    fn past(&mut self, key: Key, through: u64, is_ok: bool, ticket: LogTicket) {
        match is_ok {
            true => {
                if self.records.is_some() {
                    self.passing.push(Passing { ticket: ticket.clone(), key, through });
                }
                self.journal.past(key, through, ticket);
            }
            false => {
                self.journal.doubt(&key);
                ticket.tell(Err(Failed));
            }
        }
    }

    /// When to look again for a ticket.
    pub(super) fn due(&self, now: Instant) -> Instant {
        // A look later does no harm.
        self.flights.front().map_or(now + Nanos::from_millis(1), |flight| flight.done_at)
    }

    /// Whether its files are to be brought to their place now: then all that have records.
    pub(super) fn sweep_due(&mut self, now: Instant) -> Vec<u64> {
        let is_late = now >= self.swept_at + SWEEP_INTERVAL;
        if !self.leaving.is_empty() || !(is_late || self.journal.is_filling()) {
            return Vec::new();
        }
        self.swept_at = now;
        self.journal.files().filter(|key| !self.journal.is_doubtful(key)).map(file).collect()
    }

    /// A file has started for its disk.
    pub(super) fn leaves(&mut self, file: u64, through: u64, ticket: Ticket) {
        self.leaving.push(Leaving { ticket, key: key(file), through });
    }

    /// Does what is due by `now`.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some(flight) = self.flights.front()
            && flight.done_at <= now
        {
            let Flight { frame, done_at } = *flight;
            self.flights.pop_front();
            for ticket in self.journal.finish(frame, true) {
                ticket.tell(Ok(()));
            }
            self.begin(done_at);
        }
        let ended = |leaving: &mut Leaving| leaving.ticket.outcome().is_some();
        let ended: Vec<Leaving> = self.leaving.extract_if(.., ended).collect();
        let any = !ended.is_empty();
        for Leaving { ticket, key, through } in ended {
            let is_ok = matches!(ticket.outcome(), Some(Ok(())));
            self.past(key, through, is_ok, LogTicket::default());
        }
        if any {
            self.begin(now);
        }
        self.forget();
    }

    /// Frames that may be on their way start.
    fn begin(&mut self, now: Instant) {
        loop {
            match self.journal.begin(0, &mut self.buffer) {
                Begin::Idle => return,
                Begin::Write { at, frame } => {
                    let mut done_at = self.disk.write(now, at, self.buffer.len() as u64);
                    if self.disk.profile().sync > Nanos::ZERO {
                        done_at = done_at.max(self.disk.sync(now));
                    }
                    // Answered in the order in which they were begun.
                    let before = self.flights.back().map_or(now, |flight| flight.done_at);
                    self.flights.push_back(Flight { frame, done_at: done_at.max(before) });
                }
                Begin::Stuck => {
                    for ticket in self.journal.fail() {
                        ticket.tell(Err(Failed));
                    }
                    return;
                }
            }
        }
    }

    /// What files are past is not replayed after a crash.
    fn forget(&mut self) {
        let Self { records: Some(records), passing, .. } = self else { return };
        let answered = |passing: &mut Passing| passing.ticket.outcome().is_some();
        for Passing { ticket, key, through } in passing.extract_if(.., answered) {
            if matches!(ticket.outcome(), Some(Ok(()))) {
                records.retain(|record| record.key != key || record.sequence > through);
            }
        }
    }

    /// What a crash does again, oldest first: what was answered, and of what was not, what
    /// `is_there` says of one after the other, up to the first that is not.
    pub(super) fn replayed(&self, mut is_there: impl FnMut() -> bool) -> Vec<&Entry> {
        let records = self.records.iter().flatten();
        let answered = |record: &&LogRecord| matches!(record.ticket.outcome(), Some(Ok(())));
        records
            .take_while(|record| answered(record) || is_there())
            .map(|record| &record.entry)
            .collect()
    }
}

/// What the log calls a file.
fn key(file: u64) -> Key {
    Key::new(&file.to_be_bytes()).expect("8 bytes are neither none nor too many")
}

fn file(key: &Key) -> u64 {
    key.as_bytes().try_into().map_or(0, u64::from_be_bytes)
}

fn stamp(time: Time) -> Stamp {
    Stamp { seconds: time.secs, nanos: time.nanos }
}
