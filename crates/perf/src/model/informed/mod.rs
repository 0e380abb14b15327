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
//! gathered  X(N) of N callers whose calls wait for syncs, each for all who came before it
//! ```
//!
//! A processor that is not full sleeps between calls, and waking costs it C. The share of calls
//! that find it asleep is 1 - U, so its busy time for a call is S + C (1 - U), which is
//! (S + C) / (1 + C X): the few calls of a lower part say how it falls, and with it what S is.
//!
//! `variable` is mean value analysis with a residual service of S (1 + v) / 2: v = 1 is random
//! service, v = 0 regular. `gathered` is run and not written down (see [`super::gathered`]); it is
//! a form for calls that are answered when they are stable, and for no others.
//!
//! Source: utilization law, Lazowska et al. 1984, section 3.4; residual service in mean value
//! analysis, Reiser 1979; the choice of forms is ours.

mod form;

use std::collections::{BTreeMap, BTreeSet};

use self::form::Expected;
pub use self::form::Form;
use super::error::{ModelError, positive, within};
use super::least_squares::{FitError, Fitted, minimize_from};
use super::sweep::{OUTSTANDING_MAX, TOLERATED};
use super::symmetric::eigen;
use crate::stats::{Estimate, Interval, Sample, student_t_975};

/// One run of the lower part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    pub outstanding: u32,
    pub per_s: f64,
    /// The stage's time for a call, us.
    pub busy_us: f64,
}

/// A sweep explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Informed {
    pub form: Form,
    pub fitted: Fitted,
    /// Typical error of the throughput that the runs of one number of calls have at the median, of
    /// 1: how much the form is off, and not how much the runs differ among themselves.
    pub error: f64,
    /// Values that the fit rests on.
    values: usize,
    /// How far the parameters may be off, together: one standard deviation along each direction in
    /// which the values know something by itself. Moves as [`Form::moved`] makes them.
    doubts: Vec<Vec<f64>>,
}

