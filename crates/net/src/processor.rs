//! A processor as a resource.
//!
//! Work costs processor time whether or not this machine's processor does it: the o of LogGP, the
//! cost of a call at a server. In the real world the time is spun away, so that the processor is
//! really busy. In a world, where code takes no time, work queues for the cores of the host it
//! belongs to, and its owner waits until it is done.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use perf::model::station::Station;
use perf::units::{Instant, Nanos};

use crate::clock::Clock;

/// A host's processor; clones are the same.
#[derive(Clone)]
pub struct Processor {
    clock: Clock,
    station: Arc<Mutex<Station>>, // guards the line of work, or in the real world its count
}

/// What a processor did so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    pub cores: usize,
    /// Pieces of work.
    pub jobs: u64,
    /// Work that is done, over all cores.
    pub busy: Nanos,
    /// How long work waited for a core; the real world does not know.
    pub waited: Nanos,
    /// Share of the cores' time since the clock's epoch, of 1.
    pub utilization: f64,
}

impl Processor {
    /// The processor that runs this: work is spun away where it is requested.
    pub fn real(clock: &Clock) -> Self {
        Self::new(clock, 1)
    }

    /// A processor with `cores` in the world of `clock`. (With a real clock it is
    /// [`Self::real`].)
    pub fn of_world(clock: &Clock, cores: usize) -> Self {
        Self::new(clock, cores)
    }

    fn new(clock: &Clock, cores: usize) -> Self {
        Self { clock: clock.clone(), station: Arc::new(Mutex::new(Station::new(cores))) }
    }

    /// Does work that takes `span`.
    pub async fn spend(&self, span: Nanos) {
        if span == Nanos::ZERO {
            return;
        }
        let now = self.clock.now();
        let done = self.claim(now, span);
        if self.clock.is_virtual() {
            self.clock.sleep(done.since(now)).await;
        }
    }

    /// Does work that goes before all that waits: the rest of a job that has had its turn. (In the
    /// real world nothing waits, and it is as [`Self::spend`].)
    pub async fn spend_ahead(&self, span: Nanos) {
        if !self.clock.is_virtual() {
            return self.spend(span).await;
        }
        if span > Nanos::ZERO {
            let now = self.clock.now();
            let done = self.station.lock().claim_ahead(now, span);
            self.clock.sleep(done.since(now)).await;
        }
    }

    /// When work that is requested at `now` and takes `span` is done. In a world the caller has to
    /// wait until then; in the real world it has been done when this returns.
    pub fn claim(&self, now: Instant, span: Nanos) -> Instant {
        if self.clock.is_virtual() {
            return self.station.lock().claim(now, span);
        }
        // Several threads may spin at once, each on a core of its own: nobody waits in line.
        // The span is from when it was requested, and the count stays inside of it: the sender of
        // a message waits for what was put in, and not for how that is done.
        let until = now + span;
        self.count(now, span);
        loop {
            let reached = self.clock.now();
            if reached >= until {
                return reached;
            }
            std::hint::spin_loop();
        }
    }

    fn count(&self, now: Instant, span: Nanos) {
        let mut station = self.station.lock();
        let at_its_end = station.idle_at();
        station.claim(now.max(at_its_end), span);
    }

    pub fn load(&self) -> Load {
        let (station, now) = (self.station.lock(), self.clock.now());
        Load {
            cores: station.servers(),
            jobs: station.jobs(),
            busy: station.busy_by(now),
            waited: station.waited(),
            utilization: station.utilization(now),
        }
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processor").field(&self.load()).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::world::World;

    use super::*;

    #[test]
    fn in_a_world_work_queues_for_the_cores() {
        let world = World::new();
        let clock = world.clock();
        let (ends, load) = world
            .run(async move {
                let processor = Processor::of_world(&clock, 2);
                let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
                for _ in 0..4 {
                    let (processor, clock, sender) =
                        (processor.clone(), clock.clone(), sender.clone());
                    clock.clone().spawn(async move {
                        processor.spend(Nanos::from_micros(10)).await;
                        sender.send(clock.now().as_nanos()).ok();
                    });
                }
                drop(sender);
                let mut ends = Vec::new();
                while let Some(end) = receiver.recv().await {
                    ends.push(end);
                }
                clock.sleep(Nanos::from_micros(20)).await;
                (ends, processor.load())
            })
            .unwrap();
        assert_eq!(ends, [10_000, 10_000, 20_000, 20_000]);
        assert_eq!((load.jobs, load.busy), (4, Nanos::from_micros(40)));
        assert_eq!(load.waited, Nanos::from_micros(20));
        assert!((load.utilization - 0.5).abs() < 1e-9, "{load:?}");
    }

    #[test]
    fn in_the_real_world_the_time_is_really_spent() {
        let clock = Clock::real();
        let processor = Processor::real(&clock);
        let before = clock.now();
        let done = processor.claim(before, Nanos::from_micros(200));
        // From when it was requested: what goes before the spinning is part of it.
        let requested = clock.now();
        let already = processor.claim(Instant::EPOCH, Nanos::from_nanos(1));
        assert!(already >= requested && processor.load().jobs == 2);
        assert!(done.since(before) >= Nanos::from_micros(200));
        assert!(clock.now() >= done);
        assert!(processor.load().busy >= Nanos::from_micros(200));
    }
}
