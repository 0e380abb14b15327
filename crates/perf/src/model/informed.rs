//! The lower part of a sweep of outstanding calls, with the time for which each call keeps the
//! slowest stage: enough to predict the upper part.
//!
//! A sweep that ends below its knee says nothing of the stage, and so nothing of the saturation
//! (see [`super::sweep`]). Where the stage can be looked at while it is not yet full, it does: by
//! the utilization law, S = busy time / calls, at any load. Each such S is one more value of the
//! fit.
//!
//! ```text
//! corner    X(N) = min( N / (T + (N - 1) o),  1 / S )
//! variable  X(N) of N callers, a delay of T - S, a line of S whose service varies by v
//! gathered  X(1) = 1 / T;  X(N) = min( N / (T + w),  1 / S )
//! ```
//!
//! `variable` is mean value analysis with a residual service of S (1 + v) / 2: v = 1 is random
//! service, v = 0 regular. `gathered` is a server that makes stable together what came while it was
//! busy with a sync: whoever is not alone waits for one that is under way, for w.
//!
//! Source: utilization law, Lazowska et al. 1984, section 3.4; residual service in mean value
//! analysis, Reiser 1979; the choice of forms is ours.

use super::error::{ModelError, positive, within};
use super::least_squares::{FitError, Fitted, Parameter, minimize_from};
use super::sweep::{OUTSTANDING_MAX, Observed, TOLERATED};
use crate::stats::{Estimate, Interval, student_t_975};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// `cycle`, `stage`, `overhead`.
    Corner,
    /// `cycle`, `stage`, `variation`.
    Variable,
    /// `cycle`, `stage`, `wait`.
    Gathered,
}

impl Form {
    pub const ALL: [Self; 3] = [Self::Corner, Self::Variable, Self::Gathered];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Corner => "corner",
            Self::Variable => "variable",
            Self::Gathered => "gathered",
        }
    }
}

/// A sweep explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Informed {
    pub form: Form,
    pub fitted: Fitted,
    /// Values that the fit rests on.
    values: usize,
    /// Of the parameters as [`moved`] moves them; `None` where the values do not tell them apart.
    covariance: Option<[[f64; 3]; 3]>,
}

