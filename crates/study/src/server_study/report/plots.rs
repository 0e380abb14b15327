//! What a study's report draws.

use client::transfer::Kind;
use load::study::{Configuration, Measured};
use perf::stats::Interval;
use report::{
    Ceiling, Curve, CurvePoint, Cycle, Latency, LatencyPlot, Stall, Step, Term, ThroughputPlot,
    Transfer, TransferPlot,
};

use crate::explain::{self, bytes};
use crate::server_study::logged::Logged;
use crate::server_study::outcome::ServerStudy;
use crate::server_study::record;

/// Points kept of what is drawn.
const POINTS_MAX: usize = 1_500;

pub(super) fn cycles(outcome: &ServerStudy) -> Vec<Cycle> {
    let explanation = &outcome.explanation;
    let ones = explanation.rows.iter().filter(|row| row.configuration.outstanding == 1);
    ones.map(|row| {
        let cycle = row.prediction.cycle;
        let term = |name: &str, us: f64| Term { name: name.to_owned(), us };
        let call_mib = f64::from(row.configuration.call_bytes) / f64::from(1 << 20);
        Cycle {
            name: outcome.name(row.configuration),
            terms: vec![
                term("2 T_prop", cycle.prop_us),
                term("T_ser", cycle.ser_us),
                term("T_op", cycle.op_us),
                term("T_B", cycle.block_us),
            ],
            measured_us: row.measured_mib_per_s.map(|mib_per_s| call_mib / mib_per_s * 1e6),
        }
    })
    .collect()
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
    let after = explanation.after;
    vec![Step {
        change: format!(
            "{} -> {}",
            outcome.short_name(explanation.before),
            outcome.short_name(after)
        ),
        before_mib_s: outcome.before_mib_per_s(),
        predicted_mib_s: outcome.predicted_gain() * outcome.before_mib_per_s(),
        measured_mib_s: outcome.after_mib_per_s(),
    }]
}

/// What step 4 compared, or the same two of the sweep.
pub(super) fn before_and_after(outcome: &ServerStudy) -> Vec<&Measured> {
    match &outcome.applied {
        Some((before, after)) => vec![before, after],
        None => [outcome.explanation.before, outcome.explanation.after]
            .into_iter()
            .filter_map(|configuration| outcome.measured(configuration))
            .collect(),
    }
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
        plot("Before and after", before_and_after(outcome)),
        plot("The same calls, on each server", windowed.collect()),
    ]
}

fn transfer(outcome: &ServerStudy, measured: &Measured) -> Transfer {
    let started = measured.typical.started;
    let (transferred, _) = record::series(measured);
    let points = transferred
        .thinned(POINTS_MAX)
        .points()
        .iter()
        .map(|point| (point.t_us as f64 / 1e3, point.value))
        .collect();
    Transfer {
        name: outcome.name(measured.configuration),
        points,
        stalls: Some(stalls(measured, started)),
    }
}

/// The times in which a COMMIT was outstanding and no WRITE was answered.
fn stalls(measured: &Measured, started: perf::units::Instant) -> Vec<Stall> {
    let events = &measured.typical.events;
    let commits = events.iter().filter(|event| event.kind == Kind::Commit);
    let replies: Vec<perf::units::Instant> = events
        .iter()
        .filter(|event| event.kind == Kind::Write)
        .map(|event| event.received)
        .collect();
    commits
        .map(|commit| {
            // Arrivals are in order: from the last reply before the COMMIT's end to that end.
            let before = replies.partition_point(|received| *received <= commit.received);
            let last = before.checked_sub(1).map_or(commit.sent, |at| replies[at]);
            Stall {
                start_ms: last.max(commit.sent).since(started).as_millis_f64(),
                end_ms: commit.received.since(started).as_millis_f64(),
                label: "COMMIT".to_owned(),
            }
        })
        .filter(|stall| stall.end_ms > stall.start_ms)
        .collect()
}

pub(super) fn latency(outcome: &ServerStudy) -> Vec<LatencyPlot> {
    vec![LatencyPlot {
        title: "WRITE response times, before and after".to_owned(),
        latencies: before_and_after(outcome)
            .into_iter()
            .map(|measured| {
                let (_, response) = record::series(measured);
                let points = response.thinned(POINTS_MAX);
                Latency {
                    name: outcome.name(measured.configuration),
                    calls: points
                        .points()
                        .iter()
                        .map(|point| (point.t_us as f64 / 1e3, point.value / 1e3))
                        .collect(),
                    histogram: record::histogram(measured),
                }
            })
            .collect(),
    }]
}