impl Informed {
    /// The form with the smallest typical error, and all of them with theirs.
    ///
    /// Fails with too few values, one that cannot be, or if no form fits.
    pub fn best(seen: &[Seen], forms: &[Form]) -> Result<(Self, Vec<(Form, f64)>), FitError> {
        let mut errors = Vec::new();
        let mut best: Result<Self, FitError> = Err(FitError::NotFinite);
        for &form in forms {
            match (Self::from(seen, form), &best) {
                (Ok(fit), before) => {
                    errors.push((form, fit.error));
                    if before.as_ref().map_or(f64::INFINITY, |b| b.error) > fit.error {
                        best = Ok(fit);
                    }
                }
                (Err(error), Err(_)) => best = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
        Ok((best?, errors))
    }

    pub fn from(seen: &[Seen], form: Form) -> Result<Self, FitError> {
        check(seen)?;
        let windows: BTreeSet<u32> = seen.iter().map(|seen| seen.outstanding).collect();
        let starts = form.starts(seen);
        // The rates of all runs, and then the stage's times.
        let count = 2 * seen.len();
        let residuals = |values: &[f64], out: &mut [f64]| {
            let expected: BTreeMap<u32, Expected> =
                windows.iter().map(|&window| (window, form.expected(values, window))).collect();
            let (rates, busy) = out.split_at_mut(seen.len());
            for (out, seen) in rates.iter_mut().zip(seen) {
                *out = (expected[&seen.outstanding].per_s / seen.per_s).ln();
            }
            for (out, seen) in busy.iter_mut().zip(seen) {
                *out = (expected[&seen.outstanding].busy_us / seen.busy_us).ln();
            }
            true
        };
        let fitted = minimize_from(&starts, count, residuals)?;
        let values = fitted.values();
        let off = |values: &[f64]| {
            let mut out = vec![0.0; count];
            residuals(values, &mut out);
            out
        };
        let doubts = doubts(&values, form, fitted.deviation, off);
        let rows = seen.iter().chain(seen);
        let rows: Vec<u32> = rows.map(|seen| seen.outstanding).collect();
        let off = medians(&rows, &fitted.residuals, seen.len());
        // Two of the parameters are seen in the rates alone.
        let rates = &off[..windows.len()];
        let free = rates.len().saturating_sub(2).max(1);
        let error = (rates.iter().map(|r| r * r).sum::<f64>() / free as f64).sqrt();
        if error > TOLERATED {
            return Err(FitError::Bad { deviation: error, tolerated: TOLERATED, residuals: off });
        }
        Ok(Self { form, fitted, error, values: count, doubts })
    }

    /// Calls a second with so many outstanding, with the interval that the parameters give it.
    pub fn per_s(&self, outstanding: u32) -> Result<Estimate, ModelError> {
        within("outstanding calls", outstanding.into(), 1, OUTSTANDING_MAX.into())?;
        let of = |values: &[f64]| self.form.expected(values, outstanding).per_s;
        let values = self.fitted.values();
        let value = of(&values);
        let free = self.values.saturating_sub(values.len());
        let t = student_t_975(free).unwrap_or(12.7);
        // Around a corner a slope is that of one side only: so it is tried out what the parameters
        // would do.
        let (mut below, mut above) = (0.0, 0.0);
        for doubt in &self.doubts {
            let ends = [t, -t].map(|t| {
                let by: Vec<f64> = doubt.iter().map(|by| t * by).collect();
                (of(&self.form.moved(&values, &by)) / value).ln()
            });
            below += ends[0].min(ends[1]).min(0.0).powi(2);
            above += ends[0].max(ends[1]).max(0.0).powi(2);
        }
        let interval =
            Interval { lo: value / f64::sqrt(below).exp(), hi: value * f64::sqrt(above).exp() };
        let is_known =
            !self.doubts.is_empty() && interval.lo.is_finite() && interval.hi.is_finite();
        Ok(Estimate { value, ci95: is_known.then_some(interval) })
    }
}

/// The median of the residuals of each number of calls outstanding: of the `rates` first ones, then
/// of the stage's.
fn medians(rows: &[u32], residuals: &[f64], rates: usize) -> Vec<f64> {
    let mut groups: BTreeMap<(bool, u32), Vec<f64>> = BTreeMap::new();
    for (at, (outstanding, residual)) in rows.iter().zip(residuals).enumerate() {
        groups.entry((at >= rates, *outstanding)).or_default().push(*residual);
    }
    let median = |values: Vec<f64>| Sample::new(values).map_or(f64::NAN, |sample| sample.median());
    groups.into_values().map(median).collect()
}

/// See [`Informed::doubts`].
fn doubts(
    values: &[f64],
    form: Form,
    deviation: f64,
    residuals: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<Vec<f64>> {
    let count = values.len();
    let slope = |which: usize| {
        let step = |by: f64| {
            let mut all = vec![0.0; count];
            all[which] = by;
            form.moved(values, &all)
        };
        let (up, down) = (step(STEP), step(-STEP));
        // At nothing there is one side only.
        let width = match form.against(values, which) {
            Some(whole) => (up[which] - down[which]) / whole,
            None => 2.0 * STEP,
        };
        let (up, down) = (residuals(&up), residuals(&down));
        up.iter().zip(&down).map(|(up, down)| (up - down) / width).collect::<Vec<f64>>()
    };
    let slopes: Vec<Vec<f64>> = (0..count).map(slope).collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let normal = slopes.iter().map(|a| slopes.iter().map(|b| product(a, b)).collect()).collect();
    let (strengths, directions) = eigen(normal);
    let most = strengths.iter().copied().fold(0.0, f64::max);
    let scaled = |(strength, direction): (&f64, &Vec<f64>)| {
        let reach = match *strength <= 1e-12 * most {
            true => UNSEEN,
            false => deviation / strength.sqrt(),
        };
        direction.iter().map(|part| part * reach).collect()
    };
    strengths.iter().zip(&directions).map(scaled).collect()
}

/// How far parameters may be off that the values do not tell apart: a server that was never found
/// with several calls waiting does not show what these would share.
const UNSEEN: f64 = 0.05;

/// Step of a parameter for the slopes of an answer: above what a run of the loop rounds.
const STEP: f64 = 1e-3;

fn check(seen: &[Seen]) -> Result<(), FitError> {
    for (row, seen) in (1..).zip(seen) {
        within("outstanding calls", seen.outstanding.into(), 1, OUTSTANDING_MAX.into())
            .and_then(|_| positive("throughput", seen.per_s))
            .and_then(|_| positive("the stage's busy time", seen.busy_us))
            .map_err(|why| FitError::Row { row, why })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
