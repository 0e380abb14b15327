//! Statistics that hold for response times: skewed, with outliers, of few repetitions.
//!
//! Everything rests on order rather than on the normal distribution: medians with intervals from
//! the binomial distribution, lines through the medians of pairwise slopes (Theil-Sen), and the
//! rank test of Mann and Whitney for "is this run faster than that one". Means, least squares and
//! Student's t are here too, to stand beside the papers that used them.
//!
//! Input is checked once, where it becomes a [`Sample`] or enters a fit: all values finite, and
//! enough of them. "Enough" is an error with numbers, "too few for an interval" is a `None`.

mod in_order;

use thiserror::Error;

pub use self::in_order::{BATCHES_MIN, Blocks, Sum, mean_in_order, median_in_order};

/// Why there is no answer.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum StatsError {
    #[error("needs at least {need} values, got {got}")]
    TooFew { need: usize, got: usize },
    #[error("value {index} is not a finite number")]
    NotFinite { index: usize },
    #[error("{x} values of x but {y} of y")]
    Unpaired { x: usize, y: usize },
    #[error("all x are the same: no line can be told from another")]
    OneX,
}

/// A range that holds the true value in 95 of 100 repetitions, or more often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub lo: f64,
    pub hi: f64,
}

/// A value with its 95 % interval, where the data allow one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub ci95: Option<Interval>,
}

/// Finite values, sorted; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

/// A sample in six numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub n: usize,
    pub min: f64,
    pub median: f64,
    pub p99: f64,
    pub mean: f64,
    pub max: f64,
}

impl Sample {
    pub fn new(values: impl Into<Vec<f64>>) -> Result<Self, StatsError> {
        let mut sorted = values.into();
        check_finite(&sorted)?;
        if sorted.is_empty() {
            return Err(StatsError::TooFew { need: 1, got: 0 });
        }
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted })
    }

    /// The values, smallest first.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    pub fn min(&self) -> f64 {
        self.sorted[0]
    }

    pub fn max(&self) -> f64 {
        self.sorted[self.n() - 1]
    }

    pub fn mean(&self) -> f64 {
        mean(&self.sorted)
    }

    pub fn median(&self) -> f64 {
        median_of_sorted(&self.sorted)
    }

    pub fn summary(&self) -> Summary {
        Summary {
            n: self.n(),
            min: self.min(),
            median: self.median(),
            p99: self.quantile(0.99),
            mean: self.mean(),
            max: self.max(),
        }
    }

    /// The value below which a share `q` of the sample lies, linear between neighbours: type 7 of
    /// Hyndman & Fan 1996, the default of R and NumPy. `q` outside 0 to 1 gives the ends.
    pub fn quantile(&self, q: f64) -> f64 {
        quantile_of_sorted(&self.sorted, q)
    }

    /// Median absolute deviation from the median, unscaled (times 1.4826 it estimates a normal
    /// distribution's standard deviation).
    pub fn mad(&self) -> f64 {
        let median = self.median();
        median_of(self.sorted.iter().map(|v| (v - median).abs()).collect())
    }

    /// Standard deviation with n - 1; `None` for a single value.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.sorted.iter().map(|v| (v - mean).powi(2)).sum();
        (self.n() > 1).then(|| (squares / (self.n() - 1) as f64).sqrt())
    }

    /// Standard deviation as a share of the mean; `None` for a single value or a mean of zero.
    pub fn coefficient_of_variation(&self) -> Option<f64> {
        let mean = self.mean().abs();
        self.standard_deviation().filter(|_| mean > 0.0).map(|deviation| deviation / mean)
    }

    /// 95 % interval of the mean (Student's t): for means of batches, which are nearly normal.
    /// `None` for a single value.
    pub fn mean_ci95(&self) -> Option<Interval> {
        let error = self.standard_deviation()? / (self.n() as f64).sqrt();
        let half = student_t_975(self.n() - 1)? * error;
        Some(Interval { lo: self.mean() - half, hi: self.mean() + half })
    }

    /// 95 % interval of the median from order statistics: exact for every distribution, because
    /// how many values fall below the true median is binomial with one half. `None` below six
    /// values, whose whole range covers the median less often than 95 times in 100.
    pub fn median_ci95(&self) -> Option<Interval> {
        let rank = median_interval_rank(self.n())?;
        Some(Interval { lo: self.sorted[rank - 1], hi: self.sorted[self.n() - rank] })
    }

    /// The median with its interval.
    pub fn median_estimate(&self) -> Estimate {
        Estimate { value: self.median(), ci95: self.median_ci95() }
    }
}

