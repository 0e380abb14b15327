//! The table on the terminal, beside what the paper says.

use std::fmt::Write as _;

use client::write_behind::{PolicyName, Stage};
use harness::records::known;
use harness::table::{Table, left, right};
use load::latencies::Summary;
use perf::units::Nanos;

use super::findings::findings;
use super::measured::{Measured, Outcome, Scene, Speed};

/// What the paper says of a policy with the file of a scene: words for the column beside ours.
pub(super) fn paper(policy: PolicyName, scene: Scene) -> &'static str {
    match (policy, scene) {
        (PolicyName::Linux244, Scene::Spikes) => {
            "482.1 us, 139.6 without 37 slow of 2560, about every 85"
        }
        (PolicyName::NoFlush, Scene::Growth) => "484.7 us, growing",
        (PolicyName::Hashed, Scene::Growth) => "136.9 us, flat",
        _ => "",
    }
}

pub(super) fn table(outcome: &Outcome) -> String {
    let mut text = String::new();
    let server = outcome.url.as_deref().unwrap_or("memory server of our own");
    writeln!(
        text,
        "{server}, link {}, wsize {} KiB, 8 KiB calls",
        outcome.link,
        outcome.wsize >> 10
    )
    .ok();
    for scene in Scene::ALL {
        for speed in [Speed::Fast, Speed::Slow] {
            let rows: Vec<&Measured> =
                outcome.measured.iter().filter(|m| (m.scene, m.speed) == (scene, speed)).collect();
            if !rows.is_empty() {
                text.push_str(&heading(outcome, rows[0]));
                let names = COLUMNS.map(right);
                let mut table =
                    Table::new([left("")].into_iter().chain(names).chain([left("the paper")]));
                rows.into_iter().filter_map(row).for_each(|row| table.row(row));
                text.push_str(&table.text());
            }
        }
    }
    text.push_str(&stages(outcome));
    text.push_str(&verdicts(outcome));
    text
}

fn heading(outcome: &Outcome, measured: &Measured) -> String {
    let what = match measured.scene {
        Scene::Spikes => "figure 2",
        Scene::Growth => "figures 3 and 4",
        Scene::Jitter => "figures 5 and 6",
        Scene::Short => "table 1",
    };
    format!("\n{}, {what}\n", outcome.with_file(measured))
}

/// Between the policy and the paper.
const COLUMNS: [&str; 12] = [
    "mean/us",
    "<=1 ms",
    "slow calls",
    "period",
    "us/1000",
    "p50",
    "p99",
    "max",
    "spread",
    "written",
    "flushed",
    "means",
];

fn row(measured: &Measured) -> Option<[String; 14]> {
    let summary = measured.summary()?;
    let (written, flushed) = measured.rates()?;
    let (least, most) = measured.mean_range_us();
    let Summary { mean, mean_without_slow, slow_calls, calls, period, slope_us_per_1000, .. } =
        &summary;
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let tenths = |value: f64| format!("{value:.1}");
    Some([
        measured.policy.name().to_owned(),
        tenths(mean.as_micros_f64()),
        optional(mean_without_slow.map(|mean| format!("{:.1}", mean.as_micros_f64()))),
        format!("{slow_calls}/{calls}"),
        optional(period.as_ref().map(|period| format!("{:.0}", period.calls))),
        optional(slope_us_per_1000.as_ref().map(|slope| format!("{:+.2}", slope.value))),
        known(summary.p50.map(Nanos::as_micros_f64).map(tenths)),
        known(summary.p99.map(Nanos::as_micros_f64).map(tenths)),
        format!("{:.0}", summary.max.as_micros_f64()),
        tenths(measured.spread_us().unwrap_or(0.0)),
        tenths(written),
        tenths(flushed),
        format!("{least:.1}-{most:.1}"),
        paper(measured.policy, measured.scene).to_owned(),
    ])
}

fn stages(outcome: &Outcome) -> String {
    let Some(first) = outcome.of(PolicyName::Linux244, Scene::Jitter, Speed::Fast) else {
        return String::new();
    };
    let names = Stage::ALL.into_iter().map(|stage| right(stage.name()));
    let mut table = Table::new([left("")].into_iter().chain(names));
    for policy in PolicyName::ALL {
        let run = outcome.of(policy, Scene::Jitter, Speed::Fast).and_then(Measured::typical);
        let Some(run) = run else { continue };
        let mean = |stage| {
            let histogram = run.stages.of(stage);
            let mean = histogram.mean().as_micros_f64();
            if histogram.is_empty() { "-".to_owned() } else { format!("{mean:.2}") }
        };
        let means = Stage::ALL.into_iter().map(mean);
        table.row([policy.name().to_owned()].into_iter().chain(means));
    }
    format!("\nstages, mean in us ({})\n{}", outcome.with_file(first), table.text())
}

fn verdicts(outcome: &Outcome) -> String {
    let mut text = String::from("\nof the paper's findings\n");
    for finding in findings(outcome) {
        writeln!(text, "  {}: {}", finding.seen.name(), finding.text).ok();
    }
    writeln!(text, "took {:.0} s", outcome.took.as_secs_f64()).ok();
    text
}
