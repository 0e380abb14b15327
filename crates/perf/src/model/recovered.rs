//! LogGP read back from the transaction model: what was put into a path, from two probes of it,
//! one with and one without.
//!
//! A link and a busy processor change the parameters of a [`Path`] in ways of their own:
//!
//! | put in | round trip | time per KiB of one call | time per call of a burst |
//! |---|---|---|---|
//! | L | + 2 L | | |
//! | o at both ends | + 4 o | | + 2 o |
//! | o at one end | + 2 o | | + 2 o |
//! | g | | | g, where it is the slowest stage |
//! | G | + bytes x G | + 1024 G | bytes x G, where it is the slowest stage |
//!
//! So G is the difference in the time per KiB. o is in the round trip and in the burst: the smaller
//! of what the two admit, so that neither L, which the burst does not show, nor g, which the round
//! trip does not show, is taken for it. L is what o and G leave of the round trip. g is the time
//! per call that o leaves.
//!
//! A burst shows its slowest stage only. Where that is the link's G, or the window (too few calls
//! outstanding for so long a way), it says nothing of o and g.

use super::transaction::Path;
use crate::stats::{Estimate, Interval, Sample};

/// One probe of a path as it is, and one of the same path with something put in, taken one after
/// the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub bare: Path,
    pub behind: Path,
}

/// What the probes' calls were, as far as the formulas need it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls {
    /// Bytes of a NULL call and its reply.
    pub null_bytes: f64,
    /// Bytes of a burst's smaller calls.
    pub burst_bytes: f64,
    /// How many of them were outstanding.
    pub burst_outstanding: f64,
    /// Ends that spend an o: one or two.
    pub busy_ends: f64,
}

/// What was read back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovered {
    /// L in microseconds.
    pub latency_us: Estimate,
    /// o in microseconds; none where bursts do not show it. Then L is taken without it.
    pub overhead_us: Option<Estimate>,
    /// The time per call of a burst that o leaves, in microseconds: g, where g is the slowest
    /// stage, and what client and server need where it is not.
    pub gap_us: Option<Estimate>,
    /// The same of the path as it is.
    pub bare_gap_us: Option<Estimate>,
    /// G in nanoseconds per byte.
    pub gap_per_byte_ns: Estimate,
}

/// A stage this much faster than another one is hidden behind it.
const HIDDEN: f64 = 0.8;

/// An o that makes less of what the round trip has grown by is none.
const NEGLIGIBLE: f64 = 0.05;

impl Recovered {
    /// From any number of pairs: the medians of what each says. `None` without a pair, or where
    /// one is not finite.
    pub fn from_pairs(pairs: &[Pair], calls: &Calls) -> Option<Self> {
        let estimate = |of: &dyn Fn(&Pair) -> f64| {
            Sample::new(pairs.iter().map(of).collect::<Vec<f64>>())
                .ok()
                .map(|sample| median(&sample))
        };
        let gap_per_byte_ns = estimate(&gap_per_byte_ns)?;
        let is_shown = calls.are_shown(pairs, gap_per_byte_ns.value);
        let busy = |pair: &Pair| overhead_us(pair, calls);
        let overhead = if is_shown { estimate(&busy) } else { None };
        // An o that cannot be distinguished from none would only add its noise to L.
        let added_us = estimate(&|pair| added_round_trip_us(pair, calls))?.value;
        let is_busy = overhead.is_some_and(|o| {
            o.ci95.is_none_or(|ci95| !ci95.contains(0.0))
                && 2.0 * calls.busy_ends * o.value > NEGLIGIBLE * added_us
        });
        let latency = |pair: &Pair| {
            let overhead = if is_busy { overhead_us(pair, calls) } else { 0.0 };
            (added_round_trip_us(pair, calls) - 2.0 * calls.busy_ends * overhead) / 2.0
        };
        let gap = |pair: &Pair| {
            let overhead = if is_busy { overhead_us(pair, calls) } else { 0.0 };
            pair.behind.capacity.call_us - 2.0 * overhead
        };
        let shown = |estimate: Option<Estimate>| estimate.filter(|_| is_shown);
        Some(Self {
            latency_us: estimate(&latency)?,
            overhead_us: overhead,
            gap_us: shown(estimate(&gap)),
            bare_gap_us: shown(estimate(&|pair| pair.bare.capacity.call_us)),
            gap_per_byte_ns,
        })
    }
}

impl Calls {
    /// Whether bursts show the processing of a call: neither the link's G nor the window is much
    /// slower.
    fn are_shown(&self, pairs: &[Pair], gap_per_byte_ns: f64) -> bool {
        let median_of = |of: &dyn Fn(&Pair) -> f64| {
            let sample = Sample::new(pairs.iter().map(of).collect::<Vec<f64>>());
            sample.map_or(0.0, |sample| sample.median())
        };
        let spacing_us = median_of(&|pair| pair.behind.capacity.call_of_us(self.burst_bytes));
        let cycle_us = median_of(&|pair| {
            let kib = self.burst_bytes / 1024.0;
            pair.behind.round_trip_us + pair.behind.op_us + kib * pair.behind.ser_us_per_kib
        });
        let link_us = gap_per_byte_ns * self.burst_bytes / 1e3;
        let window_us = cycle_us / self.burst_outstanding.max(1.0);
        link_us.max(window_us) < HIDDEN * spacing_us
    }
}

