//! The gain of a larger window, a shorter way or unstable WRITEs: the cycle model and the server
//! behind it, from the transactions of the busiest client and server.

mod changes;
mod cycle;
mod timed;

use std::fmt::Write;

use perf::model::least_squares::Found;
use perf::model::trace::{Explained, Group, Work};
use perf::stats::{Estimate, Interval};
use serde_json::{Map, Value, json};

use self::changes::{Change, Queue};
use self::cycle::{Cycle, Way};
pub(super) use self::timed::TimedPairs;

/// The busiest client with its server, explained.
#[derive(Debug)]
pub(super) struct Explanation {
    of: String,
    /// The servers that answer so, or why there are none.
    model: Result<Explained, String>,
    /// What is known of the network besides.
    way: Way,
    /// Where calls were made one at a time, mostly.
    cycle: Option<Cycle>,
    /// Calls a second, while there were any.
    seen_per_s: f64,
}

impl Explanation {
    /// What changes would give: by the model, or where it has no answer by the cycle alone.
    fn changes(&self) -> Vec<Change> {
        let fitted =
            self.model.as_ref().map(|model| changes::changes(model, self.way)).unwrap_or_default();
        match (&self.cycle, fitted.is_empty()) {
            (Some(cycle), true) => cycle.changes(),
            _ => fitted,
        }
    }

    /// The calls whose changes are predicted.
    fn frequent(&self) -> Option<String> {
        let Group { kib, outstanding, .. } = changes::frequent(self.model.as_ref().ok()?)?;
        let what = "for the most frequent calls, of";
        Some(format!("{what} {kib:.1} KiB with {outstanding} outstanding:"))
    }

    fn queue(&self) -> Option<Queue> {
        Queue::of(self.model.as_ref().ok()?, self.seen_per_s)
    }
}

/// An interval of more than ten times either way identifies nothing, nor does the end of what is
/// possible.
fn is_identified(found: &Found) -> bool {
    !found.at_bound && is_known(&found.estimate)
}

fn is_known(estimate: &Estimate) -> bool {
    const WIDEST: f64 = 100.0;
    estimate.ci95.is_some_and(|ci| ci.hi.is_finite() && ci.hi <= ci.lo * WIDEST)
}

fn estimate(estimate: &Estimate) -> String {
    match estimate.ci95 {
        Some(ci) => format!("{:.1} us ({:.1} to {:.1})", estimate.value, ci.lo, ci.hi),
        None => format!("{:.1} us", estimate.value),
    }
}

fn between(interval: Interval) -> String {
    format!("{:.1} to {:.1} us", interval.lo, interval.hi)
}

/// The parameters, and the gains of changes, as lines.
pub(super) fn lines(explanation: &Explanation) -> String {
    let mut out = format!("\nmodel       {}\n", explanation.of);
    let mut line = |line: String| {
        writeln!(out, "            {line}").ok();
    };
    line(match &explanation.model {
        Ok(explained) => parameters(explained) + &of_the_network(explained, &explanation.way),
        Err(why) => format!("none fits: {why}"),
    });
    explanation.cycle.iter().for_each(|cycle| line(parts(cycle)));
    explanation.queue().iter().for_each(|queue| line(saturation(queue)));
    let changes = explanation.changes();
    explanation.frequent().filter(|_| !changes.is_empty()).into_iter().for_each(&mut line);
    changes.iter().for_each(|change| line(change.text()));
    if changes.is_empty() {
        line("the gains of changes are not known: no limit was seen".to_owned());
    }
    for parameter in explanation.model.iter().flat_map(Explained::unidentified) {
        line(format!("not shown: {parameter}"));
    }
    out
}

fn parameters(explained: &Explained) -> String {
    let found = explained.fitted.parameters.iter().map(|found| match is_identified(found) {
        true => format!("{} {}", found.name, estimate(&found.estimate)),
        false => format!("{} is not shown by these calls", found.name),
    });
    let found: Vec<String> = found.collect();
    let (least, most) = explained.servers_range;
    let most = most.map_or_else(|| "or more".to_owned(), |most| format!("to {most}"));
    format!("{} calls at once ({least} {most}); {}", explained.servers, found.join(", "))
}

