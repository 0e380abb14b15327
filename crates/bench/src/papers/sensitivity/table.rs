//! The tables on the terminal: model, live and world side by side.

use std::fmt::Write as _;

use harness::table::{Table, left, right};
use load::recover::Parameter;
use perf::stats::{Estimate, Fit};
use perf::units::Nanos;

use super::Simulated;
use super::findings::{Found, difference_pct, model};
use super::outcome::Outcome;
use super::points::{Measured, Part};

pub(super) fn text(outcome: &Outcome) -> String {
    let server = outcome.url.as_deref().unwrap_or("a server of our own in memory, one thread");
    let Simulated { service, delay } = outcome.simulated;
    let mut text = format!(
        "Sensitivity of {} to L, o and G: {server}, {}\nthe world has, from the live baseline: \
         S {service} an operation without o, {delay} for the rest\n",
        outcome.mix, outcome.took
    );
    for part in Part::ALL {
        text.push_str(&section(outcome, part));
    }
    let findings = &outcome.findings;
    writeln!(text, "\n{} (* what the world was given is none)", findings.summary()).ok();
    text
}

fn section(outcome: &Outcome, part: Part) -> String {
    let pairs: Vec<_> = outcome.pairs(part).collect();
    let Some((baseline, _)) = pairs.iter().find(|(live, _)| live.point.is_baseline()) else {
        return String::new();
    };
    let (what, value) = match part {
        Part::Latency => ("base response time against L", "L one way"),
        Part::Overhead => ("saturation against o, operations a second", "o, of which 80"),
        Part::Bandwidth => ("response time against G", "1 / G"),
    };
    let names = [value, "model", "live", "its range", "world", "differ"].map(right);
    let mut table = Table::new(names.into_iter().chain([left("")]));
    for (live, world) in &pairs {
        let predicted = model(baseline, live).map(|value| shown(part, value));
        let mark = if live.point.is_input() { "*" } else { " " };
        table.row([
            format!("{}{mark}", amount(live)),
            predicted.unwrap_or_default(),
            shown(part, live.value.value),
            spread(part, &live.value),
            shown(part, world.value.value),
            format!("{:+.1} %", difference_pct(live, world)),
            notes(live),
        ]);
    }
    format!("\n{what}\n{}{}", table.text(), summary(outcome, part))
}

/// What the points say together, beside the paper.
pub(super) fn summary(outcome: &Outcome, part: Part) -> String {
    let (live, world) = (&outcome.findings.live, &outcome.findings.world);
    match part {
        Part::Latency => {
            let slope = |fit: &Option<Fit>| {
                fit.as_ref().map_or_else(|| "-".to_owned(), |fit| plus_minus(&fit.slope))
            };
            format!(
                "  us of response for each us of L above 150: the paper's model 2, its measurement \
                 3, live {}, world {}\n",
                slope(&live.latency),
                slope(&world.latency)
            )
        }
        Part::Overhead => saturation("live", live) + &saturation("world", world),
        Part::Bandwidth => {
            let paper = "the paper: nothing down to 2.5 MB/s, a steeper curve at 1.25";
            let live = times(outcome.pairs(part).map(|(live, _)| live));
            let world = times(outcome.pairs(part).map(|(_, world)| world));
            format!("  {paper}; times the baseline's response, live: {live}; world: {world}\n")
        }
    }
}

fn saturation(name: &str, found: &Found) -> String {
    found.saturation.as_ref().map_or_else(String::new, |fit| {
        format!(
            "  1/(S + k o), {name}: S {} us, k {} (r2 {:.4}); the paper's k is 2.4, of messages \
             cut to 3.5 KB; whole ones give 2\n",
            plus_minus(&fit.service_us),
            plus_minus(&fit.messages_per_op),
            fit.r_squared
        )
    })
}

/// What each point is of the baseline.
fn times<'a>(points: impl Iterator<Item = &'a Measured>) -> String {
    let points: Vec<&Measured> = points.collect();
    let baseline = points.iter().find(|measured| measured.point.is_baseline());
    let Some(baseline) = baseline.map(|measured| measured.value.value) else {
        return "-".to_owned();
    };
    let others = points.iter().filter(|measured| !measured.point.is_baseline());
    let times = others
        .map(|measured| format!("{:.2} at {}", measured.value.value / baseline, amount(measured)));
    times.collect::<Vec<_>>().join(", ")
}

fn plus_minus(estimate: &Estimate) -> String {
    match estimate.ci95 {
        Some(ci95) => format!("{:.2} ± {:.2}", estimate.value, (ci95.hi - ci95.lo) / 2.0),
        None => format!("{:.2}", estimate.value),
    }
}

pub(super) fn amount(measured: &Measured) -> String {
    let conditions = &measured.point.conditions;
    let gap_ps = conditions.link.gap_per_byte_ps as f64;
    match measured.point.part.parameter() {
        Parameter::GapPerByte => format!("{:.2} MB/s", 1e6 / gap_ps),
        parameter => Nanos::from_micros_f64(parameter.of(conditions)).to_string(),
    }
}

pub(super) fn shown(part: Part, value: f64) -> String {
    match part {
        Part::Overhead => format!("{value:.0}"),
        Part::Latency | Part::Bandwidth => Nanos::from_micros_f64(value).to_string(),
    }
}

pub(super) fn spread(part: Part, estimate: &Estimate) -> String {
    let Some(ci95) = estimate.ci95 else { return String::new() };
    format!("{} to {}", shown(part, ci95.lo), shown(part, ci95.hi))
}

/// What is to be known of a live point: a generator that did not keep up, answers that failed.
fn notes(live: &Measured) -> String {
    let mut notes = Vec::new();
    let late: u64 = live.runs.iter().map(|run| run.late).sum();
    let meant: u64 = live.runs.iter().map(|run| run.meant).sum();
    if late * 100 > meant {
        notes.push(format!("{late} of {meant} started late"));
    }
    let failed: u64 = live.runs.iter().map(load::mix::Outcome::failed).sum();
    if failed > 0 {
        notes.push(format!("{failed} failed"));
    }
    notes.join(", ")
}