impl Estimate {
    /// The same of what cannot be below 0, such as a time that was found as a difference. Where the
    /// difference is below 0, nothing is left of it but 0; that it is below says how far such a
    /// difference can be off, and so far the interval reaches above.
    #[must_use]
    pub fn not_negative(self) -> Self {
        let below = (-self.value).max(0.0);
        let above = |Interval { lo, hi }| Interval { lo: lo.max(0.0), hi: hi.max(below) };
        Self { value: self.value.max(0.0), ci95: self.ci95.map(above) }
    }

    /// An interval that is as wide around another value.
    pub fn widths_around(&self, value: f64) -> Option<Interval> {
        let off = value - self.value;
        self.ci95.map(|ci95| Interval { lo: ci95.lo + off, hi: ci95.hi + off })
    }

    /// Of what cannot be below 0: its interval reaches there, so that all it says is how much it is
    /// at most.
    pub fn at_most(&self) -> Option<f64> {
        self.ci95.filter(|ci95| ci95.lo <= 0.0).map(|ci95| ci95.hi)
    }
}

impl Interval {
    /// The smallest that holds both.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub fn contains(&self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    pub fn overlaps(&self, other: &Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }
}

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

/// What two samples say about each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    pub verdict: Verdict,
    /// Chance of ranks at least this uneven if both came from one distribution, both sides.
    pub p_value: f64,
    /// Mann and Whitney's U of the first sample: pairs in which its value is the larger one, a
    /// tie counting half.
    pub u: f64,
    /// How much the second median is above the first, as a share of the first.
    pub change: f64,
}

/// The second sample against the first, with 95 % confidence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The second sample's values are larger.
    Larger,
    /// The second sample's values are smaller.
    Smaller,
    /// The difference, if any, is within the noise.
    CannotTell,
}

/// Mann-Whitney test of `second` against `first`: normal approximation with corrections for ties
/// and continuity, good from about eight values each; below four each it can never tell.
pub fn compare(first: &Sample, second: &Sample) -> Comparison {
    let (n1, n2) = (first.n() as f64, second.n() as f64);
    let (rank_sum, ties) = ranks(first, second);
    let u = rank_sum - n1 * (n1 + 1.0) / 2.0;

    let n = n1 + n2;
    let variance = n1 * n2 / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)));
    let distance = ((u - n1 * n2 / 2.0).abs() - 0.5).max(0.0);
    let p_value = if variance > 0.0 {
        (2.0 * normal_tail(distance / variance.sqrt())).min(1.0)
    } else {
        1.0 // all values are the same
    };
    let verdict = match u < n1 * n2 / 2.0 {
        _ if p_value > 0.05 => Verdict::CannotTell,
        true => Verdict::Larger,
        false => Verdict::Smaller,
    };
    Comparison { verdict, p_value, u, change: second.median() / first.median() - 1.0 }
}

