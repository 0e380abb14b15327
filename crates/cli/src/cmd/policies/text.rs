//! The table on the terminal, beside what the paper says.

use std::fmt::Write as _;

use client::write_behind::{PolicyName, Stage};
use load::latencies::Summary;

use super::{Measured, Outcome, Scene, Speed};

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
                text.push_str(&heading(outcome, scene, speed));
                rows.into_iter().filter_map(row).for_each(|row| text.push_str(&row));
            }
        }
    }
    text.push_str(&stages(outcome));
    text.push_str(&verdicts(outcome));
    text
}

fn heading(outcome: &Outcome, scene: Scene, speed: Speed) -> String {
    let what = match scene {
        Scene::Spikes => "figure 2",
        Scene::Growth => "figures 3 and 4",
        Scene::Jitter => "figures 5 and 6",
        Scene::Short => "table 1",
    };
    let server = if outcome.url.is_some() { "" } else { speed.name() };
    let mib = scene.file_bytes() >> 20;
    format!(
        "\n{mib} MiB, {what}{}{server}\n{:12} {:>8} {:>8} {:>12} {:>7} {:>9} {:>7} {:>7} {:>8} \
         {:>7} {:>8} {:>8} {:>13}  the paper\n",
        if server.is_empty() { "" } else { ", server: " },
        "",
        "mean/us",
        "<=1 ms",
        "slow calls",
        "period",
        "us/1000",
        "p50",
        "p99",
        "max",
        "sd",
        "written",
        "flushed",
        "means",
    )
}

fn row(measured: &Measured) -> Option<String> {
    let summary = measured.summary()?;
    let (written, flushed) = measured.rates()?;
    let (least, most) = measured.mean_range_us();
    let Summary { mean, mean_without_slow, slow_calls, calls, period, slope_us_per_1000, .. } =
        &summary;
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    Some(format!(
        "{:12} {:8.1} {:>8} {:>12} {:>7} {:>9} {:7.1} {:7.1} {:8.0} {:7.1} {written:8.1} \
         {flushed:8.1} {:>13}  {}\n",
        measured.policy.name(),
        mean.as_micros_f64(),
        optional(mean_without_slow.map(|mean| format!("{:.1}", mean.as_micros_f64()))),
        format!("{slow_calls}/{calls}"),
        optional(period.as_ref().map(|period| format!("{:.0}", period.calls))),
        optional(slope_us_per_1000.as_ref().map(|slope| format!("{:+.2}", slope.value))),
        summary.p50.as_micros_f64(),
        summary.p99.as_micros_f64(),
        summary.max.as_micros_f64(),
        summary.standard_deviation.as_micros_f64(),
        format!("{least:.1}-{most:.1}"),
        paper(measured.policy, measured.scene),
    ))
}

fn stages(outcome: &Outcome) -> String {
    let mut text = format!("\nstages, mean in us (30 MiB, fast)\n{:12}", "");
    for stage in Stage::ALL {
        write!(text, " {:>14}", stage.name()).ok();
    }
    text.push('\n');
    for policy in PolicyName::ALL {
        let run = outcome.of(policy, Scene::Jitter, Speed::Fast).and_then(Measured::typical);
        let Some(run) = run else { continue };
        write!(text, "{:12}", policy.name()).ok();
        for stage in Stage::ALL {
            let histogram = run.stages.of(stage);
            let mean = histogram.mean().as_micros_f64();
            let shown = if histogram.is_empty() { "-".to_owned() } else { format!("{mean:.2}") };
            write!(text, " {shown:>14}").ok();
        }
        text.push('\n');
    }
    text
}

