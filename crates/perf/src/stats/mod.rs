//! Statistics that hold for response times: skewed, with outliers, of few repetitions.
//!
//! Everything rests on order rather than on the normal distribution: medians with intervals from
//! the binomial distribution, lines through the medians of pairwise slopes (Theil-Sen), and the
//! rank test of Mann and Whitney for "is this run faster than that one". Means, least squares and
//! Student's t are here too, to stand beside the papers that used them.
//!
//! Input is checked once, where it becomes a [`Sample`] or enters a fit: all values finite, and
//! enough of them. "Enough" is an error with numbers, "too few for an interval" is a `None`.

mod compare;
mod fit;
mod in_order;

use thiserror::Error;

pub use self::compare::{Comparison, Verdict, compare, ratio};
pub use self::fit::{Fit, THEIL_SEN_POINTS_MAX, fit_least_squares, fit_theil_sen};
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
    #[error("all x are the same: every line fits as well")]
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

/// Whether so many values show a quantile: one of them lies beyond it. The median takes 2, p90
/// takes 10, p99 takes 100; below that it would be the largest value under another name. The ends
/// of the range are values themselves.
pub fn shows_quantile(values: u64, q: f64) -> bool {
    /// 1.0 - 0.9 is a little less than a tenth.
    const ROUNDING: f64 = 1e-9;
    let beyond = q.min(1.0 - q).max(0.0);
    values > 0 && (beyond == 0.0 || values as f64 * beyond > 1.0 - ROUNDING)
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

    /// The same, where that many values show it: see [`shows_quantile`].
    pub fn quantile_if_known(&self, q: f64) -> Option<f64> {
        shows_quantile(self.n() as u64, q).then(|| self.quantile(q))
    }

    /// Standard deviation with n - 1; `None` for a single value.
    pub fn standard_deviation(&self) -> Option<f64> {
        let mean = self.mean();
        let squares: f64 = self.sorted.iter().map(|v| (v - mean).powi(2)).sum();
        (self.n() > 1).then(|| (squares / (self.n() - 1) as f64).sqrt())
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

    pub(super) fn sample(values: impl IntoIterator<Item = f64>) -> Sample {
        Sample::new(values.into_iter().collect::<Vec<_>>()).unwrap()
    }

    pub(super) fn close(got: f64, want: f64, within: f64) {
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
        assert_eq!((s.quantile_if_known(0.9), s.quantile_if_known(0.99)), (Some(9.1), None));
        assert_eq!(s.quantile(f64::NAN), 1.0);
    }

    #[test]
    fn deviations_by_hand() {
        let s = sample([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((s.mean(), s.median()), (5.0, 4.5));
        close(s.standard_deviation().unwrap(), (32.0f64 / 7.0).sqrt(), 1e-12);
        assert_eq!(sample([3.0]).standard_deviation(), None);
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
    pub(super) struct Uniform(pub(super) u64);

    impl Uniform {
        pub(super) fn next(&mut self) -> f64 {
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
