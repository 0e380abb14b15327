//! What the points say together: slopes, the fit of saturation, and how far the world is off.

use load::recover::Parameter;
use perf::model::sensitivity::{Overhead, messages_per_op_from};
use perf::stats::{Fit, fit_least_squares};

use super::points::{BASELINE, Measured, Part};

/// The goal: live and world agree so well.
pub(super) const GOAL_PCT: f64 = 10.0;

/// Of one of the two systems.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Response time over L, both in microseconds: the paper's model says 2, its measurement 3.
    pub(super) latency: Option<Fit>,
    /// S and k of 1/(S + k o), where o is what was added to the baseline's.
    pub(super) saturation: Option<Overhead>,
}

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Findings {
    pub(super) live: Found,
    pub(super) world: Found,
    /// The largest difference of a point that the world predicts, in percent of the live one.
    pub(super) worst_pct: f64,
    pub(super) points: usize,
    pub(super) within_goal: usize,
}

impl Findings {
    pub(super) fn of(live: &[Measured], world: &[Measured]) -> Self {
        let compared: Vec<f64> = live
            .iter()
            .zip(world)
            .filter(|(live, _)| !live.point.is_input())
            .map(|(live, world)| difference_pct(live, world).abs())
            .collect();
        Self {
            live: Found::of(live),
            world: Found::of(world),
            worst_pct: compared.iter().copied().fold(0.0, f64::max),
            points: compared.len(),
            within_goal: compared.iter().filter(|off| **off <= GOAL_PCT).count(),
        }
    }

    pub(super) fn is_met(&self) -> bool {
        self.within_goal == self.points
    }

    pub(super) fn summary(&self) -> String {
        let Self { within_goal, points, worst_pct, .. } = self;
        format!("{within_goal} of {points} predictions within {GOAL_PCT} %, worst {worst_pct:.1} %")
    }
}

impl Found {
    fn of(measured: &[Measured]) -> Self {
        let of = |part| measured.iter().filter(move |measured| measured.point.part == part);
        let amount = |measured: &Measured| added_us(measured);
        // Above 150 us, where the paper begins to see it.
        let slow = of(Part::Latency).filter(|measured| amount(measured) >= 140.0);
        let (x, y): (Vec<f64>, Vec<f64>) =
            slow.map(|measured| (amount(measured), measured.value.value)).unzip();
        let points: Vec<(f64, f64)> =
            of(Part::Overhead).map(|measured| (amount(measured), measured.value.value)).collect();
        Self {
            latency: fit_least_squares(&x, &y).ok(),
            saturation: messages_per_op_from(&points).ok(),
        }
    }
}

/// What was added to the baseline's L or o, in microseconds.
pub(super) fn added_us(measured: &Measured) -> f64 {
    let parameter = measured.point.part.parameter();
    parameter.of(&measured.point.conditions) - parameter.of(&BASELINE)
}

/// What the paper's model makes of the live baseline: 2 us for each of L, 1/(S + 2 o). None for G.
pub(super) fn model(baseline: &Measured, measured: &Measured) -> Option<f64> {
    let (base, added) = (baseline.value.value, added_us(measured));
    match measured.point.part.parameter() {
        Parameter::Latency => Some(base + 2.0 * added),
        Parameter::Overhead => Some(1e6 / (1e6 / base + 2.0 * added)),
        Parameter::Gap | Parameter::GapPerByte => None,
    }
}

/// How far the world is from what was measured.
pub(super) fn difference_pct(live: &Measured, world: &Measured) -> f64 {
    100.0 * (world.value.value / live.value.value - 1.0)
}

#[cfg(test)]
mod tests {
    use perf::stats::Estimate;

    use super::*;
    use crate::papers::sensitivity::points::{Part, Point};

    fn measured(part: Part, conditions: load::recover::Injected, value: f64) -> Measured {
        let value = Estimate { value, ci95: None };
        Measured { point: Point { part, conditions }, runs: Vec::new(), value }
    }

    #[test]
    fn the_worlds_inputs_are_no_prediction_and_the_baseline_of_g_is_one() {
        let mut slow = BASELINE;
        slow.link.latency = perf::units::Nanos::from_millis(1);
        let points = [
            (Part::Latency, BASELINE, 100.0, 150.0),
            (Part::Latency, slow, 100.0, 105.0),
            (Part::Overhead, BASELINE, 100.0, 150.0),
            (Part::Bandwidth, BASELINE, 100.0, 57.0),
        ];
        let live = points.map(|(part, at, live, _)| measured(part, at, live));
        let world = points.map(|(part, at, _, world)| measured(part, at, world));
        let findings = Findings::of(&live, &world);
        assert!(!findings.is_met());
        assert_eq!(findings.summary(), "1 of 2 predictions within 10 %, worst 43.0 %");
        assert!(Findings::of(&live, &live).is_met());
    }
}
