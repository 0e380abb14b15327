//! The run record of LogGP put in and read back.

use harness::records;
use load::recover::{Parameter, Point};
use perf::record::Run;
use serde_json::json;

use super::outcome::Outcome;
use super::table::{of, predicted_block_us};
use super::verdict::{GOAL_PCT, Verdict};
use crate::papers::begun;

pub(super) fn record(outcome: &Outcome) -> Run {
    let mut record = begun("papers-loggp", &outcome.started, outcome.url.as_ref());
    let base_us = json!(outcome.base_latency.as_micros_f64());
    record.workload.parameters.insert("base_latency_us".to_owned(), base_us);
    for (parameter, point) in &outcome.sweep {
        add(&mut record, *parameter, point);
    }
    let verdict = Verdict::of(&outcome.sweep);
    record.metric("points", verdict.points as f64, "");
    record.metric("within_goal", verdict.within as f64, "");
    record.metric("within_5_pct", verdict.near as f64, "");
    record.metric("hidden", verdict.hidden as f64, "");
    record.metric("worst_error_pct", verdict.worst_pct, "%");
    record.metric("goal_pct", GOAL_PCT, "%");
    records::neighbours(&mut record, outcome.neighbours_share);
    record
}

fn add(record: &mut Run, varied: Parameter, point: &Point) {
    let n = point.pairs.len() as u64;
    let injected = varied.of(&point.injected);
    let prefix = format!("{varied}/{injected:.3}");
    record.metric(&format!("{prefix}/asked"), injected, unit(varied));
    for parameter in Parameter::ALL {
        if let Some(found) = of(parameter, point) {
            record.estimate(&format!("{prefix}/{parameter}"), &found, unit(parameter), n);
        }
    }
    if let Some(bare) = point.recovered.bare_gap_us {
        record.estimate(&format!("{prefix}/bare_g"), &bare, "us", n);
    }
    let (bare, behind) = point.block_us;
    record.metric(&format!("{prefix}/write_8k_bare_us"), bare, "us");
    record.metric(&format!("{prefix}/write_8k_us"), behind, "us");
    record.metric(&format!("{prefix}/write_8k_predicted_us"), predicted_block_us(point), "us");
}

fn unit(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::GapPerByte => "ns/B",
        _ => "us",
    }
}
