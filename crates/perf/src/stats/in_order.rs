//! Intervals of what was measured one after the other, where neighbours may resemble one another.
//!
//! A machine that is slow now is slow a millisecond later: a thousand response times in a row are
//! not a thousand independent ones, and an interval that takes them for such is too narrow, however
//! many there are. So values stay in the order of their times, and
//!
//! - batches of neighbours are made twice as long until the correlation of a batch with the next
//!   is no longer significant (at 10 %, by ranks, so that a pause of the machine decides nothing),
//!   with [`BATCHES_MIN`] of them at least (Fishman 1978; Law & Carson 1979);
//! - what is left of it widens the interval and takes degrees of freedom, as in a first-order
//!   autoregressive series: variance times (1 + r) / (1 - r), n (1 - r) / (1 + r) values;
//! - the interval is Student's t of the batches' own values, around the value of all. Of values
//!   that were independent from the beginning it is that of the order statistics, or of the mean;
//! - portions that were measured minutes apart, of which there are three at least, count as one
//!   value each where they differ by more than the values within them can explain.
//!
//! How often the intervals hold the truth is measured: `docs/models.md`, section 26.

use super::{Estimate, Interval, NORMAL_975, Sample, StatsError, mean, student_t_975};

/// Fewer batches say little of their own variance.
pub const BATCHES_MIN: usize = 8;

/// One-sided 10 % of the normal distribution.
const SIGNIFICANT: f64 = 1.281_552;

/// Correlation of neighbours that is allowed for at most: with more, batches are one value.
const CORRELATION_MAX: f64 = 0.8;

const PORTIONS_MIN: usize = 3;

/// The median of values in the order of their times, in one portion or several.
///
/// # Errors
/// No values, or one that is not finite.
pub fn median_in_order(portions: &[Vec<f64>]) -> Result<Estimate, StatsError> {
    let all: Vec<f64> = portions.concat();
    let sample = Sample::new(all.clone())?;
    let value = sample.median();
    let median = |from: usize, to: usize| super::median_of(all[from..to].to_vec());
    let (batches, is_independent) = batches(all.len(), median);
    let within = match is_independent && batches.len() == all.len() {
        true => sample.median_ci95(),
        // As for order statistics, fewer than six values are no interval.
        false => half(&batches).filter(|_| all.len() >= 6).map(|half| around(value, half)),
    };
    let medians = portions.iter().filter(|portion| !portion.is_empty());
    let medians = medians.map(|portion| super::median_of(portion.clone())).collect();
    let ci95 = within.map(|within| of_portions(value, within, medians));
    Ok(Estimate { value, ci95: ci95.map(|ci95| above_nothing(ci95, value, sample.min())) })
}

/// The mean of values of which each batch has some, in the order of the batches: the sum of all
/// over their number. A batch weighs what it has, and one without a value is none. `None` without
/// any value; without an interval where fewer than two batches have values, or batches resemble
/// each other so much that they are not two values, as while a queue grows.
pub fn mean_in_order(batches: &[Sum]) -> Option<Estimate> {
    let filled = batches.iter().filter(|batch| batch.count > 0.0).copied();
    let batches: &[Sum] = &filled.collect::<Vec<_>>();
    let value = Sum::of(batches).mean()?;
    let (off, _) = self::batches(batches.len(), off(batches)?);
    let half = half(&off).filter(|half| half.is_finite() && independent(&off) >= 2.0);
    let least = batches.iter().filter_map(|batch| batch.mean()).fold(f64::INFINITY, f64::min);
    let interval = |half| above_nothing(around(value, half), value, least);
    Some(Estimate { value, ci95: half.map(interval) })
}

/// How batches are drawn again in a bootstrap: blocks of so many neighbours, and what is drawn of
/// them goes so many times as far from the whole, as few blocks, and what is left of their
/// correlation, make it (Kuensch 1989).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks {
    pub length: usize,
    pub widening: f64,
}

impl Blocks {
    /// For batches for [`mean_in_order`].
    pub fn of(batches: &[Sum]) -> Self {
        let (n, alone) = (batches.len(), Self { length: 1, widening: 1.0 });
        let Some(off) = off(batches).filter(|_| n > 1) else { return alone };
        let (values, _) = self::batches(n, off);
        let count = values.len();
        // Blocks of one length that cover all: a little longer than the batches may be.
        let length = n.div_ceil(count);
        let deviation = Sample::new(values.clone()).ok().and_then(|s| s.standard_deviation());
        let drawn = deviation.unwrap_or(0.0) * ((count - 1) as f64).sqrt() / count as f64;
        let half = half(&values).filter(|_| drawn > 0.0);
        let widening = half.map_or(1.0, |half| half / (NORMAL_975 * drawn));
        Self { length, widening: widening.max(1.0) }
    }

