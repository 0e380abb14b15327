//! The forms that a sweep may have: their parameters, and the throughput that follows.

use super::Seen;
use crate::model::gathered::{Gathered, Turns};
use crate::model::least_squares::Parameter;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// `cycle`, `stage`, `overhead`, `wake`.
    Corner,
    /// `cycle`, `stage`, `variation`, `wake`.
    Variable,
    /// `way`, `stage`, `sync`, `call`, `wake`; see [`crate::model::gathered`].
    Gathered {
        /// The part of the stage that comes after the sync.
        after: f64,
    },
}

/// What follows from a form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) per_s: f64,
    /// The processor's time for a call.
    pub(super) busy_us: f64,
}

impl Expected {
    /// Of a processor that has to wake for a call that finds it asleep: of all, 1 - X B, if each
    /// takes B. A full one never sleeps.
    fn waking(per_us: f64, stage_us: f64, wake_us: f64) -> Self {
        let busy_us = (stage_us + wake_us) / (1.0 + wake_us * per_us);
        Self { per_s: per_us * 1e6, busy_us }
    }
}

impl Form {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Corner => "corner",
            Self::Variable => "variable",
            Self::Gathered { .. } => "gathered",
        }
    }

    /// What follows from the parameters.
    pub(super) fn expected(self, values: &[f64], outstanding: u32) -> Expected {
        let calls = f64::from(outstanding);
        match (self, values) {
            (Self::Corner, &[cycle_us, stage_us, overhead_us, wake_us]) => {
                let alone_us = cycle_us + (calls - 1.0) * overhead_us;
                let per_us = 1.0 / (alone_us / calls).max(stage_us);
                Expected::waking(per_us, stage_us, wake_us)
            }
            (Self::Variable, &[cycle_us, stage_us, variation, wake_us]) => {
                let per_us = variable(cycle_us, stage_us, variation, outstanding) / 1e6;
                Expected::waking(per_us, stage_us, wake_us)
            }
            (Self::Gathered { after }, &[way_us, stage_us, sync_us, call_us, wake_us]) => {
                let of = Gathered { way_us, stage_us, after, sync_us, call_us, wake_us };
                let Turns { per_s, together } = of.turns(outstanding);
                Expected { per_s, busy_us: stage_us + wake_us / together }
            }
            _ => Expected { per_s: f64::NAN, busy_us: f64::NAN },
        }
    }

    /// All parameters moved: each by a factor, or, where it may have come to nothing, by a part of
    /// what it is measured against.
    pub(super) fn moved(self, values: &[f64], by: &[f64]) -> Vec<f64> {
        let moved = |(which, by): (usize, &f64)| match self.against(values, which) {
            Some(whole) => (values[which] + by * whole).max(0.0),
            None => values[which] * by.exp(),
        };
        by.iter().enumerate().map(moved).collect()
    }

    /// What a parameter is measured against that may have come to nothing.
    pub(super) fn against(self, values: &[f64], which: usize) -> Option<f64> {
        match (self, which) {
            (Self::Corner, 2 | 3) | (Self::Variable, 3) | (Self::Gathered { .. }, 0 | 3 | 4) => {
                Some(values[1])
            }
            (Self::Variable, 2) => Some(1.0),
            _ => None,
        }
    }

    /// Where to begin. Without any runs there is nowhere.
    pub(super) fn starts(self, seen: &[Seen]) -> Vec<Vec<Parameter>> {
        let Some(first) = seen.iter().min_by_key(|seen| seen.outstanding) else {
            return vec![Vec::new()];
        };
        let cycle_us = f64::from(first.outstanding) * 1e6 / first.per_s;
        let stage_us = seen.iter().map(|seen| seen.busy_us).fold(f64::INFINITY, f64::min);
        let near = |name, start: f64, reach: f64| Parameter {
            name,
            unit: "us",
            start,
            lo: start / reach,
            hi: start * reach,
        };
        let start = |share: f64| match self {
            Self::Corner => vec![
                near("cycle", cycle_us, 1e4),
                near("stage", stage_us, 1e4),
                near("overhead", share * 0.2 * stage_us, 1e4),
                near("wake", 0.05 * stage_us, 1e4),
            ],
            Self::Variable => vec![
                near("cycle", cycle_us, 1e4),
                near("stage", stage_us, 1e4),
                Parameter { unit: "1", lo: 1e-3, hi: 4.0, ..near("variation", share, 1.0) },
                near("wake", 0.05 * stage_us, 1e4),
            ],
            Self::Gathered { .. } => vec![
                near("way", (1.0 - share) * cycle_us, 1e4),
                near("stage", stage_us, 1e4),
                near("sync", share * cycle_us, 1e4),
                near("call", 0.01 * cycle_us, 1e4),
                near("wake", 0.1 * stage_us, 1e4),
            ],
        };
        vec![start(0.5), start(0.05), start(0.9)]
    }
}

/// Mean value analysis with a line whose service varies: a call finds Q calls there, one of which
/// is served for U of the time and has (1 + v) / 2 of its service left, on average.
pub(super) fn variable(cycle_us: f64, stage_us: f64, variation: f64, outstanding: u32) -> f64 {
    let delay_us = (cycle_us - stage_us).max(0.0);
    let (mut waiting, mut busy, mut per_us) = (0.0, 0.0, 0.0);
    for calls in 1..=outstanding {
        let left = busy * stage_us * f64::midpoint(1.0, variation);
        let response_us = stage_us + stage_us * (waiting - busy) + left;
        per_us = (f64::from(calls) / (delay_us + response_us)).min(1.0 / stage_us);
        (waiting, busy) = (f64::from(calls) - per_us * delay_us, per_us * stage_us);
        if busy >= 1.0 - 1e-9 {
            break;
        }
    }
    per_us * 1e6
}
