//! What a study's report draws.

use client::transfer::{Event, Kind};
use load::study::{Configuration, Measured};
use perf::model::transaction;
use perf::series::Series;
use perf::stats::Interval;
use perf::units::Instant;
use report::{
    Ceiling, Curve, CurvePoint, Cycle, Latency, LatencyPlot, Stall, Step, Term, ThroughputPlot,
    Transfer, TransferPlot,
};

use crate::explain::{self, bytes};
use crate::server_study::logged::Logged;
use crate::server_study::outcome::ServerStudy;
use crate::server_study::record;

/// Points of what is drawn.
const POINTS_MAX: usize = 1_500;

pub(super) fn cycles(outcome: &ServerStudy) -> Vec<Cycle> {
    let explanation = &outcome.explanation;
    let ones = explanation.rows.iter().filter(|row| row.configuration.outstanding == 1);
    ones.map(|row| {
        let call_mib = f64::from(row.configuration.call_bytes) / f64::from(1 << 20);
        Cycle {
            name: outcome.name(row.configuration),
            terms: terms(&row.prediction.cycle).into(),
            measured_us: row.measured_mib_per_s.map(|mib_per_s| call_mib / mib_per_s * 1e6),
        }
    })
    .collect()
}

fn terms(cycle: &transaction::Cycle) -> [Term; 4] {
    let transaction::Cycle { prop_us, ser_us, op_us, block_us } = *cycle;
    [("2 T_prop", prop_us), ("T_ser", ser_us), ("T_op", op_us), ("T_B", block_us)]
        .map(|(name, us)| Term { name: name.to_owned(), us })
}

pub(super) fn throughput(outcome: &ServerStudy) -> Vec<ThroughputPlot> {
    let explanation = &outcome.explanation;
    let curve = |subject: usize, call_bytes: u32| Curve {
        name: outcome.target.subjects[subject].to_owned(),
        points: explanation.curve(subject, call_bytes).map(|row| point(outcome, row)).collect(),
    };
    let swept = explanation.sizes().into_iter().map(|call_bytes| ThroughputPlot {
        title: format!("{} writes", bytes(call_bytes)),
        curves: (0..outcome.target.subjects.len()).map(|of| curve(of, call_bytes)).collect(),
        ceilings: ceilings(outcome),
    });
    swept.chain(outcome.logged.iter().map(Logged::plot)).collect()
}

fn ceilings(outcome: &ServerStudy) -> Vec<Ceiling> {
    let all = [("storage", outcome.storage_mib_per_s()), ("link", outcome.link_mib_per_s())];
    let known = all.into_iter().filter(|(_, mib_s)| mib_s.is_finite());
    known.map(|(label, mib_s)| Ceiling { label: label.to_owned(), mib_s }).collect()
}

fn point(outcome: &ServerStudy, row: &explain::Row) -> CurvePoint {
    let spread = outcome.measured(row.configuration).and_then(Measured::spread);
    CurvePoint {
        n: u32::try_from(row.configuration.outstanding).unwrap_or(u32::MAX),
        measured_mib_s: row.measured_mib_per_s,
        spread_mib_s: spread.map(|(lo, hi)| Interval { lo, hi }),
        predicted_mib_s: Some(row.prediction.mib_per_s),
        simulated_mib_s: row.simulated_mib_per_s,
    }
}

pub(super) fn steps(outcome: &ServerStudy) -> Vec<Step> {
    let explanation = &outcome.explanation;
    let [from, to] = [explanation.before, explanation.after].map(|of| outcome.short_name(of));
    vec![Step {
        change: format!("{from} -> {to}"),
        before_mib_s: outcome.before_mib_per_s(),
        predicted_mib_s: outcome.predicted_gain() * outcome.before_mib_per_s(),
        measured_mib_s: outcome.after_mib_per_s(),
    }]
}

pub(super) fn transfers(outcome: &ServerStudy) -> Vec<TransferPlot> {
    let plot = |title: &str, shown: Vec<&Measured>| TransferPlot {
        title: title.to_owned(),
        transfers: shown.into_iter().map(|measured| transfer(outcome, measured)).collect(),
    };
    let after = outcome.explanation.after;
    let windowed = (0..outcome.target.subjects.len()).filter_map(|subject| {
        let configuration = Configuration { subject, ..after };
        outcome.measured(configuration)
    });
    vec![
        plot("Before and after", outcome.sides().into_iter().flatten().collect()),
        plot("The same calls, on each server", windowed.collect()),
    ]
}

fn transfer(outcome: &ServerStudy, measured: &Measured) -> Transfer {
    let (transferred, _) = record::series(measured);
    let (name, points) = (outcome.name(measured.configuration), over_ms(&transferred).collect());
    Transfer { name, points, stalls: Some(stalls(measured, measured.typical.started)) }
}

/// So much of it as can be seen.
fn over_ms(series: &Series) -> impl Iterator<Item = (f64, f64)> {
    let points = series.thinned(POINTS_MAX).points().to_vec();
    points.into_iter().map(|point| (point.t_us as f64 / 1e3, point.value))
}

/// The times in which a COMMIT was outstanding and no WRITE was answered.
fn stalls(measured: &Measured, started: Instant) -> Vec<Stall> {
    let of = |kind| measured.typical.events.iter().filter(move |event| event.kind == kind);
    let replies: Vec<Instant> = of(Kind::Write).map(|event| event.received).collect();
    let stall = |commit: &Event| {
        // Arrivals are in order: from the last reply before the COMMIT's end to that end.
        let before = replies.partition_point(|received| *received <= commit.received);
        let last = before.checked_sub(1).map_or(commit.sent, |at| replies[at]);
        let start_ms = last.max(commit.sent).since(started).as_millis_f64();
        let end_ms = commit.received.since(started).as_millis_f64();
        Stall { start_ms, end_ms, label: "COMMIT".to_owned() }
    };
    of(Kind::Commit).map(stall).filter(|stall| stall.end_ms > stall.start_ms).collect()
}

pub(super) fn latency(outcome: &ServerStudy) -> Vec<LatencyPlot> {
    let of = |measured: &Measured| {
        let (_, response) = record::series(measured);
        Latency {
            name: outcome.name(measured.configuration),
            calls: over_ms(&response).map(|(ms, us)| (ms, us / 1e3)).collect(),
            histogram: record::histogram(measured),
        }
    };
    vec![LatencyPlot {
        title: "WRITE response times, before and after".to_owned(),
        latencies: outcome.sides().into_iter().flatten().map(of).collect(),
    }]
}
