//! How much of what was put in came back.

use std::fmt;

use load::recover::{Parameter, Point};

use super::table::of;

/// The goal: read back within so much.
pub(super) const GOAL_PCT: f64 = 3.0;

/// What is still near.
const NEAR_PCT: f64 = 5.0;

/// Over all points of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) points: usize,
    pub(super) within: usize,
    pub(super) near: usize,
    /// Of those that were read back at all.
    pub(super) worst_pct: f64,
    /// Points whose own parameter was behind a slower stage: they miss the goal.
    pub(super) hidden: usize,
}

impl Verdict {
    pub(super) fn of(sweep: &[(Parameter, Point)]) -> Self {
        let errors = sweep.iter().map(|(parameter, point)| {
            let found = of(*parameter, point)?;
            Some(error_pct(parameter.of(&point.injected), found.value).abs())
        });
        Self::of_errors(errors)
    }

    fn of_errors(errors: impl Iterator<Item = Option<f64>>) -> Self {
        let mut verdict = Self::default();
        for error in errors {
            verdict.points += 1;
            let Some(error) = error else {
                verdict.hidden += 1;
                continue;
            };
            verdict.within += usize::from(error <= GOAL_PCT);
            verdict.near += usize::from(error <= NEAR_PCT);
            verdict.worst_pct = verdict.worst_pct.max(error);
        }
        verdict
    }

    pub(super) fn is_met(&self) -> bool {
        self.within == self.points
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { points, within, near, worst_pct, hidden } = self;
        write!(f, "{within} of {points} within {GOAL_PCT} %, ")?;
        if near > within {
            write!(f, "{near} within {NEAR_PCT} %, ")?;
        }
        write!(f, "worst {worst_pct:.1} %")?;
        if *hidden > 0 {
            write!(f, ", {hidden} hidden")?;
        }
        Ok(())
    }
}

pub(super) fn error_pct(want: f64, got: f64) -> f64 {
    100.0 * (got / want - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_is_off_or_hidden_misses_the_goal() {
        let verdict = Verdict::of_errors([Some(0.5), Some(3.0)].into_iter());
        assert!(verdict.is_met());
        assert_eq!(verdict.to_string(), "2 of 2 within 3 %, worst 3.0 %");
        let verdict = Verdict::of_errors([Some(0.5), None, Some(58.84)].into_iter());
        assert!(!verdict.is_met());
        assert_eq!(verdict.to_string(), "1 of 3 within 3 %, worst 58.8 %, 1 hidden");
        let verdict = Verdict::of_errors([Some(0.5), Some(4.9)].into_iter());
        assert!(!verdict.is_met());
        assert_eq!(verdict.to_string(), "1 of 2 within 3 %, 2 within 5 %, worst 4.9 %");
    }
}
