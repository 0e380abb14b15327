//! A sweep of outstanding calls: throughput for 1, 2, 4 ... calls at a time, and the cycle and the
//! slowest stage that explain it.
//!
//! ```text
//! corner   X(N) = min( N / (T + (N - 1) o),  1 / S )              the transaction cycle, section 3
//! curve    X(N) = N callers, a delay of T - S, a queue of S       mean value analysis
//! ```
//!
//! Regular service has the corner, random service the curve; a measured sweep lies between. Both
//! are fitted, and the one with the smaller error is the better explanation of this data, if the
//! data tell them apart at all.
//!
//! What can be seen where: T at one call outstanding, o at few, S only where more calls bring no
//! more throughput. A sweep that ends before says nothing of S, and so of the saturation: where the
//! form without a stage explains the sweep as well (an F test of one parameter), it is the
//! explanation, and there is no saturation.
//!
//! Source: Boumenot 2002, chapter 12, for the corner; Lazowska et al. 1984, section 6.2, for the
//! curve.

use std::collections::BTreeMap;
use std::fmt;

use super::curve::{self, CurveError};
use super::error::{ModelError, positive, within};
use super::least_squares::{FitError, Fitted, Found, Parameter, Unidentified, minimize_from};
use crate::stats::student_t_975;

/// Throughput with so many calls outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepPoint {
    pub outstanding: u32,
    pub per_s: f64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Parameters `cycle` (T), `stage` (S), `overhead` (o).
    Corner,
    /// Parameters `cycle` (T), `stage` (S).
    Curve,
}

/// A sweep explained by one of the forms.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    pub form: Form,
    /// Where the stage does not show, without one: it takes [`NOTHING_US`].
    pub fitted: Fitted,
    pub shows_stage: bool,
    /// Most calls that were outstanding.
    pub most: u32,
    /// No form falls: the fitted one lies somewhere between.
    pub fall: Option<Fall>,
}

/// Throughput that falls as more calls are outstanding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    pub highest: SweepPoint,
    /// With the most calls outstanding.
    pub last: SweepPoint,
}

/// Where more calls outstanding bring no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Saturation {
    /// 1 / S, calls a second.
    pub per_s: f64,
    /// N*: calls outstanding from which on the stage limits.
    pub knee: f64,
}

/// A stage that takes no time.
pub const NOTHING_US: f64 = 1e-3;

/// No measurement is more exact than this share: a guess.
const EXACT: f64 = 1e-3;

/// A sweep that ends below its highest by more than this falls; by less it is noise. A guess.
const FALLS: f64 = 0.1;

/// Most calls outstanding that a sweep may have.
pub const OUTSTANDING_MAX: u32 = 65_536;

/// Typical error up to which a form explains a sweep.
pub const TOLERATED: f64 = 0.15;

