//! What the stages of a write cost, as the paper measured them with the kernel's clock.
//!
//! Two readings of the clock and one count in a histogram for each stage of each call; nothing is
//! counted unless it is requested in [`super::Options`].

use parking_lot::Mutex;
use perf::histogram::Histogram;
use perf::units::Nanos;

perf::named! {
    /// A part of the way of written bytes.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Stage {
        /// Finding the place in the index and putting the bytes there.
        IndexLookup => "index lookup",
        /// Gathering what goes into one WRITE.
        Coalesce => "coalesce",
        /// A writer's wait for the mount's lock.
        LockWait => "lock wait",
        /// Encoding the call.
        Encode => "encode",
        /// From the encoded call until the system has taken its last byte.
        Send => "send",
        /// From there until the reply has come.
        Wait => "wait",
        /// Noting what the reply says.
        ReplyHandling => "reply handling",
    }
}

/// How long each stage took, how often.
#[derive(Clone, Debug)]
pub struct Stages {
    /// In the order of [`Stage::ALL`].
    pub histograms: Vec<(Stage, Histogram)>,
}

impl Stages {
    pub fn of(&self, stage: Stage) -> &Histogram {
        &self.histograms[stage as usize].1
    }
}

/// The histograms while they are filled.
#[derive(Debug)]
pub(super) struct Timing {
    /// Each lock guards one histogram and is held for one count.
    histograms: Option<[Mutex<Histogram>; 7]>,
}

impl Timing {
    pub(super) fn new(is_on: bool) -> Self {
        let histograms = is_on.then(|| std::array::from_fn(|_| Mutex::new(Histogram::new())));
        Self { histograms }
    }

    pub(super) fn is_on(&self) -> bool {
        self.histograms.is_some()
    }

    pub(super) fn record(&self, stage: Stage, span: Nanos) {
        if let Some(histograms) = &self.histograms {
            histograms[stage as usize].lock().record(span);
        }
    }

    pub(super) fn snapshot(&self) -> Stages {
        let of = |stage: Stage| match &self.histograms {
            Some(histograms) => histograms[stage as usize].lock().clone(),
            None => Histogram::new(),
        };
        Stages { histograms: Stage::ALL.map(|stage| (stage, of(stage))).into() }
    }
}

#[cfg(test)]
mod tests {
    use net::clock::Clock;

    use super::*;

    #[test]
    fn what_is_timed_is_counted_and_costs_little() {
        let clock = Clock::real();
        let timing = Timing::new(true);
        let begun = clock.now();
        let count = 20_000_u64;
        for _ in 0..count {
            let begun = clock.now();
            timing.record(Stage::Encode, clock.now().since(begun));
        }
        let each = clock.now().since(begun).as_nanos() / count;
        println!("{each} ns");
        assert_eq!(timing.snapshot().of(Stage::Encode).count(), count);
        assert!(timing.snapshot().of(Stage::Send).is_empty());
        // Tens of nanoseconds; a build without optimisation on a busy machine takes more.
        assert!(each < 20_000, "{each} ns");
    }

    #[test]
    fn what_is_not_timed_is_not_counted() {
        let timing = Timing::new(false);
        timing.record(Stage::Wait, Nanos::from_micros(1));
        assert!(timing.snapshot().histograms.iter().all(|(_, histogram)| histogram.is_empty()));
    }
}