impl Informed {
    /// The form with the smallest typical error, and all of them with theirs. `stage_us`: busy
    /// times per call.
    ///
    /// Fails with too few values, one that cannot be, or if no form fits.
    pub fn best(
        observed: &[Observed],
        stage_us: &[f64],
    ) -> Result<(Self, Vec<(Form, f64)>), FitError> {
        let mut errors = Vec::new();
        let mut best: Result<Self, FitError> = Err(FitError::NotFinite);
        for form in Form::ALL {
            match (Self::from(observed, stage_us, form), &best) {
                (Ok(fit), before) => {
                    errors.push((form, fit.fitted.deviation));
                    let before = before.as_ref().map_or(f64::INFINITY, |b| b.fitted.deviation);
                    if fit.fitted.deviation < before {
                        best = Ok(fit);
                    }
                }
                (Err(error), Err(_)) => best = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
        Ok((best?, errors))
    }

    pub fn from(observed: &[Observed], stage_us: &[f64], form: Form) -> Result<Self, FitError> {
        check(observed, stage_us)?;
        let count = observed.len() + stage_us.len();
        let residuals = |values: &[f64], out: &mut [f64]| {
            let (rates, stages) = out.split_at_mut(observed.len());
            for (out, point) in rates.iter_mut().zip(observed) {
                *out = (throughput(form, values, point.outstanding) / point.per_s).ln();
            }
            for (out, us) in stages.iter_mut().zip(stage_us) {
                *out = (values[1] / us).ln();
            }
            true
        };
        let fitted = minimize_from(&starts(observed, stage_us, form), count, residuals)?;
        let fitted = fitted.tolerated(TOLERATED)?;
        let values: Vec<f64> = fitted.parameters.iter().map(|f| f.estimate.value).collect();
        let slopes = observed
            .iter()
            .map(|point| {
                slopes(&values, form, &|values| throughput(form, values, point.outstanding))
            })
            .chain(stage_us.iter().map(|_| slopes(&values, form, &|values| values[1])));
        let covariance = inverse(&squares(slopes)).map(|rows| {
            rows.map(|row| row.map(|entry| entry * fitted.deviation * fitted.deviation))
        });
        Ok(Self { form, fitted, values: count, covariance })
    }

    /// Calls a second with so many outstanding, with the interval that the parameters give it.
    pub fn per_s(&self, outstanding: u32) -> Result<Estimate, ModelError> {
        within("outstanding calls", outstanding.into(), 1, OUTSTANDING_MAX.into())?;
        Ok(self.estimate(&|values| throughput(self.form, values, outstanding)))
    }

    /// 1 / S, calls a second: what more calls lead to. The corner's o can make it less.
    pub fn saturation_per_s(&self) -> Estimate {
        self.estimate(&|values| throughput(self.form, values, OUTSTANDING_MAX))
    }

    fn estimate(&self, of: &dyn Fn(&[f64]) -> f64) -> Estimate {
        let values: Vec<f64> = self.fitted.parameters.iter().map(|f| f.estimate.value).collect();
        let value = of(&values);
        let free = self.values.saturating_sub(values.len());
        let t = student_t_975(free).unwrap_or(12.7);
        let interval = self.covariance.map(|covariance| {
            let slopes = slopes(&values, self.form, of);
            let mut variance = 0.0;
            for (row, a) in covariance.iter().zip(&slopes) {
                for (c, b) in row.iter().zip(&slopes) {
                    variance += a * c * b;
                }
            }
            let half = t * variance.max(0.0).sqrt();
            let ends = [value / half.exp(), value * half.exp()];
            // Around a corner a slope is that of one side only.
            let third = t * covariance[2][2].max(0.0).sqrt();
            let beyond = [third, -third].map(|by| of(&moved(&values, self.form, 2, by)));
            let all = ends.into_iter().chain(beyond);
            let (lo, hi) = all.fold((value, value), |(lo, hi), end| (end.min(lo), end.max(hi)));
            Interval { lo, hi }
        });
        let is_finite = |interval: &Interval| interval.lo.is_finite() && interval.hi.is_finite();
        Estimate { value, ci95: interval.filter(is_finite) }
    }
}

/// The parameters with one of them moved: the first two by a factor, the third, which may have come
/// to nothing, by a part of what it is measured against.
fn moved(values: &[f64], form: Form, which: usize, by: f64) -> Vec<f64> {
    let mut moved = values.to_vec();
    match (which, form) {
        (2, Form::Variable) => moved[2] = (moved[2] + by).max(0.0),
        (2, _) => moved[2] = (moved[2] + by * values[1]).max(0.0),
        _ => moved[which] *= by.exp(),
    }
    moved
}

/// How the logarithm of something changes with each parameter.
fn slopes(values: &[f64], form: Form, of: &dyn Fn(&[f64]) -> f64) -> [f64; 3] {
    [0, 1, 2].map(|which| {
        let (up, down) = (moved(values, form, which, STEP), moved(values, form, which, -STEP));
        let steps = match which {
            // At nothing there is one side only.
            2 if up[2] - values[2] > values[2] - down[2] + STEP * 1e-6 => STEP,
            _ => 2.0 * STEP,
        };
        (of(&up).ln() - of(&down).ln()) / steps
    })
}

/// The products of all slopes, summed.
fn squares(rows: impl Iterator<Item = [f64; 3]>) -> [[f64; 3]; 3] {
    let mut sums = [[0.0; 3]; 3];
    for row in rows {
        for (sums, a) in sums.iter_mut().zip(row) {
            for (sum, b) in sums.iter_mut().zip(row) {
                *sum += a * b;
            }
        }
    }
    sums
}

/// By cofactors; `None` of what has none.
fn inverse(m: &[[f64; 3]; 3]) -> Option<[[f64; 3]; 3]> {
    let cofactor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * cofactor(0, j)).sum();
    let is_regular = determinant.abs() > 1e-12 * (m[0][0] * m[1][1] * m[2][2]).abs();
    is_regular.then(|| [0, 1, 2].map(|i| [0, 1, 2].map(|j| cofactor(j, i) / determinant)))
}

/// Step of a parameter's logarithm for the slopes of an answer.
const STEP: f64 = 1e-4;

fn check(observed: &[Observed], stage_us: &[f64]) -> Result<(), FitError> {
    for (row, point) in (1..).zip(observed) {
        within("outstanding calls", point.outstanding.into(), 1, OUTSTANDING_MAX.into())
            .and_then(|_| positive("throughput", point.per_s))
            .map_err(|why| FitError::Row { row, why })?;
    }
    for (row, us) in (1..).zip(stage_us) {
        positive("the stage's busy time", *us).map_err(|why| FitError::Row { row, why })?;
    }
    Ok(())
}

/// Calls a second.
fn throughput(form: Form, values: &[f64], outstanding: u32) -> f64 {
    let (cycle_us, stage_us, third) = (values[0], values[1], values[2]);
    let calls = f64::from(outstanding);
    let us = match form {
        Form::Corner => ((cycle_us + (calls - 1.0) * third) / calls).max(stage_us),
        Form::Gathered if outstanding == 1 => cycle_us.max(stage_us),
        Form::Gathered => ((cycle_us + third) / calls).max(stage_us),
        Form::Variable => return variable(cycle_us, stage_us, third, outstanding),
    };
    1e6 / us
}

/// Mean value analysis with a line whose service varies: a call finds Q calls there, one of which
/// is served for U of the time and has (1 + v) / 2 of its service left, on average.
fn variable(cycle_us: f64, stage_us: f64, variation: f64, outstanding: u32) -> f64 {
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

fn starts(observed: &[Observed], stage_us: &[f64], form: Form) -> Vec<Vec<Parameter>> {
    let Some(first) = observed.iter().min_by_key(|point| point.outstanding) else {
        return vec![Vec::new()];
    };
    let cycle_us = f64::from(first.outstanding) * 1e6 / first.per_s;
    let most_per_s = observed.iter().map(|point| point.per_s).fold(0.0, f64::max);
    let stage = stage_us.iter().copied().reduce(f64::min).unwrap_or(0.7e6 / most_per_s);
    let parameter = |name, start: f64, reach: f64| Parameter {
        name,
        unit: "us",
        start,
        lo: start / reach,
        hi: start * reach,
    };
    let start = |share: f64| {
        let third = match form {
            Form::Corner => parameter("overhead", share * 0.2 * stage, 1e4),
            Form::Variable => Parameter {
                unit: "1",
                ..Parameter { lo: 1e-3, hi: 4.0, ..parameter("variation", share, 1.0) }
            },
            Form::Gathered => parameter("wait", share * cycle_us, 1e3),
        };
        vec![parameter("cycle", cycle_us, 1e4), parameter("stage", stage, 1e4), third]
    };
    vec![start(0.5), start(0.05), start(0.95)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOWER: [u32; 5] = [1, 2, 3, 4, 5];

    fn noisy(form: Form, values: &[f64], seed: u64) -> (Vec<Observed>, Vec<f64>) {
        let mut draw = fastrand::Rng::with_seed(seed);
        let mut noise = || 1.0 + 0.05 * ((0..12).map(|_| draw.f64()).sum::<f64>() - 6.0);
        let windows = (0..5).flat_map(|_| LOWER);
        let observed: Vec<Observed> = windows
            .map(|outstanding| {
                let per_s = throughput(form, values, outstanding) * noise();
                Observed { outstanding, per_s }
            })
            .collect();
        let stages = observed.iter().map(|_| values[1] * noise()).collect();
        (observed, stages)
    }

    #[test]
    fn the_lower_half_and_the_busy_time_predict_the_upper_half() {
        let truths = [
            (Form::Corner, [700.0, 240.0, 5.0]),
            (Form::Corner, [2_000.0, 200.0, 20.0]),
            (Form::Variable, [700.0, 240.0, 0.3]),
            (Form::Gathered, [2_000.0, 200.0, 1_500.0]),
        ];
        for (form, values) in truths {
            let (mut errors, mut covered) = (Vec::new(), 0);
            for seed in 0..100 {
                let (observed, stages) = noisy(form, &values, seed);
                let informed = Informed::from(&observed, &stages, form).unwrap();
                for outstanding in [6, 8, 10, 16, 64] {
                    let predicted = informed.per_s(outstanding).unwrap();
                    let truth = throughput(form, &values, outstanding);
                    errors.push((predicted.value / truth - 1.0).abs());
                    covered += u32::from(predicted.ci95.unwrap().contains(truth));
                }
            }
            errors.sort_unstable_by(f64::total_cmp);
            assert!(errors[474] < 0.08, "{form:?}: 95 of 100 within {}", errors[474]);
            assert!(covered >= 450, "{form:?}: {covered} of 500");
        }
    }

    #[test]
    fn service_that_does_not_vary_has_nearly_a_corner_and_random_service_is_the_exact_curve() {
        let rate = |variation, n| variable(500.0, 40.0, variation, n);
        // 64 callers, a delay of 460, a line of 40: Erlang's recursion turned around.
        let mut waiting = 0.0;
        for calls in 1..=16_u32 {
            let response = 40.0 * (1.0 + waiting);
            let per_us = f64::from(calls) / (460.0 + response);
            waiting = per_us * response;
            assert!((rate(1.0, calls) / 1e6 / per_us - 1.0).abs() < 1e-9, "{calls}");
        }
        assert!(rate(0.0, 12) > rate(1.0, 12) && rate(0.0, 12) <= 12e6 / 500.0);
        assert!((rate(0.0, 1000) - 25_000.0).abs() < 1.0);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let point = |outstanding, per_s| Observed { outstanding, per_s };
        let few = [point(1, 100.0), point(2, 200.0)];
        assert!(matches!(Informed::best(&few, &[]), Err(FitError::TooFew { .. })));
        let said = Informed::best(&few, &[f64::NAN, 1.0]).unwrap_err().to_string();
        assert!(said.contains("row 1: the stage's busy time is NaN"), "{said}");
        let zigzag: Vec<Observed> =
            (1..9).map(|n| point(n, if n % 2 == 0 { 1.0 } else { 900.0 })).collect();
        assert!(matches!(Informed::best(&zigzag, &[500.0; 4]), Err(FitError::Bad { .. })));
    }
}
