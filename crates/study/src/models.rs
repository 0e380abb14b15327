//! Which model explains a sweep best, and what it is bound by according to that model.
//!
//! Three models have the same parameters, those of the probe, and none is adjusted to the sweep:
//! the formula of the cycle, mean value analysis, and a world, which is the program itself in
//! virtual time. The one with the smallest median error is taken, if it is better than the formula
//! by more than the repetitions differ among themselves, and by a tenth of its error: what is not
//! is noise, and the formula says most.

use harness::records::median;
use harness::verdict::Errors;
use load::study::Measured;
use perf::model::transaction::{Bound, Path, Server};
use perf::stats::Sample;

use super::explain::{PlannedRun, Row};

perf::named! {
    /// The models, the simplest first.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(crate) enum Model {
        Formula => "formula",
        Closed => "mean value analysis",
        World => "simulation",
    }
}

impl Model {
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::Formula => Some(row.prediction.mib_per_s),
            Self::Closed => row.closed_mib_per_s,
            Self::World => row.simulated_mib_per_s,
        }
    }

    /// The median over what was measured; none where it does not predict all of that.
    fn error_pct(self, rows: &[&Row]) -> Option<f64> {
        let measured = rows.iter().filter_map(|row| Some((self.of(row), row.measured_mib_per_s?)));
        let errors = measured.map(|(own, measured)| Some(100.0 * (own? / measured - 1.0).abs()));
        Some(median(errors.collect::<Option<Vec<f64>>>()?))
    }
}

/// The models with their errors, over the rows that all of them predict.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) best: Model,
    /// Median errors, percent.
    pub(crate) errors_pct: Vec<(Model, f64)>,
    /// By how much repetitions differ from their median, percent: the median over the rows that
    /// were run more than once. `None` without any: then it is not known.
    pub(crate) noise_pct: Option<f64>,
}

impl Choice {
    pub(crate) fn of(rows: &[Row], measured: &[Measured]) -> Self {
        let shared: Vec<&Row> =
            rows.iter().filter(|row| row.simulated_mib_per_s.is_some()).collect();
        // With few simulations, or none: the other two, over all.
        let few = SIMULATED_LEAST.min(rows.len());
        let shared = if shared.len() < few { rows.iter().collect() } else { shared };
        let error = |model: Model| Some((model, model.error_pct(&shared)?));
        let errors_pct: Vec<(Model, f64)> =
            Model::ALL.into_iter().filter_map(error).filter(|(_, e)| e.is_finite()).collect();
        let noise_pct = median(measured.iter().filter_map(spread_pct).collect());
        let noise_pct = Some(noise_pct).filter(|noise_pct| noise_pct.is_finite());
        let best = best(&errors_pct, noise_pct.unwrap_or(0.0));
        Self { best, errors_pct, noise_pct }
    }

    /// `Explained by the formula: median error 6.2 %; mean value analysis 11 %.`, or how little it
    /// is. At a limit all rows are right that have it: what is below decides.
    pub(crate) fn sentence(&self, errors: &Errors) -> String {
        let below_pct = median(errors.below.clone());
        let own = self.errors_pct.iter().find(|(model, _)| *model == self.best);
        let own = own.map_or(f64::NAN, |(_, error)| *error);
        let (name, of_others) = (self.best.name(), self.of_others());
        match own {
            own if own <= EXPLAINED_PCT && below_pct > ROUGHLY_PCT => format!(
                "Explained by the {name} at the limit alone: median error of all {own:.1} \
                 %{of_others}, and {below_pct:.1} % below the limit."
            ),
            own if own <= EXPLAINED_PCT => {
                format!("Explained by the {name}: median error {own:.1} %{of_others}.")
            }
            own if own <= ROUGHLY_PCT => {
                format!("Roughly explained by the {name}: median error {own:.1} %{of_others}.")
            }
            own if own.is_finite() => format!(
                "No model explains it: the best, the {name}, is off by {own:.0} % at the \
                 median{of_others}; what limits is a guess then."
            ),
            _ => "No model has numbers for it.".to_owned(),
        }
    }

    /// `; mean value analysis 11.0 %, simulation 7.0 %`
    fn of_others(&self) -> String {
        let others = self.errors_pct.iter().filter(|(model, _)| *model != self.best);
        let error = |(at, (model, error)): (usize, &(Model, f64))| {
            format!("{}{} {error:.1} %", if at == 0 { "; " } else { ", " }, model.name())
        };
        others.enumerate().map(error).collect()
    }

    /// What a row is bound by: full, if the model that explains best has it near to what the
    /// slowest stage can do, and else the largest term of the cycle.
    pub(crate) fn bound(&self, row: &Row) -> Bound {
        let Some(predicted) = self.best.of(row).filter(|_| self.best != Model::Formula) else {
            return row.prediction.bound;
        };
        match row.full {
            (mib_per_s, bound) if predicted >= FULL * mib_per_s => bound,
            _ => Bound::Cycle(row.prediction.cycle.dominating()),
        }
    }
}

