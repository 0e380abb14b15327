//! Nonlinear least squares with bounds and a robust loss, and what the data say of each parameter.
//!
//! All parameters are positive and are fitted by their logarithms: bounds, steps and intervals are
//! factors then, and no interval reaches below zero. Residuals are the caller's; for response times
//! the logarithm of model over measurement is right, which counts errors by their share.
//!
//! Loss: squares first. If some residuals lie beyond 3.5 standard deviations (by the median, which
//! they cannot move), the fit is repeated with Huber's loss, which lets them count by their size
//! instead of its square. Unless that leaves more than a fifth of the values beyond, or more than a
//! third of what the parameters leave free: then it is the model that is off, and squares say so.
//!
//! Intervals: from the curvature at the minimum (Student's t), and wider where neighbours in the
//! caller's order err alike (`dependent.rs`). A direction in which the parameters could change by a
//! factor of two without the data noticing is [`Unidentified`]: one parameter that the data
//! do not show, or several of which they show a combination.
//!
//! Source: Levenberg-Marquardt as in MINPACK (crate `rmpfit`); Huber 1964; the intervals are those
//! of every textbook on regression, for one Bates and Watts 1988, section 2.3.

use rmpfit::{MPError, MPFitter, MPPar, MPResult, MPSide};
use thiserror::Error;

use super::dependent;
use super::systematic::Systematic;
use crate::stats::{Estimate, Interval, median_of, student_t_975};

/// A parameter to be found: above 0, between bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Symbol of docs/models.md.
    pub name: &'static str,
    pub unit: &'static str,
    pub start: f64,
    pub lo: f64,
    pub hi: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    pub parameters: Vec<Found>,
    /// What the data do not show.
    pub unidentified: Vec<Unidentified>,
    /// The caller's residuals at the minimum, in his order.
    pub residuals: Vec<f64>,
    /// Standard deviation of the residuals, for the degrees of freedom that are left.
    pub deviation: f64,
    /// Covariance of the parameters' logarithms, row by row; of parameters at a bound 0.
    pub covariance: Vec<Vec<f64>>,
    /// The residuals hang together over the load, where that is tested: see [`Fitted::over`].
    pub systematic: Option<Systematic>,
}

/// One parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub name: &'static str,
    pub unit: &'static str,
    /// No interval at a bound, or without a degree of freedom.
    pub estimate: Estimate,
    pub at_bound: bool,
}

/// Parameters that could change by a factor of two, together or against each other, and the data
/// would not show it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unidentified {
    pub names: Vec<&'static str>,
}

#[derive(Clone, Debug, Error, PartialEq)]
pub enum FitError {
    #[error("{got} values for {parameters} parameters: at least {} are needed", parameters + 1)]
    TooFew { got: usize, parameters: usize },
    #[error("{got} values are more than the {most} that are searched in a moment")]
    TooMany { got: usize, most: usize },
    #[error("{name}: a start of {start} is not between the bounds {lo} and {hi} above 0")]
    Start { name: &'static str, start: f64, lo: f64, hi: f64 },
    #[error("row {row}: {why}")]
    Row { row: usize, why: super::error::ModelError },
    #[error("no parameters within the bounds give finite values")]
    NotFinite,
    #[error(
        "the model does not fit: typical error {:.0} % where {:.0} % are tolerated; \
         model over measurement - 1, by row: {}",
        deviation * 100.0,
        tolerated * 100.0,
        percents(residuals)
    )]
    Bad { deviation: f64, tolerated: f64, residuals: Vec<f64> },
    #[error(
        "{pattern}: typical error {:.0} % where {:.0} % are tolerated of a pattern; \
         model over measurement - 1, by row: {}",
        deviation * 100.0,
        tolerated * 100.0,
        percents(residuals)
    )]
    Systematic { pattern: Systematic, deviation: f64, tolerated: f64, residuals: Vec<f64> },
}

fn percents(residuals: &[f64]) -> String {
    // Further off than ten times a number says nothing any more.
    let percent = |r: &f64| match r.exp_m1() * 100.0 {
        percent if percent > 900.0 => "over +900 %".to_owned(),
        percent => format!("{percent:+.0} %"),
    };
    residuals.iter().map(percent).collect::<Vec<_>>().join(", ")
}

impl std::fmt::Display for Unidentified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.names[..] {
            [one] => write!(f, "{one} does not show in this data"),
            names => write!(f, "{} cannot be distinguished with this data", names.join(" and ")),
        }
    }
}

