//! A line through points: by least squares, and by the median of slopes (Theil and Sen).

use super::{
    Estimate, Interval, NORMAL_975, Sample, StatsError, check_finite, mean, median_of,
    median_of_sorted, student_t_975,
};

/// A line y = intercept + slope x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    pub intercept: Estimate,
    pub slope: Estimate,
    /// Share of y's variance that the line explains; can be negative for a robust line.
    pub r_squared: f64,
    /// How many points the line rests on.
    pub n: usize,
}

impl Fit {
    pub fn at(&self, x: f64) -> f64 {
        self.intercept.value + self.slope.value * x
    }
}

/// The least-squares line. Exact for normal errors, and at the mercy of outliers. Intervals are
/// Student's t with n - 2 degrees of freedom: none for two points.
pub fn fit_least_squares(x: &[f64], y: &[f64]) -> Result<Fit, StatsError> {
    check_pairs(x, y)?;
    let (n, mean_x, mean_y) = (x.len() as f64, mean(x), mean(y));
    let sxx: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let sxy = x.iter().zip(y).map(|(x, y)| (x - mean_x) * (y - mean_y));
    let slope = sxy.sum::<f64>() / sxx;
    let intercept = mean_y - slope * mean_x;

    let variance = residuals(x, y, slope).map(|r| (r - intercept).powi(2)).sum::<f64>() / (n - 2.0);
    let around = |value: f64, standard_error: f64| Estimate {
        value,
        ci95: student_t_975(x.len() - 2)
            .map(|t| Interval { lo: value - t * standard_error, hi: value + t * standard_error }),
    };
    Ok(Fit {
        intercept: around(intercept, (variance * (1.0 / n + mean_x.powi(2) / sxx)).sqrt()),
        slope: around(slope, (variance / sxx).sqrt()),
        r_squared: r_squared(x, y, intercept, slope),
        n: x.len(),
    })
}

/// The Theil-Sen line: the median of all pairwise slopes, and the median of what is left of y.
/// Holds its course with up to 29 % outliers.
///
/// The slope's interval takes the pairwise slopes whose ranks Kendall's statistic allows (Sen
/// 1968, with his correction for repeated x). The intercept's interval joins the order-statistic
/// intervals of the residuals at both ends of the slope's: wider than needed, never narrower.
///
/// More than [`THEIL_SEN_POINTS_MAX`] points: the line rests on that many, drawn with a fixed
/// seed; `n` in the result says so.
pub fn fit_theil_sen(x: &[f64], y: &[f64]) -> Result<Fit, StatsError> {
    check_pairs(x, y)?;
    let (x, y) = &draw_points(x, y, THEIL_SEN_POINTS_MAX);
    let slopes = pairwise_slopes(x, y);
    if slopes.is_empty() {
        return Err(StatsError::OneX); // a draw can miss the few points that differ
    }
    let slope = median_of_sorted(&slopes);
    let intercept = median_of(residuals(x, y, slope).collect());

    let slope_ci95 = slope_interval(x, &slopes);
    let intercept_ci95 = slope_ci95.and_then(|ci| {
        let at = |slope| Sample::new(residuals(x, y, slope).collect::<Vec<_>>()).ok();
        let (flat, steep) = (at(ci.lo)?.median_ci95()?, at(ci.hi)?.median_ci95()?);
        Some(Interval { lo: flat.lo.min(steep.lo), hi: flat.hi.max(steep.hi) })
    });
    Ok(Fit {
        intercept: Estimate { value: intercept, ci95: intercept_ci95 },
        slope: Estimate { value: slope, ci95: slope_ci95 },
        r_squared: r_squared(x, y, intercept, slope),
        n: x.len(),
    })
}

/// Points up to which the Theil-Sen line uses all pairs: half a million slopes, 4 MB.
pub const THEIL_SEN_POINTS_MAX: usize = 1_000;

/// All slopes between two points of different x, sorted.
fn pairwise_slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let mut slopes = Vec::with_capacity(x.len() * (x.len() - 1) / 2);
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            if x[i] != x[j] {
                slopes.push((y[j] - y[i]) / (x[j] - x[i]));
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes
}

/// Sen's interval: the slopes whose rank is within 1.96 standard deviations of Kendall's
/// statistic from the middle. `None` when that reaches beyond all slopes there are.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank between 0 and the number of slopes, checked before the cast"
)]
fn slope_interval(x: &[f64], slopes: &[f64]) -> Option<Interval> {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted_x = x.to_vec();
    sorted_x.sort_unstable_by(f64::total_cmp);
    let ties = sorted_x.chunk_by(|a, b| a == b).map(|g| g.len() as f64);
    let variance = (spread(x.len() as f64) - ties.map(spread).sum::<f64>()) / 18.0;

    let below = (slopes.len() as f64 - NORMAL_975 * variance.sqrt()) / 2.0;
    // Sen counts ranks from one: M1 = (N - C) / 2 and M2 + 1 = (N + C) / 2 + 1.
    let rank = below.floor();
    (rank >= 1.0).then(|| Interval {
        lo: slopes[rank as usize - 1],
        hi: slopes[slopes.len() - rank as usize],
    })
}

/// At most `points_max` of the points, every subset equally likely, always the same for the same
/// input.
#[expect(clippy::cast_possible_truncation, reason = "a remainder below the number of points")]
fn draw_points(x: &[f64], y: &[f64], points_max: usize) -> (Vec<f64>, Vec<f64>) {
    let mut order: Vec<usize> = (0..x.len()).collect();
    if x.len() > points_max {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64; // any odd constant: a fixed seed
        for i in 0..points_max {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let left = order.len() - i;
            order.swap(i, i + (state % left as u64) as usize);
        }
        order.truncate(points_max);
    }
    order.into_iter().map(|i| (x[i], y[i])).unzip()
}

