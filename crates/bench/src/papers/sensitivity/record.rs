//! The run record of the sensitivities.

use harness::records;
use perf::record::Run;
use serde_json::json;

use super::findings::{Found, GOAL_PCT, model};
use super::outcome::Outcome;
use super::points::{Measured, Part};
use crate::papers::begun;

pub(super) fn record(outcome: &Outcome) -> Run {
    let mut record = begun("papers-sensitivity", &outcome.started, outcome.url.as_ref());
    let given = [
        ("mix", json!(outcome.mix.name)),
        ("mix_source", json!(outcome.mix.source)),
        ("seed", json!(outcome.course.seed)),
        ("repeats", json!(outcome.course.repeats)),
        ("time_ns", json!(outcome.course.time.as_nanos())),
    ];
    records::parameters(&mut record, given);
    record.metric("world/service_us", outcome.simulated.service.as_micros_f64(), "us");
    record.metric("world/delay_us", outcome.simulated.delay.as_micros_f64(), "us");
    add_points(&mut record, outcome);
    add_found(&mut record, "live", &outcome.findings.live);
    add_found(&mut record, "world", &outcome.findings.world);
    record.metric("predictions", outcome.findings.points as f64, "");
    record.metric("within_goal", outcome.findings.within_goal as f64, "");
    record.metric("goal_pct", GOAL_PCT, "%");
    record.metric("worst_difference_pct", outcome.findings.worst_pct, "%");
    records::neighbours(&mut record, outcome.neighbours_share);
    record
}

fn add_points(record: &mut Run, outcome: &Outcome) {
    for part in Part::ALL {
        let baseline = outcome.pairs(part).find(|(live, _)| live.point.is_baseline());
        for (live, world) in outcome.pairs(part) {
            let name = name(live);
            let n = live.runs.len() as u64;
            record.estimate(&format!("{name}/live"), &live.value, unit(part), n);
            record.metric(&format!("{name}/world"), world.value.value, unit(part));
            if let Some(model) = baseline.and_then(|(baseline, _)| model(baseline, live)) {
                record.metric(&format!("{name}/model"), model, unit(part));
            }
        }
    }
}

fn add_found(record: &mut Run, name: &str, found: &Found) {
    if let Some(fit) = &found.latency {
        record.estimate(&format!("{name}/slope_of_latency"), &fit.slope, "us/us", fit.n as u64);
    }
    if let Some(fit) = &found.saturation {
        record.estimate(&format!("{name}/S"), &fit.service_us, "us", 1);
        record.estimate(&format!("{name}/k"), &fit.messages_per_op, "", 1);
    }
}

fn name(measured: &Measured) -> String {
    let parameter = measured.point.part.parameter();
    format!("{parameter}/{:.3}", parameter.of(&measured.point.conditions))
}

fn unit(part: Part) -> &'static str {
    match part {
        Part::Overhead => "1/s",
        Part::Latency | Part::Bandwidth => "us",
    }
}