    /// The numbers of the batches of `n` that are drawn, as many as there are.
    pub fn draw(self, n: usize, mut below: impl FnMut(usize) -> usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(n);
        while drawn.len() < n {
            let from = below(n);
            let left = n - drawn.len();
            drawn.extend((0..self.length.min(left)).map(|step| (from + step) % n));
        }
        drawn
    }
}

/// A batch: the sum of its values, and how many they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub total: f64,
    pub count: f64,
}

impl Sum {
    /// Of several batches as one.
    pub fn of<'a>(sums: impl IntoIterator<Item = &'a Self>) -> Self {
        let add = |a: Self, b: &Self| Self { total: a.total + b.total, count: a.count + b.count };
        sums.into_iter().fold(Self::default(), add)
    }

    /// `None` of no values.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.total / self.count)
    }
}

/// How far the batches from one on to another are off, as a share of what batches have on average:
/// the ratio estimator's.
fn off(batches: &[Sum]) -> Option<impl Fn(usize, usize) -> f64 + use<'_>> {
    let total = Sum::of(batches);
    let mean = total.mean()?;
    let each = total.count / batches.len() as f64;
    Some(move |from: usize, to: usize| {
        let own = Sum::of(&batches[from..to]);
        (own.total - mean * own.count) / (each * (to - from) as f64)
    })
}

/// The values of the shortest batches of `n` values whose neighbours do not resemble each other, or
/// of the longest; and whether they do not. `value` is that of the values from one on to another.
fn batches(n: usize, value: impl Fn(usize, usize) -> f64) -> (Vec<f64>, bool) {
    let mut count = n;
    loop {
        let bounds = |at: usize| (at * n / count, (at + 1) * n / count);
        let values: Vec<f64> = (0..count).map(bounds).map(|(a, b)| value(a, b)).collect();
        // Without any correlation it is -1 / n on average.
        let limit = SIGNIFICANT / (count as f64).sqrt() - 1.0 / count as f64;
        let is_independent = count < 3 || correlation(&ranks(&values)) <= limit;
        if is_independent || count / 2 < BATCHES_MIN {
            return (values, is_independent);
        }
        count /= 2;
    }
}

/// Half of the 95 % interval of the mean of such batches. `None` of fewer than two.
fn half(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let sample = Sample::new(values.to_vec()).ok()?;
    let deviation = sample.standard_deviation()?;
    let independent = independent(values);
    let freedom = (independent - 1.0).clamp(1.0, n - 1.0);
    Some(student_t(freedom)? * deviation / independent.sqrt())
}

/// How many values they are worth that do not resemble each other.
fn independent(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let left = (correlation(values) + 1.0 / n).clamp(0.0, CORRELATION_MAX);
    n * (1.0 - left) / (1.0 + left)
}

/// The interval of the portions' own values, where they say that it is wider.
fn of_portions(value: f64, within: Interval, values: Vec<f64>) -> Interval {
    if values.len() < PORTIONS_MIN {
        return within;
    }
    let n = values.len();
    let Ok(sample) = Sample::new(values) else { return within };
    let error = sample.standard_deviation().unwrap_or(0.0) / (n as f64).sqrt();
    let own = (within.hi - within.lo) / 4.0;
    match (student_t_975(n - 1), error > own) {
        (Some(t), true) => within.joined(&around(value, t * error)),
        _ => within,
    }
}

/// Of values that are all above 0 no interval reaches 0, however much they vary: it goes down by
/// the factor by which it goes up.
fn above_nothing(interval: Interval, value: f64, least: f64) -> Interval {
    match least > 0.0 && interval.lo <= 0.0 {
        true => Interval { lo: value * value / interval.hi, ..interval },
        false => interval,
    }
}

fn around(value: f64, half: f64) -> Interval {
    Interval { lo: value - half, hi: value + half }
}

/// Of degrees of freedom that need not be whole.
fn student_t(freedom: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a batch's count")]
    let below = freedom as usize;
    let (lower, upper) = (student_t_975(below)?, student_t_975(below + 1)?);
    Some(lower + (upper - lower) * freedom.fract())
}

/// Of each value with the next, from -1 to 1; 0 where all are the same.
fn correlation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    if squares > 0.0 { products.sum::<f64>() / squares } else { 0.0 }
}

