//! What the times of single calls say (Lever & Honeyman 2002, section 3.3): how much a few slow
//! calls weigh, whether they come in a rhythm, and whether calls slow down as the file grows.
//!
//! A mean hides all three: the client of that paper had a mean of 482 us, where 37 of 2,560 calls
//! took 19 ms, one in every 85, and the others took 140 us.
//!
//! - A slow call is one over a threshold, 1 ms in the paper.
//! - A spike is a slow call that also stands out: [`STANDS_OUT`] times the median or more. On a
//!   path where every call takes 2 ms all are slow and none is a spike.
//! - The period is the median distance between the beginnings of spikes, and there is one only if
//!   spikes that came by chance would look so regular less than once in a thousand runs.
//! - The slope is the line through the medians of equal parts of the run, by Theil and Sen, so that
//!   spikes do not bend it.

use perf::histogram::Histogram;
use perf::stats::{Estimate, Interval, Sample, fit_theil_sen};
use perf::units::Nanos;

/// The paper's threshold of a slow call.
pub const SLOW: Nanos = Nanos::from_millis(1);
/// Times the median that a spike takes at least. Guess: the paper's take 140 times.
pub const STANDS_OUT: u64 = 4;

/// With fewer spikes no rhythm differs from chance: `SAME_BY_CHANCE` to the power of their
/// distances but one is `CHANCE_MAX` then.
pub const SPIKES_OF_A_RHYTHM: usize = 7;

/// Distances up to this share away from the median distance count as the same.
const SAME_WITHIN: f64 = 0.25;
/// Share of the distances that must be the same.
const SAME_SHARE: f64 = 2.0 / 3.0;
/// Chance of a distance between random spikes to lie within [`SAME_WITHIN`] of the median. For
/// exponential distances it is 2^-0.75 - 2^-1.25 = 0.17, and 0.2 after echoes are joined.
const SAME_BY_CHANCE: f64 = 0.25;
/// Chance of a period that is none.
const CHANCE_MAX: f64 = 0.001;
/// Spikes closer than the mean distance over this are one: a flush and its echo.
const ECHO: usize = 8;
/// A median distance below this is no rhythm of a cache, but a slow path.
const PERIOD_MIN_CALLS: f64 = 4.0;
/// Parts of the run whose medians the slope rests on, and calls in each at least.
const PARTS_MAX: usize = 200;
const PART_MIN_CALLS: usize = 8;

/// A run's calls in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub calls: usize,
    pub threshold: Nanos,
    /// Calls longer than the threshold.
    pub slow_calls: usize,
    pub mean: Nanos,
    /// Mean of the calls that are not slow; `None` when all are.
    pub mean_without_slow: Option<Nanos>,
    pub standard_deviation: Nanos,
    pub min: Nanos,
    /// As far as so many calls show it, and so are the others.
    pub p10: Option<Nanos>,
    pub p50: Option<Nanos>,
    pub p90: Option<Nanos>,
    pub p99: Option<Nanos>,
    pub p999: Option<Nanos>,
    pub max: Nanos,
    /// Slow calls that stand out, echoes counted with theirs.
    pub spikes: usize,
    pub period: Option<Period>,
    /// Microseconds by which a call becomes slower in 1,000 calls; `None` for a short run.
    pub slope_us_per_1000: Option<Estimate>,
}

/// The rhythm of the spikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// Median distance between the beginnings of two spikes.
    pub calls: f64,
    /// The middle half of the distances.
    pub middle_half: Interval,
    /// Spikes, echoes counted with theirs.
    pub spikes: usize,
    /// Median of the spikes' lengths, the longest call of each.
    pub height: Nanos,
}