/// A change of a parameter that should show.
const SHOWS: f64 = std::f64::consts::LN_2;
/// Share of a direction that makes a parameter part of it (0.3 squared: about a tenth).
const TAKES_PART: f64 = 0.3;
/// Huber's own constant is 1.345 for 95 % efficiency; beyond 3.5 a residual is called an outlier.
const HUBER: f64 = 1.345;
const OUTLIER: f64 = 3.5;
/// Values that agree so closely make no outliers of others: some may be exact.
const SCALE_MIN: f64 = 0.01;
/// The scale that marks an outlier and the fit depend on each other: so often in turn, at most.
const ROBUST_ROUNDS: usize = 10;

/// Of what is tolerated of chance, what is tolerated of a pattern. Guess: 10 of 15 %.
const PATTERN_TOLERATED: f64 = 2.0 / 3.0;

/// Starts that have to end in one minimum before it is taken for the best.
pub const STARTS_AGREE: u32 = 3;

/// Residuals of parameters: fills the slice, or says that there are none.
pub trait Residuals: Fn(&[f64], &mut [f64]) -> bool {}
impl<F: Fn(&[f64], &mut [f64]) -> bool> Residuals for F {}

/// Finds the parameters with the smallest loss, beginning at their starts.
///
/// Fails with fewer values than parameters and one, a start that is not within its bounds, or where
/// the model has no finite value.
pub fn minimize(
    parameters: &[Parameter],
    count: usize,
    residuals: impl Residuals,
) -> Result<Fitted, FitError> {
    if count <= parameters.len() {
        return Err(FitError::TooFew { got: count, parameters: parameters.len() });
    }
    for &Parameter { name, start, lo, hi, .. } in parameters {
        if !(lo > 0.0 && lo <= start && start <= hi && hi.is_finite()) {
            return Err(FitError::Start { name, start, lo, hi });
        }
    }
    let mut problem = Problem::new(parameters, count, residuals);
    let mut logs: Vec<f64> = parameters.iter().map(|p| p.start.ln()).collect();
    problem.run(&mut logs)?;
    let squares = logs.clone();
    for _ in 0..ROBUST_ROUNDS {
        let found = problem.at(&logs)?;
        let scale = scale(&found, parameters.len()).max(SCALE_MIN);
        let settled =
            problem.huber.is_some_and(|limit| (limit / (HUBER * scale)).ln().abs() < 0.01);
        if settled || found.iter().all(|r| r.abs() <= OUTLIER * scale) {
            break;
        }
        problem.huber = Some(HUBER * scale);
        problem.run(&mut logs)?;
    }
    if problem.has_too_many_outliers(&problem.at(&logs)?) {
        (problem.huber, logs) = (None, squares);
    }
    problem.judge(&logs)
}

/// The best of several starts; fails only if all do, and then as the last does. When
/// [`STARTS_AGREE`] of them have come to the same minimum, the others are not tried.
pub fn minimize_from(
    starts: &[Vec<Parameter>],
    count: usize,
    residuals: impl Residuals,
) -> Result<Fitted, FitError> {
    let mut best: Result<Fitted, FitError> = Err(FitError::NotFinite);
    let mut agree = 0;
    for start in starts {
        let fitted = minimize(start, count, &residuals);
        if let (Ok(best), Ok(fitted)) = (&best, &fitted) {
            let same = (fitted.deviation - best.deviation).abs() <= 1e-4 * best.deviation;
            agree = match same {
                true => agree + 1,
                false if fitted.deviation < best.deviation => 0,
                false => agree,
            };
        }
        let is_better = match (&best, &fitted) {
            (Ok(best), Ok(fitted)) => fitted.deviation < best.deviation,
            (Err(_), _) => true,
            (Ok(_), Err(_)) => false,
        };
        if is_better {
            best = fitted;
        }
        if agree + 1 >= STARTS_AGREE {
            break;
        }
    }
    best
}

impl Fitted {
    /// The fit, if its typical error is tolerable; residuals have to be logarithms of ratios.
    pub fn tolerated(self, tolerated: f64) -> Result<Self, FitError> {
        if self.deviation <= tolerated {
            return Ok(self);
        }
        Err(FitError::Bad { deviation: self.deviation, tolerated, residuals: self.residuals })
    }

