//! Response times of our own programs, in buckets that end at powers of two.

use counters::exposition::Series;
use perf::stats::shows_quantile;
use serde::Serialize;

/// The mean, and what so many of a hundred take at most; none where too little was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// Counts up to bounds in seconds, in ascending order, of one or several series.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Bound and how many are not above it.
    cumulated: Vec<(f64, f64)>,
    pub(super) sum_s: f64,
}

impl Histogram {
    pub(super) fn bucket(&mut self, one: &Series, count: f64) {
        let Some(bound) = one.label("le").and_then(|le| le.parse::<f64>().ok()) else { return };
        self.put(bound, count);
    }

    fn put(&mut self, bound: f64, count: f64) {
        let at = self.cumulated.partition_point(|(known, _)| *known < bound);
        match self.cumulated.get_mut(at) {
            Some((known, sum)) if *known == bound => *sum += count,
            _ => self.cumulated.insert(at, (bound, count)),
        }
    }

    /// All pages have the same bounds, so that counts of one bound add up.
    pub(super) fn add(&mut self, other: &Self) {
        for (bound, count) in &other.cumulated {
            self.put(*bound, *count);
        }
        self.sum_s += other.sum_s;
    }

    pub(super) fn count(&self) -> f64 {
        self.cumulated.last().map_or(0.0, |(_, count)| *count)
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        let count = self.count();
        let mean = (count > 0.0).then(|| self.sum_s * 1e3 / count);
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| self.quantile_ms(share));
        Percentiles { mean, p50, p95, p99 }
    }

    /// Inside of the bucket, in proportion; the lower bound of the last one, which has no upper.
    /// None where too few were counted to show it.
    fn quantile_ms(&self, share: f64) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a count"
        )]
        let counted = self.count() as u64;
        if !shows_quantile(counted, share) {
            return None;
        }
        let rank = share * self.count();
        let (mut low, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.cumulated {
            if count >= rank && count > below {
                let part = (rank - below) / (count - below);
                let at = if bound.is_finite() { low + (bound - low) * part } else { low };
                return Some(at * 1e3);
            }
            (low, below) = (bound, count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_takes_as_many_observations_as_tell_it_from_the_next() {
        let shown = |count: f64| {
            let mut histogram = Histogram { sum_s: count * 0.001, ..Histogram::default() };
            histogram.put(0.001, count);
            let Percentiles { mean, p50, p95, p99 } = histogram.percentiles();
            [mean, p50, p95, p99].map(|value| value.is_some())
        };
        assert_eq!(shown(0.0), [false; 4]);
        assert_eq!(shown(1.0), [true, false, false, false]);
        assert_eq!(shown(2.0), [true, true, false, false]);
        assert_eq!(shown(20.0), [true, true, true, false]);
        assert_eq!(shown(99.0), [true, true, true, false]);
        assert_eq!(shown(100.0), [true; 4]);
    }
}
