//! Which model to believe of a change to a path, chosen before the change is measured: the one that
//! has the better of what was measured of the path as it is.
//!
//! The formula says most, and has parameters that a world has not; so a world is believed only if
//! it is better by more than `NOISE_PCT` and by a quarter of the formula's error. It is where a
//! server that stops for its disk has calls waiting, which the formula lets go on.

use serde::{Deserialize, Serialize};

use crate::stats::Sample;

/// Throughput of a path as it is, measured.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct TransferPoint {
    pub call_bytes: u64,
    pub outstanding: u32,
    /// Without what the beginning and the end of a run take.
    pub mib_per_s: f64,
}

/// What was measured at a point, and what the models have there by the parameters alone; MiB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    pub measured: f64,
    pub formula: f64,
    pub simulated: f64,
}

crate::named! {
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Model {
        Formula => "formula",
        Simulation => "simulation",
    }
}

/// Why one is believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// There is no other.
    Alone,
    /// Nothing was measured that both could be held to.
    Unmeasured,
    /// Their errors at what was measured, at the median, percent.
    Errors { formula_pct: f64, simulation_pct: f64 },
}

/// What is believed of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Believed {
    pub model: Model,
    pub why: Why,
    /// After the change.
    pub mib_per_s: f64,
}

/// Points of a percent by which a world has to be better: runs of a world differ by as much from
/// what they would be if they were longer.
const NOISE_PCT: f64 = 1.0;

/// The same as a share of the formula's error.
const BETTER: f64 = 0.25;

/// What to believe of a change after which the models have this, and of the path as it is had what
/// is held to what was measured.
pub fn believed(formula: f64, simulated: Option<f64>, held: &[Held]) -> Believed {
    let error_pct = |of: fn(&Held) -> f64| {
        let errors = held.iter().map(|held| 100.0 * (of(held) / held.measured - 1.0).abs());
        Sample::new(errors.collect::<Vec<f64>>()).map(|sample| sample.median())
    };
    let of_formula = Believed { model: Model::Formula, why: Why::Alone, mib_per_s: formula };
    let Some(simulated) = simulated else { return of_formula };
    let errors = error_pct(|held| held.formula).and_then(|f| Ok((f, error_pct(|h| h.simulated)?)));
    let Ok((formula_pct, simulation_pct)) = errors else {
        return Believed { why: Why::Unmeasured, ..of_formula };
    };
    let why = Why::Errors { formula_pct, simulation_pct };
    let is_better = formula_pct - simulation_pct > (BETTER * formula_pct).max(NOISE_PCT);
    match is_better {
        true => Believed { model: Model::Simulation, why, mib_per_s: simulated },
        false => Believed { why, ..of_formula },
    }
}

/// What was measured with this size of call and so many outstanding.
pub fn observed(measured: &[TransferPoint], call_bytes: u64, outstanding: u32) -> Option<f64> {
    let same =
        |point: &&TransferPoint| point.call_bytes == call_bytes && point.outstanding == outstanding;
    measured.iter().find(same).map(|point| point.mib_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_decides_between_the_models() {
        let held = |formula, simulated| [Held { measured: 100.0, formula, simulated }];
        let model = |held: &[Held]| believed(20.0, Some(16.0), held).model;
        assert_eq!(model(&held(104.0, 99.5)), Model::Simulation);
        assert_eq!(model(&held(99.5, 104.0)), Model::Formula);
        // Better by less than what runs differ by, or by little of it.
        assert_eq!(model(&held(101.0, 100.5)), Model::Formula);
        assert_eq!(model(&held(110.0, 108.0)), Model::Formula);
        assert_eq!(believed(20.0, Some(16.0), &held(104.0, 99.5)).mib_per_s, 16.0);
        assert_eq!(believed(20.0, Some(16.0), &[]).why, Why::Unmeasured);
        assert_eq!(believed(20.0, None, &held(104.0, 99.5)).why, Why::Alone);
    }
}
