//! The cycle of a client that waits for each reply before it calls again: what such a conversation
//! says of changes, when there is too little else for a model.
//!
//! ```text
//! cycle = way + server + client
//! ```
//!
//! The client's part is from a reply to the next call. The way is between what acknowledgements
//! take and what the lightest calls take; the server's part is the rest. Whether the server would
//! do several calls at once, such a conversation does not show: so what more calls outstanding
//! would give lies between a server that takes one after the other and one that takes all at once.

use std::collections::BTreeMap;

use perf::model::closed::network::{Center, Class, Kind, Network};
use perf::model::trace::{Transaction, Work};
use perf::stats::{Estimate, Interval, Sample};
use trace::verdict::BULK_BYTES;

use super::changes::{Change, What};

/// Cycles below which nothing is stated.
const CYCLES_MIN: usize = 16;

/// What is known of the network round trip; us.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// Acknowledgements of the server: the least, and the median.
    pub(super) least_us: Option<f64>,
    pub(super) median_us: Option<f64>,
    /// The lightest call that waited for nothing.
    pub(super) light_us: Option<f64>,
    /// What calls that waited for each other have shown.
    pub(super) fitted_us: Option<Interval>,
    /// Data pass at one rate, as over a link that is full.
    pub(super) may_be_full: bool,
}

impl Way {
    /// Between what it takes of the network by what was measured alone: no call is faster, and none
    /// of its acknowledgements is. None where neither is known.
    pub(super) fn measured(&self) -> Option<Interval> {
        let hi = self.light_us.or(self.median_us)?;
        Some(Interval { lo: self.least_us.unwrap_or(0.0).min(hi), hi })
    }

    /// Between what it takes, in calls that take so long.
    fn within(&self, response_us: f64) -> Interval {
        let most_us = self.light_us.unwrap_or(f64::INFINITY).min(response_us);
        let (lo, hi) = match (self.fitted_us, self.least_us, self.median_us) {
            // No call is faster than its way.
            (Some(Interval { lo, hi }), ..) => (lo.min(most_us), hi.min(most_us)),
            (None, Some(least), Some(median)) => {
                (least.min(most_us), median.max(least).min(most_us))
            }
            _ => (0.0, most_us),
        };
        Interval { lo, hi }
    }
}

/// A call, and when the next was sent.
type Alone<'a> = (&'a Transaction, f64);

/// Calls that were answered before the next was sent, and sent after all before were answered.
fn alone(calls: &[Transaction]) -> Vec<Alone<'_>> {
    let mut busy_until_us = f64::NEG_INFINITY;
    let mut alone = Vec::new();
    for pair in calls.windows(2) {
        let [call, next] = pair else { continue };
        if call.sent_us >= busy_until_us && next.sent_us >= call.answered_us {
            alone.push((call, next.sent_us));
        }
        busy_until_us = busy_until_us.max(call.answered_us);
    }
    alone
}

/// Those of the most frequent kind and size, by powers of two.
fn most_frequent(mut calls: Vec<Alone<'_>>) -> Option<(Work, Vec<Alone<'_>>)> {
    let kind = |call: &Transaction| (call.work, (call.bytes + 1).ilog2());
    let mut kinds: BTreeMap<(Work, u32), usize> = BTreeMap::new();
    calls.iter().for_each(|(call, _)| *kinds.entry(kind(call)).or_default() += 1);
    let (most, _) = kinds.into_iter().max_by_key(|(kind, count)| (*count, *kind))?;
    calls.retain(|(call, _)| kind(call) == most);
    Some((most.0, calls))
}

/// Means of the most frequent kind of calls that were made alone; us. Those of the parts are
/// together that of the cycle, and calls a second are its reciprocal.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) calls: usize,
    pub(super) kib: f64,
    pub(super) work: Work,
    pub(super) cycle_us: Estimate,
    pub(super) response_us: Estimate,
    pub(super) client_us: Estimate,
    /// Between these.
    pub(super) way_us: Interval,
    /// They may be what a link takes for the data, whoever else waits.
    pub(super) may_be_full: bool,
}