/// How many times the second sample's typical value is the first's: the ratio of their geometric
/// means, with the interval of Welch's t on the logarithms. It takes unequal spreads and few
/// repetitions, two each at least; with one there is no interval, and so nothing can be told.
/// `None` where a value is not above 0, for which there is no ratio.
pub fn ratio(first: &Sample, second: &Sample) -> Option<Estimate> {
    let of = |sample: &Sample| {
        let is_positive = sample.min() > 0.0;
        let logarithms: Vec<f64> = sample.sorted.iter().map(|value| value.ln()).collect();
        is_positive.then(|| Sample::new(logarithms).ok()).flatten()
    };
    let (first, second) = (of(first)?, of(second)?);
    let difference = second.mean() - first.mean();
    // Variances of the means, each with its freedom.
    let of = |sample: &Sample| {
        let variance = sample.standard_deviation()?.powi(2) / sample.n() as f64;
        Some((variance, sample.n() - 1))
    };
    let half = of(&first).zip(of(&second)).and_then(|((a, n_a), (b, n_b))| {
        let squares = a.powi(2) / n_a as f64 + b.powi(2) / n_b as f64;
        let freedom = if squares > 0.0 { (a + b).powi(2) / squares } else { (n_a + n_b) as f64 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "1 to n_a + n_b"
        )]
        let t = student_t_975(freedom as usize)?;
        Some(t * (a + b).sqrt())
    });
    Some(Estimate {
        value: difference.exp(),
        ci95: half
            .map(|half| Interval { lo: (difference - half).exp(), hi: (difference + half).exp() }),
    })
}

/// Sum of the first sample's ranks among all values (ties share their mean rank), and the sum of
/// t^3 - t over all groups of t tied values.
fn ranks(first: &Sample, second: &Sample) -> (f64, f64) {
    let mut all: Vec<(f64, bool)> = Vec::with_capacity(first.n() + second.n());
    all.extend(first.sorted.iter().map(|&v| (v, true)));
    all.extend(second.sorted.iter().map(|&v| (v, false)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

    let (mut below, mut rank_sum, mut ties) = (0.0, 0.0, 0.0);
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let t = group.len() as f64;
        let of_first = group.iter().filter(|(_, is_first)| *is_first).count() as f64;
        rank_sum += of_first * (below + (t + 1.0) / 2.0);
        ties += t.powi(3) - t;
        below += t;
    }
    (rank_sum, ties)
}

/// Largest rank r such that the r-th smallest and the r-th largest of n values enclose the true
/// median with at least 95 %: the binomial tail below r must stay within 2.5 %.
fn median_interval_rank(n: usize) -> Option<usize> {
    let mut ln_probability = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut rank = 0;
    while rank < n {
        tail += ln_probability.exp();
        if tail > 0.025 {
            break;
        }
        ln_probability += ((n - rank) as f64 / (rank + 1) as f64).ln();
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn median_of(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&values)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    quantile_of_sorted(sorted, 0.5)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a position between 0 and n - 1; NaN becomes 0"
)]
fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let position = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = position as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = position - below as f64;
    if share > 0.0 { sorted[below] * (1.0 - share) + sorted[above] * share } else { sorted[below] }
}

fn check_finite(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { index }),
        None => Ok(()),
    }
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

/// 97.5 % point of the normal distribution.
const NORMAL_975: f64 = 1.959_963_985;

/// Chance that a standard normal variable exceeds `z` (not negative): Abramowitz & Stegun
/// 26.2.17, wrong by less than 7.5e-8.
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let coefficients =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let series = coefficients.iter().rev().fold(0.0, |sum, c| (sum + c) * t);
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series
}