impl Summary {
    /// Of the calls in the order in which they were made; `None` when there are none.
    pub fn of(calls: &[Nanos], threshold: Nanos) -> Option<Self> {
        let micros = |calls: &[Nanos]| calls.iter().map(|c| c.as_micros_f64()).collect::<Vec<_>>();
        let sample = Sample::new(micros(calls)).ok()?;
        let rest: Vec<Nanos> = calls.iter().copied().filter(|call| *call <= threshold).collect();
        let quantile = |q| sample.quantile_if_known(q).map(Nanos::from_micros_f64);
        let [min, median, max] =
            [sample.min(), sample.median(), sample.max()].map(Nanos::from_micros_f64);
        let mean = |sample: &Sample| Nanos::from_micros_f64(sample.mean());
        let spikes = spikes(calls, threshold.max(median * STANDS_OUT));
        Some(Self {
            calls: calls.len(),
            threshold,
            slow_calls: calls.len() - rest.len(),
            mean: mean(&sample),
            mean_without_slow: Sample::new(micros(&rest)).ok().map(|rest| mean(&rest)),
            standard_deviation: Nanos::from_micros_f64(sample.standard_deviation().unwrap_or(0.0)),
            min,
            p10: quantile(0.1),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max,
            spikes: spikes.len(),
            period: period(&spikes),
            slope_us_per_1000: slope(calls),
        })
    }

    /// How many times larger slow calls make the mean.
    pub fn inflation(&self) -> Option<f64> {
        let rest = self.mean_without_slow?.as_secs_f64();
        (rest > 0.0).then(|| self.mean.as_secs_f64() / rest)
    }
}

/// All calls counted.
pub fn histogram(calls: &[Nanos]) -> Histogram {
    let mut histogram = Histogram::new();
    calls.iter().for_each(|call| histogram.record(*call));
    histogram
}

/// One bar of a small histogram: calls from `low` up to, but not including, `high`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bar {
    pub low: Nanos,
    pub high: Nanos,
    pub calls: usize,
}

/// The calls in bars whose bounds go 1, 2, 5, 10, ...; empty ones only between others. At most 50
/// bars, from 1 ns to [`Histogram::VALUE_MAX`] and beyond.
pub fn bars(calls: &[Nanos]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    let mut sorted = calls.to_vec();
    sorted.sort_unstable();
    let (mut low, mut step) = (Nanos::ZERO, 0);
    let mut rest = sorted.as_slice();
    while !rest.is_empty() {
        let high =
            if low >= Histogram::VALUE_MAX { Nanos::from_nanos(u64::MAX) } else { bound(step) };
        let below = rest.partition_point(|call| *call < high || low >= Histogram::VALUE_MAX);
        if below > 0 || !bars.is_empty() {
            bars.push(Bar { low, high, calls: below });
        }
        rest = &rest[below..];
        low = high;
        step += 1;
    }
    bars
}

/// 1, 2, 5, 10, 20, ... nanoseconds.
fn bound(step: u32) -> Nanos {
    let ten = 10_u64.saturating_pow(step / 3);
    Nanos::from_nanos(ten.saturating_mul([1, 2, 5][step as usize % 3]))
}

/// The rhythm of the spikes, if there is one.
fn period(spikes: &[(usize, Nanos)]) -> Option<Period> {
    let distances: Vec<f64> =
        spikes.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64).collect();
    let sample = Sample::new(distances.clone()).ok()?;
    let median = sample.median();
    let near = |distance: &&f64| (**distance - median).abs() <= SAME_WITHIN * median;
    let same = distances.iter().filter(near).count();
    let regular = same as f64 >= SAME_SHARE * distances.len() as f64;
    // The median itself is near the median: it proves nothing.
    let chance = binomial_tail(distances.len() - 1, same.saturating_sub(1), SAME_BY_CHANCE);
    if median < PERIOD_MIN_CALLS || !regular || chance > CHANCE_MAX {
        return None;
    }
    let heights: Vec<f64> = spikes.iter().map(|(_, height)| height.as_micros_f64()).collect();
    Some(Period {
        calls: median,
        middle_half: Interval { lo: sample.quantile(0.25), hi: sample.quantile(0.75) },
        spikes: spikes.len(),
        height: Nanos::from_micros_f64(Sample::new(heights).ok()?.median()),
    })
}

/// Index of the first call and length of the longest call of each spike.
fn spikes(calls: &[Nanos], spike: Nanos) -> Vec<(usize, Nanos)> {
    let above: Vec<usize> =
        calls.iter().enumerate().filter(|(_, call)| **call > spike).map(|(i, _)| i).collect();
    let runs = above.chunk_by(|a, b| a + 1 == *b).count().max(1);
    let echo = (calls.len() / runs / ECHO).max(1);
    above
        .chunk_by(|a, b| b - a <= echo)
        .map(|run| {
            let longest = run.iter().map(|&i| calls[i]).max().unwrap_or(Nanos::ZERO);
            (run[0], longest)
        })
        .collect()
}

