//! The run record of the five policies.

use harness::records;
use load::latencies::{self, Summary};
use perf::record::{Better, Run as Record, Target, Warning};
use perf::stats::Sample;
use perf::units::Nanos;
use report::policies::Seen;
use serde_json::json;

use super::findings::findings;
use super::measured::{CALL_BYTES, Measured, Outcome};
use crate::policies::args::Policies;

pub(super) fn record(outcome: &Outcome, args: &Policies) -> Record {
    let mut record = records::of("policies");
    let kind = if outcome.url.is_some() { "server" } else { "embedded" };
    record.target = Target {
        kind: kind.to_owned(),
        url: outcome.url.clone(),
        version: Some(3),
        wsize: Some(u64::from(outcome.wsize)),
        ..Target::default()
    };
    let given = [
        ("call_bytes", json!(CALL_BYTES)),
        ("repeats", args.repeats.into()),
        ("link", outcome.link.to_string().into()),
    ];
    records::parameters(&mut record, given);
    for measured in &outcome.measured {
        add(&mut record, measured);
    }
    for finding in findings(outcome) {
        let (code, advice) = match finding.seen {
            Seen::AsThere => continue,
            Seen::OfAnotherSize | Seen::Not => ("not-as-in-the-paper", ""),
            Seen::Unknown => ("cannot-be-told", "more --repeats, or without --quick"),
        };
        let text = format!("{}: {}", finding.seen.name(), finding.text);
        record.warnings.push(Warning::new(code, &text, advice));
    }
    record
}

/// Numbers of single calls, as far as they are known.
fn of_calls(
    measured: &Measured,
    summary: &Summary,
) -> [(&'static str, Option<f64>, &'static str); 5] {
    let mean = summary.mean_without_slow.map(Nanos::as_micros_f64);
    let slope = summary.slope_us_per_1000.as_ref().map(|slope| slope.value);
    [
        ("slow_calls", Some(summary.slow_calls as f64), "calls"),
        ("mean_without_slow_us", mean, "us"),
        ("period_calls", summary.period.as_ref().map(|period| period.calls), "calls"),
        ("slope_us_per_1000", slope, "us"),
        ("spread_us", Some(measured.spread_us().unwrap_or(0.0)), "us"),
    ]
}

fn add(record: &mut Record, measured: &Measured) {
    let kib = measured.file_bytes >> 10;
    let name = |what: &str| {
        format!("{}/{kib}kib/{}/{what}", measured.policy.name(), measured.speed.name())
    };
    let means: Vec<f64> = measured.runs.iter().map(|run| run.mean().as_micros_f64()).collect();
    if let Ok(means) = Sample::new(means) {
        record.estimate(&name("mean_us"), &means.median_estimate(), "us", means.n() as u64);
        record.result(&name("mean_us"), Better::Smaller);
    }
    let calls = measured.summary().map(|summary| of_calls(measured, &summary));
    for (what, value, unit) in calls.into_iter().flatten() {
        if let Some(value) = value {
            record.metric(&name(what), value, unit);
        }
    }
    if let Some((written, flushed)) = measured.rates() {
        record.metric(&name("written_mib_per_s"), written, "MiB/s");
        record.metric(&name("flushed_mib_per_s"), flushed, "MiB/s");
        record.result(&name("flushed_mib_per_s"), Better::Larger);
    }
    let Some(run) = measured.typical() else { return };
    record.histogram(&name("call_time"), &latencies::histogram(&run.calls));
    let stages = run.stages.histograms.iter();
    for (stage, histogram) in stages.filter(|(_, histogram)| !histogram.is_empty()) {
        let stage = stage.name().replace(' ', "_");
        record.histogram(&name(&format!("stage_{stage}")), histogram);
    }
}
