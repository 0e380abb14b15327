//! What came of a run, and whether it counts.

use std::collections::BTreeMap;

use perf::histogram::Histogram;
use perf::units::Nanos;

use super::choice::by_number;
use super::files::Call;
use super::plan::Plan;
use crate::curve::validity::ERRORS_MAX;
use crate::mix::{Mix, Operation};

/// A mix that is off by more than this, in percent of all calls, is another one.
pub const OFF_MAX_PERCENT: f64 = 10.0;

/// A server of which more calls than this, in percent, have an unexpected answer does not do the
/// work whose time is measured. That of SFS, which stands for a curve's points, too.
pub const FAILED_MAX_PERCENT: f64 = 100.0 * ERRORS_MAX;

/// By how much of the offered rate another one is not that load any more. Guess.
const PACE_OFF_MAX: f64 = 0.05;

/// Calls of others in [`BACKGROUND_TIME`] over which a server is not measured.
pub const BACKGROUND_MAX: u64 = 20;
pub const BACKGROUND_TIME: Nanos = Nanos::from_secs(2);

/// Whether the calls came at the rate that was offered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// The times are those of a higher load.
    Above,
    AsOffered,
    Below,
}

/// Why a run does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Breach {
    /// More than [`FAILED_MAX_PERCENT`] of the calls.
    Failed,
    /// It is off by more than [`OFF_MAX_PERCENT`].
    OtherMix,
}

/// One kind of call.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub calls: u64,
    /// Of those with the expected answer, as `times`.
    pub total: Nanos,
    pub times: Histogram,
    /// Answered with a status that was not expected.
    pub failed: u64,
}

impl Tally {
    /// Of the calls with the expected answer, if there are any.
    pub fn mean(&self) -> Option<Nanos> {
        mean(self.total, self.calls - self.failed)
    }
}

fn mean(total: Nanos, calls: u64) -> Option<Nanos> {
    (calls > 0).then(|| Nanos::from_secs_f64(total.as_secs_f64() / calls as f64))
}

/// The benchmark's results: mix, time, calls, their rate, and their mean time.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub mix: Mix,
    pub load_per_s: f64,
    pub tasks: usize,
    pub operations: BTreeMap<Operation, Tally>,
    pub elapsed: Nanos,
    /// By how many seconds the calls were behind their rate at most.
    pub behind_max: f64,
    /// The first unexpected answer, for people.
    pub first_failure: Option<String>,
    calls: u64,
}

impl Outcome {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            mix: plan.mix,
            load_per_s: plan.load_per_s,
            tasks: plan.tasks,
            operations: BTreeMap::new(),
            elapsed: Nanos::ZERO,
            behind_max: 0.0,
            first_failure: None,
            calls: 0,
        }
    }

    pub(super) fn count(&mut self, call: &Call) {
        let tally = self.operations.entry(call.operation).or_default();
        tally.calls += 1;
        self.calls += 1;
        if let Some(failure) = &call.failure {
            tally.failed += 1;
            self.first_failure.get_or_insert_with(|| failure.clone());
            return;
        }
        tally.total += call.took;
        tally.times.record(call.took);
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    pub fn failed(&self) -> u64 {
        self.operations.values().map(|tally| tally.failed).sum()
    }

    /// The share of an operation in all calls.
    pub fn percent(&self, operation: Operation) -> f64 {
        let own = self.operations.get(&operation).map_or(0, |tally| tally.calls);
        100.0 * own as f64 / self.calls.max(1) as f64
    }

    pub fn calls_per_s(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 { self.calls as f64 / elapsed } else { 0.0 }
    }

    /// Whether the calls came at the rate that was offered. The run may end as much earlier or
    /// later as its tasks sleep at most, which decides where there are a few calls only.
    pub fn pace(&self) -> Pace {
        let sleep = 2.0 * self.tasks as f64;
        let (due, calls) = (self.elapsed.as_secs_f64() * self.load_per_s, self.calls as f64);
        if due * (1.0 - PACE_OFF_MAX) > calls + sleep {
            Pace::Below
        } else if due * (1.0 + PACE_OFF_MAX) + sleep < calls {
            Pace::Above
        } else {
            Pace::AsOffered
        }
    }

    /// Of all calls with the expected answer.
    pub fn total(&self) -> Nanos {
        self.operations.values().fold(Nanos::ZERO, |sum, tally| sum + tally.total)
    }

    pub fn mean(&self) -> Option<Nanos> {
        mean(self.total(), self.calls - self.failed())
    }

    /// Of all calls.
    pub fn failed_percent(&self) -> f64 {
        100.0 * self.failed() as f64 / self.calls.max(1) as f64
    }

    /// By how much the mix is off, in percent of all calls, over all operations.
    pub fn off_percent(&self) -> f64 {
        let off = |operation: Operation| {
            (self.percent(operation) - 100.0 * self.mix.share(operation)).abs()
        };
        Operation::ALL.into_iter().map(off).sum()
    }

    /// The rule that it does not hold: the calls were the mix, which is the benchmark's own, and
    /// the server did what they ask for.
    pub fn breach(&self) -> Option<Breach> {
        if self.failed_percent() > FAILED_MAX_PERCENT {
            return Some(Breach::Failed);
        }
        (self.off_percent() > OFF_MAX_PERCENT).then_some(Breach::OtherMix)
    }

    pub fn is_valid(&self) -> bool {
        self.breach().is_none()
    }

    /// Operations in the benchmark's order, with all of version 2's, and those of version 3 that
    /// are wanted or were called.
    pub fn in_order(&self) -> impl Iterator<Item = Operation> + '_ {
        let known = (0..).map_while(|number| match number {
            0..24 => Some(by_number(number)),
            _ => None,
        });
        known.enumerate().filter_map(|(number, operation)| {
            let operation = operation?;
            let is_used =
                self.mix.share(operation) > 0.0 || self.operations.contains_key(&operation);
            (number < 18 || is_used).then_some(operation)
        })
    }
}

/// The operation with a number of the benchmark's table (`-T`): version 2's procedures by their
/// numbers, then those that version 3 has more.
pub fn operation(number: usize) -> Option<Operation> {
    by_number(number)
}
