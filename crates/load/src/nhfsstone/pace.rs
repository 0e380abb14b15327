//! How long a task sleeps before an operation: anything from nothing to twice a mean, which follows
//! from the rate, and is corrected by how many calls there were and should have been.

use fastrand::Rng;
use perf::units::{Instant, Nanos};

use super::plan::Plan;

/// How often the mean is corrected, at least: 5 s in the original, for which it was work.
const SAMPLE_MAX: Nanos = Nanos::from_secs(1);

/// Corrections of a run, at least.
const SAMPLES: f64 = 50.0;

/// The share of the time by which the calls are ahead or behind that each task makes good in its
/// sleeps until the next correction, or in one of them if that is later. In the original a
/// thousandth of all calls changes the mean by a twentieth, which is less in its 5,000 calls; in
/// some hundred it is so much that the sleeps are none or ten times too long, by turns.
const CORRECTION: f64 = 0.5;

/// However much it is behind, a task is not without sleep.
const MEAN_MIN_S: f64 = 1e-4;

/// See the module's head. Takes the time, and decides only.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    load_per_s: f64,
    tasks: f64,
    begin: Instant,
    sample: Nanos,
    sampled: Instant,
    mean_s: f64,
    operations: u64,
    /// What all operations so far have taken.
    busy: Nanos,
}

impl Pace {
    pub(super) fn new(plan: &Plan, begin: Instant) -> Self {
        let tasks = plan.tasks.max(1) as f64;
        let part = Nanos::from_secs_f64(plan.calls as f64 / plan.load_per_s / SAMPLES);
        Self {
            load_per_s: plan.load_per_s,
            sample: part.min(SAMPLE_MAX),
            tasks,
            begin,
            sampled: begin,
            mean_s: tasks / plan.load_per_s,
            operations: 0,
            busy: Nanos::ZERO,
        }
    }

    /// How long the next task is to sleep.
    pub(super) fn sleep(&self, random: &mut Rng) -> Nanos {
        Nanos::from_secs_f64(2.0 * self.mean_s * random.f64())
    }

    /// An operation begins.
    pub(super) fn begun(&mut self) {
        self.operations += 1;
    }

    /// There were so many calls until now; the last operation took so long. Gives back by how many
    /// seconds of the rate they are behind.
    pub(super) fn done(&mut self, now: Instant, calls: u64, took: Nanos) -> f64 {
        self.busy += took;
        let wanted = now.since(self.begin).as_secs_f64() * self.load_per_s;
        let ahead = calls as f64 - wanted;
        if now.since(self.sampled) >= self.sample {
            self.sampled = now;
            // A task's distance from operation to operation is its sleep and the operation.
            let operations = self.operations.max(1) as f64;
            let distance_s = self.tasks * (calls.max(1) as f64 / operations) / self.load_per_s;
            let sleep_s = (distance_s - self.busy.as_secs_f64() / operations).max(0.0);
            let sleeps = (self.sample.as_secs_f64() / distance_s).max(1.0);
            let corrected = sleep_s + CORRECTION * ahead / self.load_per_s / sleeps;
            self.mean_s = corrected.clamp(MEAN_MIN_S, 10.0 * distance_s.max(MEAN_MIN_S));
        }
        (-ahead).max(0.0) / self.load_per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::table::MIXES;

    /// Calls a second of one task whose operations are of two calls and take `took`.
    fn rate(load_per_s: f64, took: Nanos) -> f64 {
        of_tasks(1, load_per_s, 3_000, took, 2)
    }

    fn of_tasks(tasks: usize, load_per_s: f64, calls: u64, took: Nanos, seed: u64) -> f64 {
        let plan = Plan { mix: MIXES[0], load_per_s, calls, tasks, seed };
        let mut random = Rng::with_seed(seed);
        let mut pace = Pace::new(&plan, Instant::EPOCH);
        let mut wake: Vec<Instant> =
            (0..tasks).map(|_| Instant::EPOCH + pace.sleep(&mut random)).collect();
        let mut calls = 0;
        loop {
            let next = wake.iter_mut().min().expect("there is a task");
            let now = *next + took;
            pace.begun();
            calls += 2;
            pace.done(now, calls, took);
            if calls >= plan.calls {
                return calls as f64 / now.since(Instant::EPOCH).as_secs_f64();
            }
            *next = now + pace.sleep(&mut random);
        }
    }

    #[test]
    fn the_rate_is_what_it_should_be_whatever_an_operation_takes() {
        for took in [Nanos::ZERO, Nanos::from_millis(20), Nanos::from_millis(50)] {
            let rate = rate(30.0, took);
            assert!((rate / 30.0 - 1.0).abs() < 0.02, "{took:?}: {rate}");
        }
    }

    #[test]
    fn few_calls_of_several_tasks_have_the_rate_too() {
        for seed in 0..20 {
            let rate = of_tasks(7, 20.0, 120, Nanos::from_millis(1), seed);
            assert!((rate / 20.0 - 1.0).abs() < 0.15, "seed {seed}: {rate}");
        }
    }

    #[test]
    fn a_rate_that_cannot_be_is_as_high_as_it_can_be() {
        let rate = rate(30.0, Nanos::from_millis(200));
        assert!((9.8..=10.0).contains(&rate), "{rate}");
    }
}
