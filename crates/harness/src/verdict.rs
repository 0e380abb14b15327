//! How well predictions held: of the change first, then of what was measured beside it.

use perf::words::counted;

use crate::records::median;

/// A prediction that is off by less than this held, percent: the aim for the worst of the changes
/// that are predicted and applied (docs/models.md, section 22).
pub const HELD_PCT: f64 = 12.0;

/// A point this near to the highest of its curve shows the limit and not the calls outstanding.
const AT_THE_LIMIT: f64 = 0.9;

/// By how much a change multiplies throughput, predicted and measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    pub predicted: f64,
    pub measured: f64,
    /// By how much repetitions differ, percent of either side.
    pub noise_pct: f64,
}

impl Gain {
    pub fn error_pct(&self) -> f64 {
        100.0 * (self.predicted / self.measured - 1.0)
    }

    pub fn is_held(&self) -> bool {
        self.error_pct().abs() <= HELD_PCT
    }

    /// In a word; what repetitions differ by more than is no verdict.
    pub fn verdict(&self) -> &'static str {
        match (self.is_held(), self.noise_pct > HELD_PCT) {
            (true, _) => "held",
            (false, true) if self.error_pct().abs() <= self.noise_pct => "within the noise",
            (false, _) => "missed",
        }
    }

    /// `4.2 % off: held`, with the noise where that is what decides.
    pub fn sentence(&self) -> String {
        let off = self.error_pct().abs();
        if !off.is_finite() {
            return "not measured".to_owned();
        }
        let verdict = match self.verdict() {
            "within the noise" => {
                format!("within the {:.0} % by which repetitions differ", self.noise_pct)
            }
            verdict => verdict.to_owned(),
        };
        format!("{off:.1} % off: {verdict}")
    }
}

/// Absolute errors of predictions, percent: where the calls outstanding decide, and where a limit
/// does. At a limit they all test one number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    pub below: Vec<f64>,
    pub at: Vec<f64>,
}

impl Errors {
    /// Of points of several curves: which curve, throughput, error.
    pub fn of_curves<C: Copy + PartialEq>(points: impl IntoIterator<Item = (C, f64, f64)>) -> Self {
        let points: Vec<(C, f64, f64)> = points.into_iter().collect();
        let highest = |curve: C| {
            let own = points.iter().filter(|point| point.0 == curve);
            own.map(|point| point.1).fold(0.0, f64::max)
        };
        let mut errors = Self::default();
        for &(curve, measured, error_pct) in &points {
            let is_at = measured >= AT_THE_LIMIT * highest(curve);
            if is_at { &mut errors.at } else { &mut errors.below }.push(error_pct);
        }
        errors
    }

    /// The number to tell in short: of what is below the limit, if anything is.
    pub fn headline(&self) -> String {
        match (self.below.is_empty(), self.at.is_empty()) {
            (false, _) => format!("{:.1} % below the limit", median(self.below.clone())),
            (true, true) => "not measured".to_owned(),
            (true, false) => format!("{:.1} %, at the limit only", median(self.at.clone())),
        }
    }

    /// `6.1 % at the median below the limit (9 points), 1.2 % at it (5); worst 14 %`.
    pub fn sentence(&self) -> String {
        let worst = self.below.iter().chain(&self.at).copied().fold(0.0, f64::max);
        let (below, at) = (median(self.below.clone()), median(self.at.clone()));
        match (self.below.len(), self.at.len()) {
            (0, 0) => "nothing was measured beside it".to_owned(),
            (0, 1) => format!("{at:.1} %; the one point is at the limit, and tests nothing else"),
            (0, n) => format!(
                "{at:.1} % at the median, worst {worst:.0} %; all {n} points are at the limit, and \
                 test nothing else"
            ),
            (m, 0) => {
                format!("{below:.1} % at the median ({}), worst {worst:.0} %", points(m))
            }
            (m, n) => format!(
                "{below:.1} % at the median below the limit ({}), {at:.1} % at it ({n}); worst \
                 {worst:.0} %",
                points(m)
            ),
        }
    }
}

fn points(number: usize) -> String {
    counted(number, "point")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_that_of_the_change_and_not_surer_than_its_repetitions() {
        let sentence =
            |predicted, noise_pct| Gain { predicted, measured: 10.0, noise_pct }.sentence();
        assert_eq!(sentence(10.5, 3.0), "5.0 % off: held");
        assert_eq!(sentence(12.0, 3.0), "20.0 % off: missed");
        assert_eq!(sentence(12.0, 25.0), "20.0 % off: within the 25 % by which repetitions differ");
        assert_eq!(sentence(14.0, 25.0), "40.0 % off: missed");
        assert_eq!(sentence(f64::NAN, 3.0), "not measured");
    }

    #[test]
    fn points_at_the_limit_are_not_counted_with_those_below_it() {
        let points = [(0, 10.0, 30.0), (0, 95.0, 1.0), (0, 100.0, 1.0), (1, 40.0, 2.0)];
        let errors = Errors::of_curves(points);
        assert_eq!((&errors.below[..], &errors.at[..]), (&[30.0][..], &[1.0, 1.0, 2.0][..]));
        let sentence = errors.sentence();
        assert!(
            sentence.starts_with("30.0 % at the median below the limit (1 point), 1.0 %"),
            "{sentence}"
        );
        let sentence = Errors::of_curves([(0, 100.0, 4.0)]).sentence();
        assert!(sentence.starts_with("4.0 %; the one point is at the limit"), "{sentence}");
        let sentence = Errors::of_curves([(0, 99.0, 2.0), (0, 100.0, 4.0)]).sentence();
        assert!(sentence.contains("all 2 points are at the limit"), "{sentence}");
    }
}