impl Cycle {
    /// Of calls in the order in which they were sent. None where calls were seldom alone.
    pub(super) fn of(calls: &[Transaction], way: Way) -> Option<Self> {
        let alone = alone(calls);
        if alone.len() < CYCLES_MIN || alone.len() * 2 < calls.len() {
            return None;
        }
        let (work, alone) = most_frequent(alone)?;
        if alone.len() < CYCLES_MIN {
            return None;
        }
        let of = |value: &dyn Fn(&Transaction, f64) -> f64| {
            let values: Vec<f64> = alone.iter().map(|(call, next)| value(call, *next)).collect();
            Sample::new(values).ok().map(|sample| mean(&sample))
        };
        let response_us = of(&|call, _| call.answered_us - call.sent_us)?;
        let bytes = of(&|call, _| {
            #[expect(clippy::cast_precision_loss, reason = "a mean size")]
            let bytes = call.bytes as f64;
            bytes
        })?;
        Some(Self {
            calls: alone.len(),
            kib: bytes.value / 1024.0,
            work,
            cycle_us: of(&|call, next_us| next_us - call.sent_us)?,
            client_us: of(&|call, next_us| next_us - call.answered_us)?,
            way_us: way.within(response_us.value),
            may_be_full: way.may_be_full && bytes.value >= BULK_BYTES as f64,
            response_us,
        })
    }

    /// What is left for the server.
    pub(super) fn server_us(&self) -> Interval {
        let of = |way_us: f64| (self.response_us.value - way_us).max(0.0);
        Interval { lo: of(self.way_us.hi), hi: of(self.way_us.lo) }
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        let (cycle_us, server_us) = (self.cycle_us.value, self.server_us());
        let without = |us: f64| cycle_us / (cycle_us - us).max(cycle_us / 1e3);
        let least = if self.may_be_full { 1.0 } else { one_server(cycle_us, server_us.hi) };
        let mut changes = vec![
            Change::between(What::WindowTimes4, (least, 4.0)),
            Change::between(
                What::HalfTheWay,
                (without(self.way_us.lo / 2.0), without(self.way_us.hi / 2.0)),
            ),
        ];
        if self.work == Work::Stable {
            changes.push(Change::between(What::UnstableWrites, (1.0, without(server_us.hi))));
        }
        changes
    }
}

/// By how many times calls come faster with four outstanding than with one, of a server that takes
/// one after the other for times that vary as exponential ones do: mean value analysis of a closed
/// network. Once where that has no solution.
fn one_server(cycle_us: f64, server_us: f64) -> f64 {
    let class = Class { callers: 4, think_us: (cycle_us - server_us).max(0.0) };
    let server = Center::new("server", Kind::Queue, &[server_us]);
    let solved = Network::new(vec![class], vec![server]).and_then(|network| network.solve());
    let per_s = solved.map_or(0.0, |solution| solution.throughput_per_s[0]);
    (per_s / 1e6 * cycle_us).clamp(1.0, 4.0)
}

