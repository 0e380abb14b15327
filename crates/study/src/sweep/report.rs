//! A study as the report wants it.

use client::transfer::Kind;
use harness::compared::is_wide;
use harness::records;
use load::probe::Findings;
use load::study::{Configuration, Drain, Measured};
use perf::record::Run;
use perf::stats::{Estimate, Interval, ratio};
use report::{
    Ceiling, Curve, CurvePoint, Cycle, Fact, Headline, Latency, LatencyPlot, Parameter, Stall,
    Step, StudyReport, Term, ThroughputPlot, Transfer, TransferPlot,
};

use super::outcome::Outcome;
use super::record;
use crate::explain::{self, bytes, sentence};

/// Points kept of what is drawn.
const POINTS_MAX: usize = 1_500;

/// The whole report.
pub(crate) fn report(outcome: &Outcome, run: &Run) -> StudyReport {
    StudyReport {
        title: "nfskit study".to_owned(),
        generated_at: outcome.started.clone(),
        command: outcome.command.clone(),
        target: outcome
            .target
            .url
            .clone()
            .or_else(|| {
                outcome.target.path.as_ref().map(|path| format!("embedded server on {path}"))
            })
            .unwrap_or_default(),
        durability: Some(outcome.target.durability),
        link: format!("link {}", outcome.target.link),
        environment: environment(run),
        warnings: outcome.warnings.clone(),
        headline: headline(outcome),
        parameters: parameters(outcome),
        cycles: cycles(outcome),
        throughput: throughput(outcome),
        steps: steps(outcome),
        transfers: transfers(outcome),
        latency: latency(outcome),
        tables: Vec::new(),
        method: method(outcome),
        raw_data: "run.json and calls.csv".to_owned(),
    }
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

fn headline(outcome: &Outcome) -> Headline {
    let explanation = &outcome.explanation;
    let choice = &explanation.choice;
    let row = explanation.row(explanation.before);
    let first = row.map(|row| sentence(row, explanation)).unwrap_or_default();
    let after = explanation.after;
    let change = format!(
        "{} calls with {} outstanding{}",
        bytes(after.call_bytes),
        after.outstanding,
        if outcome.applied.is_some() { " on a server that does not stall" } else { "" },
    );
    let gained = gained(before_and_after(outcome).as_slice());
    let gain = gain_sentence(&change, outcome.predicted_gain(), gained);
    let verdict = outcome.gain().sentence();
    let (storage, link) = (outcome.storage_mib_per_s(), outcome.link_mib_per_s());
    let limited_by = match storage.partial_cmp(&link) {
        Some(std::cmp::Ordering::Less) => format!("storage; the link has {link:.0} MiB/s"),
        _ if storage.is_finite() => format!("the link; storage has {storage:.0} MiB/s"),
        _ => "the link; no limit of storage was seen".to_owned(),
    };
    let fact =
        |label: &str, value: String, note: String| Fact { label: label.to_owned(), value, note };
    Headline {
        sentence: format!("{gain} The prediction was {verdict}. {first} {}", choice.sentence()),
        facts: vec![
            fact("predicted gain", format!("{:.2} x", outcome.predicted_gain()), String::new()),
            fact(
                "measured gain",
                format!("{:.2} x", outcome.measured_gain()),
                format!(
                    "{:.1} to {:.1} MiB/s{}",
                    outcome.before_mib_per_s(),
                    outcome.after_mib_per_s(),
                    match gained.and_then(|gained| gained.ci95) {
                        Some(ci) if is_wide(&ci) => "; its runs differ much".to_owned(),
                        Some(ci) => format!("; 95 %: {:.2} to {:.2} x", ci.lo, ci.hi),
                        None => "; of one run each".to_owned(),
                    }
                ),
            ),
            fact(
                "error of the gain",
                format!("{:.1} %, {}", outcome.gain().error_pct().abs(), outcome.gain().verdict()),
                format!("held: within {:.0} %", harness::verdict::HELD_PCT),
            ),
            fact(
                "recommended window",
                after.outstanding.to_string(),
                recommended(after, &outcome.measured),
            ),
            fact("limit", format!("{:.1} MiB/s", outcome.limit_mib_per_s()), limited_by),
            fact(
                "reached",
                format!("{:.0} %", 100.0 * outcome.efficiency_of_limit()),
                "of the limit, with the recommended window".to_owned(),
            ),
            fact("model error", explanation.errors.headline(), explanation.errors.sentence()),
        ],
    }
}

/// How many times the runs before those after have given.
fn gained(before_and_after: &[&Measured]) -> Option<Estimate> {
    let &[before, after] = before_and_after else { return None };
    let sample = |measured: &Measured| {
        measured.median()?;
        records::sample(measured.mib_per_s.iter().copied())
    };
    ratio(&sample(before)?, &sample(after)?)
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
            "{promised}; measured {:.2} to {:.2} times (95 %), which cannot be told from no gain.",
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
fn recommended(after: Configuration, measured: &[Measured]) -> String {
    let calls = format!("calls of {}", bytes(after.call_bytes));
    let best = measured
        .iter()
        .filter(|one| one.configuration.subject == after.subject)
        .filter_map(|one| Some((one, one.median()?, one.spread()?)))
        .max_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
    let own = measured.iter().find(|one| one.configuration == after);
    let own = own.and_then(|own| Some((own, own.median()?, own.spread()?)));
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

fn parameters(outcome: &Outcome) -> Vec<Parameter> {
    let findings = &outcome.findings;
    let mut parameters = of_single_calls(findings);
    if let Some(local) = &outcome.local {
        parameters.push(parameter(
            "T_B local",
            local.block_us,
            ("us", local.trials),
            "8 KiB written and synced less 8 KiB written, in the directory itself.",
        ));
    }
    parameters.extend(of_bursts(findings));
    parameters
}

fn parameter(name: &str, estimate: Estimate, (unit, n): (&str, usize), how: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        value: estimate.value,
        unit: unit.to_owned(),
        ci95: estimate.ci95,
        n: Some(n as u64),
        how: how.to_owned(),
    }
}

fn of_single_calls(findings: &Findings) -> Vec<Parameter> {
    let (null, rounds) = (findings.null_us.len(), findings.rounds);
    vec![
        parameter(
            "2 T_prop",
            findings.round_trip,
            ("us", null),
            "Median response time of NULL calls, one at a time.",
        ),
        parameter(
            "T_ser",
            findings.ser_us_per_kib,
            ("us/KiB", rounds),
            "Slope of the response time of single UNSTABLE WRITEs of 1 KiB to 1 MiB over their \
              size.",
        ),
        parameter(
            "T_op",
            findings.op_us,
            ("us", rounds),
            "Intercept of the same line, less 2 T_prop.",
        ),
        parameter(
            "T_B",
            findings.block_us,
            ("us", rounds),
            "FILE_SYNC response time of single 8 KiB WRITEs, less that of UNSTABLE ones after a \
              rest as long.",
        ),
    ]
}

fn of_bursts(findings: &Findings) -> [Parameter; 4] {
    let alone = |value: f64| Estimate { value, ci95: None };
    let (bursts, capacity) = (findings.bursts, findings.path.capacity);
    [
        parameter(
            "T_commit",
            findings.commit_us,
            ("us", bursts),
            &format!(
                "Response time of a COMMIT of {} MiB less 2 T_prop; spread over its blocks it \
                  is the T_B of a transfer.",
                findings.commit_probe_bytes >> 20
            ),
        ),
        parameter(
            "o",
            findings.overhead_us,
            ("us", bursts),
            "What each further outstanding 8 KiB call adds to a cycle: bursts of two at a time.",
        ),
        parameter(
            "g",
            alone(capacity.call_us),
            ("us", bursts),
            "Time per call in bursts, many outstanding, less the bytes' share.",
        ),
        parameter(
            "G",
            alone(capacity.us_per_kib),
            ("us/KiB", bursts),
            "Time per KiB in bursts of 8 KiB and 1 MiB WRITEs.",
        ),
    ]
}

fn cycles(outcome: &Outcome) -> Vec<Cycle> {
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

fn throughput(outcome: &Outcome) -> Vec<ThroughputPlot> {
    let mut sizes: Vec<u32> =
        outcome.measured.iter().map(|measured| measured.configuration.call_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut ceilings =
        vec![Ceiling { label: "storage".to_owned(), mib_s: outcome.storage_mib_per_s() }];
    ceilings.push(Ceiling { label: "link".to_owned(), mib_s: outcome.link_mib_per_s() });
    ceilings.retain(|ceiling| ceiling.mib_s.is_finite());
    sizes
        .into_iter()
        .map(|call_bytes| ThroughputPlot {
            title: format!("{} writes", bytes(call_bytes)),
            curves: (0..outcome.target.subjects.len())
                .map(|subject| Curve {
                    name: outcome.target.subjects[subject].to_owned(),
                    points: outcome
                        .explanation
                        .curve(subject, call_bytes)
                        .map(|row| point(outcome, row))
                        .collect(),
                })
                .collect(),
            ceilings: ceilings.clone(),
        })
        .collect()
}

fn point(outcome: &Outcome, row: &explain::Row) -> CurvePoint {
    let spread = outcome.measured(row.configuration).and_then(Measured::spread);
    CurvePoint {
        n: u32::try_from(row.configuration.outstanding).unwrap_or(u32::MAX),
        measured_mib_s: row.measured_mib_per_s,
        spread_mib_s: spread.map(|(lo, hi)| Interval { lo, hi }),
        predicted_mib_s: Some(row.prediction.mib_per_s),
        simulated_mib_s: row.simulated_mib_per_s,
    }
}

fn steps(outcome: &Outcome) -> Vec<Step> {
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
fn before_and_after(outcome: &Outcome) -> Vec<&Measured> {
    match &outcome.applied {
        Some((before, after)) => vec![before, after],
        None => [outcome.explanation.before, outcome.explanation.after]
            .into_iter()
            .filter_map(|configuration| outcome.measured(configuration))
            .collect(),
    }
}

fn transfers(outcome: &Outcome) -> Vec<TransferPlot> {
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

fn transfer(outcome: &Outcome, measured: &Measured) -> Transfer {
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

fn latency(outcome: &Outcome) -> Vec<LatencyPlot> {
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

fn method(outcome: &Outcome) -> Vec<String> {
    let plan = &outcome.plan;
    let mut paragraphs = vec![
        format!(
            "Probe: {} NULL calls; {} rounds of single WRITEs of 1 KiB to 1 MiB, each size \
              UNSTABLE and FILE_SYNC in turn; {} bursts of UNSTABLE WRITEs. The first round, \
              which pays for what is cold, is left out.",
            outcome.findings.null_us.len(),
            outcome.findings.rounds,
            outcome.findings.bursts
        ),
        format!(
            "Sweep: every configuration {} times, all of them once before any is run again, \
              each for {:.0} ms and until its outstanding calls have come back. UNSTABLE WRITEs \
              with a COMMIT after every {} MiB and at the end; the throughput counts durable \
              bytes from the first call to the reply of the last COMMIT. What is outstanding at \
              its end is waited for as long as the warm-up's rate lets expect, for {:.0} ms at \
              least and {:.0} s at most; a run that is abandoned then counts up to the last \
              COMMIT that was answered, and shows nothing without one.",
            outcome.repeats(),
            plan.run_time.as_millis_f64(),
            outcome.commit_bytes >> 20,
            plan.drain.as_millis_f64(),
            Drain::MOST.as_secs_f64()
        ),
        format!(
            "The file of {} MiB was written once before and is overwritten in place, so that \
              the steady state is measured and not the allocation of blocks. The storage's \
              ceiling is measured in the same way.",
            outcome.file_bytes >> 20
        ),
        format!(
            "Change: before and after in alternation, {} times {:.0} ms each, with one pass over a \
             file of the directory itself in between where there is one.",
            plan.applications,
            plan.application_time.as_millis_f64()
        ),
        "Predictions of the sweep use only the parameters of the probe and the plan of each run: \
         no number was adjusted to it. With N calls outstanding, throughput = bytes x min(N / \
         (T_cycle + (N - 1) o), 1 / slowest stage), T_cycle = 2 T_prop + T_ser + T_op + T_B; \
         to which a run of that length adds the first call's way and the last COMMIT, which \
         nothing overlaps."
            .to_owned(),
        "The gain of the change is predicted from the same parameters, with the base held to the \
         sweep's run before the change: what that took longer or shorter than predicted belongs to \
         the term that dominates it. The sweep's run with the change has no part in it."
            .to_owned(),
        "Response times count from when a call is handed to the connection to when its reply \
          has come; in a sweep with N outstanding a new call is sent as soon as one is answered \
          (closed loop)."
            .to_owned(),
    ];
    if outcome.local.is_none() {
        paragraphs.push(
            "The server is not ours: whether it stalls while it commits or not is taken from the \
             form of the model that has the smaller error, and its link's ceiling is the most \
             that anything showed."
                .to_owned(),
        );
    }
    if let Some(emulator) = outcome.emulator {
        paragraphs.push(format!(
            "The emulated link holds each message in this process until its time has come. Tried \
              out on this machine beforehand, its {emulator}. Bytes are those of the RPC records, \
              with IP, TCP and UDP headers only where the link has an MTU."
        ));
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_what_the_runs_show() {
        let said = |value, ci: Option<(f64, f64)>| {
            let ci95 = ci.map(|(lo, hi)| Interval { lo, hi });
            gain_sentence("1 MiB calls", 3.0, Some(Estimate { value, ci95 }))
        };
        let begins = "1 MiB calls should give 3.0 times as much";
        let gained = said(2.9, Some((2.7, 3.1)));
        assert_eq!(gained, format!("{begins}; measured 2.9 times (95 %: 2.7 to 3.1)."));
        assert!(said(1.1, Some((0.8, 1.5))).contains("which cannot be told from no gain"));
        assert!(said(0.7, Some((0.6, 0.8))).contains("and gave less than before"));
        assert!(said(2.9, Some((0.0, 4e8))).ends_with("that this says little."));
        assert!(said(2.9, None).ends_with("measured 2.9 times, of one run each."));
        assert!(gain_sentence("x", 2.0, None).ends_with("that was not measured."));
    }
}
