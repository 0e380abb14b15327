//! One direction of the relay's link, which all connections and sessions share: when each message
//! arrives, and what has been counted.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use perf::histogram::Histogram;
use perf::model::loggp::{Link, Occupancy};
use perf::units::Instant;

/// Why a message did not arrive.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Loss {
    /// The relay held as much as it may.
    NoRoom,
    /// There were as many sources of datagrams as may be told apart.
    NoSession,
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
            Self::NoRoom => "no-room",
            Self::NoSession => "no-session",
            Self::Unreachable => "unreachable",
            Self::Unsent => "unsent",
            Self::Ended => "ended",
        }
    }
}

/// What one direction has carried.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// Messages that came, and their bytes, of streams with 4 for the mark of each.
    pub messages: u64,
    pub bytes: u64,
    /// Of these, those that were handed on.
    pub passed: u64,
    pub passed_bytes: u64,
    /// Those that are on their way now.
    pub held: u64,
    pub held_bytes: u64,
    pub lost: BTreeMap<Loss, u64>,
    /// How long messages waited for the link to be free.
    pub queued: Histogram,
    /// How much later than it was due each message was handed on: the relay's own error.
    pub late: Histogram,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Lane {
    /// Guards the link's state and what is counted; held for a few additions.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    link: Link,
    occupancy: Occupancy,
    carried: Carried,
}

impl Lane {
    pub(super) fn new(link: Link) -> Self {
        let occupancy = Occupancy::default();
        Self { state: Mutex::new(State { link, occupancy, carried: Carried::default() }) }
    }

    /// Puts a message onto the link: when it arrives.
    pub(super) fn admit(&self, now: Instant, bytes: u64) -> Instant {
        let mut state = self.state.lock();
        let State { link, occupancy, carried } = &mut *state;
        let passage = occupancy.admit(link, now, bytes);
        let queued = passage.departs.since(now) - link.serialization(bytes);
        carried.messages += 1;
        carried.bytes += bytes;
        carried.held += 1;
        carried.held_bytes += bytes;
        carried.queued.record(queued);
        passage.arrives
    }

    /// A message that came is lost before it was put onto the link.
    pub(super) fn refuse(&self, bytes: u64, loss: Loss) {
        let mut state = self.state.lock();
        state.carried.messages += 1;
        state.carried.bytes += bytes;
        *state.carried.lost.entry(loss).or_default() += 1;
    }

    /// A message that was admitted is handed on.
    pub(super) fn pass(&self, due: Instant, now: Instant, bytes: u64) {
        let mut state = self.state.lock();
        let carried = &mut state.carried;
        carried.held -= 1;
        carried.held_bytes -= bytes;
        carried.passed += 1;
        carried.passed_bytes += bytes;
        carried.late.record(now.since(due));
    }

    /// Messages that were admitted are not handed on.
    pub(super) fn lose(&self, messages: u64, bytes: u64, loss: Loss) {
        if messages > 0 {
            let mut state = self.state.lock();
            state.carried.held -= messages;
            state.carried.held_bytes -= bytes;
            *state.carried.lost.entry(loss).or_default() += messages;
        }
    }

    /// Changes what becomes of messages from now on. Those on their way keep their times.
    pub(super) fn set(&self, link: Link) {
        self.state.lock().link = link;
    }

    pub(super) fn link(&self) -> Link {
        self.state.lock().link
    }

    pub(super) fn carried(&self) -> Carried {
        self.state.lock().carried.clone()
    }
}
