//! What a larger window, a shorter way or unstable WRITEs would give: the cycle model and the
//! server behind it, from the transactions of the busiest connection.

use std::collections::VecDeque;
use std::fmt::Write;

use analyze::trace::{Kind, TalkId, Transaction};
use perf::model::trace::{Explained, TRANSACTIONS_MAX, Transaction as Timed, Work};
use perf::stats::Estimate;
use perf::units::Nanos;
use serde_json::{Map, Value, json};

/// Transactions of the connection that is explained: those that come first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Of each connection until one has enough.
    transactions: VecDeque<(TalkId, Timed)>,
}

/// What is kept of all connections, before the busiest is known.
const KEPT_MAX: usize = 4 * TRANSACTIONS_MAX;

impl Kept {
    pub(super) fn keep(&mut self, transaction: &Transaction, begin_ns: u64) {
        let kind = transaction.operation.kind();
        if self.transactions.len() >= KEPT_MAX || transaction.operation.name() == "NULL" {
            return;
        }
        let us = |ns: u64| Nanos::from_nanos(ns.saturating_sub(begin_ns)).as_micros_f64();
        let is_stable = kind == Kind::Commit || (kind == Kind::Write && transaction.stable > 0);
        let timed = Timed {
            sent_us: us(transaction.call_ns),
            answered_us: us(transaction.reply_ns),
            bytes: transaction.bytes.into(),
            work: if is_stable { Work::Stable } else { Work::Memory },
        };
        if timed.answered_us > timed.sent_us {
            self.transactions.push_back((transaction.talk, timed));
        }
    }

    /// The model of one connection's transactions; or why there is none.
    pub(super) fn explained(&self, talk: TalkId) -> Result<Explained, String> {
        let own = self.transactions.iter().filter(|(id, _)| *id == talk);
        let mut own: Vec<Timed> = own.map(|(_, timed)| *timed).collect();
        own.sort_by(|a, b| a.sent_us.total_cmp(&b.sent_us));
        own.truncate(TRANSACTIONS_MAX);
        Explained::from(&own).map_err(|error| error.to_string())
    }
}

fn estimate(estimate: &Estimate) -> String {
    match estimate.ci95 {
        Some(ci) => format!("{:.1} us ({:.1} to {:.1})", estimate.value, ci.lo, ci.hi),
        None => format!("{:.1} us", estimate.value),
    }
}

/// The parameters, and what changes would give, as lines.
pub(super) fn lines(explained: &Result<Explained, String>) -> String {
    let mut out = String::new();
    let explained = match explained {
        Ok(explained) => explained,
        Err(why) => {
            writeln!(out, "\nmodel       none fits: {why}").ok();
            return out;
        }
    };
    let found: Vec<String> = explained
        .fitted
        .parameters
        .iter()
        .map(|found| format!("{} {}", found.name, estimate(&found.estimate)))
        .collect();
    let servers = explained.servers;
    writeln!(out, "\nmodel       {servers} at once; {}", found.join(", ")).ok();
    let changes = changes(explained);
    for change in &changes {
        writeln!(out, "            {}", change.text).ok();
    }
    if changes.is_empty() {
        writeln!(out, "            what changes would give is not known: no limit was seen").ok();
    }
    for said in explained.unidentified() {
        writeln!(out, "            not shown: {said}").ok();
    }
    out
}

/// A change, and by which factor calls of the most frequent group would come faster.
struct Change {
    name: &'static str,
    text: String,
    factor: f64,
    interval: Option<(f64, f64)>,
}

/// Calls a second with `window` outstanding: never more than the way lets through, or the servers.
fn rate(way_us: f64, demand_us: f64, servers: f64, window: f64) -> f64 {
    (window / (way_us + demand_us)).min(servers / demand_us)
}

fn changes(explained: &Explained) -> Vec<Change> {
    let Some(group) = explained.groups.iter().max_by_key(|group| group.calls) else {
        return Vec::new();
    };
    let find = |name: &str| {
        explained.fitted.parameters.iter().find(|found| found.name == name).map(|p| &p.estimate)
    };
    // The value, and the two ends of its interval.
    let ends = |name: &str| -> [f64; 3] {
        find(name).map_or([0.0; 3], |estimate| {
            let ci = estimate.ci95;
            let (lo, hi) = ci.map_or((estimate.value, estimate.value), |ci| (ci.lo, ci.hi));
            [estimate.value, lo.max(0.0), hi.max(0.0)]
        })
    };
    let (way, op, ser, block) = (ends("way"), ends("op"), ends("ser"), ends("block"));
    let is_stable = group.work == Work::Stable;
    // What went to the end of what is possible was not found: no limit of the server was seen.
    let is_found = |name: &str| find(name).is_none_or(|estimate| estimate.ci95.is_some());
    if !is_found("way") || !is_found("op") || (is_stable && !is_found("block")) {
        return Vec::new();
    }
    let (servers, window) = (f64::from(explained.servers), f64::from(group.outstanding));
    let factor = |at: usize, way_share: f64, window_times: f64, without_block: bool| {
        let memory = op[at] + group.kib * ser[at];
        let before = memory + if is_stable { block[at] } else { 0.0 };
        let after = if without_block { memory } else { before };
        let now = rate(way[at], before, servers, window);
        rate(way[at] * way_share, after, servers, window * window_times) / now
    };
    let change = |name, text: &str, way_share, window_times, without_block| {
        let of = |at| factor(at, way_share, window_times, without_block);
        let all = [of(0), of(1), of(2)];
        let has_interval = find("way").is_some_and(|way| way.ci95.is_some());
        let lo = all.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = all.iter().copied().fold(0.0, f64::max);
        let interval = has_interval.then_some((lo, hi));
        let within = interval.map_or(String::new(), |(lo, hi)| format!(" ({lo:.2} to {hi:.2})"));
        let text = format!("{text}: {:.2} times the calls{within}", all[0]);
        Change { name, text, factor: all[0], interval }
    };
    let mut changes = vec![
        change("window_times_4", "four times the calls outstanding", 1.0, 4.0, false),
        change("half_the_way", "half the way there and back", 0.5, 1.0, false),
    ];
    if is_stable {
        changes.push(change("unstable_writes", "unstable WRITEs instead", 1.0, 1.0, true));
    }
    changes.retain(|change| change.factor.is_finite());
    changes
}

pub(super) fn json(explained: &Result<Explained, String>) -> Value {
    let explained = match explained {
        Ok(explained) => explained,
        Err(why) => return json!({ "none": why }),
    };
    let parameters: Map<String, Value> = explained
        .fitted
        .parameters
        .iter()
        .map(|found| {
            let ci = found.estimate.ci95.map(|ci| json!([ci.lo, ci.hi]));
            (found.name.to_owned(), json!({ "value_us": found.estimate.value, "ci95_us": ci }))
        })
        .collect();
    let changes: Map<String, Value> = changes(explained)
        .into_iter()
        .map(|change| {
            let within = change.interval.map(|(lo, hi)| json!([lo, hi]));
            (change.name.to_owned(), json!({ "factor": change.factor, "interval": within }))
        })
        .collect();
    json!({
        "servers": explained.servers,
        "transactions": explained.transactions,
        "typical_error": explained.fitted.deviation,
        "parameters": parameters,
        "changes": changes,
        "not_shown": explained.unidentified(),
    })
}
