//! What one direction has carried, counted.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use perf::histogram::Histogram;
use perf::units::Instant;

use crate::shape::lane::{Fate, Lost};

/// Why a message did not arrive.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Loss {
    /// The link lost it, as requested.
    Chance,
    /// The link was cut.
    Partition,
    /// The link's queue was full.
    Queue,
    /// The relay held as much as it may.
    NoRoom,
    /// There were as many sources of datagrams as may be distinguished.
    NoSession,
    /// It was larger than what a source may get that is perhaps somebody else.
    Unproven,
    /// The other end was not there to take it.
    Unreachable,
    /// The system did not take it.
    Unsent,
    /// Its connection ended while it was on its way.
    Ended,
}

impl Loss {
    /// One word, for labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chance => "chance",
            Self::Partition => "partition",
            Self::Queue => "queue",
            Self::NoRoom => "no-room",
            Self::NoSession => "no-session",
            Self::Unproven => "unproven",
            Self::Unreachable => "unreachable",
            Self::Unsent => "unsent",
            Self::Ended => "ended",
        }
    }
}

impl From<Lost> for Loss {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Chance => Self::Chance,
            Lost::Partition => Self::Partition,
            Lost::Queue => Self::Queue,
            Lost::Held => Self::NoRoom,
        }
    }
}

/// What one direction has carried.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// Messages that came, and their bytes, of streams with 4 for the mark of each.
    pub messages: u64,
    pub bytes: u64,
    /// Messages that were passed on; a duplicate counts as one more.
    pub passed: u64,
    pub passed_bytes: u64,
    /// Those that are on their way now.
    pub held: u64,
    pub held_bytes: u64,
    pub lost: BTreeMap<Loss, u64>,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    /// Packets of streams that were retransmitted.
    pub retransmitted: u64,
    /// How long messages waited for the link to begin with them: for those before, and for the end
    /// of a stall.
    pub queued: Histogram,
    /// How much later than it was due each message was passed on: the relay's own error, and the
    /// wait for a peer that takes nothing.
    pub late: Histogram,
}

/// Shared by all that pass in one direction.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Held for a few additions.
    carried: Mutex<Carried>,
}

impl Ledger {
    /// A message came at `now` and met its fate.
    pub(super) fn came(&self, now: Instant, bytes: u64, fate: &Fate) {
        let mut carried = self.carried.lock();
        carried.messages += 1;
        carried.bytes += bytes;
        carried.duplicated += u64::from(fate.again.is_some());
        carried.reordered += u64::from(fate.reordered);
        carried.corrupted += u64::from(fate.flipped_bit.is_some());
        carried.retransmitted += fate.retransmissions;
        match fate.arrival {
            Ok(_) => carried.queued.record(fate.starts.since(now)),
            Err(lost) => *carried.lost.entry(lost.into()).or_default() += 1,
        }
    }

    /// A message is on its way.
    pub(super) fn hold(&self, bytes: u64) {
        let mut carried = self.carried.lock();
        carried.held += 1;
        carried.held_bytes += bytes;
    }

    /// A message that came is lost before it was put onto the link.
    pub(super) fn refuse(&self, bytes: u64, loss: Loss) {
        let mut carried = self.carried.lock();
        carried.messages += 1;
        carried.bytes += bytes;
        *carried.lost.entry(loss).or_default() += 1;
    }

    /// A message that came is lost before it was held.
    pub(super) fn drop_one(&self, loss: Loss) {
        *self.carried.lock().lost.entry(loss).or_default() += 1;
    }

    /// A message that was held is passed on.
    pub(super) fn pass(&self, due: Instant, now: Instant, bytes: u64) {
        let mut carried = self.carried.lock();
        carried.held -= 1;
        carried.held_bytes -= bytes;
        carried.passed += 1;
        carried.passed_bytes += bytes;
        carried.late.record(now.since(due));
    }

    /// Messages that were held are not passed on.
    pub(super) fn lose(&self, messages: u64, bytes: u64, loss: Loss) {
        if messages > 0 {
            let mut carried = self.carried.lock();
            carried.held -= messages;
            carried.held_bytes -= bytes;
            *carried.lost.entry(loss).or_default() += messages;
        }
    }

    pub(super) fn carried(&self) -> Carried {
        self.carried.lock().clone()
    }
}
