//! How uncertain the parameters of a trace are. The widest of three counts, in each direction of
//! the parameters:
//!
//! - the curvature of the fit, which takes all groups for equally uncertain;
//! - the jackknife over tenths of the trace: what comes out without each of them;
//! - the drift of the machine: how much slower or faster the servers were in each tenth, as all its
//!   calls show, and what comes out with a tenth that is so much slower. Where a few tenths alone
//!   tell a parameter (as the calls one at a time tell the way), the jackknife has those few to see
//!   by how much tenths differ; this has all ten.

use super::{Trace, trimmed_mean};
use crate::model::least_squares::{Fitted, Found, Parameter, minimize_from};
use crate::model::symmetric::eigen;
use crate::stats::{Estimate, student_t_975};

/// Parts of a trace, for intervals. Each is one piece: what disturbs a server disturbs the calls
/// that follow each other.
const FOLDS: usize = 10;

/// What the tenths tell of their differences: the fit has made way and op follow their level.
const FREE: usize = FOLDS - 2;

/// Student's t with a single degree of freedom.
const T_OF_ONE: f64 = 12.7;

/// By how much servers are made slower to see which call minds.
const STEP: f64 = 1e-3;

/// A trace with all of its calls, or changed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen {
    AsItIs,
    /// Without a tenth's calls.
    Without(usize),
    /// As if the servers had taken so many times as long during a tenth.
    Slower(usize, f64),
    /// The same, during all of it.
    AllSlower(f64),
}

impl Seen {
    pub(super) fn leaves_out(self, fold: usize) -> bool {
        matches!(self, Self::Without(out) if out == fold)
    }

    pub(super) fn slower(self, fold: usize) -> f64 {
        match self {
            Self::Slower(slow, times) if slow == fold => times,
            Self::AllSlower(times) => times,
            _ => 1.0,
        }
    }
}

/// What comes out of a trace that is changed: the parameters' logarithms.
type Outcome = Vec<f64>;

impl Trace {
    pub(super) fn fold(&self, at: usize) -> usize {
        at * FOLDS / self.calls.len()
    }

    /// See the module's head.
    pub(super) fn widen(&self, servers: u32, fitted: &mut Fitted) {
        let free = self.groups.len().saturating_sub(fitted.parameters.len());
        let t = student_t_975(free).unwrap_or(T_OF_ONE);
        let others = [self.jackknife(servers, fitted, t), self.drift(servers, fitted, t)];
        others.iter().flatten().for_each(|other| widen(&mut fitted.covariance, other));
        for (i, found) in fitted.parameters.iter_mut().enumerate() {
            let half = t * fitted.covariance[i][i].sqrt();
            let Estimate { value, ci95 } = &mut found.estimate;
            if let Some(interval) = ci95.as_mut().filter(|_| half.is_finite()) {
                interval.lo = interval.lo.min(*value / half.exp());
                interval.hi = interval.hi.max(*value * half.exp());
            }
        }
    }

    /// The parameters' logarithms from another look at the trace.
    fn refitted(&self, servers: u32, fitted: &Fitted, seen: Seen) -> Option<Outcome> {
        let start = |found: &Found| Parameter {
            name: found.name,
            unit: found.unit,
            start: found.estimate.value,
            lo: found.estimate.value / 100.0,
            hi: found.estimate.value * 100.0,
        };
        let start: Vec<Parameter> = fitted.parameters.iter().map(start).collect();
        let residuals = |values: &[f64], out: &mut [f64]| {
            self.residuals(servers, values, seen, out);
            true
        };
        let again = minimize_from(&[start], self.groups.len(), residuals).ok()?;
        Some(logs(&again))
    }

    /// Covariance of the parameters' logarithms from fits that each leave out a tenth of the trace,
    /// for intervals of `t` standard deviations.
    fn jackknife(&self, servers: u32, fitted: &Fitted, t: f64) -> Option<Vec<Vec<f64>>> {
        let without = |fold| self.refitted(servers, fitted, Seen::Without(fold));
        let folds: Vec<Outcome> = (0..FOLDS).filter_map(without).collect();
        let own_t = student_t_975(folds.len().saturating_sub(1))?;
        let count = folds.len() as f64;
        let mean = |i: usize| folds.iter().map(|fold| fold[i]).sum::<f64>() / count;
        let means: Outcome = (0..fitted.parameters.len()).map(mean).collect();
        let off: Vec<Outcome> = folds.iter().map(|fold| minus(fold, &means)).collect();
        Some(squares(&off, (count - 1.0) / count * (own_t / t).powi(2), 0.0))
    }

    /// The same from how much slower the servers were in some tenths than in others.
    fn drift(&self, servers: u32, fitted: &Fitted, t: f64) -> Option<Vec<Vec<f64>>> {
        let (deviation, alike) = self.drifted(servers, fitted)?;
        let slower = |fold| self.refitted(servers, fitted, Seen::Slower(fold, deviation.exp()));
        let own = logs(fitted);
        let moved = (0..FOLDS).map(|fold| Some(minus(&slower(fold)?, &own)));
        let moved: Vec<Outcome> = moved.collect::<Option<_>>()?;
        let times = (student_t_975(FREE)? / t).powi(2);
        Some(squares(&moved, times, alike))
    }