    /// The fit, if what it leaves over does not hang together in the order of these loads, or is
    /// small: two thirds of what is tolerated of chance.
    pub fn over(
        self,
        loads: impl IntoIterator<Item = f64>,
        tolerated: f64,
    ) -> Result<Self, FitError> {
        let pairs: Vec<(f64, f64)> =
            loads.into_iter().zip(self.residuals.iter().copied()).collect();
        let systematic = Systematic::in_residuals(&pairs);
        let tolerated = tolerated * PATTERN_TOLERATED;
        match systematic {
            Some(pattern) if self.deviation > tolerated => Err(FitError::Systematic {
                pattern,
                deviation: self.deviation,
                tolerated,
                residuals: self.residuals,
            }),
            systematic => Ok(Self { systematic, ..self }),
        }
    }

    /// Value of a parameter by its name.
    pub fn value(&self, name: &str) -> Option<f64> {
        Some(self.parameters.iter().find(|found| found.name == name)?.estimate.value)
    }
}

struct Problem<'a, F> {
    parameters: &'a [Parameter],
    bounds: Vec<MPPar>,
    count: usize,
    residuals: F,
    huber: Option<f64>,
}

impl<'a, F: Residuals> Problem<'a, F> {
    fn new(parameters: &'a [Parameter], count: usize, residuals: F) -> Self {
        let bounds = parameters.iter().map(|parameter| MPPar {
            limited_low: true,
            limited_up: true,
            limit_low: parameter.lo.ln(),
            limit_up: parameter.hi.ln(),
            fixed: parameter.lo == parameter.hi,
            // In logarithms: a change of a millionth, above the noise of bisections in a model.
            step: 1e-6,
            side: MPSide::Auto,
            ..MPPar::new()
        });
        Self { parameters, bounds: bounds.collect(), count, residuals, huber: None }
    }

    /// From here to a minimum. A step that leads nowhere leaves the last good values.
    fn run(&mut self, logs: &mut [f64]) -> Result<(), FitError> {
        match self.mpfit(logs) {
            Ok(_) | Err(MPError::NoFree) => Ok(()),
            Err(_) => Err(FitError::NotFinite),
        }
    }

    /// The caller's residuals.
    fn at(&self, logs: &[f64]) -> Result<Vec<f64>, FitError> {
        let values: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let mut residuals = vec![0.0; self.count];
        let is_there = (self.residuals)(&values, &mut residuals);
        if is_there && residuals.iter().all(|r| r.is_finite()) {
            Ok(residuals)
        } else {
            Err(FitError::NotFinite)
        }
    }

    /// What so many values contradict is not their error but the model's: of few values, the
    /// parameters can meet most exactly, whatever they mean, and leave out the others.
    fn has_too_many_outliers(&self, residuals: &[f64]) -> bool {
        let Some(limit) = self.huber else { return false };
        let outliers = residuals.iter().filter(|r| r.abs() > OUTLIER / HUBER * limit).count();
        outliers > (self.count / 5).min((self.count - self.parameters.len()) / 3)
    }

    /// Standard deviation of the residuals for so many degrees of freedom. Of a robust fit: that
    /// which gives its parameters their variance (Huber 1973, with his correction for few values).
    fn deviation(&self, residuals: &[f64], free: usize) -> f64 {
        let limit = self.huber.unwrap_or(f64::INFINITY);
        let squares: f64 = residuals.iter().map(|r| r.abs().min(limit).powi(2)).sum();
        let inside = residuals.iter().filter(|r| r.abs() <= limit).count() as f64;
        let (n, share) = (self.count as f64, inside / self.count as f64);
        let correction = 1.0 + free as f64 / n * (1.0 - share) / share;
        correction / share * (squares / (n - free as f64)).sqrt()
    }

