//! A study as the report wants it.

mod method;
pub(crate) mod parameters;
mod plots;

use harness::compared::is_wide;
use harness::records;
use load::study::{Configuration, Measured};
use perf::record::Run;
use perf::stats::{Estimate, ratio};
use report::{Fact, Headline, StudyReport};

use super::logged::Logged;
use super::outcome::ServerStudy;
use crate::explain::bytes;

/// The whole report.
pub(crate) fn report(outcome: &ServerStudy, run: &Run) -> StudyReport {
    StudyReport {
        title: "nfskit study".to_owned(),
        generated_at: outcome.started.clone(),
        command: outcome.command.clone(),
        target: target(outcome),
        durability: Some(outcome.target.durability),
        link: format!("link {}", outcome.target.link),
        environment: environment(run),
        warnings: outcome.warnings.clone(),
        headline: headline(outcome),
        parameters: parameters::parameters(outcome),
        cycles: plots::cycles(outcome),
        throughput: plots::throughput(outcome),
        steps: plots::steps(outcome),
        transfers: plots::transfers(outcome),
        latency: plots::latency(outcome),
        tables: outcome.logged.iter().map(Logged::table).collect(),
        method: method::method(outcome),
        raw_data: "run.json and calls.csv".to_owned(),
    }
}

fn target(outcome: &ServerStudy) -> String {
    let path = || outcome.target.path.as_ref().map(|path| format!("embedded server on {path}"));
    outcome.target.url.clone().or_else(path).unwrap_or_default()
}