    /// By how much servers differ from tenth to tenth: the standard deviation of the logarithm of
    /// what a service takes, and how much a tenth resembles the next (0 to 0.5).
    fn drifted(&self, servers: u32, fitted: &Fitted) -> Option<(f64, f64)> {
        let values = fitted.values();
        let as_it_is = self.replayed(servers, &values, Seen::AsItIs);
        let slower = self.replayed(servers, &values, Seen::AllSlower(STEP.exp()));
        let log = |fold: usize| {
            let of_fold = |of: &[f64]| {
                let own = of.iter().enumerate().filter(|&(at, _)| self.fold(at) == fold);
                trimmed_mean(own.map(|(_, log)| *log).collect())
            };
            let off = of_fold(&as_it_is);
            -off * STEP / (of_fold(&slower) - off)
        };
        let logs: Vec<f64> = (0..FOLDS).map(log).collect();
        let mean = logs.iter().sum::<f64>() / FOLDS as f64;
        let off: Vec<f64> = logs.iter().map(|log| log - mean).collect();
        let square: f64 = off.iter().map(|off| off * off).sum();
        let next: f64 = off.windows(2).map(|two| two[0] * two[1]).sum();
        let deviation = (square / FREE as f64).sqrt();
        // That of values that are not alike is on average -1/n.
        let alike = (next / square + 1.0 / FOLDS as f64).clamp(0.0, 0.5);
        // Servers that matter to no call's time, or that are always the same, do not drift.
        (deviation.is_finite() && deviation > 0.0).then_some((deviation, alike))
    }
}

fn logs(fitted: &Fitted) -> Outcome {
    fitted.values().iter().map(|value| value.ln()).collect()
}

fn minus(a: &[f64], b: &[f64]) -> Outcome {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The sum of all outcomes' products, so many times; neighbours are alike by so much.
fn squares(outcomes: &[Outcome], times: f64, alike: f64) -> Vec<Vec<f64>> {
    let n = outcomes.first().map_or(0, Vec::len);
    let both = |i: usize, j: usize| {
        let own: f64 = outcomes.iter().map(|by| by[i] * by[j]).sum();
        let next: f64 =
            outcomes.windows(2).map(|two| two[0][i] * two[1][j] + two[1][i] * two[0][j]).sum();
        times * (own + alike * next)
    };
    (0..n).map(|i| (0..n).map(|j| both(i, j)).collect()).collect()
}

/// Makes a covariance as wide as another one in each direction in which that is wider.
fn widen(covariance: &mut [Vec<f64>], other: &[Vec<f64>]) {
    let (variances, axes) = eigen(covariance.to_vec());
    let most = variances.iter().copied().fold(0.0, f64::max);
    // A direction that has no variance, of a parameter at its bound, stays without.
    let shown = variances.iter().zip(&axes).filter(|(variance, _)| **variance > 1e-12 * most);
    let units: Vec<Vec<f64>> = shown
        .map(|(variance, axis)| axis.iter().map(|along| along * variance.sqrt()).collect())
        .collect();
    let along = |unit: &[f64], of: &[f64]| -> f64 { unit.iter().zip(of).map(|(a, b)| a * b).sum() };
    let whitened = |unit: &Vec<f64>| -> Vec<f64> {
        let variance = along(unit, unit);
        unit.iter().map(|part| part / variance).collect()
    };
    let whitened: Vec<Vec<f64>> = units.iter().map(whitened).collect();
    let ratio = |a: &Vec<f64>, b: &Vec<f64>| -> f64 {
        a.iter().zip(other).map(|(a, row)| a * along(row, b)).sum()
    };
    let ratios = whitened.iter().map(|a| whitened.iter().map(|b| ratio(a, b)).collect()).collect();
    let (ratios, turned) = eigen(ratios);
    for (ratio, turn) in ratios.iter().zip(&turned).filter(|(ratio, _)| **ratio > 1.0) {
        let more = |i: usize| units.iter().zip(turn).map(|(unit, by)| unit[i] * by).sum::<f64>();
        let more: Vec<f64> = (0..covariance.len()).map(more).collect();
        for (row, a) in covariance.iter_mut().zip(&more) {
            row.iter_mut().zip(&more).for_each(|(entry, b)| *entry += (ratio - 1.0) * a * b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covariance_becomes_as_wide_as_another_where_that_is_wider() {
        // Two that are known only together, and better than the other one has their sum.
        let mut covariance = vec![vec![1.0, -0.99], vec![-0.99, 1.0]];
        widen(&mut covariance, &[vec![0.5, 0.5], vec![0.5, 0.5]]);
        let variance = |of: [f64; 2]| -> f64 {
            let row = |i: usize| of[0] * covariance[i][0] + of[1] * covariance[i][1];
            of[0] * row(0) + of[1] * row(1)
        };
        assert!((variance([1.0, 1.0]) - 2.0).abs() < 1e-9, "{covariance:?}");
        assert!((variance([1.0, -1.0]) - 3.98).abs() < 1e-9, "{covariance:?}");
        let before = covariance.clone();
        widen(&mut covariance, &[vec![0.1, 0.0], vec![0.0, 0.1]]);
        assert!(before.concat().iter().zip(covariance.concat()).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}
