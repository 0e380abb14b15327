//! One point of a curve.

use perf::stats::{Estimate, Sample};
use perf::units::Nanos;

use super::validity::{self, Breach};
use super::{Settings, validity::keeps_up};
use crate::mix::Outcome;
use crate::mix::outcome::Batch;

/// Who decides when an operation starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A schedule.
    Open,
    /// The answer before it.
    Closed,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Point {
    pub kind: Kind,
    /// Operations a second that were asked for, or operations outstanding.
    pub load: f64,
    /// All of its runs as one.
    pub outcome: Outcome,
    /// What was offered came.
    pub kept_up: bool,
    /// Rules that it does not hold.
    pub breaches: Vec<Breach>,
}

impl Point {
    pub(super) fn new(load: f64, outcome: Outcome, settings: &Settings) -> Self {
        let kind = settings.kind();
        let breaches = validity::breaches(&outcome, kind, settings);
        let kept_up = outcome.broken.is_none() && keeps_up(&outcome);
        Self { kind, load, outcome, kept_up, breaches }
    }

    /// It holds all rules.
    pub fn is_valid(&self) -> bool {
        self.breaches.is_empty()
    }

    /// Beyond what the server can do: nothing is wrong with it, but response times depend on how
    /// long was measured.
    pub fn is_over(&self) -> bool {
        self.kind == Kind::Open && !self.kept_up
    }

    /// Operations a second that were answered as expected, with the interval of the batches.
    pub fn achieved_per_s(&self) -> Estimate {
        let value = self.outcome.achieved_per_s();
        let batches = self.outcome.batches.len().max(1) as f64;
        let batch_s = self.outcome.span.as_secs_f64() / batches;
        let rates = self.outcome.batches.iter().map(|batch| batch.answered as f64 / batch_s);
        around(value, rates.collect())
    }

    /// The mean response time in microseconds, with the interval of the batches.
    pub fn response_us(&self) -> Option<Estimate> {
        let value = self.outcome.response_mean()?.as_micros_f64();
        Some(around(value, self.batches_us().collect()))
    }

    /// The mean response times of its batches, in microseconds.
    pub fn batches_us(&self) -> impl Iterator<Item = f64> {
        self.outcome.batches.iter().filter_map(response_us)
    }

    /// Operations outstanding on average, by Little's law.
    pub fn outstanding(&self) -> f64 {
        let response_s = self.outcome.response_mean().map_or(0.0, Nanos::as_secs_f64);
        response_s * self.outcome.achieved_per_s()
    }
}

/// The mean response time of a batch that has any.
pub(super) fn response_us(batch: &Batch) -> Option<f64> {
    let responses = batch.responses as f64;
    (batch.responses > 0).then(|| batch.response_total.as_micros_f64() / responses)
}

/// A value with the interval that the means of batches give it (Student's t).
fn around(value: f64, means: Vec<f64>) -> Estimate {
    let ci95 = Sample::new(means).ok().and_then(|sample| sample.mean_ci95()).map(|mut ci| {
        // Batches do not all weigh the same: their mean may lie beside the value.
        let half = (ci.hi - ci.lo) / 2.0;
        (ci.lo, ci.hi) = (value - half, value + half);
        ci
    });
    Estimate { value, ci95 }
}