/// What of the way is the network's, where the network is known to take less.
fn of_the_network(explained: &Explained, way: &Way) -> String {
    let fitted_us = explained.fitted.value("way").unwrap_or(0.0);
    let network = way.measured().filter(|network| network.hi < fitted_us);
    network.map_or_else(String::new, |us| format!("; of the way the network takes {}", between(us)))
}

fn parts(cycle: &Cycle) -> String {
    let [all, client] = [&cycle.cycle_us, &cycle.client_us].map(estimate);
    let [way, server] = [cycle.way_us, cycle.server_us()].map(between);
    let full = if cycle.may_be_full { ", in any of which a full link may be" } else { "" };
    format!(
        "cycle of {:.1} KiB, one call at a time: {all} = way {way} + server {server} + client \
         {client}{full}",
        cycle.kib
    )
}

fn saturation(queue: &Queue) -> String {
    let Queue { servers, service_us, saturation_per_s, seen_per_s, measured_us, .. } = queue;
    let response = match queue.response_us {
        Some(us) => {
            format!("at the {seen_per_s:.0}/s that came {us:.1} us (measured {measured_us:.1})")
        }
        None => format!("the {seen_per_s:.0}/s that came saturate it"),
    };
    format!(
        "as M/M/{servers}: {service_us:.1} us of a server for each call, {saturation_per_s:.0} \
         calls/s at most; {response}"
    )
}

pub(super) fn json(explanation: &Explanation) -> Value {
    let changes = explanation.changes().into_iter().map(|change| {
        let within = change.interval.map(|(lo, hi)| json!([lo, hi]));
        (change.what.name().to_owned(), json!({ "factor": change.factor, "interval": within }))
    });
    let mut value = match &explanation.model {
        Ok(explained) => model_json(explained),
        Err(why) => json!({ "none": why }),
    };
    value["of"] = json!(explanation.of);
    value["cycle"] = json!(explanation.cycle.as_ref().map(cycle_json));
    value["queue"] = json!(explanation.queue().as_ref().map(queue_json));
    value["changes"] = Value::Object(changes.collect());
    value
}

fn us(estimate: &Estimate) -> Value {
    let ci = estimate.ci95.map(|ci| json!([ci.lo, ci.hi]));
    json!({ "value_us": estimate.value, "ci95_us": ci })
}

fn model_json(explained: &Explained) -> Value {
    let value = |found: &Found| match is_identified(found) {
        true => us(&found.estimate),
        false => Value::Null,
    };
    let found = explained.fitted.parameters.iter();
    let parameters: Map<String, Value> =
        found.map(|found| (found.name.to_owned(), value(found))).collect();
    json!({
        "servers": explained.servers,
        "servers_range": [explained.servers_range.0, explained.servers_range.1],
        "transactions": explained.transactions,
        "typical_error": explained.fitted.deviation,
        "parameters": parameters,
        "not_shown": explained.unidentified(),
    })
}

fn cycle_json(cycle: &Cycle) -> Value {
    let server_us = cycle.server_us();
    json!({
        "cycles": cycle.calls,
        "kib": cycle.kib,
        "stable": cycle.work == Work::Stable,
        "cycle": us(&cycle.cycle_us),
        "response": us(&cycle.response_us),
        "client": us(&cycle.client_us),
        "way_us": [cycle.way_us.lo, cycle.way_us.hi],
        "server_us": [server_us.lo, server_us.hi],
    })
}

fn queue_json(queue: &Queue) -> Value {
    json!({
        "servers": queue.servers,
        "service_us": queue.service_us,
        "saturation_per_s": queue.saturation_per_s,
        "seen_per_s": queue.seen_per_s,
        "response_us": queue.response_us,
        "measured_us": queue.measured_us,
    })
}