/// Chance of `least` or more successes in `n` trials of probability `p`, between 0 and 1.
fn binomial_tail(n: usize, least: usize, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let mut ln_term = n as f64 * (1.0 - p).ln();
    let mut tail = 0.0;
    for successes in 0..=n {
        if successes >= least {
            tail += ln_term.exp();
        }
        ln_term += (odds * (n - successes) as f64 / (successes + 1) as f64).ln();
    }
    tail
}

fn slope(calls: &[Nanos]) -> Option<Estimate> {
    let part_calls = calls.len().div_ceil(PARTS_MAX).max(PART_MIN_CALLS);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (number, part) in calls.chunks(part_calls).enumerate() {
        let micros: Vec<f64> = part.iter().map(|call| call.as_micros_f64()).collect();
        // The last part may be short: its median would weigh as much and be worth less.
        if part.len() == part_calls {
            x.push((number * part_calls) as f64 / 1000.0);
            y.push(Sample::new(micros).ok()?.median());
        }
    }
    // A line through fewer parts than these says nothing about a trend.
    if x.len() < 8 {
        return None;
    }
    fit_theil_sen(&x, &y).ok().map(|fit| fit.slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in (0, 1], from a multiplicative generator (Lehmer 1951, Park & Miller's constants).
    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0 * 48_271 % 2_147_483_647;
            self.0 as f64 / 2_147_483_647.0
        }
    }

    fn micros(values: impl IntoIterator<Item = f64>) -> Vec<Nanos> {
        values.into_iter().map(Nanos::from_micros_f64).collect()
    }

    fn summary(values: impl IntoIterator<Item = f64>) -> Summary {
        Summary::of(&micros(values), SLOW).unwrap()
    }

    fn close(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "got {got}, want {want}");
    }

    #[test]
    fn the_run_of_the_papers_figure_2_comes_out_as_the_paper_says() {
        // 2,560 calls, 37 of them over 1 ms: about every 69, of 139.6 us and 23.8 ms.
        let of_call = |n: usize| if n % 69 == 68 { 23_834.0 } else { 139.6 };
        let paper = summary((0..2_560).map(of_call));
        assert_eq!((paper.calls, paper.slow_calls), (2_560, 37));
        close(paper.mean.as_micros_f64(), 482.1, 0.5);
        close(paper.mean_without_slow.unwrap().as_micros_f64(), 139.6, 0.1);
        close(paper.inflation().unwrap(), 3.45, 0.01);
        let period = paper.period.unwrap();
        assert_eq!((period.calls, period.spikes), (69.0, 37));
        close(period.height.as_micros_f64(), 23_834.0, 0.1);
        close(paper.slope_us_per_1000.unwrap().value, 0.0, 1e-9);
    }

    #[test]
    fn a_period_survives_jitter_echoes_and_missing_spikes() {
        let mut uniform = Uniform(11);
        let mut calls: Vec<f64> = (0..6_400).map(|_| 40.0 + 30.0 * uniform.next()).collect();
        let mut at = 70.0;
        while at < 6_390.0 {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let index = at as usize;
            if uniform.next() > 0.1 {
                calls[index] = 8_000.0;
                calls[index + 3] = 2_000.0;
            }
            at += 80.0 + 14.0 * uniform.next();
        }
        let period = summary(calls).period.unwrap();
        close(period.calls, 87.0, 3.0);
        assert!(period.middle_half.lo > 80.0 && period.middle_half.hi < 95.0, "{period:?}");
    }

    #[test]
    fn seven_regular_spikes_are_a_rhythm_and_six_are_not() {
        for spikes in [SPIKES_OF_A_RHYTHM - 1, SPIKES_OF_A_RHYTHM] {
            let of_call = |n: usize| if n % 90 == 89 { 20_000.0 } else { 100.0 };
            let summary = summary((0..90 * spikes).map(of_call));
            assert_eq!(summary.spikes, spikes);
            assert_eq!(summary.period.is_some(), spikes == SPIKES_OF_A_RHYTHM, "{spikes}");
        }
    }

    #[test]
    fn white_noise_has_no_period() {
        for seed in 1..=300 {
            let mut uniform = Uniform(seed * 7_919);
            let rate = [0.003, 0.01, 0.03, 0.1][usize::try_from(seed % 4).unwrap()];
            let noise = |_| if uniform.next() < rate { 5_000.0 } else { 100.0 };
            let noise = summary((0..5_000).map(noise));
            assert!(noise.slow_calls > 0, "seed {seed}");
            assert_eq!(noise.period, None, "seed {seed}");
        }
    }

    #[test]
    fn skewed_noise_around_the_threshold_has_no_period_and_no_slope() {
        for seed in 1..=100 {
            let mut uniform = Uniform(seed * 104_729);
            let noise = summary((0..4_000).map(|_| -700.0 * uniform.next().ln()));
            assert!(noise.slow_calls > 500);
            assert_eq!(noise.period, None, "seed {seed}");
            let slope = noise.slope_us_per_1000.unwrap();
            assert!(slope.value.abs() < 60.0, "seed {seed}: {slope:?}");
        }
    }

    #[test]
    fn a_path_where_every_call_is_slow_has_no_spikes() {
        let slow = summary((0..1_000).map(|n| 2_000.0 + f64::from(n % 50)));
        assert_eq!((slow.slow_calls, slow.mean_without_slow), (1_000, None));
        assert_eq!((slow.inflation(), slow.period), (None, None));
    }

    #[test]
    fn the_slope_of_a_list_that_is_scanned_is_found_through_spikes() {
        // 100 us at first, 20 us more after each 1,000 calls.
        let mut uniform = Uniform(5);
        let of_call = |n: i32| match n % 90 {
            0 => 19_000.0,
            _ => 100.0 + 0.02 * f64::from(n) + 5.0 * uniform.next(),
        };
        let slope = summary((0..6_400).map(of_call)).slope_us_per_1000.unwrap();
        close(slope.value, 20.0, 0.2);
        let ci95 = slope.ci95.unwrap();
        assert!(ci95.lo > 19.8 && ci95.hi < 20.2, "{slope:?}");
    }

    #[test]
    fn few_calls_or_none_are_no_trend() {
        assert_eq!(Summary::of(&[], SLOW), None);
        let one = summary([7.0]);
        assert_eq!((one.calls, one.min), (1, one.max));
        assert_eq!((one.p50, one.p99), (None, None));
        let hundred = summary([7.0; 100]);
        assert_eq!((hundred.p99, hundred.p999), (Some(one.max), None));
        assert_eq!((one.period, one.slope_us_per_1000), (None, None));
        let six_spikes = (0..500).map(|n| if n % 80 == 0 { 9_000.0 } else { 10.0 });
        assert!(summary(six_spikes.clone().take(400)).period.is_none(), "five prove nothing");
        assert!(summary(six_spikes).period.is_some());
    }

    #[test]
    fn bars_hold_every_call_between_round_bounds() {
        let calls = micros([0.9, 1.0, 1.9, 2.0, 30.0, 30.0]);
        let bars = bars(&calls);
        let shown: Vec<(f64, f64, usize)> = bars
            .iter()
            .map(|bar| (bar.low.as_micros_f64(), bar.high.as_micros_f64(), bar.calls))
            .collect();
        let expected = [
            (0.5, 1.0, 1),
            (1.0, 2.0, 2),
            (2.0, 5.0, 1),
            (5.0, 10.0, 0),
            (10.0, 20.0, 0),
            (20.0, 50.0, 2),
        ];
        assert_eq!(shown, expected);
        assert_eq!(super::bars(&[]), []);
        let far = [Nanos::ZERO, Nanos::from_nanos(u64::MAX)];
        let all = super::bars(&far);
        assert!(all.len() <= 50, "{}", all.len());
        assert_eq!(all.iter().map(|bar| bar.calls).sum::<usize>(), 2);
        assert_eq!(histogram(&far).count(), 2);
    }

    #[test]
    fn the_tail_of_a_binomial_distribution_by_hand() {
        close(binomial_tail(5, 5, 0.25), 0.25_f64.powi(5), 1e-12);
        close(binomial_tail(5, 0, 0.25), 1.0, 1e-12);
        close(binomial_tail(2, 1, 0.5), 0.75, 1e-12);
        assert_eq!(binomial_tail(0, 1, 0.25), 0.0);
    }
}