/// 97.5 % point of Student's t: tabled to 30 degrees of freedom, then the Cornish-Fisher
/// expansion (Abramowitz & Stegun 26.7.5), wrong by less than 1e-4. `None` for no freedom at all.
pub(crate) fn student_t_975(freedom: usize) -> Option<f64> {
    let table = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let index = freedom.checked_sub(1)?;
    let expansion = || {
        let (z, v) = (NORMAL_975, freedom as f64);
        let first = (z.powi(3) + z) / (4.0 * v);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * v * v);
        z + first + second
    };
    Some(table.get(index).copied().unwrap_or_else(expansion))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_difference_of_times_is_never_below_0_and_never_surer_than_it_is_wrong() {
        let found = |value, lo, hi| {
            let found = Estimate { value, ci95: Some(Interval { lo, hi }) }.not_negative();
            let ci95 = found.ci95.unwrap();
            (found.value, ci95.lo, ci95.hi)
        };
        assert_eq!(found(-19.0, -20.0, -18.0), (0.0, 0.0, 19.0));
        assert_eq!(found(-19.0, -60.0, 30.0), (0.0, 0.0, 30.0));
        assert_eq!(found(2.0, -1.0, 5.0), (2.0, 0.0, 5.0));
        assert_eq!(found(2.0, 1.0, 5.0), (2.0, 1.0, 5.0));
        let alone = Estimate { value: -3.0, ci95: None }.not_negative();
        assert_eq!(alone, Estimate { value: 0.0, ci95: None });
    }

    #[test]
    fn an_interval_that_reaches_0_says_how_much_it_is_at_most() {
        let of = |lo, hi| Estimate { value: 1.0, ci95: Some(Interval { lo, hi }) };
        assert_eq!(of(0.0, 2.0).at_most(), Some(2.0));
        assert_eq!(of(0.5, 2.0).at_most(), None);
        assert_eq!(Estimate { value: 1.0, ci95: None }.at_most(), None);
    }

    fn sample(values: impl IntoIterator<Item = f64>) -> Sample {
        Sample::new(values.into_iter().collect::<Vec<_>>()).unwrap()
    }

    fn close(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "got {got}, want {want}");
    }

    #[test]
    fn type_7_quantiles_of_one_to_ten() {
        let s = sample((1..=10).map(f64::from));
        assert_eq!(s.median(), 5.5);
        close(s.quantile(0.25), 3.25, 1e-12);
        close(s.quantile(0.9), 9.1, 1e-12);
        close(s.quantile(0.99), 9.91, 1e-12);
        assert_eq!((s.quantile(-3.0), s.quantile(3.0)), (1.0, 10.0));
        assert_eq!(s.quantile(f64::NAN), 1.0);
    }

    #[test]
    fn deviations_by_hand() {
        let s = sample([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((s.mean(), s.median(), s.mad()), (5.0, 4.5, 0.5));
        close(s.standard_deviation().unwrap(), (32.0f64 / 7.0).sqrt(), 1e-12);
        // t(7) = 2.365.
        let half = 2.365 * (32.0f64 / 7.0).sqrt() / 8.0f64.sqrt();
        close(s.mean_ci95().unwrap().hi, 5.0 + half, 1e-9);
        assert_eq!(sample([3.0]).mean_ci95(), None);
        close(s.coefficient_of_variation().unwrap(), (32.0f64 / 7.0).sqrt() / 5.0, 1e-12);
        assert_eq!(sample([3.0]).coefficient_of_variation(), None);
        assert_eq!(sample([-1.0, 1.0]).coefficient_of_variation(), None);
    }

    #[test]
    fn the_interval_of_the_median_takes_the_tabled_ranks() {
        // Conover, Practical Nonparametric Statistics, table A3: ranks for 95 %.
        for (n, rank) in [(6, 1), (8, 1), (9, 2), (10, 2), (15, 4), (20, 6), (25, 8), (50, 18)] {
            assert_eq!(median_interval_rank(n), Some(rank), "n = {n}");
        }
        assert_eq!(median_interval_rank(5), None);
        // (n - 1.96 sqrt(n)) / 2 for large n.
        assert_eq!(median_interval_rank(1_000_000), Some(499_020));
        let s = sample((1..=10).map(f64::from));
        assert_eq!(s.median_ci95(), Some(Interval { lo: 2.0, hi: 9.0 }));
    }

    #[test]
    fn no_values_or_wild_values_are_errors_that_say_which() {
        assert_eq!(Sample::new([]), Err(StatsError::TooFew { need: 1, got: 0 }));
        let wild = Sample::new([1.0, f64::NAN]);
        assert_eq!(wild, Err(StatsError::NotFinite { index: 1 }));
        for fit in [fit_least_squares, fit_theil_sen] {
            let unpaired = StatsError::Unpaired { x: 1, y: 2 };
            assert_eq!(fit(&[1.0], &[1.0, 2.0]), Err(unpaired));
            assert_eq!(fit(&[1.0], &[1.0]), Err(StatsError::TooFew { need: 2, got: 1 }));
            assert_eq!(fit(&[4.0, 4.0], &[1.0, 2.0]), Err(StatsError::OneX));
            let wild = fit(&[1.0, 2.0], &[1.0, f64::INFINITY]);
            assert_eq!(wild, Err(StatsError::NotFinite { index: 1 }));
        }
    }

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

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_promise() {
        let mut uniform = Uniform(1);
        let x: Vec<f64> = (0..24).map(|i| f64::from(i % 6)).collect();
        let (mut slopes, mut intercepts, mut medians) = (0, 0, 0);
        for _ in 0..400 {
            // Skewed noise with median zero, as response times have.
            let noise: Vec<f64> = x.iter().map(|_| -uniform.next().log2() - 1.0).collect();
            let y: Vec<f64> = x.iter().zip(&noise).map(|(x, e)| 5.0 + 3.0 * x + e).collect();
            let fit = fit_theil_sen(&x, &y).unwrap();
            slopes += usize::from(fit.slope.ci95.unwrap().contains(3.0));
            intercepts += usize::from(fit.intercept.ci95.unwrap().contains(5.0));
            medians += usize::from(sample(noise).median_ci95().unwrap().contains(0.0));
        }
        // 380 expected; 367 is three standard deviations below.
        for covered in [slopes, intercepts, medians] {
            assert!(covered >= 367, "{slopes} {intercepts} {medians} of 400");
        }
    }

    #[test]
    fn a_ratio_by_hand() {
        // Logarithms to base 2: 0, 2 and 2, 4. Means 1 and 3, variances 2 and 2, of the means 1
        // and 1: standard error sqrt(2), freedom (1 + 1)^2 / (1 + 1) = 2, t 4.303.
        let ratio = ratio(&sample([1.0, 4.0]), &sample([4.0, 16.0])).unwrap();
        close(ratio.value, 4.0, 1e-9);
        let ci = ratio.ci95.unwrap();
        close(ci.hi, 4.0 * (4.303 * 2f64.sqrt()).exp2(), 1e-6);
        close(ci.lo, 4.0 / (4.303 * 2f64.sqrt()).exp2(), 1e-6);
        let same = super::ratio(&sample([3.0, 3.0]), &sample([6.0, 6.0, 6.0])).unwrap();
        close(same.value, 2.0, 1e-9);
        let ci = same.ci95.unwrap();
        assert!((ci.hi - ci.lo).abs() < 1e-9, "{ci:?}");
    }

    #[test]
    fn what_has_no_repetition_or_no_ratio_has_no_interval_or_none() {
        let ratio = |a: &[f64], b: &[f64]| ratio(&sample(a.to_vec()), &sample(b.to_vec()));
        let once = ratio(&[2.0], &[3.0, 3.1]).unwrap();
        assert_eq!(once.ci95, None);
        assert!(once.value > 1.5);
        assert_eq!(ratio(&[0.0, 1.0], &[1.0, 1.0]), None);
        assert_eq!(ratio(&[-1.0, 1.0], &[1.0, 1.0]), None);
    }

    #[test]
    fn a_ratio_s_interval_covers_the_truth_as_often_as_it_promises() {
        let mut uniform = Uniform(3);
        let mut covered = 0;
        for _ in 0..400 {
            let mut drawn = |n: usize, times: f64| {
                sample((0..n).map(|_| times * (1.0 + 0.2 * uniform.next())).collect::<Vec<_>>())
            };
            let (first, second) = (drawn(5, 1.0), drawn(4, 1.3));
            let ci = ratio(&first, &second).unwrap().ci95.unwrap();
            covered += usize::from(ci.contains(1.3));
        }
        // 380 expected; 367 is three standard deviations below.
        assert!(covered >= 367, "{covered} of 400");
    }

    #[test]
    fn mann_and_whitneys_own_counting() {
        // U counts pairs: of the 16 pairs, the first is larger in 2.
        let (a, b) = (sample([1.0, 2.0, 3.0, 6.0]), sample([4.0, 5.0, 7.0, 8.0]));
        let c = compare(&a, &b);
        assert_eq!(c.u, 2.0);
        // |2 - 8| - 0.5 = 5.5; variance 16 * 9 / 12 = 12; z 1.5877; two tails 0.1124.
        close(c.p_value, 0.1124, 5e-4);
        assert_eq!(c.verdict, Verdict::CannotTell);
        close(c.change, 6.0 / 2.5 - 1.0, 1e-12);
    }

    #[test]
    fn ties_share_their_rank_and_shrink_the_variance() {
        // Ranks of the first: 1, 2.5, 4 => sum 7.5, U 1.5. Ties: one group of two, t^3 - t = 6.
        let c = compare(&sample([1.0, 2.0, 3.0]), &sample([2.0, 4.0, 5.0]));
        assert_eq!(c.u, 1.5);
        let z = (3.0 - 0.5) / (9.0f64 / 12.0 * (7.0 - 6.0 / 30.0)).sqrt();
        close(c.p_value, 2.0 * normal_tail(z), 1e-12);
        let same = compare(&sample([5.0; 9]), &sample([5.0; 9]));
        assert_eq!((same.p_value, same.verdict), (1.0, Verdict::CannotTell));
    }

    #[test]
    fn a_clear_difference_is_told_in_both_directions() {
        let low = sample((0..20).map(f64::from));
        let high = sample((0..20).map(|i| f64::from(i) + 15.0));
        assert_eq!(compare(&low, &high).verdict, Verdict::Larger);
        assert_eq!(compare(&high, &low).verdict, Verdict::Smaller);
    }

    #[test]
    fn distributions_match_their_tables() {
        close(normal_tail(0.0), 0.5, 1e-7);
        close(normal_tail(NORMAL_975), 0.025, 1e-7);
        close(normal_tail(3.0), 0.001_349_9, 1e-7);
        for (freedom, t) in [(1, 12.706), (30, 2.042), (40, 2.0211), (60, 2.0003), (120, 1.9799)] {
            close(student_t_975(freedom).unwrap(), t, 1e-4);
        }
        assert_eq!(student_t_975(0), None);
    }

    /// Numbers in (0, 1], from a multiplicative generator (Lehmer 1951, Park & Miller's constants).
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0 * 48_271 % 2_147_483_647;
            self.0 as f64 / 2_147_483_647.0
        }
    }

    proptest! {
        #[test]
        fn quantiles_rise_with_their_share(
            values in proptest::collection::vec(-1e12..1e12f64, 1..60),
            a in 0.0..1.0f64,
            b in 0.0..1.0f64,
        ) {
            let s = sample(values);
            prop_assert!(s.min() <= s.quantile(a.min(b)));
            prop_assert!(s.quantile(a.min(b)) <= s.quantile(a.max(b)) + 1e-3);
            prop_assert!(s.quantile(a.max(b)) <= s.max() + 1e-3);
        }

        #[test]
        fn both_fits_find_a_line_without_noise(
            intercept in -1e3..1e3f64,
            slope in -1e3..1e3f64,
            x in proptest::collection::hash_set(-1000..1000i32, 3..30),
        ) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let y: Vec<f64> = x.iter().map(|x| intercept + slope * x).collect();
            for fit in [fit_least_squares(&x, &y).unwrap(), fit_theil_sen(&x, &y).unwrap()] {
                prop_assert!((fit.slope.value - slope).abs() < 1e-6);
                prop_assert!((fit.intercept.value - intercept).abs() < 1e-4);
            }
        }

        #[test]
        fn swapping_the_samples_swaps_the_verdict(
            a in proptest::collection::vec(0..20u32, 1..30),
            b in proptest::collection::vec(0..20u32, 1..30),
        ) {
            let [a, b] = [a, b].map(|values| sample(values.into_iter().map(f64::from)));
            let (ab, ba) = (compare(&a, &b), compare(&b, &a));
            prop_assert!((ab.u + ba.u - (a.n() * b.n()) as f64).abs() < 1e-9);
            prop_assert!((ab.p_value - ba.p_value).abs() < 1e-12);
            let swapped = match ab.verdict {
                Verdict::Larger => Verdict::Smaller,
                Verdict::Smaller => Verdict::Larger,
                Verdict::CannotTell => Verdict::CannotTell,
            };
            prop_assert_eq!(ba.verdict, swapped);
        }
    }
}