/// What is left of y at slope `slope`: the intercepts of lines through each point.
fn residuals(x: &[f64], y: &[f64], slope: f64) -> impl Iterator<Item = f64> {
    x.iter().zip(y).map(move |(x, y)| y - slope * x)
}

/// One when the line meets every point, also when all y are the same.
fn r_squared(x: &[f64], y: &[f64], intercept: f64, slope: f64) -> f64 {
    let mean_y = mean(y);
    let total: f64 = y.iter().map(|y| (y - mean_y).powi(2)).sum();
    let missed: f64 = residuals(x, y, slope).map(|r| (r - intercept).powi(2)).sum();
    if missed == 0.0 { 1.0 } else { 1.0 - missed / total }
}

/// At least two finite points of at least two different x.
fn check_pairs(x: &[f64], y: &[f64]) -> Result<(), StatsError> {
    if x.len() != y.len() {
        return Err(StatsError::Unpaired { x: x.len(), y: y.len() });
    }
    check_finite(x)?;
    check_finite(y)?;
    if x.len() < 2 {
        return Err(StatsError::TooFew { need: 2, got: x.len() });
    }
    if x.iter().all(|v| *v == x[0]) {
        return Err(StatsError::OneX);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::tests::close;

    #[test]
    fn least_squares_by_hand() {
        // x mean 3, y mean 4, Sxx 10, Sxy 6: slope 0.6, intercept 2.2; residuals squared 2.4,
        // variance 0.8; standard errors sqrt(0.08) and sqrt(0.88); t(3) = 3.182.
        let fit =
            fit_least_squares(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 4.0, 5.0, 4.0, 5.0]).unwrap();
        close(fit.slope.value, 0.6, 1e-12);
        close(fit.intercept.value, 2.2, 1e-12);
        close(fit.r_squared, 0.6, 1e-12);
        let (slope, intercept) = (fit.slope.ci95.unwrap(), fit.intercept.ci95.unwrap());
        close(slope.lo, 0.6 - 3.182 * 0.08f64.sqrt(), 1e-9);
        close(slope.hi, 0.6 + 3.182 * 0.08f64.sqrt(), 1e-9);
        close(intercept.hi, 2.2 + 3.182 * 0.88f64.sqrt(), 1e-9);
        close(fit.at(10.0), 8.2, 1e-12);
    }

    #[test]
    fn two_points_have_a_line_but_no_interval() {
        for fit in [fit_least_squares, fit_theil_sen] {
            let fit = fit(&[0.0, 2.0], &[1.0, 5.0]).unwrap();
            assert_eq!((fit.intercept.value, fit.slope.value), (1.0, 2.0));
            assert_eq!((fit.slope.ci95, fit.intercept.ci95), (None, None));
            assert_eq!(fit.r_squared, 1.0);
        }
    }

    #[test]
    fn theil_sen_on_hollander_and_wolfes_cloud_seeding() {
        // Nonparametric Statistical Methods, example 9.1. Slopes: .01 -.07 -.0333 -.0575 -.15
        // -.055 -.08 .04 -.045 -.13; the middle two are -.0575 and -.055.
        let y = [1.26, 1.27, 1.12, 1.16, 1.03];
        let fit = fit_theil_sen(&[1.0, 2.0, 3.0, 4.0, 5.0], &y).unwrap();
        close(fit.slope.value, -0.05625, 1e-12);
        assert_eq!(fit.slope.ci95, None, "ten slopes are too few");
    }

    #[test]
    fn theil_sen_interval_by_hand() {
        // y = x^2: a slope is the sum of its two x. Sorted: 3 4 5 5 6 6 7 7 7 8 8 8 9 9 9 10 10 11
        // 11 12 13, median 8. C = 1.96 sqrt(7 * 6 * 19 / 18) = 13.05, rank (21 - 13.05) / 2 -> 3.
        let x: Vec<f64> = (1..=7).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| x * x).collect();
        let fit = fit_theil_sen(&x, &y).unwrap();
        assert_eq!(fit.slope.value, 8.0);
        assert_eq!(fit.slope.ci95, Some(Interval { lo: 5.0, hi: 11.0 }));
        // y - 8x: -7 -12 -15 -16 -15 -12 -7, median -12. Seven residuals: their whole range, at
        // slope 5 from -6 to 14, at slope 11 from -30 to -10.
        assert_eq!(fit.intercept.value, -12.0);
        assert_eq!(fit.intercept.ci95, Some(Interval { lo: -30.0, hi: 14.0 }));
    }

    #[test]
    fn theil_sen_ignores_the_outlier_that_bends_least_squares() {
        let x: Vec<f64> = (1..=20).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|x| 10.0 + 2.0 * x).collect();
        y[19] = 1000.0;
        let fit = fit_theil_sen(&x, &y).unwrap();
        close(fit.slope.value, 2.0, 1e-12);
        close(fit.intercept.value, 10.0, 1e-9);
        assert!(fit.slope.ci95.unwrap().contains(2.0));
        assert!(fit_least_squares(&x, &y).unwrap().slope.value > 10.0);
    }

    #[test]
    fn many_points_are_drawn_the_same_way_every_time() {
        let x: Vec<f64> = (0..5_000).map(|i| f64::from(i % 7) * 4096.0).collect();
        let y: Vec<f64> = x.iter().map(|x| 150.0 + 0.008 * x).collect();
        let fit = fit_theil_sen(&x, &y).unwrap();
        assert_eq!(fit.n, THEIL_SEN_POINTS_MAX);
        close(fit.slope.value, 0.008, 1e-12);
        close(fit.intercept.value, 150.0, 1e-6);
        assert_eq!(fit_theil_sen(&x, &y), Ok(fit));
    }
}
