//! What went wrong, and when: what an outcome may be depends on it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use crate::reference::tree::Doubt;

/// See the module's head.
#[derive(Debug, Default)]
pub struct History(Mutex<Inner>); // guards itself

#[derive(Debug, Default)]
struct Inner {
    /// When the server lost its memory.
    crashes: Vec<Instant>,
    /// From when until when the disk gave errors, or was full.
    failing: Vec<(Instant, Instant)>,
    full: Vec<(Instant, Instant)>,
    /// How often data may have been lost.
    losses: u64,
    counts: BTreeMap<&'static str, u64>,
}

/// Which trouble the disk is in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Trouble {
    Failing,
    Full,
}

impl History {
    pub(crate) fn count(&self, fault: &'static str) {
        self.count_many(fault, 1);
    }

    /// The same of so many, also of what is no fault.
    pub(crate) fn count_many(&self, what: &'static str, count: u64) {
        *self.0.lock().counts.entry(what).or_default() += count;
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().counts.clone()
    }

    pub(crate) fn crashed(&self, now: Instant) {
        let mut inner = self.0.lock();
        inner.crashes.push(now);
        inner.losses += 1;
    }

    pub(crate) fn begins(&self, trouble: Trouble, now: Instant, span: Nanos) {
        let mut inner = self.0.lock();
        inner.losses += 1;
        match trouble {
            Trouble::Failing => inner.failing.push((now, now + span)),
            Trouble::Full => inner.full.push((now, now + span)),
        }
    }

    /// Some trouble is over; an error until now may be reported a little later.
    pub(crate) fn ends(&self) {
        self.0.lock().losses += 1;
    }

    /// Changes whenever data may have been lost that were not stable.
    pub(crate) fn losses(&self) -> u64 {
        self.0.lock().losses
    }

    /// What an operation may have met that was under way from `since` until `until`.
    pub(crate) fn doubt(&self, since: Instant, until: Instant) -> Doubt {
        let inner = self.0.lock();
        let meets = |(begun, ended): &(Instant, Instant)| *begun <= until && *ended >= since;
        Doubt {
            forgot: inner.crashes.iter().any(|at| (since..=until).contains(at)),
            failed: inner.failing.iter().any(meets),
            full: inner.full.iter().any(meets),
        }
    }

    pub(crate) fn crashes(&self) -> u64 {
        self.0.lock().crashes.len() as u64
    }

    /// Whether there has been trouble with the disk.
    pub(crate) fn was_troubled(&self) -> bool {
        let inner = self.0.lock();
        !inner.failing.is_empty() || !inner.full.is_empty()
    }
}
