//! A small histogram of times, for the many: 16 steps for each doubling, from 256 ns to 137 s.

use perf::stats::shows_quantile;
use perf::units::Nanos;

/// log2 of the first step's upper end.
const FIRST: u32 = 8;
/// log2 of the steps for each doubling: 16 steps, 4 % between neighbours.
const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
const OCTAVES: usize = 29;
const BUCKETS: usize = OCTAVES * STEPS;

/// How often which time was seen: 1.9 KB however many they are. Count, sum and ends are exact,
/// quantiles within 3 %.
#[derive(Clone, Debug)]
pub struct Spread {
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
    buckets: Option<Box<[u32; BUCKETS]>>,
}

impl Default for Spread {
    fn default() -> Self {
        Self { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0, buckets: None }
    }
}

impl Spread {
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let bucket = &mut buckets[bucket(ns)];
        *bucket = bucket.saturating_add(1);
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let Some(others) = &other.buckets else { return };
        let own = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let pairs = own.iter_mut().zip(others.iter());
        pairs.for_each(|(own, other)| *own = own.saturating_add(*other));
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn sum(&self) -> Nanos {
        Nanos::from_nanos(self.sum_ns)
    }

    pub fn mean(&self) -> Nanos {
        Nanos::from_nanos(self.sum_ns.checked_div(self.count).unwrap_or(0))
    }

    pub fn min(&self) -> Nanos {
        Nanos::from_nanos(if self.count == 0 { 0 } else { self.min_ns })
    }

    pub const fn max(&self) -> Nanos {
        Nanos::from_nanos(self.max_ns)
    }

    /// The same as [`Self::quantile`], where that many values show it: see [`shows_quantile`].
    pub fn quantile_if_known(&self, q: f64) -> Option<Nanos> {
        shows_quantile(self.count, q).then(|| self.quantile(q))
    }

    /// The time that a share `q` (0 to 1) does not exceed.
    pub fn quantile(&self, q: f64) -> Nanos {
        let Some(buckets) = &self.buckets else { return Nanos::ZERO };
        if q >= 1.0 {
            return self.max();
        }
        #[expect(clippy::cast_precision_loss, reason = "a rank")]
        let wanted = q.clamp(0.0, 1.0) * self.count as f64;
        let mut seen = 0;
        for (index, count) in buckets.iter().enumerate() {
            seen += u64::from(*count);
            #[expect(clippy::cast_precision_loss, reason = "a rank")]
            if seen as f64 >= wanted && seen > 0 {
                if index == 0 {
                    // Of times that are shorter than its upper end, the shortest.
                    return self.min();
                }
                return Nanos::from_nanos(middle(index).clamp(self.min_ns, self.max_ns));
            }
        }
        self.max()
    }
}

/// Where a time is counted.
fn bucket(ns: u64) -> usize {
    let octave = ns.max(1).ilog2();
    if octave < FIRST {
        return 0;
    }
    let step = (ns >> (octave - STEPS_LOG2)) % STEPS as u64;
    let step = usize::try_from(step).unwrap_or(0);
    ((octave - FIRST) as usize * STEPS + step).min(BUCKETS - 1)
}

/// A time in the middle of a bucket.
fn middle(index: usize) -> u64 {
    let octave = u32::try_from(index / STEPS).unwrap_or(0) + FIRST;
    let width = 1 << (octave - STEPS_LOG2);
    (STEPS + index % STEPS) as u64 * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_three_percent_and_the_rest_is_exact() {
        let mut spread = Spread::default();
        for us in 1..=10_000_u64 {
            spread.record(us * 1000);
        }
        assert_eq!(spread.count(), 10_000);
        assert_eq!((spread.min().as_nanos(), spread.max().as_nanos()), (1_000, 10_000_000));
        assert_eq!(spread.mean().as_nanos(), 5_000_500);
        for (q, us) in [(0.5, 5_000.0), (0.99, 9_900.0), (0.01, 100.0)] {
            let got = spread.quantile(q).as_micros_f64();
            assert!((got / us - 1.0).abs() < 0.03, "{q}: {got}");
        }
    }

    #[test]
    fn the_median_of_nothing_but_zeros_is_zero() {
        let mut spread = Spread::default();
        [0, 0, 1_000_000].into_iter().for_each(|ns| spread.record(ns));
        assert_eq!(spread.quantile(0.5).as_nanos(), 0);
    }

    #[test]
    fn any_time_has_a_place() {
        let mut spread = Spread::default();
        for ns in [0, 1, 255, 256, u64::MAX] {
            spread.record(ns);
        }
        assert_eq!(spread.count(), 5);
        assert_eq!(spread.quantile(1.0).as_nanos(), u64::MAX);
        assert_eq!(Spread::default().quantile(0.5), Nanos::ZERO);
    }
}