/// What of the paper's findings is seen here, and what is not.
pub(super) fn findings(outcome: &Outcome) -> Vec<(bool, String)> {
    let of = |policy, scene| outcome.of(policy, scene, Speed::Fast);
    let summary = |policy, scene| of(policy, scene).and_then(Measured::summary);
    let mut findings = Vec::new();
    if let Some(linux) = summary(PolicyName::Linux244, Scene::Spikes) {
        let period = linux.period.as_ref().map(|period| period.calls);
        let inflation = linux.inflation().unwrap_or(1.0);
        findings.push((
            period.is_some(),
            match period {
                Some(calls) => format!(
                    "linux-2.4.4 has a spike every {calls:.0} calls (paper: about 85; 192 requests \
                     of a page are 96 calls of 8 KiB)"
                ),
                None => "linux-2.4.4 has no regular spikes (paper: about every 85 calls)".into(),
            },
        ));
        findings.push((
            inflation >= 2.0,
            format!("its mean is {inflation:.1} times that without them (paper: 3.5 times)"),
        ));
    }
    let slope = |summary: &Summary| summary.slope_us_per_1000.as_ref().map(|slope| slope.value);
    let growth = summary(PolicyName::NoFlush, Scene::Growth);
    let flat = summary(PolicyName::Hashed, Scene::Growth);
    if let (Some(growth), Some(flat)) = (&growth, &flat) {
        let (grows, stays) = (slope(growth).unwrap_or(0.0), slope(flat).unwrap_or(0.0));
        findings.push((
            growth.period.is_none(),
            format!("no-flush has {} calls over 1 ms, without a period", growth.slow_calls),
        ));
        findings.push((
            grows > 0.5 && grows > 10.0 * stays,
            format!(
                "no-flush slows down by {grows:.2} us each 1000 calls, hashed by {stays:.2} \
                 (paper: figure 3 grows, figure 4 is flat)"
            ),
        ));
    }
    findings.extend(jitter(outcome, Speed::Fast));
    findings.extend(inversion(outcome));
    findings
}

/// Does releasing the lock lower the spread?
fn jitter(outcome: &Outcome, speed: Speed) -> Option<(bool, String)> {
    let of = |policy| outcome.of(policy, Scene::Jitter, speed)?.summary();
    let (held, released) = (of(PolicyName::Hashed)?, of(PolicyName::Unlocked)?);
    let sd = |summary: &Summary| summary.standard_deviation.as_micros_f64();
    Some((
        sd(&released) < sd(&held),
        format!(
            "{} server: with the lock released the mean goes from {:.1} to {:.1} us (paper: 149 \
             to 127), the standard deviation from {:.1} to {:.1}, p99 from {:.1} to {:.1}",
            speed.name(),
            held.mean.as_micros_f64(),
            released.mean.as_micros_f64(),
            sd(&held),
            sd(&released),
            held.p99.as_micros_f64(),
            released.p99.as_micros_f64(),
        ),
    ))
}

/// Is the writer faster with the slower server?
fn inversion(outcome: &Outcome) -> Option<(bool, String)> {
    let mean = |policy, speed| {
        let summary = outcome.of(policy, Scene::Jitter, speed)?.summary()?;
        Some(summary.mean.as_micros_f64())
    };
    let held = (mean(PolicyName::Hashed, Speed::Fast)?, mean(PolicyName::Hashed, Speed::Slow)?);
    let released =
        (mean(PolicyName::Unlocked, Speed::Fast)?, mean(PolicyName::Unlocked, Speed::Slow)?);
    Some((
        held.0 > held.1,
        format!(
            "a faster server makes calls slower: {:.1} us, with a slow one {:.1} (paper: 149 and \
             113); with the lock released {:.1} and {:.1} (paper: 127 and 105)",
            held.0, held.1, released.0, released.1
        ),
    ))
}

fn verdicts(outcome: &Outcome) -> String {
    let mut text = String::from("\nof the paper's findings\n");
    for (is_seen, finding) in findings(outcome) {
        writeln!(text, "  {} {finding}", if is_seen { "seen:    " } else { "not seen:" }).ok();
    }
    writeln!(text, "took {:.0} s", outcome.took.as_secs_f64()).ok();
    text
}