/// A median error up to which measurements are explained, and up to which they are roughly. Guess:
/// what `papers predict` is held to, and where a warning begins to be of no use.
const EXPLAINED_PCT: f64 = 10.0;
const ROUGHLY_PCT: f64 = 25.0;

/// By so much of its error another model has to be better than the formula, whatever the noise: of
/// one repetition it is not known.
const BETTER: f64 = 0.1;

/// Rows that make a median.
const SIMULATED_LEAST: usize = 6;

/// A stage that is busy for so much of the time is what limits.
const FULL: f64 = 0.9;

fn best(errors_pct: &[(Model, f64)], noise_pct: f64) -> Model {
    let formula = errors_pct.iter().find(|(model, _)| *model == Model::Formula);
    let least = errors_pct.iter().min_by(|(_, a), (_, b)| a.total_cmp(b));
    match (formula, least) {
        (Some((_, formula)), Some((model, least)))
            if formula - least > noise_pct.max(BETTER * formula) =>
        {
            *model
        }
        (Some(_), _) | (_, None) => Model::Formula,
        (None, Some((model, _))) => *model,
    }
}

/// Half of what repetitions differ by, percent of their median. One differs from nothing.
pub(crate) fn spread_pct(measured: &Measured) -> Option<f64> {
    differ_pct(&measured.mib_per_s)
}

pub(crate) fn differ_pct(mib_per_s: &[f64]) -> Option<f64> {
    let sample = Sample::new(mib_per_s.to_vec()).ok().filter(|_| mib_per_s.len() > 1)?;
    let median = Some(sample.median()).filter(|&median| median > 0.0)?;
    Some(100.0 * (sample.max() - sample.min()) / 2.0 / median)
}

/// Runs the rows in worlds, the most telling first, until the time is up.
///
/// A world has the steady state; what beginning and end of the run leave of it, the formula says.
pub(crate) fn simulate(rows: &mut [Row], path: &Path, servers: &[Server], run: &PlannedRun) {
    let clock = net::clock::Clock::real();
    let began = clock.now();
    for wanted in [1, 4, 16, 64, 2, 8, 32] {
        for row in rows.iter_mut().filter(|row| row.configuration.outstanding == wanted) {
            if clock.now().since(began) >= run.simulation {
                return;
            }
            let server = servers[row.configuration.subject];
            let transfer = run.transfer(&row.configuration);
            let steady = world::path::mib_per_s(path, server, &transfer).ok();
            let ends = run.ends(path, server, &row.configuration);
            row.simulated_mib_per_s = steady.map(|mib_per_s| mib_per_s * ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_off_explains_nothing() {
        let text = |formula| {
            let errors_pct = vec![(Model::Formula, formula), (Model::Closed, 60.0)];
            Choice { best: Model::Formula, errors_pct, noise_pct: None }.sentence(&errors(8.0))
        };
        let mva = "mean value analysis 60.0 %";
        assert_eq!(text(6.2), format!("Explained by the formula: median error 6.2 %; {mva}."));
        assert!(text(18.0).starts_with("Roughly explained by the formula: median error 18.0 %"));
        assert!(
            text(41.0).starts_with("No model explains it: the best, the formula, is off by 41")
        );
        assert!(text(f64::NAN).starts_with("No model has numbers"));
    }

    fn errors(below: f64) -> Errors {
        Errors { below: vec![below], at: vec![1.0; 9] }
    }

    #[test]
    fn rows_at_the_limit_do_not_explain_those_below_it() {
        let errors_pct = vec![(Model::Formula, 5.4)];
        let choice = Choice { best: Model::Formula, errors_pct, noise_pct: None };
        assert_eq!(
            choice.sentence(&errors(57.5)),
            "Explained by the formula at the limit alone: median error of all 5.4 %, and 57.5 % \
             below the limit."
        );
    }

    #[test]
    fn one_repetition_does_not_show_by_how_much_repetitions_differ() {
        assert_eq!(differ_pct(&[50.0]), None);
        assert_eq!(differ_pct(&[45.0, 50.0, 55.0]), Some(10.0));
        // A median that shows nothing has no percent.
        assert_eq!(differ_pct(&[0.0, 0.0, 55.0]), None);
    }

    #[test]
    fn a_model_is_taken_for_more_than_the_noise_only() {
        let errors = |closed| vec![(Model::Formula, 9.0), (Model::Closed, closed)];
        assert_eq!(best(&errors(8.0), 2.0), Model::Formula);
        assert_eq!(best(&errors(5.0), 2.0), Model::Closed);
        assert_eq!(best(&errors(20.0), 2.0), Model::Formula);
        assert_eq!(best(&errors(8.9), 0.0), Model::Formula);
        assert_eq!(best(&[], 0.0), Model::Formula);
    }
}
