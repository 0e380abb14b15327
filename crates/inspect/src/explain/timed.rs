//! The transactions that an explanation is made from.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

use perf::model::least_squares::FitError;
use perf::model::trace::{Explained, TRANSACTIONS_MAX, Transaction as Timed, Work};
use perf::units::Nanos;
use trace::capture::End;
use trace::verdict::SideNumbers;
use trace::{Flows, Hosts, Kind, RttOf, Transaction};

use super::Explanation;
use super::cycle::{Cycle, Way};

/// Clients and servers whose transactions are timed, until it is known which of them are busiest.
const PAIRS_MAX: usize = 256;
/// Transactions that are stored of all of them: some 13 MB.
const TIMED_MAX: usize = 16 * TRANSACTIONS_MAX;

/// The first transactions of every client with every server, over all of its connections: the calls
/// of one wait for those of the others.
#[derive(Debug, Default)]
pub(crate) struct TimedPairs {
    pairs: HashMap<Pair, Timings>,
    count: usize,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Pair {
    client: IpAddr,
    server: End,
}

#[derive(Debug, Default)]
struct Timings {
    calls: u64,
    first: Vec<Timed>,
}

impl TimedPairs {
    pub(crate) fn keep(&mut self, transaction: &Transaction, begin_ns: u64, flows: &Flows) {
        let operation = transaction.operation;
        let is_of_files = operation.program.is_nfs() && operation.name() != "NULL";
        let has_size = matches!(operation.kind(), Kind::Read | Kind::Write);
        // Where the capture lost an end of it, nothing is known of its time.
        if !is_of_files || transaction.latency().is_none() || (has_size && !transaction.is_sized) {
            return;
        }
        let Some(ends) = flows.get(transaction.flow).and_then(|flow| flow.ends) else { return };
        let pair = Pair { client: ends.client.ip(), server: ends.server };
        if self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&pair) {
            return;
        }
        let timings = self.pairs.entry(pair).or_default();
        timings.calls += 1;
        if timings.first.len() >= TRANSACTIONS_MAX || self.count >= TIMED_MAX {
            return;
        }
        let timed = timed(transaction, begin_ns);
        if timed.answered_us > timed.sent_us {
            timings.first.push(timed);
            self.count += 1;
        }
    }

    /// The model of the busiest client and server.
    pub(crate) fn explained(self, flows: &Flows) -> Explanation {
        let all = self.pairs.into_iter();
        let busiest = all.max_by_key(|(pair, timings)| (timings.calls, Reverse(*pair)));
        let Some((pair, mut timings)) = busiest else {
            let model = Err("there are no NFS calls whose sizes and times are known".to_owned());
            let (of, way) = (String::new(), Way::default());
            return Explanation { of, model, way, cycle: None, seen_per_s: 0.0 };
        };
        timings.first.sort_by(|a, b| a.sent_us.total_cmp(&b.sent_us));
        let model = Explained::from(&timings.first).map_err(|error| match error {
            // Its rows are groups of calls that nobody has seen.
            FitError::Bad { deviation, tolerated, .. } => unlike(deviation, tolerated),
            error => error.to_string(),
        });
        let found = model.iter().flat_map(|model| &model.fitted.parameters);
        let mut found = found.filter(|found| found.name == "way" && !found.at_bound);
        let fitted_us = found.next().and_then(|found| found.estimate.ci95);
        let way = Way { fitted_us, ..pair.way(flows) };
        let cycle = Cycle::of(&timings.first, way);
        let Pair { client, server } = pair;
        let of = format!("{client} -> {server}");
        Explanation { of, model, way, cycle, seen_per_s: seen_per_s(&timings.first) }
    }
}

fn timed(transaction: &Transaction, begin_ns: u64) -> Timed {
    let kind = transaction.operation.kind();
    let is_stable = kind == Kind::Commit || (kind == Kind::Write && transaction.stable > 0);
    let us = |ns: u64| Nanos::from_nanos(ns.saturating_sub(begin_ns)).as_micros_f64();
    Timed {
        sent_us: us(transaction.call_ns),
        answered_us: us(transaction.reply_ns),
        bytes: transaction.bytes.into(),
        work: if is_stable { Work::Stable } else { Work::Memory },
    }
}

/// No servers with a line before them answer so.
fn unlike(deviation: f64, tolerated: f64) -> String {
    let off = match deviation.exp_m1() * 100.0 {
        percent if percent > 100.0 => "by more than twice".to_owned(),
        percent => format!("by {percent:.0} %"),
    };
    format!(
        "calls that are alike took {off} another time than any server with a line of calls before \
         it would take ({:.0} % are tolerated)",
        tolerated * 100.0
    )
}

/// Calls a second, over the time in which there were any; in the order in which they were sent.
fn seen_per_s(calls: &[Timed]) -> f64 {
    let (mut busy_us, mut until_us) = (0.0, f64::NEG_INFINITY);
    for call in calls {
        busy_us += (call.answered_us - call.sent_us.max(until_us)).max(0.0);
        until_us = until_us.max(call.answered_us);
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = calls.len() as f64 / (busy_us / 1e6).max(1e-9);
    rate
}

impl Pair {
    /// Whether the end that sends more does so at one rate.
    fn may_be_full(self, flows: &Flows) -> bool {
        let is_own = |hosts: Hosts| hosts.client() == self.client && hosts.server == self.server;
        let own = flows.pairs().find(|(pair, _)| pair.hosts.is_some_and(is_own));
        own.is_some_and(|(pair, _)| {
            let sides = pair.sides.each_ref().map(SideNumbers::of);
            let most = sides.into_iter().max_by_key(|side| side.bytes);
            most.is_some_and(|side| side.is_at_one_rate(pair.pace.waited.all()))
        })
    }

    /// What acknowledgements say of the way.
    fn way(self, flows: &Flows) -> Way {
        let mut own = flows.iter().filter(|(_, flow)| {
            flow.ends.is_some_and(|e| e.client.ip() == self.client && e.server == self.server)
        });
        let rtt = own.next().and_then(|(id, _)| flows.round_trip(id));
        let us = |of: RttOf, q: f64| {
            let times = rtt.map(|rtt| rtt.times(of)).filter(|times| times.count() > 0)?;
            Some(if q > 0.0 { times.quantile(q) } else { times.min() }.as_micros_f64())
        };
        // The client's end of the way is next to nothing where the client was captured.
        let client_us = us(RttOf::Client, 0.0).unwrap_or(0.0);
        Way {
            least_us: us(RttOf::Server, 0.0).map(|us| us + client_us),
            median_us: us(RttOf::Server, 0.5).map(|us| us + client_us),
            light_us: us(RttOf::Replies, 0.0),
            fitted_us: None,
            may_be_full: self.may_be_full(flows),
        }
    }
}