/// Reads a sweep: two columns under the heading `outstanding throughput_per_s`, as a curve's file
/// is built (see [`super::curve`]).
pub fn parse(text: &str) -> Result<Vec<SweepPoint>, CurveError> {
    let heading = |cells: &[&str]| match cells {
        ["outstanding", rate] if curve::is_rate(rate) => Some(()),
        _ => None,
    };
    let ((), rows) = curve::rows(text, "outstanding throughput_per_s", curve::ROWS_MAX, heading)?;
    let observed = rows.into_iter().map(|(row, [outstanding, per_s])| {
        if outstanding.fract() != 0.0 || !(1.0..=OUTSTANDING_MAX.into()).contains(&outstanding) {
            let (what, need) = ("number of outstanding calls", "a whole number of 1 to 65536");
            return Err(CurveError::NotOneOf { row, what, got: outstanding, need });
        }
        if !(per_s.is_finite() && per_s > 0.0) {
            return Err(CurveError::NotPositive { row, what: "throughput", got: per_s });
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let outstanding = outstanding as u32;
        Ok(SweepPoint { outstanding, per_s })
    });
    observed.collect()
}

impl Explained {
    /// Fails with too few points, a point that cannot be, or if the form does not fit.
    pub fn from(observed: &[SweepPoint], form: Form) -> Result<Self, FitError> {
        check(observed)?;
        let most = observed.iter().map(|point| point.outstanding).max().unwrap_or(1);
        let residuals = |values: &[f64], out: &mut [f64]| {
            let rates = rates(form, values, most);
            for (out, point) in out.iter_mut().zip(observed) {
                *out = (rates(point.outstanding) / point.per_s).ln();
            }
            true
        };
        let starts = starts(observed, form);
        let with_stage = minimize_from(&starts, observed.len(), residuals)?;
        let without = minimize_from(&without_stage(&starts), observed.len(), residuals).ok();
        let without = without.filter(|without| !is_stage_needed(&with_stage, without, most));
        let shows_stage = without.is_none();
        let fitted = without.unwrap_or(with_stage);
        let loads = observed.iter().map(|point| f64::from(point.outstanding));
        let fitted = fitted.tolerated(TOLERATED)?.over(loads, TOLERATED)?;
        Ok(Self { form, fitted, shows_stage, most, fall: Fall::of(observed) })
    }

    /// The form with the smaller typical error; the other's error beside it, if it fits at all.
    pub fn best(observed: &[SweepPoint]) -> Result<(Self, Option<Self>), FitError> {
        let corner = Self::from(observed, Form::Corner);
        let curve = Self::from(observed, Form::Curve);
        match (corner, curve) {
            (Ok(corner), Ok(curve)) if corner.fitted.deviation <= curve.fitted.deviation => {
                Ok((corner, Some(curve)))
            }
            (Ok(corner), Ok(curve)) => Ok((curve, Some(corner))),
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok((one, None)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// The parameters, without the stage where it does not show.
    pub fn shown(&self) -> impl Iterator<Item = &Found> {
        let is_shown = |found: &&Found| self.shows_stage || found.name != "stage";
        self.fitted.parameters.iter().filter(is_shown)
    }

    /// Calls a second with so many outstanding.
    pub fn per_s(&self, outstanding: u32) -> Result<f64, ModelError> {
        throughput(self.form, &self.values(), outstanding)
    }

    /// None where the sweep ends before it.
    pub fn saturation(&self) -> Option<Saturation> {
        let values = self.values();
        let (cycle_us, stage_us) = (values[0], values[1]);
        let saturation = Saturation { per_s: 1e6 / stage_us, knee: cycle_us / stage_us };
        self.shows_stage.then_some(saturation)
    }

    /// Calls a second that are reached at least: those with the most calls outstanding.
    pub fn least_per_s(&self) -> f64 {
        self.per_s(self.most).unwrap_or(0.0)
    }

    /// Sentences on what the sweep does not show, and what would.
    pub fn unidentified(&self) -> Vec<String> {
        let advice = |names: &[&str]| {
            if names.contains(&"stage") && self.fall.is_some() {
                "add runs around the highest throughput"
            } else if names.contains(&"stage") {
                "add runs with more calls outstanding, until throughput stops growing"
            } else if names.contains(&"cycle") {
                "add a run with one call outstanding"
            } else {
                "add runs with two to eight calls outstanding"
            }
        };
        let stage = Unidentified { names: vec!["stage"] };
        let stage = (!self.shows_stage).then_some(&stage);
        let all = stage.into_iter().chain(&self.fitted.unidentified);
        all.map(|unidentified| format!("{unidentified}: {}", advice(&unidentified.names))).collect()
    }

    fn values(&self) -> Vec<f64> {
        self.fitted.values()
    }
}

impl Fall {
    fn of(observed: &[SweepPoint]) -> Option<Self> {
        let means = means(observed);
        let (highest, last) = (highest(&means)?, *means.last()?);
        (last.per_s < (1.0 - FALLS) * highest.per_s).then_some(Self { highest, last })
    }
}

impl fmt::Display for Fall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { highest, last } = self;
        write!(
            f,
            "throughput falls from {:.0} calls/s with {} outstanding to {:.0} with {}: no model of \
             a sweep falls, and what follows from this one is not sure",
            highest.per_s, highest.outstanding, last.per_s, last.outstanding
        )
    }
}

/// The highest throughput that was measured: of runs with as many calls outstanding their mean.
pub fn highest_per_s(observed: &[SweepPoint]) -> f64 {
    highest(&means(observed)).map_or(0.0, |point| point.per_s)
}

fn highest(means: &[SweepPoint]) -> Option<SweepPoint> {
    means.iter().copied().max_by(|a, b| a.per_s.total_cmp(&b.per_s))
}

/// One point for each number of calls outstanding, in their order.
fn means(observed: &[SweepPoint]) -> Vec<SweepPoint> {
    let mut sums = BTreeMap::<u32, (f64, f64)>::new();
    for point in observed {
        let (sum, count) = sums.entry(point.outstanding).or_default();
        (*sum, *count) = (*sum + point.per_s, *count + 1.0);
    }
    let mean = |(outstanding, (sum, count))| SweepPoint { outstanding, per_s: sum / count };
    sums.into_iter().map(mean).collect()
}

/// Whether the stage shows, and explains more than none would.
fn is_stage_needed(with: &Fitted, without: &Fitted, most: u32) -> bool {
    let is_unseen = with.parameters[1].at_bound
        || with.unidentified.iter().any(|one| one.names.contains(&"stage"));
    // Where o alone halves the throughput that a window has, it stands for a stage.
    let overhead_us = without.value("overhead").unwrap_or(0.0);
    let bends = f64::from(most - 1) * overhead_us > without.parameters[0].estimate.value;
    !is_unseen && (bends || is_better(with, without))
}

/// Whether one more parameter explains more than chance would: an F test with one degree of
/// freedom, which is Student's t squared.
fn is_better(with: &Fitted, without: &Fitted) -> bool {
    // One row that is far off is no stage.
    let far = 3.5 * with.deviation.max(EXACT);
    let is_near: Vec<bool> = with.residuals.iter().map(|r| r.abs() <= far).collect();
    let squares = |fitted: &Fitted| -> f64 {
        let near = fitted.residuals.iter().zip(&is_near).filter(|(_, is_near)| **is_near);
        near.map(|(r, _)| r * r).sum()
    };
    let freedom = with.residuals.len().saturating_sub(with.parameters.len()).max(1);
    let variance = (squares(with) / freedom as f64).max(EXACT.powi(2));
    let t = student_t_975(freedom).unwrap_or(f64::INFINITY);
    squares(without) - squares(with) > t.powi(2) * variance
}

/// The same searches with a stage that takes nothing.
fn without_stage(starts: &[Vec<Parameter>]) -> Vec<Vec<Parameter>> {
    let without = |parameter: &Parameter| match parameter.name {
        "stage" => Parameter { start: NOTHING_US, lo: NOTHING_US, hi: NOTHING_US, ..*parameter },
        _ => *parameter,
    };
    starts.iter().map(|start| start.iter().map(without).collect()).collect()
}

fn check(observed: &[SweepPoint]) -> Result<(), FitError> {
    for (row, point) in (1..).zip(observed) {
        within("outstanding calls", point.outstanding.into(), 1, OUTSTANDING_MAX.into())
            .and_then(|_| positive("throughput", point.per_s))
            .map_err(|why| FitError::Row { row, why })?;
    }
    Ok(())
}

/// Calls a second with so many outstanding, of a form with these parameters, in their order.
///
/// # Errors
/// More outstanding than may be.
pub fn throughput(form: Form, values: &[f64], outstanding: u32) -> Result<f64, ModelError> {
    within("outstanding calls", outstanding.into(), 1, OUTSTANDING_MAX.into())?;
    Ok(rates(form, values, outstanding)(outstanding))
}

/// Calls a second with 1 to `most` outstanding: all at once, because the curve of N callers is that
/// of fewer with one more.
fn rates(form: Form, values: &[f64], most: u32) -> impl Fn(u32) -> f64 {
    let (cycle_us, stage_us) = (values[0], values[1]);
    let overhead_us = values.get(2).copied().unwrap_or(0.0);
    let curve = match form {
        Form::Corner => Vec::new(),
        Form::Curve => curve_rates(cycle_us, stage_us, most),
    };
    move |outstanding| match form {
        Form::Corner => {
            let calls = f64::from(outstanding);
            let us = cycle_us + (calls - 1.0) * overhead_us;
            (calls / us).min(1.0 / stage_us) * 1e6
        }
        Form::Curve => curve[outstanding as usize - 1],
    }
}

/// Mean value analysis of a delay and one queue, which needs no more than this recursion. A stage
/// longer than the cycle is a cycle of that length.
fn curve_rates(cycle_us: f64, stage_us: f64, most: u32) -> Vec<f64> {
    let think_us = (cycle_us - stage_us).max(0.0);
    let mut waiting = 0.0;
    let rate = |calls: u32| {
        let response_us = stage_us * (1.0 + waiting);
        let per_us = f64::from(calls) / (think_us + response_us);
        waiting = per_us * response_us;
        per_us * 1e6
    };
    (1..=most).map(rate).collect()
}

/// From the point with the fewest calls and the highest throughput.
fn starts(observed: &[SweepPoint], form: Form) -> Vec<Vec<Parameter>> {
    let Some(first) = observed.iter().min_by_key(|point| point.outstanding) else {
        return vec![Vec::new()];
    };
    let most_per_s = observed.iter().map(|point| point.per_s).fold(0.0, f64::max);
    let cycle_us = f64::from(first.outstanding) * 1e6 / first.per_s;
    let parameter =
        |name, start: f64| Parameter { name, unit: "us", start, lo: start / 1e4, hi: start * 1e4 };
    let start = |share: f64, overhead: f64| {
        let mut all =
            vec![parameter("cycle", cycle_us), parameter("stage", share * 1e6 / most_per_s)];
        if form == Form::Corner {
            all.push(parameter("overhead", overhead * 1e6 / most_per_s));
        }
        all
    };
    vec![start(1.0, 0.5), start(0.9, 0.1), start(0.7, 0.01), start(0.97, 0.9)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(form: Form, values: &[f64], windows: &[u32], seed: u64) -> Vec<SweepPoint> {
        let mut draw = fastrand::Rng::with_seed(seed);
        let point = |&outstanding: &u32| {
            let normal = (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0;
            let per_s = throughput(form, values, outstanding).unwrap() * (1.0 + 0.05 * normal);
            SweepPoint { outstanding, per_s }
        };
        windows.iter().map(point).collect()
    }

    /// Each window five times, as a study repeats.
    fn windows() -> Vec<u32> {
        (0..5).flat_map(|_| [1, 2, 4, 8, 16, 32, 64]).collect()
    }

    #[test]
    fn cycle_and_stage_come_back_within_5_percent_and_intervals_cover_them() {
        for (form, truth) in
            [(Form::Corner, vec![500.0, 40.0, 10.0]), (Form::Curve, vec![500.0, 40.0])]
        {
            let mut covered = vec![0; truth.len()];
            let mut errors = [Vec::new(), Vec::new()];
            for seed in 0..100 {
                let observed = noisy(form, &truth, &windows(), seed);
                let explained = Explained::from(&observed, form).unwrap();
                for (i, found) in explained.fitted.parameters.iter().enumerate() {
                    let interval = found.estimate.ci95;
                    covered[i] += u32::from(interval.is_some_and(|ci| ci.contains(truth[i])));
                    if i < 2 {
                        errors[i].push((found.estimate.value / truth[i] - 1.0).abs());
                    }
                }
            }
            assert!(covered.iter().all(|&n| n >= 90), "{form:?}: {covered:?}");
            for errors in &mut errors {
                errors.sort_unstable_by(f64::total_cmp);
                assert!(errors[94] <= 0.05, "{form:?}: {}", errors[94]);
            }
        }
    }

    #[test]
    fn the_curve_is_what_mean_value_analysis_solves() {
        use crate::model::closed::network::{Center, Class, Kind, Network};
        for callers in [1, 2, 13, 64, 500] {
            let class = Class { callers, think_us: 460.0 };
            let stage = Center::new("stage", Kind::Queue, &[40.0]);
            let network = Network::new(vec![class], vec![stage]).unwrap();
            let solved = network.solve().unwrap().throughput_per_s[0];
            let own = throughput(Form::Curve, &[500.0, 40.0], callers).unwrap();
            assert!((own / solved - 1.0).abs() < 1e-9, "{callers}: {own} {solved}");
        }
    }

    #[test]
    fn the_form_that_made_the_data_explains_them_best() {
        for form in [Form::Corner, Form::Curve] {
            let values = [500.0, 40.0, 1.0];
            let observed = noisy(form, &values, &windows(), 4);
            let (best, other) = Explained::best(&observed).unwrap();
            assert_eq!(best.form, form);
            assert!(other.is_none_or(|other| other.fitted.deviation > best.fitted.deviation));
        }
    }

    #[test]
    fn the_lower_half_predicts_the_upper_only_if_it_shows_the_stage() {
        let values = [500.0, 40.0];
        let wide = noisy(Form::Curve, &values, &[1, 1, 2, 2, 4, 4, 8, 8, 12, 12, 16, 16], 2);
        let explained = Explained::from(&wide, Form::Curve).unwrap();
        assert!(explained.unidentified().is_empty());
        assert!((explained.saturation().unwrap().per_s / 25_000.0 - 1.0).abs() < 0.1);
        let upper = throughput(Form::Curve, &values, 64).unwrap();
        assert!((explained.per_s(64).unwrap() / upper - 1.0).abs() < 0.1);

        let narrow = noisy(Form::Corner, &[500.0, 40.0, 0.1], &[1, 1, 1, 2, 2, 2, 3, 3, 3], 2);
        let unidentified =
            Explained::from(&narrow, Form::Corner).unwrap().unidentified().join("; ");
        assert!(unidentified.contains("until throughput stops growing"), "{unidentified}");
    }

    #[test]
    fn a_sweep_that_never_saturates_has_no_saturation() {
        let windows = [1, 2, 4, 8, 16];
        let sweep = |rates: [f64; 5]| -> Vec<SweepPoint> {
            let point = |(&outstanding, per_s)| SweepPoint { outstanding, per_s };
            windows.iter().zip(rates).map(point).collect()
        };
        let exact = sweep([1e3, 2e3, 4e3, 8e3, 16e3]);
        let rough = sweep([1010.0, 1985.0, 4020.0, 7980.0, 16_050.0]);
        let one_window = vec![SweepPoint { outstanding: 1, per_s: 1e3 }; 5];
        for form in [Form::Corner, Form::Curve] {
            for (observed, least) in [(&exact, 16e3), (&rough, 16e3), (&one_window, 1e3)] {
                let explained = Explained::from(observed, form).unwrap();
                assert_eq!(explained.saturation(), None, "{form:?} {observed:?}");
                assert!((explained.least_per_s() / least - 1.0).abs() < 0.02, "{explained:?}");
                assert_eq!(explained.fitted.parameters[1].estimate.ci95, None);
                let text = explained.unidentified().join("; ");
                assert!(text.starts_with("stage does not show"), "{text}");
            }
        }
        // It shows as soon as more calls bring no more.
        let corner = sweep([1e3, 2e3, 4e3, 6e3, 6e3]);
        let found = Explained::from(&corner, Form::Corner).unwrap().saturation().unwrap();
        assert!((found.per_s / 6e3 - 1.0).abs() < 0.01 && (found.knee / 6.0 - 1.0).abs() < 0.01);
        let flat = sweep([1e3; 5]);
        let found = Explained::best(&flat).unwrap().0.saturation().unwrap();
        assert!((found.per_s / 1e3 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_sweep_that_falls_is_one_and_noise_on_a_plateau_is_none() {
        let of = |rates: [f64; 5]| -> Explained {
            let point = |(outstanding, per_s)| SweepPoint { outstanding, per_s };
            let observed: Vec<_> = [1, 2, 4, 8, 16].into_iter().zip(rates).map(point).collect();
            Explained::best(&observed).unwrap().0
        };
        let falling = of([1000.0, 900.0, 800.0, 700.0, 600.0]);
        let fall = falling.fall.unwrap();
        assert_eq!((fall.highest.outstanding, fall.last.per_s), (1, 600.0));
        let advice = falling.unidentified().join("; ");
        assert!(!advice.contains("until throughput stops growing"), "{advice}");
        assert_eq!(of([1000.0, 2000.0, 3000.0, 2950.0, 2900.0]).fall, None);
    }

    #[test]
    fn a_sweep_with_two_knees_or_one_that_bends_back_is_refused_or_warned_about() {
        let noisy = |seed, rate: fn(f64) -> f64| {
            let mut draw = fastrand::Rng::with_seed(seed);
            let point = |outstanding: u32| {
                let normal = (0..12).map(|_| draw.f64()).sum::<f64>() - 6.0;
                SweepPoint { outstanding, per_s: rate(outstanding.into()) * (1.0 + 0.03 * normal) }
            };
            let windows = (0..5).flat_map(|_| [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
            windows.map(point).collect::<Vec<_>>()
        };
        let is_identified = |observed: &[SweepPoint]| match Explained::best(observed) {
            Ok((best, _)) => best.fitted.systematic.is_some(),
            Err(FitError::Systematic { .. } | FitError::Bad { .. }) => true,
            Err(_) => false,
        };
        // To 4 calls, then a fifth as much for each more, to a second limit.
        let two_knees = |n: f64| (2_000.0 * n).min(8_000.0 + 400.0 * (n - 4.0)).min(20_000.0);
        let bends_back = |n: f64| (2_000.0 * n).min(24_000.0 - 250.0 * n);
        let identified = |rate| (0..20).filter(|seed| is_identified(&noisy(*seed, rate))).count();
        assert_eq!((identified(two_knees), identified(bends_back)), (20, 20));
        let one_knee = |n: f64| (2_000.0 * n).min(16_000.0);
        assert!(identified(one_knee) <= 1, "{}", identified(one_knee));
    }

    #[test]
    fn a_sweep_is_read_from_two_columns() {
        let point = |outstanding, per_s| SweepPoint { outstanding, per_s };
        let text = "outstanding throughput_per_s\n1 1800 # first\n\n2 3500\n";
        assert_eq!(parse(text), Ok(vec![point(1, 1800.0), point(2, 3500.0)]));
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("1 1800").contains("\"outstanding throughput_per_s\""));
        assert!(error("outstanding ops/s\n1.5 3").contains("row 2: the number of outstanding"));
        assert!(error("outstanding ops/s\n1 -3").contains("row 2: the throughput is -3"));
    }

    #[test]
    fn sweeps_that_cannot_be_are_refused() {
        let point = |outstanding, per_s| SweepPoint { outstanding, per_s };
        let bad = |points: &[SweepPoint]| Explained::from(points, Form::Curve).is_err();
        assert!(bad(&[]));
        assert!(bad(&[point(1, 1.0), point(2, 2.0)]));
        assert!(bad(&[point(0, 1.0), point(2, 2.0), point(3, 3.0)]));
        assert!(bad(&[point(1, f64::NAN), point(2, 2.0), point(3, 3.0)]));
        let text = Explained::from(&[point(1, 9.0), point(2, -1.0), point(3, 3.0)], Form::Curve);
        let text = text.unwrap_err().to_string();
        assert_eq!(text, "row 2: throughput is -1: it has to be a finite number above 0");
        assert!(bad(&[point(1, 100.0), point(2, 1.0), point(4, 100.0), point(8, 1.0)]));
    }
}