pub(crate) fn environment(run: &Run) -> Vec<(String, String)> {
    let environment = &run.environment;
    let text = |name: &str, value: Option<String>| value.map(|value| (name.to_owned(), value));
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    let load = |load: [f64; 3]| load.map(|value| format!("{value:.2}")).join(" ");
    [
        text("kernel", environment.kernel.clone()),
        text("processors", environment.cpus.map(|cpus| cpus.to_string())),
        text(
            "processor",
            environment.other.get("cpu_model").and_then(|m| m.as_str()).map(str::to_owned),
        ),
        text("memory", environment.memory.map(gib)),
        text("virtual", environment.virtualization.clone()),
        text("load average at the end", environment.load_average.map(load)),
        text("nfskit", Some(run.tool.version.clone())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn headline(outcome: &ServerStudy) -> Headline {
    let explanation = &outcome.explanation;
    let choice = &explanation.choice;
    let first = explanation.first_sentence().unwrap_or_default();
    let after = explanation.after;
    let change = format!(
        "{} calls with {} outstanding{}",
        bytes(after.call_bytes),
        after.outstanding,
        if outcome.applied.is_some() { " on a server that does not stall" } else { "" },
    );
    let gained = gained(outcome.sides(), outcome.measured_gain());
    let gain = gain_sentence(&change, outcome.predicted_gain(), gained);
    let verdict = outcome.gain().sentence();
    let log = outcome.logged.as_ref().map(|log| format!(" {}", log.sentence()));
    let (choice, log) = (choice.sentence(&explanation.errors), log.unwrap_or_default());
    Headline {
        sentence: format!("{gain} The prediction was {verdict}. {first} {choice}{log}"),
        facts: facts(outcome, gained),
    }
}

fn facts(outcome: &ServerStudy, gained: Option<Estimate>) -> Vec<Fact> {
    let fact =
        |label: &str, value: String, note: String| Fact { label: label.to_owned(), value, note };
    let (after, errors) = (outcome.explanation.after, &outcome.explanation.errors);
    let gain = outcome.gain();
    let gain_error = format!("{:.1} %, {}", gain.error_pct().abs(), gain.verdict());
    let held = format!("held: within {:.0} %", harness::verdict::HELD_PCT);
    let recommended = recommended(after, &outcome.measured);
    let limit = format!("{:.1} MiB/s", outcome.limit_mib_per_s());
    let reached = format!("{:.0} %", 100.0 * outcome.efficiency_of_limit());
    let of_limit = "of the limit, with the recommended window".to_owned();
    vec![
        fact("predicted gain", format!("{:.2} x", gain.predicted), String::new()),
        fact("measured gain", format!("{:.2} x", gain.measured), rates(outcome, gained)),
        fact("error of the gain", gain_error, held),
        fact("recommended window", after.outstanding.to_string(), recommended),
        fact("limit", limit, limited_by(outcome)),
        fact("reached", reached, of_limit),
        fact("model error", errors.headline(), errors.sentence()),
    ]
}

/// Before and after, with the interval of the gain.
fn rates(outcome: &ServerStudy, gained: Option<Estimate>) -> String {
    let (before, after) = (outcome.before_mib_per_s(), outcome.after_mib_per_s());
    let sureness = match gained.and_then(|gained| gained.ci95) {
        Some(ci) if is_wide(&ci) => "its runs differ much".to_owned(),
        Some(ci) => format!("95 %: {:.2} to {:.2} x", ci.lo, ci.hi),
        None => "of one run each".to_owned(),
    };
    format!("{before:.1} to {after:.1} MiB/s; {sureness}")
}

fn limited_by(outcome: &ServerStudy) -> String {
    let (storage, link) = (outcome.storage_mib_per_s(), outcome.link_mib_per_s());
    match storage.partial_cmp(&link) {
        Some(std::cmp::Ordering::Less) => format!("storage; the link has {link:.0} MiB/s"),
        _ if storage.is_finite() => format!("the link; storage has {storage:.0} MiB/s"),
        _ => "the link; no limit of storage was seen".to_owned(),
    }
}

/// The ratio of the medians, as everywhere in the report, with the interval that the runs give it.
fn gained([before, after]: [Option<&Measured>; 2], of_medians: f64) -> Option<Estimate> {
    let sample = |measured: &Measured| {
        measured.median()?;
        records::sample(measured.mib_per_s.iter().copied())
    };
    let of_means = ratio(&sample(before?)?, &sample(after?)?)?;
    Some(Estimate { value: of_medians, ..of_means })
}

/// What was promised beside what came.
fn gain_sentence(change: &str, predicted: f64, gained: Option<Estimate>) -> String {
    let promised = format!("{change} should give {predicted:.1} times as much");
    let Some(gained) = gained else { return format!("{promised}; that was not measured.") };
    let times = gained.value;
    match gained.ci95 {
        None => format!("{promised}; measured {times:.1} times, of one run each."),
        Some(ci) if is_wide(&ci) => format!(
            "{promised}; measured {times:.1} times, but the runs differ so much among themselves \
             that this says little."
        ),
        Some(ci) if ci.contains(1.0) => format!(
            "{promised}; measured {:.2} to {:.2} times (95 %), which may be no gain at all.",
            ci.lo, ci.hi
        ),
        Some(ci) if ci.hi < 1.0 => format!(
            "{promised}, and gave less than before: measured {times:.2} times ({:.2} to {:.2}).",
            ci.lo, ci.hi
        ),
        Some(ci) => {
            format!("{promised}; measured {times:.1} times (95 %: {:.1} to {:.1}).", ci.lo, ci.hi)
        }
    }
}

/// The configuration that the model recommends, beside the sweep's own best on that server, if that
/// is better by more than its runs differ.
fn recommended<'a>(after: Configuration, measured: &'a [Measured]) -> String {
    let calls = format!("calls of {}", bytes(after.call_bytes));
    let answered = |one: &'a Measured| Some((one, one.median()?, one.spread()?));
    let on_it = measured.iter().filter(|one| one.configuration.subject == after.subject);
    let best = on_it.filter_map(answered).max_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
    let own = measured.iter().find(|one| one.configuration == after).and_then(answered);
    let better = best.zip(own).filter(|((_, _, best), (own, _, own_spread))| {
        // One run has no spread.
        own.mib_per_s.len() > 1 && best.0 > own_spread.1
    });
    match better {
        None => calls,
        Some(((best, best_mib_per_s, _), (_, own_mib_per_s, _))) => format!(
            "{calls}; the sweep had {:.0} % more with {} of {}",
            100.0 * (best_mib_per_s / own_mib_per_s - 1.0),
            best.configuration.outstanding,
            bytes(best.configuration.call_bytes)
        ),
    }
}

#[cfg(test)]
mod tests {
    use perf::stats::Interval;

    use super::*;

    #[test]
    fn a_gain_is_what_the_runs_show() {
        let text = |value, ci: Option<(f64, f64)>| {
            let ci95 = ci.map(|(lo, hi)| Interval { lo, hi });
            gain_sentence("1 MiB calls", 3.0, Some(Estimate { value, ci95 }))
        };
        let begins = "1 MiB calls should give 3.0 times as much";
        let gained = text(2.9, Some((2.7, 3.1)));
        assert_eq!(gained, format!("{begins}; measured 2.9 times (95 %: 2.7 to 3.1)."));
        assert!(text(1.1, Some((0.8, 1.5))).contains("which may be no gain at all"));
        assert!(text(0.7, Some((0.6, 0.8))).contains("and gave less than before"));
        assert!(text(2.9, Some((0.0, 4e8))).ends_with("that this says little."));
        assert!(text(2.9, None).ends_with("measured 2.9 times, of one run each."));
        assert!(gain_sentence("x", 2.0, None).ends_with("that was not measured."));
    }
}
