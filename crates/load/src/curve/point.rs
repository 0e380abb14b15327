//! One point of a curve.

use perf::stats::{Blocks, Estimate, Sum, mean_in_order};
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
    /// Operations a second that were requested, or operations outstanding.
    pub load: f64,
    /// All of its runs as one.
    pub outcome: Outcome,
    /// What was offered came.
    pub keeps_up: bool,
    /// Rules that it does not hold.
    pub breaches: Vec<Breach>,
}

impl Point {
    pub(super) fn new(load: f64, outcome: Outcome, settings: &Settings) -> Self {
        let kind = settings.kind();
        let breaches = validity::breaches(&outcome, kind, settings);
        let keeps_up = outcome.broken.is_none() && keeps_up(&outcome);
        Self { kind, load, outcome, keeps_up, breaches }
    }

    /// It holds all rules.
    pub fn is_valid(&self) -> bool {
        self.breaches.is_empty()
    }

    /// Beyond what the server can do: nothing is wrong with it, but response times depend on how
    /// long was measured.
    pub fn is_over(&self) -> bool {
        self.kind == Kind::Open && !self.keeps_up
    }

    /// Operations a second that were answered as expected, with the interval of the batches.
    pub fn achieved_per_s(&self) -> Estimate {
        let value = self.outcome.achieved_per_s();
        let found = mean_in_order(&answered(&self.outcome));
        // Of a run that ended before its end, batches are left over: the rate is that of its time.
        let ci95 = found.and_then(|found| found.widths_around(value));
        Estimate { value, ci95 }.not_negative()
    }

    /// The mean response time in microseconds, with the interval of the batches.
    pub fn response_us(&self) -> Option<Estimate> {
        let value = self.outcome.response_mean()?.as_micros_f64();
        let found = mean_in_order(&responses(&self.outcome));
        let ci95 = found.and_then(|found| found.widths_around(value));
        Some(Estimate { value, ci95 }.not_negative())
    }

    /// The mean response times of its batches, in microseconds: of batches so long that one does
    /// not resemble the next.
    pub fn batches_us(&self) -> Vec<f64> {
        means(&responses(&self.outcome))
    }

    /// The rates of its batches, in answers a second; batches as long as those of response times.
    pub fn batches_per_s(&self) -> Vec<f64> {
        means(&answered(&self.outcome))
    }

    /// Operations outstanding on average, by Little's law.
    pub fn outstanding(&self) -> f64 {
        let response_s = self.outcome.response_mean().map_or(0.0, Nanos::as_secs_f64);
        response_s * self.outcome.achieved_per_s()
    }
}

/// Of batches so long that one does not resemble the next.
fn means(batches: &[Sum]) -> Vec<f64> {
    let long = batches.chunks(Blocks::of(batches).length);
    long.filter_map(|batches| Sum::of(batches).mean()).collect()
}

/// Of each batch, its answers and its seconds.
pub(super) fn answered(outcome: &Outcome) -> Vec<Sum> {
    let batch_s = outcome.span.as_secs_f64() / outcome.batches.len().max(1) as f64;
    let of = |batch: &Batch| Sum { total: batch.answered as f64, count: batch_s };
    outcome.batches.iter().map(of).collect()
}

/// Of each batch, its response times in microseconds and how many they are: a batch in which the
/// server stalled has few answers, and weighs by the responses that were waited for.
pub(super) fn responses(outcome: &Outcome) -> Vec<Sum> {
    let of = |batch: &Batch| Sum {
        total: batch.response_total.as_micros_f64(),
        count: batch.responses as f64,
    };
    outcome.batches.iter().map(of).collect()
}
