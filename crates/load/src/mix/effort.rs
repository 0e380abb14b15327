//! What a run cost the generator, and whether it was the generator that set the limit.
//!
//! An exact alarm watches the clock for its last tenth of a millisecond, so that a generator whose
//! operations start close to each other always has its processor. That time is no work: it is
//! measured apart, and is there when an answer comes. Between two looks at the clock the thread may
//! as well have sent and received, or somebody else had the processor: what is longer than a turn
//! in which nothing happens is no watching.

use net::clock::Clock;
use perf::units::{Instant, Nanos};

use crate::cpu::Usage;

/// A turn of the runtime in which nothing happens, at most: a poll and now and then a look at its
/// sockets. Turns on the machines we measured take 0.2 to 1 us.
const TURN: Nanos = Nanos::from_micros(2);

/// See the module's head. A world has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnLoad {
    /// Threads that generated.
    pub threads: u32,
    /// Their processor time, without what they watched the clock for.
    pub busy: Nanos,
    /// What they watched the clock for.
    pub watched: Nanos,
    /// The share of its time that the busiest thread worked, from 0 to 1.
    pub busiest: f64,
}

impl OwnLoad {
    /// Together with others.
    pub fn merge(&mut self, other: &Self) {
        self.threads += other.threads;
        self.busy += other.busy;
        self.watched += other.watched;
        self.busiest = self.busiest.max(other.busiest);
    }
}

/// Takes the time of one generator.
#[derive(Debug, Default)]
pub(super) struct Meter {
    begun: Option<(Instant, Nanos, Nanos)>,
    measured: Option<OwnLoad>,
    /// What was watched in all.
    watched: Nanos,
    watching_since: Option<Instant>,
}

impl Meter {
    /// What counts begins, the first time this is called.
    pub(super) fn begin(&mut self, clock: &Clock, now: Instant) {
        if self.begun.is_none() && !clock.is_virtual() {
            self.begun = Some((now, Usage::now().thread, self.watched));
        }
    }

    /// It has ended, the first time this is called.
    pub(super) fn end(&mut self, now: Instant) {
        if let (Some((begun, cpu, watched)), None) = (self.begun, self.measured) {
            let watched = self.watched.saturating_sub(watched);
            let cpu = Usage::now().thread.saturating_sub(cpu);
            let busy = cpu.saturating_sub(watched);
            let took = now.since(begun).as_secs_f64();
            let busiest = if took > 0.0 { busy.as_secs_f64() / took } else { 0.0 };
            self.measured = Some(OwnLoad { threads: 1, busy, watched, busiest });
        }
    }

    pub(super) fn effort(&self) -> Option<OwnLoad> {
        self.measured
    }

    /// Nothing is there to be done but to watch the clock.
    pub(super) fn watch(&mut self, now: Instant) {
        if let Some(since) = self.watching_since.replace(now) {
            self.watched += now.since(since).min(TURN);
        }
    }

    /// Something came, or the clock is left to ring.
    pub(super) fn wake(&mut self) {
        self.watching_since = None;
    }

    /// It is time for what the clock was watched for.
    pub(super) fn due(&mut self, now: Instant) {
        if let Some(since) = self.watching_since.take() {
            self.watched += now.since(since).min(TURN);
        }
    }
}
