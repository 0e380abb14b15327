//! What a fit knows less where neighbours err alike.
//!
//! Points are measured one after the other, and in the order of the load: a machine that is slow
//! for a while, and a model that is a little off, both move neighbours together. So many points say
//! as much of the parameters as fewer independent ones would.
//!
//! The errors are taken for a first-order autoregressive series of a correlation r that is not
//! known. What is left over of a fit shows r by its restricted likelihood (Patterson & Thompson
//! 1971), which allows for what the parameters have taken away: of ten points, four parameters
//! take nearly all of a correlation. It shows little of r then, so that no single r is taken. The
//! parameters' covariance is the mean over all of them, weighted by their likelihood and by a power
//! of (1 - r): large correlations are less common than small ones.

/// Correlations that are tried: 0, 0.05 to 0.95.
const STEPS: u32 = 20;

/// The power of (1 - r). Ours: with 2, intervals of a dozen independent points are too wide, with 5
/// those of dependent ones too narrow (`docs/models.md`, section 26).
const SELDOM: f64 = 2.5;

/// Values beyond the parameters, below which they say nothing of a correlation.
const FREE_MIN: usize = 3;

/// How far errors reach into the directions of the parameters, as covariances: of independent
/// errors of which as much is left over, 1 for each direction by itself.
///
/// `units` are the directions in which the parameters move the values, at right angles and of
/// length 1; `left` is what is left over, in the order of the measurement.
pub(super) fn reach(units: &[Vec<f64>], left: &[f64]) -> Vec<Vec<f64>> {
    let independent = || {
        let row = |a: usize| (0..units.len()).map(|b| f64::from(a == b)).collect();
        (0..units.len()).map(row).collect::<Vec<Vec<f64>>>()
    };
    let free = left.len().saturating_sub(units.len());
    let squares = product(left, left);
    if free < FREE_MIN || squares == 0.0 {
        return independent();
    }
    let tried: Vec<(Errors, f64, f64)> = (0..STEPS)
        .map(|step| {
            let errors = Errors { r: f64::from(step) / f64::from(STEPS) };
            let (squares_left, log_determinant) = errors.left(units, left);
            let share = squares_left / squares;
            let log_likelihood = -0.5 * (free as f64 * share.ln() + log_determinant);
            (errors, share, log_likelihood + SELDOM * (1.0 - errors.r).ln())
        })
        .filter(|(.., log_weight)| log_weight.is_finite())
        .collect();
    let most = tried.iter().map(|&(.., log_weight)| log_weight).fold(f64::NEG_INFINITY, f64::max);
    let weight = |log_weight: f64| (log_weight - most).exp();
    let weights: f64 = tried.iter().map(|&(.., log_weight)| weight(log_weight)).sum();
    if weights <= 0.0 {
        return independent();
    }
    let mut mean = vec![vec![0.0; units.len()]; units.len()];
    for (errors, share, log_weight) in tried {
        for (b, unit) in units.iter().enumerate() {
            let moved = errors.correlated(unit);
            for (row, other) in mean.iter_mut().zip(units) {
                row[b] += weight(log_weight) / weights * share * product(other, &moved);
            }
        }
    }
    mean
}

pub(super) fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Errors of variance 1, each of which resembles the one before by r.
#[derive(Clone, Copy)]
struct Errors {
    r: f64,
}

impl Errors {
    /// Their covariance times these values.
    fn correlated(self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; values.len()];
        let mut carried = 0.0;
        for (sum, value) in sums.iter_mut().zip(values) {
            carried = value + self.r * carried;
            *sum += carried;
        }
        carried = 0.0;
        for (sum, value) in sums.iter_mut().zip(values).rev() {
            // Each value by itself is in the sums already.
            *sum += self.r * carried;
            carried = value + self.r * carried;
        }
        sums
    }

    /// Of each value what the one before it does not tell, over its standard deviation.
    fn whitened(self, values: &[f64]) -> Vec<f64> {
        let scale = (1.0 - self.r.powi(2)).sqrt();
        let others = values.windows(2).map(|pair| (pair[1] - self.r * pair[0]) / scale);
        values.first().copied().into_iter().chain(others).collect()
    }

    /// Squares of what the best fit leaves over of whitened values, and the logarithm of the
    /// determinants of their covariance and of the directions.
    fn left(self, units: &[Vec<f64>], left: &[f64]) -> (f64, f64) {
        let mut axes: Vec<Vec<f64>> = Vec::with_capacity(units.len());
        let mut rest = self.whitened(left);
        let mut log_determinant = (left.len() as f64 - 1.0) * (1.0 - self.r.powi(2)).ln();
        for unit in units {
            let mut axis = self.whitened(unit);
            take_away(&mut axis, &axes);
            let length = product(&axis, &axis).sqrt();
            log_determinant += 2.0 * length.ln();
            axis.iter_mut().for_each(|value| *value /= length);
            axes.push(axis);
        }
        take_away(&mut rest, &axes);
        (product(&rest, &rest), log_determinant)
    }
}

/// What of the values lies along the axes.
fn take_away(values: &mut [f64], axes: &[Vec<f64>]) {
    for axis in axes {
        let along = product(values, axis);
        values.iter_mut().zip(axis).for_each(|(value, axis)| *value -= along * axis);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(n: usize, r: f64, random: &mut fastrand::Rng) -> Vec<f64> {
        let normal = |random: &mut fastrand::Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut before = normal(random);
        let step = |_| {
            before = r * before + (1.0 - r * r).sqrt() * normal(random);
            before
        };
        (0..n).map(step).collect()
    }

    /// A mean: the one direction in which all values move alike.
    fn of_a_mean(n: usize, r: f64, seed: u64) -> f64 {
        let unit = vec![1.0 / (n as f64).sqrt(); n];
        let mut left = noise(n, r, &mut fastrand::Rng::with_seed(seed));
        take_away(&mut left, std::slice::from_ref(&unit));
        reach(&[unit], &left)[0][0]
    }

    #[test]
    fn many_dependent_values_are_as_sure_as_theory_has_it() {
        // Of a mean the variance is (1 + r) / (1 - r) times as large.
        for r in [0.0, 0.5, 0.8] {
            let mut found: Vec<f64> = (0..40).map(|seed| of_a_mean(400, r, seed)).collect();
            found.sort_unstable_by(f64::total_cmp);
            let want = (1.0 + r) / (1.0 - r);
            assert!((0.75..1.3).contains(&(found[20] / want)), "{r}: {} for {want}", found[20]);
        }
    }

    #[test]
    fn few_values_leave_a_correlation_open_and_fewer_say_nothing_of_it() {
        let of_few = (0..40).map(|seed| of_a_mean(10, 0.0, seed)).sum::<f64>() / 40.0;
        assert!((1.2..2.5).contains(&of_few), "{of_few}");
        assert_eq!(of_a_mean(3, 0.0, 1), 1.0);
        assert_eq!(reach(&[vec![1.0, 0.0, 0.0, 0.0]], &[0.0; 4]), [[1.0]]);
    }

    #[test]
    fn values_that_take_turns_are_not_taken_for_surer_than_independent_ones() {
        let unit = vec![0.25; 16];
        let left: Vec<f64> = (0..16).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(reach(&[unit], &left)[0][0] >= 0.9);
    }
}