/// The place of each value among all by its size; the same for the same.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0.0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = below + group.len() as f64 / 2.0;
        group.iter().for_each(|&at| ranks[at] = rank);
        below += group.len() as f64;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Standard normal values, each like the one before by `phi`.
    fn series(n: usize, phi: f64, random: &mut fastrand::Rng) -> Vec<f64> {
        let normal = |random: &mut fastrand::Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut before = normal(random);
        let step = |()| {
            before = phi * before + (1.0 - phi * phi).sqrt() * normal(random);
            before
        };
        std::iter::repeat_n((), n).map(step).collect()
    }

    fn covered(n: usize, phi: f64, between: f64) -> usize {
        let covers = |seed: &u64| {
            let mut random = fastrand::Rng::with_seed(*seed);
            let noise = series(n, phi, &mut random);
            let offsets = series(4, 0.0, &mut random);
            let portions: Vec<Vec<f64>> = noise
                .chunks(n / 4)
                .zip(&offsets)
                .map(|(part, off)| {
                    // A call in a hundred meets a pause of fifty times its length.
                    let of = |v: &f64| {
                        let pause = if random.f64() < 0.01 { 50.0 } else { 1.0 };
                        100.0 * pause * (0.1 * (v + between * off)).exp()
                    };
                    part.iter().map(of).collect()
                })
                .collect();
            let truth = 100.0 * (0.1_f64 * 1.2533 * 0.01).exp();
            median_in_order(&portions).unwrap().ci95.unwrap().contains(truth)
        };
        (0..200).filter(covers).count()
    }

    #[test]
    fn an_interval_holds_the_truth_though_neighbours_resemble_each_other() {
        for phi in [0.0, 0.5, 0.9, 0.97] {
            let covered = covered(1_000, phi, 0.0);
            assert!((180..=198).contains(&covered), "{phi}: {covered} of 200");
        }
        // As many values as a probe has rounds.
        let covered_of_few = covered(40, 0.3, 0.0);
        assert!((180..=198).contains(&covered_of_few), "{covered_of_few} of 200");
    }

    #[test]
    fn portions_that_differ_among_themselves_are_few_values() {
        let covered = covered(1_000, 0.5, 1.0);
        assert!((180..=198).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn a_time_that_varied_much_is_not_known_to_be_perhaps_nothing() {
        let portions = [30.0, 40.0, 120.0, 45.0].map(|us: f64| vec![us; 20]);
        let ci95 = median_in_order(&portions).unwrap().ci95.unwrap();
        assert!(ci95.lo > 0.0 && ci95.hi > 80.0, "{ci95:?}");
        // A difference may be.
        let portions = [30.0, -40.0, 120.0, 45.0].map(|us: f64| vec![us; 20]);
        let ci95 = median_in_order(&portions).unwrap().ci95.unwrap();
        assert!(ci95.lo < 0.0, "{ci95:?}");
    }

    #[test]
    fn independent_values_have_the_interval_of_the_order_statistics() {
        let mut random = fastrand::Rng::with_seed(5);
        let values = series(30, 0.0, &mut random);
        let own = Sample::new(values.clone()).unwrap().median_estimate();
        assert_eq!(median_in_order(&[values]).unwrap(), own);
        assert_eq!(median_in_order(&[vec![1.0; 9]]).unwrap().ci95.unwrap().hi, 1.0);
        assert_eq!(median_in_order(&[vec![1.0, 2.0, 3.0]]).unwrap().ci95, None);
        assert!(median_in_order(&[vec![], vec![]]).is_err());
    }

    #[test]
    fn a_batch_weighs_what_it_has_and_one_that_stalled_is_not_left_out() {
        let sum = |total, count| Sum { total, count };
        let mut batches = vec![sum(100.0, 100.0), sum(102.0, 100.0), sum(98.0, 100.0)];
        batches.push(sum(4_000.0, 40.0));
        let mean = mean_in_order(&batches).unwrap();
        assert!((mean.value - 4_300.0 / 340.0).abs() < 1e-9);
        assert!(mean.ci95.unwrap().hi > 20.0, "{mean:?}");
        let grown: Vec<Sum> = (1..=20).map(|at| sum(f64::from(at * at), 1.0)).collect();
        assert_eq!(mean_in_order(&grown).unwrap().ci95, None);
        // None is below nothing, and so is no interval.
        assert!(mean.ci95.unwrap().lo > 0.0, "{mean:?}");
        assert_eq!(mean_in_order(&[sum(0.0, 0.0)]), None);
        // One answer among many empty batches is one value, and two are two.
        let mut sparse = vec![sum(0.0, 0.0); 20];
        sparse[3] = sum(7.0, 1.0);
        assert_eq!(mean_in_order(&sparse), Some(Estimate { value: 7.0, ci95: None }));
        sparse[9] = sum(9.0, 1.0);
        let two = mean_in_order(&sparse).unwrap().ci95.unwrap();
        assert!(two.lo < 4.0 && two.hi > 15.0, "{two:?}");
        assert_eq!(mean_in_order(&[sum(6.0, 3.0)]).unwrap(), Estimate { value: 2.0, ci95: None });
    }
}