/// The mean, with the interval of 95 of 100 by the normal distribution.
fn mean(sample: &Sample) -> Estimate {
    const NORMAL: f64 = 1.96;
    #[expect(clippy::cast_precision_loss, reason = "a count")]
    let count = sample.n() as f64;
    let mean = sample.mean();
    let off = NORMAL * sample.standard_deviation().unwrap_or(0.0) / count.sqrt();
    Estimate { value: mean, ci95: Some(Interval { lo: (mean - off).max(0.0), hi: mean + off }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls one after the other: `way + server` to the reply, `client` to the next.
    fn calls(count: usize, response_us: f64, client_us: f64, work: Work) -> Vec<Transaction> {
        (0..count)
            .map(|at| {
                let sent_us = at as f64 * (response_us + client_us);
                Transaction { sent_us, answered_us: sent_us + response_us, bytes: 8192, work }
            })
            .collect()
    }

    #[test]
    fn a_conversation_of_one_call_at_a_time_says_what_changes_give_between_bounds() {
        let way = Way {
            least_us: Some(200.0),
            median_us: Some(220.0),
            light_us: Some(260.0),
            ..Way::default()
        };
        let cycle = Cycle::of(&calls(100, 900.0, 100.0, Work::Stable), way).unwrap();
        let is = |value: f64, expected: f64| (value - expected).abs() < 1e-6;
        assert!(is(cycle.cycle_us.value, 1_000.0) && is(cycle.client_us.value, 100.0));
        let server_us = cycle.server_us();
        assert!(is(server_us.lo, 680.0) && is(server_us.hi, 700.0), "{server_us:?}");
        let changes = cycle.changes();
        let within = |what: What| {
            let change = changes.iter().find(|change| change.what == what).unwrap();
            change.interval.unwrap()
        };
        // One after the other: 700 us each, instead of 1,000, and seldom none.
        let (lo, hi) = within(What::WindowTimes4);
        assert!(lo < 1_000.0 / 700.0 && lo > 1.42 && hi == 4.0, "{lo}");
        let (lo, hi) = within(What::HalfTheWay);
        assert!((lo - 1_000.0 / 900.0).abs() < 1e-6 && (hi - 1_000.0 / 890.0).abs() < 1e-6);
        let (lo, hi) = within(What::UnstableWrites);
        assert!(lo == 1.0 && (hi - 1_000.0 / 300.0).abs() < 1e-6);
    }

    #[test]
    fn the_parts_of_a_cycle_are_together_the_cycle_however_they_vary() {
        let mut calls = calls(100, 900.0, 100.0, Work::Memory);
        // Every fifth takes five times as long, and all behind it come later.
        let mut later_us = 0.0;
        for (at, call) in calls.iter_mut().enumerate() {
            let more_us = if at % 5 == 0 { 3_600.0 } else { 0.0 };
            call.sent_us += later_us;
            later_us += more_us;
            call.answered_us += later_us;
        }
        let way = Way { least_us: Some(200.0), median_us: Some(200.0), ..Way::default() };
        let cycle = Cycle::of(&calls, way).unwrap();
        let parts = cycle.way_us.lo + cycle.server_us().hi + cycle.client_us.value;
        assert!((parts - cycle.cycle_us.value).abs() < 1e-6, "{cycle:?}");
        assert!((cycle.response_us.value - 1_620.0).abs() < 40.0, "{cycle:?}");
    }

    #[test]
    fn data_at_one_rate_may_be_all_that_a_link_carries_however_many_calls_are_outstanding() {
        let least = |may_be_full| {
            let way = Way { light_us: Some(50.0), may_be_full, ..Way::default() };
            let cycle = Cycle::of(&calls(100, 200.0, 1_600.0, Work::Memory), way).unwrap();
            cycle.changes()[0].interval.unwrap().0
        };
        assert_eq!(least(true), 1.0);
        assert!(least(false) > 3.0, "{}", least(false));
    }

    #[test]
    fn a_server_that_is_seldom_busy_gains_less_than_one_without_a_line() {
        // 5 ms of 18.6: by the exact solution 3.2 times, where four fit into the server's rate.
        let gain = one_server(18_600.0, 5_000.0);
        assert!((2.7..3.4).contains(&gain), "{gain}");
        assert!(one_server(1_000.0, 0.0) == 4.0 && one_server(1_000.0, 1_000.0) == 1.0);
    }

    #[test]
    fn without_acknowledgements_the_way_is_at_most_the_lightest_call() {
        let way = Way { light_us: Some(150.0), ..Way::default() };
        let cycle = Cycle::of(&calls(50, 900.0, 100.0, Work::Memory), way).unwrap();
        assert_eq!((cycle.way_us.lo, cycle.way_us.hi), (0.0, 150.0));
        assert_eq!(cycle.changes().len(), 2);
    }

    #[test]
    fn calls_that_overlap_have_no_cycle() {
        let mut overlapping = calls(100, 900.0, 100.0, Work::Memory);
        overlapping.iter_mut().for_each(|call| call.answered_us += 500.0);
        assert!(Cycle::of(&overlapping, Way::default()).is_none());
        assert!(Cycle::of(&calls(10, 900.0, 100.0, Work::Memory), Way::default()).is_none());
        assert!(Cycle::of(&[], Way::default()).is_none());
    }
}