    /// Intervals and what is not identified, at a minimum.
    fn judge(&self, logs: &[f64]) -> Result<Fitted, FitError> {
        let residuals = self.at(logs)?;
        let at_bound: Vec<bool> = logs.iter().zip(&self.bounds).map(pegged).collect();
        let free: Vec<usize> = (0..logs.len()).filter(|&i| !at_bound[i]).collect();
        let freedom = self.count - free.len();
        let deviation = self.deviation(&residuals, free.len());
        let t = student_t_975(freedom).unwrap_or(f64::INFINITY);

        let mut columns = Vec::new();
        for &i in &free {
            let step = |by: f64| {
                let mut logs = logs.to_vec();
                logs[i] += by;
                self.at(&logs)
            };
            let (before, after) = (step(-DIFFERENCE)?, step(DIFFERENCE)?);
            let slope = |(b, a): (&f64, &f64)| (a - b) / (2.0 * DIFFERENCE);
            columns.push(before.iter().zip(&after).map(slope).collect::<Vec<f64>>());
        }
        let (directions, spread) = self.spread(&columns, &residuals, deviation);
        let mut covariance = vec![vec![0.0; logs.len()]; logs.len()];
        let mut unidentified = Vec::new();
        for ((x, direction), row) in directions.iter().enumerate().zip(&spread) {
            for (other, both) in directions.iter().zip(row) {
                for (a, &i) in free.iter().enumerate() {
                    for (b, &j) in free.iter().enumerate() {
                        covariance[i][j] += both * direction[a] * other[b];
                    }
                }
            }
            if t * row[x].sqrt() > SHOWS {
                let takes_part = |&(a, _): &(usize, &usize)| direction[a].abs() > TAKES_PART;
                let names = free.iter().enumerate().filter(takes_part);
                let names = names.map(|(_, &i)| self.parameters[i].name).collect();
                unidentified.push(Unidentified { names });
            }
        }
        let parameters = self.parameters.iter().enumerate().map(|(i, parameter)| {
            let half = t * covariance[i][i].sqrt();
            let interval = Interval {
                lo: (logs[i] - half).exp().max(parameter.lo),
                hi: (logs[i] + half).exp().min(parameter.hi),
            };
            Found {
                name: parameter.name,
                unit: parameter.unit,
                estimate: Estimate {
                    value: logs[i].exp(),
                    ci95: (!at_bound[i]).then_some(interval),
                },
                at_bound: at_bound[i],
            }
        });
        let parameters = parameters.collect();
        let systematic = None;
        Ok(Fitted { parameters, unidentified, residuals, deviation, covariance, systematic })
    }

    /// Directions of the parameters at right angles, and how far they may go along them, as
    /// covariances: given how each moves the values.
    fn spread(
        &self,
        columns: &[Vec<f64>],
        residuals: &[f64],
        deviation: f64,
    ) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let normal: Vec<Vec<f64>> = columns
            .iter()
            .map(|a| columns.iter().map(|b| dependent::product(a, b)).collect())
            .collect();
        let (strengths, directions) = super::symmetric::eigen(normal);
        let strongest = strengths.iter().copied().fold(0.0, f64::max);
        let shown: Vec<usize> =
            (0..strengths.len()).filter(|&at| strengths[at] > SEEN * strongest).collect();
        let unit = |&at: &usize| {
            let moved = |i: usize| {
                let along = columns.iter().zip(&directions[at]);
                along.map(|(column, share)| column[i] * share).sum::<f64>()
            };
            (0..self.count).map(|i| moved(i) / strengths[at].sqrt()).collect()
        };
        let units: Vec<Vec<f64>> = shown.iter().map(unit).collect();
        let limit = self.huber.unwrap_or(f64::INFINITY);
        let left: Vec<f64> = residuals.iter().map(|r| r.clamp(-limit, limit)).collect();
        let reach = dependent::reach(&units, &left);
        // Without any strength, to their bounds.
        let alone = |at: usize| (deviation / strengths[at].max(0.0).sqrt()).min(LOGS_MAX);
        let mut spread = vec![vec![0.0; strengths.len()]; strengths.len()];
        for (at, row) in spread.iter_mut().enumerate() {
            row[at] = alone(at).powi(2);
        }
        for (&a, row) in shown.iter().zip(&reach) {
            for (&b, both) in shown.iter().zip(row) {
                spread[a][b] = both * alone(a) * alone(b);
            }
        }
        (directions, spread)
    }
}

/// Step of the slopes that intervals come from, in logarithms.
const DIFFERENCE: f64 = 1e-5;
/// A direction that moves the values by less than this share of what the strongest one does, as a
/// square, is lost in the digits.
const SEEN: f64 = 1e-12;
/// Farther than this no parameter goes, in logarithms: a factor of 10^13.
const LOGS_MAX: f64 = 30.0;
/// Pulls a parameter to its start, so weakly that only one which the data do not show stays there,
/// instead of going to a bound and taking others with it.
const PULL: f64 = 1e-5;

fn pegged((log, bound): (&f64, &MPPar)) -> bool {
    log - bound.limit_low < 1e-9 || bound.limit_up - log < 1e-9
}

