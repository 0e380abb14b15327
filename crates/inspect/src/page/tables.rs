//! The tables of the report.

use std::cmp::Reverse;

use perf::units::Nanos;
use report::Numbers;
use trace::{Analyzer, FileId, Gap, RttOf, Spread, Talk, TalkId, Usage};

use super::{ms, sorted};
use crate::screen::{bytes, longest};
use crate::sides::{Side, sides};

/// Gaps in the table.
const GAPS_MAX: usize = 100;
/// Lines of the others.
const ROWS_MAX: usize = 20;

pub(super) fn all(analyzer: &Analyzer) -> Vec<Numbers> {
    vec![
        operations(analyzer),
        ends(analyzer),
        connections(analyzer),
        files(analyzer),
        gaps(analyzer),
        jumps(analyzer),
    ]
}

fn operations(analyzer: &Analyzer) -> Numbers {
    let columns =
        ["operation", "calls", "errors", "retransmitted", "bytes", "mean", "p50", "p99", "no time"];
    let rows = sorted(analyzer).into_iter().map(|(operation, total)| {
        let time = |time: Nanos| match total.timed() {
            0 => "-".to_owned(),
            _ => time.to_string(),
        };
        vec![
            operation.to_string(),
            total.calls.to_string(),
            total.errors.to_string(),
            total.retransmissions.to_string(),
            total.bytes.to_string(),
            time(total.latency_mean()),
            time(total.latency_at(0.5)),
            time(total.latency_at(0.99)),
            total.untimed.to_string(),
        ]
    });
    Numbers {
        title: "Operations".to_owned(),
        caption:
            "Response time from the call's last byte to the reply's last byte. No time: replies \
                  of which the capture has lost either."
                .to_owned(),
        columns: columns.map(String::from).into(),
        rows: rows.collect(),
    }
}

fn gaps(analyzer: &Analyzer) -> Numbers {
    let columns =
        ["at (ms)", "long", "cause", "outstanding", "retransmitted", "frames", "connection"];
    let row = |(id, gap): &(TalkId, Gap)| {
        vec![
            format!("{:.3}", ms(analyzer, gap.begin_ns)),
            Nanos::from_nanos(gap.ns()).to_string(),
            gap.cause.name().to_owned(),
            gap.outstanding.to_string(),
            gap.retransmissions.to_string(),
            format!("{} to {}", gap.begin_frame, gap.end_frame),
            analyzer.talks().name(*id),
        ]
    };
    Numbers {
        title: "Gaps".to_owned(),
        caption: "Times in which a connection got no reply, much longer than usual: the longest \
                  first. Frames: those of the replies before and behind, as Wireshark counts."
            .to_owned(),
        columns: columns.map(String::from).into(),
        rows: longest(analyzer).iter().take(GAPS_MAX).map(row).collect(),
    }
}

/// Clients and servers, each with all of its connections.
fn ends(analyzer: &Analyzer) -> Numbers {
    let rows = [("client", Side::Clients), ("server", Side::Servers)].map(|(word, side)| {
        let most = sides(analyzer, side).into_iter().take(ROWS_MAX);
        most.map(move |one| {
            let total = one.tallies.total();
            vec![
                format!("{word} {}", one.name),
                one.connections.to_string(),
                total.calls().to_string(),
                total.errors.to_string(),
                bytes(total.bytes),
                total.latency.quantile(0.5).to_string(),
                total.latency.quantile(0.99).to_string(),
            ]
        })
    });
    let columns = ["", "connections", "calls", "errors", "data", "p50", "p99"];
    Numbers {
        title: "Clients and servers".to_owned(),
        caption: "Those with the most calls, with their response times.".to_owned(),
        columns: columns.map(String::from).into(),
        rows: rows.into_iter().flatten().collect(),
    }
}

fn connections(analyzer: &Analyzer) -> Numbers {
    let mut talks: Vec<_> = analyzer
        .talks()
        .admitted()
        .map(|(id, talk)| (talk.tallies.total().calls(), id, talk))
        .collect();
    talks.sort_by_key(|(calls, id, _)| (Reverse(*calls), *id));
    let dash = || "-".to_owned();
    let median = |spread: &Spread| match spread.count() {
        0 => dash(),
        _ => spread.quantile(0.5).to_string(),
    };
    let row = |(calls, id, talk): &(u64, TalkId, &Talk)| {
        let one = talk.pace.stop_and_wait();
        vec![
            analyzer.talks().name(*id),
            calls.to_string(),
            one.map_or_else(dash, |share| format!("{:.0} %", share * 100.0)),
            talk.pace.outstanding_max.to_string(),
            median(&talk.pace.write_cycle),
            median(&talk.pace.read_cycle),
            median(&talk.pace.think),
            analyzer
                .talks()
                .round_trip(*id)
                .map_or_else(dash, |rtt| median(rtt.times(RttOf::Server))),
            talk.pace.by_cause.iter().map(|(count, _)| count).sum::<u64>().to_string(),
        ]
    };
    let columns = [
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
    Numbers {
        title: "Connections".to_owned(),
        caption: "Medians. One outstanding: the share of the time with calls outstanding in which \
                  it was exactly one. Round trip: until the server acknowledges."
            .to_owned(),
        columns: columns.map(String::from).into(),
        rows: talks.iter().take(ROWS_MAX).map(row).collect(),
    }
}

fn files(analyzer: &Analyzer) -> Numbers {
    let row = |(id, usage): (FileId, Usage)| {
        vec![
            analyzer.files().path(id),
            usage.calls.to_string(),
            usage.errors.to_string(),
            bytes(usage.read_bytes),
            bytes(usage.written_bytes),
            usage.latency_at(0.5).to_string(),
            usage.latency_at(0.99).to_string(),
        ]
    };
    let columns = ["file", "calls", "errors", "read", "written", "p50", "p99"];
    Numbers {
        title: "Files".to_owned(),
        caption: "Those with the most data. Response times within a fifth.".to_owned(),
        columns: columns.map(String::from).into(),
        rows: analyzer.files().busiest(ROWS_MAX).into_iter().map(row).collect(),
    }
}

fn jumps(analyzer: &Analyzer) -> Numbers {
    let hosts = analyzer.talks().round_trips();
    let mut jumps: Vec<_> = hosts
        .flat_map(|(name, rtt)| rtt.jumps().into_iter().map(move |jump| (jump, name.clone())))
        .collect();
    jumps.sort_by_key(|(jump, _)| jump.at_ns);
    let rows = jumps.into_iter().take(GAPS_MAX).map(|(jump, name)| {
        vec![
            format!("{:.3}", ms(analyzer, jump.at_ns)),
            name,
            jump.of.name().to_owned(),
            Nanos::from_nanos(jump.before_ns).to_string(),
            Nanos::from_nanos(jump.after_ns).to_string(),
        ]
    });
    Numbers {
        title: "Jumps of the round trip".to_owned(),
        caption: "Lasting changes, by half and more.".to_owned(),
        columns: ["at (ms)", "hosts", "by", "from", "to"].map(String::from).into(),
        rows: rows.collect(),
    }
}
