//! Spans of time, counted in buckets whose bounds double.
//!
//! Factors of two tell a microsecond from a millisecond, are an index without a search, and are
//! few enough for a scrape: 25 bounds from 1.024 us to 17.2 s, for each procedure and phase.

use perf::units::Nanos;

use super::counter::{Counter, Writers};

/// Those with a bound, and the one for everything longer.
pub(crate) const BUCKETS: usize = 26;

/// The first bound is 2^10 ns.
const FIRST_BITS: u32 = 10;

/// How often spans of which length were seen. The longest stand for themselves in the sum.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    counts: [Counter; BUCKETS],
    nanos: Counter,
}

impl Histogram {
    pub(super) fn record(&self, span: Nanos, writers: Writers) {
        self.counts[index(span)].add(1, writers);
        self.nanos.add(span.as_nanos(), writers);
    }
}

/// What several histograms have counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) counts: [u64; BUCKETS],
    pub(crate) total: Nanos,
}

impl Distribution {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (sum, count) in self.counts.iter_mut().zip(&histogram.counts) {
            *sum = sum.wrapping_add(count.value());
        }
        self.total += Nanos::from_nanos(histogram.nanos.value());
    }

    /// Counts `count` spans of no length, which are not recorded one by one.
    pub(super) fn add_nothing(&mut self, count: u64) {
        self.counts[0] = self.counts[0].wrapping_add(count);
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The longest span that belongs to a bucket; none for the last.
pub(crate) fn bound(bucket: usize) -> Option<Nanos> {
    (bucket < BUCKETS - 1).then(|| Nanos::from_nanos(1 << (FIRST_BITS as usize + bucket)))
}

fn index(span: Nanos) -> usize {
    let above = span.as_nanos().saturating_sub(1) >> FIRST_BITS;
    ((u64::BITS - above.leading_zeros()) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_lies_within_the_bounds_of_its_bucket() {
        assert_eq!(index(Nanos::ZERO), 0);
        assert_eq!(index(Nanos::from_nanos(u64::MAX)), BUCKETS - 1);
        for bucket in 0..BUCKETS - 1 {
            let bound = bound(bucket).unwrap();
            assert_eq!(index(bound), bucket);
            assert_eq!(index(bound + Nanos::from_nanos(1)), bucket + 1);
        }
        assert_eq!(bound(0), Some(Nanos::from_nanos(1024)));
        assert_eq!(bound(BUCKETS - 1), None);
    }

    #[test]
    fn distributions_add_up() {
        let histogram = Histogram::default();
        histogram.record(Nanos::from_micros(1), Writers::One);
        histogram.record(Nanos::from_secs(100), Writers::Several);
        let mut sum = Distribution::default();
        sum.add(&histogram);
        sum.add(&histogram);
        sum.add_nothing(3);
        assert_eq!((sum.counts[0], sum.counts[BUCKETS - 1], sum.count()), (5, 2, 7));
        assert_eq!(sum.total, Nanos::from_micros(200_000_002));
    }
}