fn gap_per_byte_ns(pair: &Pair) -> f64 {
    (pair.behind.ser_us_per_kib - pair.bare.ser_us_per_kib) * 1e3 / 1024.0
}

/// 2 L + 4 o, or 2 o of one end: without what the bytes of the call take.
fn added_round_trip_us(pair: &Pair, calls: &Calls) -> f64 {
    let bytes_us = gap_per_byte_ns(pair) * calls.null_bytes / 1e3;
    pair.behind.round_trip_us - pair.bare.round_trip_us - bytes_us
}

fn overhead_us(pair: &Pair, calls: &Calls) -> f64 {
    let burst_us = pair.behind.capacity.call_us - pair.bare.capacity.call_us;
    (burst_us / 2.0).min(added_round_trip_us(pair, calls) / (2.0 * calls.busy_ends))
}

/// The median with its interval; of few values, with their range.
fn median(sample: &Sample) -> Estimate {
    let range = Interval { lo: sample.min(), hi: sample.max() };
    let is_spread = sample.n() > 1;
    let estimate = sample.median_estimate();
    Estimate { ci95: estimate.ci95.or_else(|| is_spread.then_some(range)), ..estimate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::transaction::{Capacity, Storage};

    const CALLS: Calls =
        Calls { null_bytes: 112.0, burst_bytes: 8192.0, burst_outstanding: 512.0, busy_ends: 2.0 };

    fn bare() -> Path {
        Path {
            round_trip_us: 45.0,
            ser_us_per_kib: 0.4,
            op_us: 5.0,
            overhead_us: 0.0,
            capacity: Capacity { call_us: 14.0, us_per_kib: 0.3 },
            storage: Storage {
                sync_us: 0.0,
                us_per_kib: 0.0,
                left_us_per_kib: 0.0,
                unhidden_us_per_kib: 0.0,
            },
        }
    }

    /// As the table at the head has it.
    fn behind(latency: f64, overhead: f64, gap: f64, gap_per_byte: f64) -> Pair {
        let bare = bare();
        let round_trip_us =
            bare.round_trip_us + 2.0 * latency + 4.0 * overhead + 112.0 * gap_per_byte / 1e3;
        let ser_us_per_kib = bare.ser_us_per_kib + gap_per_byte * 1.024;
        let capacity = Capacity {
            call_us: (bare.capacity.call_us + 2.0 * overhead).max(gap),
            us_per_kib: bare.capacity.us_per_kib.max(gap_per_byte * 1.024),
        };
        Pair { bare, behind: Path { round_trip_us, ser_us_per_kib, capacity, ..bare } }
    }

    #[track_caller]
    fn assert_recovered(pair: Pair, [latency, overhead, gap, gap_per_byte]: [Option<f64>; 4]) {
        let found = Recovered::from_pairs(&[pair, pair], &CALLS).unwrap();
        let near = |estimate: Option<Estimate>, want: Option<f64>| {
            let value = estimate.map(|estimate| estimate.value);
            assert_eq!(value.is_some(), want.is_some(), "{found:?}");
            let distance = value.unwrap_or(0.0) - want.unwrap_or(0.0);
            assert!(distance.abs() < 1e-9, "{found:?}: {want:?}");
        };
        near(Some(found.latency_us), latency);
        near(found.overhead_us, overhead);
        near(found.gap_us, gap);
        near(Some(found.gap_per_byte_ns), gap_per_byte);
    }

    #[test]
    fn each_parameter_is_distinguished_from_the_others() {
        let (none, bare) = (Some(0.0), Some(14.0));
        assert_recovered(behind(0.0, 0.0, 0.0, 0.0), [none, none, bare, none]);
        assert_recovered(behind(150.0, 0.0, 0.0, 0.0), [Some(150.0), none, bare, none]);
        assert_recovered(behind(0.0, 50.0, 0.0, 0.0), [none, Some(50.0), bare, none]);
        assert_recovered(behind(0.0, 0.0, 100.0, 0.0), [none, none, Some(100.0), none]);
        assert_recovered(behind(30.0, 20.0, 0.0, 0.0), [Some(30.0), Some(20.0), bare, none]);
    }

    #[test]
    fn what_a_burst_does_not_show_is_not_reported() {
        // 26 MB/s: 315 us for 8 KiB, of which processing is a small part.
        assert_recovered(behind(0.0, 0.0, 0.0, 38.5), [Some(0.0), None, None, Some(38.5)]);
        // A round trip of 80 ms: 512 calls do not fill it.
        assert_recovered(behind(40_000.0, 0.0, 0.0, 0.0), [Some(40_000.0), None, None, Some(0.0)]);
    }

    #[test]
    fn nothing_is_stated_without_a_pair_or_of_numbers_that_are_none() {
        assert_eq!(Recovered::from_pairs(&[], &CALLS), None);
        let mut pair = behind(0.0, 0.0, 0.0, 0.0);
        pair.behind.round_trip_us = f64::NAN;
        assert_eq!(Recovered::from_pairs(&[pair], &CALLS), None);
    }
}
