//! The tables of the report.

use std::cmp::Reverse;

use harness::records::known;
use perf::units::Nanos;
use report::Numbers;
use trace::{Analyzer, Flow, FlowId, Gap, Operation, OperationTotal, RttOf, Spread, Usage};

use super::{ms, sorted};
use crate::amounts::bytes;
use crate::screen::{longest, timed};
use crate::sides::{One, Side, sides};

/// Gaps in the table.
const GAPS_MAX: usize = 100;
/// Lines of the others.
const ROWS_MAX: usize = 20;

pub(super) fn all(analyzer: &Analyzer) -> Vec<Numbers> {
    let of_calls = [operations(analyzer), ends(analyzer), connections(analyzer), files(analyzer)];
    of_calls.into_iter().chain([gaps(analyzer), jumps(analyzer)]).collect()
}

fn operations(analyzer: &Analyzer) -> Numbers {
    Numbers::new(
        "Operations",
        "Response time from the call's last byte to the reply's last byte. No time: replies of \
         which the capture has lost either.",
        ["operation", "calls", "errors", "retransmitted", "bytes", "mean", "p50", "p99", "no time"],
        sorted(analyzer).into_iter().map(|(operation, total)| operation_row(operation, total)),
    )
}

fn operation_row(operation: Operation, total: &OperationTotal) -> [String; 9] {
    let [calls, errors, again, bytes, untimed] =
        [total.calls, total.errors, total.retransmissions, total.bytes, total.untimed]
            .map(|count| count.to_string());
    let mean = timed(total, total.latency_mean());
    let [p50, p99] = [0.5, 0.99].map(|share| known(total.latency_at(share)));
    [operation.to_string(), calls, errors, again, bytes, mean, p50, p99, untimed]
}

fn gaps(analyzer: &Analyzer) -> Numbers {
    Numbers::new(
        "Gaps",
        "Times in which a connection got no reply, much longer than usual: the longest first. \
         Frames: those of the replies before and behind, as Wireshark counts.",
        ["at (ms)", "long", "cause", "outstanding", "retransmitted", "frames", "connection"],
        longest(analyzer).iter().take(GAPS_MAX).map(|(id, gap)| gap_row(analyzer, *id, gap)),
    )
}

fn gap_row(analyzer: &Analyzer, id: FlowId, gap: &Gap) -> [String; 7] {
    [
        format!("{:.3}", ms(analyzer, gap.begin_ns)),
        Nanos::from_nanos(gap.ns()).to_string(),
        gap.cause.name().to_owned(),
        gap.outstanding.to_string(),
        gap.retransmissions.to_string(),
        format!("{} to {}", gap.begin_frame, gap.end_frame),
        analyzer.flows().name(id),
    ]
}

/// Clients and servers, each with all of its connections.
fn ends(analyzer: &Analyzer) -> Numbers {
    let rows = [("client", Side::Clients), ("server", Side::Servers)].map(|(word, side)| {
        sides(analyzer, side).into_iter().take(ROWS_MAX).map(move |one| end_row(word, &one))
    });
    Numbers::new(
        "Clients and servers",
        "Those with the most calls, with their response times.",
        ["", "connections", "calls", "errors", "data", "p50", "p99"],
        rows.into_iter().flatten(),
    )
}

fn end_row(word: &str, One { name, connections, tallies }: &One) -> [String; 7] {
    let total = tallies.total();
    let [connections, calls, errors] =
        [*connections, total.calls(), total.errors].map(|count| count.to_string());
    let [p50, p99] = [0.5, 0.99].map(|share| known(total.latency.quantile_if_known(share)));
    [format!("{word} {name}"), connections, calls, errors, bytes(total.bytes), p50, p99]
}

fn connections(analyzer: &Analyzer) -> Numbers {
    let calls = |flow: &Flow| flow.tallies.total().calls();
    let flows = analyzer.flows().admitted().map(|(id, flow)| (calls(flow), id, flow));
    let mut flows: Vec<(u64, FlowId, &Flow)> = flows.collect();
    flows.sort_by_key(|(calls, id, _)| (Reverse(*calls), *id));
    Numbers::new(
        "Connections",
        "Medians. One outstanding: the share of the time with calls outstanding in which it was \
         exactly one. Round trip: until the server acknowledges.",
        CONNECTION_COLUMNS,
        flows
            .into_iter()
            .take(ROWS_MAX)
            .map(|(calls, id, flow)| connection(analyzer, calls, id, flow)),
    )
}

const CONNECTION_COLUMNS: [&str; 9] = [
    "connection",
    "calls",
    "one outstanding",
    "at most",
    "WRITE cycle",
    "READ cycle",
    "think time",
    "round trip",
    "gaps",
];

fn connection(analyzer: &Analyzer, calls: u64, id: FlowId, flow: &Flow) -> [String; 9] {
    let pace = &flow.pace;
    let one = pace.stop_and_wait().map(|share| format!("{:.0} %", share * 100.0));
    let rtt = analyzer.flows().round_trip(id);
    [
        analyzer.flows().name(id),
        calls.to_string(),
        one.unwrap_or_else(|| "-".to_owned()),
        pace.outstanding_max.to_string(),
        median(Some(&pace.write_cycle)),
        median(Some(&pace.read_cycle)),
        median(Some(&pace.think)),
        median(rtt.map(|rtt| rtt.times(RttOf::Server))),
        pace.by_cause.iter().map(|(count, _)| count).sum::<u64>().to_string(),
    ]
}

fn median(spread: Option<&Spread>) -> String {
    let counted = spread.filter(|spread| spread.count() > 0);
    counted.map_or_else(|| "-".to_owned(), |spread| spread.quantile(0.5).to_string())
}

fn files(analyzer: &Analyzer) -> Numbers {
    let busiest = analyzer.files().busiest(ROWS_MAX).into_iter();
    Numbers::new(
        "Files",
        "Those with the most data. Response times within a fifth.",
        ["file", "calls", "errors", "read", "written", "p50", "p99"],
        busiest.map(|(id, usage)| file_row(analyzer.files().path(id), &usage)),
    )
}

fn file_row(path: String, usage: &Usage) -> [String; 7] {
    let [calls, errors] = [usage.calls, usage.errors].map(|count| count.to_string());
    let [read, written] = [usage.read_bytes, usage.written_bytes].map(bytes);
    let [p50, p99] = [0.5, 0.99].map(|share| known(usage.latency_at(share)));
    [path, calls, errors, read, written, p50, p99]
}

fn jumps(analyzer: &Analyzer) -> Numbers {
    let hosts = analyzer.flows().round_trips();
    let mut jumps: Vec<_> = hosts
        .flat_map(|(name, rtt)| rtt.jumps().into_iter().map(move |jump| (jump, name.clone())))
        .collect();
    jumps.sort_by_key(|(jump, _)| jump.at_ns);
    let rows = jumps.into_iter().take(GAPS_MAX).map(|(jump, name)| {
        let [from, to] =
            [jump.before_ns, jump.after_ns].map(|ns| Nanos::from_nanos(ns).to_string());
        [format!("{:.3}", ms(analyzer, jump.at_ns)), name, jump.of.name().to_owned(), from, to]
    });
    let columns = ["at (ms)", "hosts", "by", "from", "to"];
    Numbers::new("Jumps of the round trip", "Lasting changes, by half and more.", columns, rows)
}