/// Standard deviation of what a fit of so many parameters leaves over, by the median, which
/// outliers do not move. Parameters can meet as many values exactly, whatever they mean: the
/// smallest say nothing of the others, and would make outliers of them.
fn scale(residuals: &[f64], parameters: usize) -> f64 {
    let mut sizes: Vec<f64> = residuals.iter().map(|r| r.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    1.4826 * median_of(sizes.split_off(parameters))
}

impl<F: Residuals> MPFitter for Problem<'_, F> {
    fn eval(&mut self, logs: &[f64], deviates: &mut [f64]) -> MPResult<()> {
        let residuals = self.at(logs).map_err(|_| MPError::Eval)?;
        for (deviate, r) in deviates.iter_mut().zip(residuals) {
            // Squared, these are Huber's loss: 2 k |r| - k^2 beyond k.
            *deviate = match self.huber {
                Some(k) if r.abs() > k => r.signum() * (2.0 * k * r.abs() - k * k).sqrt(),
                _ => r,
            };
        }
        let pulls = deviates[self.count..].iter_mut().zip(logs).zip(self.parameters);
        for ((pull, log), parameter) in pulls {
            *pull = PULL * (log - parameter.start.ln());
        }
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        self.count + self.parameters.len()
    }

    fn parameters(&self) -> &[MPPar] {
        &self.bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn parameter(name: &'static str, start: f64) -> Parameter {
        Parameter { name, unit: "us", start, lo: 1e-3, hi: 1e9 }
    }

    /// a + b x, in logarithms of ratios.
    fn line(data: &[(f64, f64)]) -> impl Residuals {
        move |p: &[f64], out: &mut [f64]| {
            for (out, (x, y)) in out.iter_mut().zip(data) {
                *out = ((p[0] + p[1] * x) / y).ln();
            }
            true
        }
    }

    /// Of the points, every so many-th is three times too high; 0: none.
    fn noisy(seed: u64, count: u32, outliers: u32) -> Vec<(f64, f64)> {
        let mut draw = fastrand::Rng::with_seed(seed);
        let point = |i: u32| {
            let x = f64::from(i);
            let is_outlier = outliers > 0 && i.is_multiple_of(outliers);
            let factor = if is_outlier { 3.0 } else { 1.0 + 0.05 * normal(&mut draw) };
            (x, (100.0 + 8.0 * x) * factor)
        };
        (0..count).map(point).collect()
    }

    fn normal(draw: &mut fastrand::Rng) -> f64 {
        // The sum of twelve: good enough to test with.
        (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0
    }

    #[test]
    fn an_exact_line_is_found_exactly() {
        let data: Vec<(f64, f64)> = [1.0, 2.0, 5.0, 90.0].map(|x| (x, 100.0 + 8.0 * x)).into();
        let start = [parameter("a", 1.0), parameter("b", 1.0)];
        let fitted = minimize(&start, data.len(), line(&data)).unwrap();
        assert!((fitted.value("a").unwrap() / 100.0 - 1.0).abs() < 1e-7);
        assert!((fitted.value("b").unwrap() / 8.0 - 1.0).abs() < 1e-7);
        assert_eq!(fitted.value("c"), None);
    }

    #[test]
    fn intervals_cover_the_truth_about_95_times_in_100() {
        let mut covered = [0; 2];
        for seed in 0..200 {
            let data = noisy(seed, 30, 0);
            let start = [parameter("a", 50.0), parameter("b", 1.0)];
            let fitted = minimize(&start, data.len(), line(&data)).unwrap();
            for (i, truth) in [100.0, 8.0].into_iter().enumerate() {
                let interval = fitted.parameters[i].estimate.ci95.unwrap();
                covered[i] += u32::from(interval.contains(truth));
            }
        }
        assert!(covered.iter().all(|&n| (180..200).contains(&n)), "{covered:?}");
    }

    #[test]
    fn values_that_parameters_meet_make_no_outliers_of_the_others() {
        let residuals = [0.0, 1e-9, -1e-9, 0.0, 0.005, -0.015, 0.03, -0.05, 0.05, 0.06];
        assert!((scale(&residuals, 4) / 0.04 / 1.4826 - 1.0).abs() < 1e-9);
        // Of all of them, 0.06 would be an outlier.
        assert!(OUTLIER * scale(&residuals, 4) > 0.06 && 0.06 > OUTLIER * scale(&residuals, 0));
    }

    #[test]
    fn neighbours_that_err_alike_make_intervals_wide_enough() {
        let mut covered = [0; 2];
        for seed in 0..200 {
            let mut draw = fastrand::Rng::with_seed(seed);
            let mut before = normal(&mut draw);
            let point = |i: u32| {
                before = 0.3 * before + 0.91_f64.sqrt() * normal(&mut draw);
                let x = f64::from(i);
                (x, (100.0 + 8.0 * x) * (0.05 * before).exp())
            };
            let data: Vec<(f64, f64)> = (0..60).map(point).collect();
            let start = [parameter("a", 50.0), parameter("b", 1.0)];
            let fitted = minimize(&start, data.len(), line(&data)).unwrap();
            for (i, truth) in [100.0, 8.0].into_iter().enumerate() {
                let interval = fitted.parameters[i].estimate.ci95.unwrap();
                covered[i] += u32::from(interval.contains(truth));
            }
        }
        // A mean of such points, taken for independent, has an interval a quarter too narrow.
        assert!(covered.iter().all(|n| (176..=198).contains(n)), "{covered:?}");
    }

    #[test]
    fn outliers_do_not_pull_the_line() {
        let data = noisy(3, 40, 10);
        let start = [parameter("a", 50.0), parameter("b", 1.0)];
        let fitted = minimize(&start, data.len(), line(&data)).unwrap();
        let slope = fitted.value("b").unwrap();
        assert!((slope / 8.0 - 1.0).abs() < 0.05, "{slope}");
    }

    #[test]
    fn a_model_that_a_third_of_few_values_contradict_is_refused() {
        let factors = [1.0, 1.4, 1.0, 1.0, 0.7, 1.0];
        let xs = (1..).map(f64::from);
        let data: Vec<(f64, f64)> = xs.zip(factors).map(|(x, by)| (x, 8.0 * x * by)).collect();
        let start = [Parameter { lo: 1e-6, ..parameter("a", 1.0) }, parameter("b", 1.0)];
        let fitted = minimize(&start, data.len(), line(&data)).unwrap();
        assert!(matches!(fitted.tolerated(0.15), Err(FitError::Bad { .. })));
    }

    #[test]
    fn what_the_data_do_not_show_is_stated() {
        // a b and c: a and b only as a product, c not at all.
        let data = noisy(1, 20, 0);
        let residuals = |p: &[f64], out: &mut [f64]| {
            for (out, (_, y)) in out.iter_mut().zip(&data) {
                *out = (p[0] * p[1] / y).ln() + 0.0 * p[2];
            }
            true
        };
        let start = ["a", "b", "c"].map(|name| parameter(name, 10.0));
        let fitted = minimize(&start, 20, residuals).unwrap();
        let mut text: Vec<String> = fitted.unidentified.iter().map(ToString::to_string).collect();
        text.sort();
        assert_eq!(
            text,
            ["a and b cannot be distinguished with this data", "c does not show in this data"]
        );
    }

    #[test]
    fn bounds_hold_and_are_reported() {
        let data = noisy(1, 20, 0);
        let start = [parameter("a", 10.0), Parameter { hi: 6.0, ..parameter("b", 5.0) }];
        let fitted = minimize(&start, data.len(), line(&data)).unwrap();
        assert!(fitted.parameters[1].at_bound && !fitted.parameters[0].at_bound);
        assert!((fitted.value("b").unwrap() - 6.0).abs() < 1e-9);
        assert_eq!(fitted.parameters[1].estimate.ci95, None);
    }

    #[test]
    fn what_cannot_be_fitted_is_refused() {
        let start = [parameter("a", 1.0), parameter("b", 1.0)];
        let few = [(1.0, 1.0), (2.0, 2.0)];
        assert!(matches!(minimize(&start, 2, line(&few)), Err(FitError::TooFew { .. })));
        let outside = [parameter("a", 0.0), parameter("b", 1.0)];
        assert!(matches!(minimize(&outside, 5, line(&few)), Err(FitError::Start { .. })));
        assert_eq!(minimize(&start, 5, |_, _| false).unwrap_err(), FitError::NotFinite);
        let nan = |_: &[f64], out: &mut [f64]| {
            out.fill(f64::NAN);
            true
        };
        assert_eq!(minimize(&start, 5, nan).unwrap_err(), FitError::NotFinite);

        // Half of the points at three times the line: no line.
        let data = noisy(3, 40, 2);
        let fitted = minimize(&start, data.len(), line(&data)).unwrap();
        let text = fitted.tolerated(0.15).unwrap_err().to_string();
        assert!(text.starts_with("the model does not fit: typical error"), "{text}");
    }
}
