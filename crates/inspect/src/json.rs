//! `--json`: everything that was counted.

use perf::units::Nanos;
use serde_json::{Map, Value, json};
use trace::{
    Analyzer, Cause, FileId, Files, Flow, FlowId, Gap, Jump, Operation, OperationTotal, Pace,
    Phase, Rtt, RttOf, Spread, Tallies, Tally, Usage,
};
use wire::show::Hex;

use super::sides::{One, Side, sides};
use crate::seen::Seen;

/// Files that are listed.
const FILES_MAX: usize = 1000;

pub(super) fn text(seen: &Seen) -> String {
    let analyzer = &seen.analyzer;
    let (first, last) = analyzer.span_ns();
    let (connections, forgotten) = analyzer.connections();
    let others: Map<String, Value> =
        analyzer.others().map(|(sort, count)| (sort.to_owned(), json!(count))).collect();
    let totals = analyzer.totals();
    let value = json!({
        "capture": {
            "files": seen.files.len(),
            "packets": analyzer.packets(),
            "bytes": seen.bytes,
            "first_s": seconds(first),
            "span_s": seconds(last.saturating_sub(first)),
            "notes": seen.notes,
            "dropped_packets": seen.dropped,
            "copied_packets": analyzer.copies().0,
            "read_at": super::screen::read_at(seen),
            "connections_followed": connections,
            "connections_forgotten": forgotten,
            "connections_unread": analyzer.unread_connections(),
            "connections_one_way": analyzer.one_way(),
            "clock_set_back": analyzer.set_back().times,
            "clock_set_back_s": seconds(analyzer.set_back().ns),
            "first_fragments_alone": analyzer.first_fragments(),
            "cut_packets": analyzer.cut().packets,
            "captured_bytes_max": analyzer.cut().captured_max,
            "other_packets": others,
        },
        "verdict": super::verdict::value(seen),
        "calls": totals.calls(),
        "replies": totals.replies(),
        "unanswered": totals.unanswered,
        "unfollowed": totals.unfollowed,
        "passed_on": totals.passed_on,
        "operations": operations(analyzer),
        "v4_operations": v4_operations(analyzer),
        "v4_cut": totals.v4_cut,
        "sync": {
            "unstable": totals.sync.writes[0],
            "data_sync": totals.sync.writes[1],
            "file_sync": totals.sync.writes[2],
            "commits": totals.sync.commits,
            "small_writes": totals.sync.small_writes,
            "not_captured": totals.sync.unknown,
            "written_bytes": totals.sync.written_bytes,
        },
        "rpcsec_gss": {
            "authentication": totals.guards.authentication,
            "integrity": totals.guards.integrity,
            "privacy": totals.guards.privacy,
        },
        "clients": ends(analyzer, Side::Clients),
        "servers": ends(analyzer, Side::Servers),
        "connections": analyzer.flows().admitted().map(|(id, flow)| one(analyzer, id, flow, first))
            .collect::<Vec<Value>>(),
        "files": files(analyzer),
        "model": seen.explained.as_ref().map(super::explain::json),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn operations(analyzer: &Analyzer) -> Vec<Value> {
    let all = analyzer.totals().operations();
    all.map(|(operation, total)| self::operation(operation, total)).collect()
}

fn operation(operation: Operation, total: &OperationTotal) -> Value {
    json!({
        "program": operation.program.name(),
        "operation": operation.name(),
        "calls": total.calls,
        "replies": total.replies,
        "untimed": total.untimed,
        "errors": total.errors,
        "bytes": total.bytes,
        "retransmissions": total.retransmissions,
        "latency_us": (total.timed() > 0).then(|| latency_us(total)),
    })
}

fn latency_us(total: &OperationTotal) -> Value {
    let at = |q: f64| total.latency_at(q).map(Nanos::as_micros_f64);
    json!({
        "mean": mean_us(total.latency_ns_sum, total.timed()),
        "min": us(total.latency_ns_min),
        "p50": at(0.5),
        "p90": at(0.9),
        "p95": at(0.95),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": us(total.latency_ns_max),
        "histogram": total.latency.to_base64(),
    })
}

fn v4_operations(analyzer: &Analyzer) -> Map<String, Value> {
    let counts = analyzer.totals().v4_operations.iter().enumerate();
    let counts = counts.filter(|(_, count)| **count > 0);
    counts.map(|(number, count)| (Operation::v4(number).name().to_owned(), json!(count))).collect()
}

fn ends(analyzer: &Analyzer, side: Side) -> Vec<Value> {
    let all = sides(analyzer, side).into_iter();
    all.map(|One { name, connections, tallies }| {
        json!({ "address": name, "connections": connections, "operations": tally(&tallies) })
    })
    .collect()
}

fn one(analyzer: &Analyzer, id: FlowId, flow: &Flow, begin_ns: u64) -> Value {
    let pace = &flow.pace;
    let (none, one, more) = pace.time_with();
    let causes = Cause::ALL.iter().zip(pace.by_cause).filter(|(_, (count, _))| *count > 0);
    let causes = causes.map(|(cause, (count, ns))| {
        (cause.name().to_owned(), json!({ "count": count, "span_s": seconds(ns) }))
    });
    json!({
        "name": analyzer.flows().name(id),
        "operations": tally(&flow.tallies),
        "retransmissions": flow.retransmissions,
        "duplicate_replies": flow.duplicate_replies,
        "unasked_replies": flow.unsolicited_replies,
        "passed_on": flow.passed_on,
        "passed_from": flow.passed_from.map(|from| analyzer.flows().name(from)),
        "unanswered": flow.unanswered,
        "tls": flow.tls,
        "tcp": {
            "segments": flow.streams.segments,
            "segments_again": flow.streams.again,
            "segments_filled": flow.streams.filled,
            "segments_early": flow.streams.early,
            "bytes_missing": flow.streams.missing_bytes,
            "resyncs": flow.streams.resyncs,
            "cut": flow.streams.cut,
        },
        "pace": {
            "stop_and_wait": pace.stop_and_wait(),
            "idle_s": seconds(none),
            "one_outstanding_s": seconds(one),
            "more_outstanding_s": seconds(more),
            "outstanding_max": pace.outstanding_max,
            "think_us": spread(&pace.think),
            "read_cycle_us": spread(&pace.read_cycle),
            "write_cycle_us": spread(&pace.write_cycle),
        },
        "round_trip": analyzer.flows().round_trip(id).map(|rtt| round_trip(rtt, begin_ns)),
        "gap_causes": causes.collect::<Map<String, Value>>(),
        "gaps": gaps(pace, begin_ns),
        "phases": phases(pace, flow.first_ns, begin_ns),
    })
}

fn gaps(pace: &Pace, begin_ns: u64) -> Vec<Value> {
    pace.gaps.iter().map(|gap| self::gap(gap, begin_ns)).collect()
}

fn gap(gap: &Gap, begin_ns: u64) -> Value {
    json!({
        "begin_s": seconds(gap.begin_ns.saturating_sub(begin_ns)),
        "span_s": seconds(gap.ns()),
        "cause": gap.cause.name(),
        "outstanding": gap.outstanding,
        "retransmissions": gap.retransmissions,
        "begin_frame": gap.begin_frame,
        "end_frame": gap.end_frame,
        "moved_bytes": gap.before.moved_bytes,
    })
}

fn phases(pace: &Pace, first_ns: u64, begin_ns: u64) -> Vec<Value> {
    pace.phases(first_ns).iter().map(|phase| self::phase(phase, begin_ns)).collect()
}

fn phase(phase: &Phase, begin_ns: u64) -> Value {
    json!({
        "begin_s": seconds(phase.begin_ns.saturating_sub(begin_ns)),
        "span_s": seconds(phase.end_ns.saturating_sub(phase.begin_ns)),
        "replies": phase.done.replies,
        "bytes": phase.done.moved_bytes,
        "bytes_per_s": phase.bytes_per_s(),
        "stop_and_wait": phase.stop_and_wait(),
        "turn_us": phase.turn_ns().map(us),
    })
}

/// Of a connection's hosts.
fn round_trip(rtt: &Rtt, begin_ns: u64) -> Value {
    json!({
        "server_acknowledges_us": spread(rtt.times(RttOf::Server)),
        "client_acknowledges_us": spread(rtt.times(RttOf::Client)),
        "light_calls_us": spread(rtt.times(RttOf::Replies)),
        "jumps": rtt.jumps().iter().map(|jump| self::jump(jump, begin_ns)).collect::<Vec<_>>(),
    })
}

fn jump(jump: &Jump, begin_ns: u64) -> Value {
    json!({
        "of": jump.of.name(),
        "at_s": seconds(jump.at_ns.saturating_sub(begin_ns)),
        "before_us": us(jump.before_ns),
        "after_us": us(jump.after_ns),
    })
}

fn tally(tallies: &Tallies) -> Vec<Value> {
    let mut all: Vec<_> = tallies.iter().collect();
    all.sort_by_key(|(operation, _)| *operation);
    all.into_iter().map(|(operation, tally)| tallied(operation, tally)).collect()
}

fn tallied(operation: Operation, tally: &Tally) -> Value {
    json!({
        "program": operation.program.name(),
        "operation": operation.name(),
        "replies": tally.calls(),
        "untimed": tally.untimed,
        "errors": tally.errors,
        "bytes": tally.bytes,
        "retransmissions": tally.retransmissions,
        "latency_us": spread(&tally.latency),
    })
}

fn spread(spread: &Spread) -> Value {
    if spread.count() == 0 {
        return Value::Null;
    }
    let us = |q: f64| spread.quantile(q).as_micros_f64();
    json!({
        "count": spread.count(),
        "mean": spread.mean().as_micros_f64(),
        "min": spread.min().as_micros_f64(),
        "p25": us(0.25),
        "p50": us(0.5),
        "p75": us(0.75),
        "p95": us(0.95),
        "p99": us(0.99),
        "max": spread.max().as_micros_f64(),
    })
}

fn files(analyzer: &Analyzer) -> Vec<Value> {
    let busiest = analyzer.files().busiest(FILES_MAX).into_iter();
    busiest.map(|(id, usage)| file(analyzer.files(), id, &usage)).collect()
}

fn file(files: &Files, id: FileId, usage: &Usage) -> Value {
    json!({
        "path": files.path(id),
        "handle": Hex(files.handle(id)).to_string(),
        "calls": usage.calls,
        "errors": usage.errors,
        "read_bytes": usage.read_bytes,
        "written_bytes": usage.written_bytes,
        "latency_us_mean": mean_us(usage.latency_ns_sum, usage.timed),
        "latency_us_p50": usage.latency_at(0.5).map(Nanos::as_micros_f64),
        "latency_us_p99": usage.latency_at(0.99).map(Nanos::as_micros_f64),
        "latency_us_max": us(usage.latency_ns_max),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn mean_us(sum_ns: u64, count: u64) -> f64 {
    sum_ns as f64 / 1000.0 / (count as f64).max(1.0)
}

fn us(ns: u64) -> f64 {
    Nanos::from_nanos(ns).as_micros_f64()
}

fn seconds(ns: u64) -> f64 {
    Nanos::from_nanos(ns).as_secs_f64()
}
