//! What is printed: the table and the summary of the original, then what it did not know.

use std::fmt::Write;

use harness::records::{quantile, write_stability};
use harness::verbosity::Verbosity;
use load::mix::Operation;
use load::nhfsstone::outcome::{BACKGROUND_TIME, Breach, FAILED_MAX_PERCENT, Pace, Tally};
use load::nhfsstone::{Outcome, Plan};
use perf::histogram::Histogram;
use perf::units::Nanos;

use super::Ran;

/// The original's columns.
const HEADER: &str = "op        want       got    calls      secs  msec/call    time %\n";

pub(super) fn text(plan: &Plan, ran: &Ran, verbosity: Verbosity) -> String {
    let outcome = &ran.outcome;
    let mut text = String::new();
    if verbosity > Verbosity::Normal {
        // Writing to a String does not fail.
        writeln!(
            text,
            "{} calls at {} calls/sec by {} processes, seed {}\n",
            plan.calls, plan.load_per_s, plan.tasks, plan.seed
        )
        .ok();
    }
    text += HEADER;
    for operation in outcome.in_order() {
        text += &row(outcome, operation);
    }
    text += "\n";
    text += &summary(outcome);
    if let Some((why, _)) = invalid(outcome) {
        writeln!(text, "{why}").ok();
    }
    text += "\n";
    additions(&mut text, ran);
    text
}

fn row(outcome: &Outcome, operation: Operation) -> String {
    let none = Tally::default();
    let tally = outcome.operations.get(&operation).unwrap_or(&none);
    let wanted = 100.0 * outcome.mix.share(operation);
    let places = usize::from((wanted - wanted.round()).abs() > 0.005) * 2;
    let seconds = tally.total.as_secs_f64();
    let each = msec(tally.mean());
    let share = 100.0 * seconds / outcome.total().as_secs_f64().max(f64::MIN_POSITIVE);
    let name = operation.name();
    let wanted = format!("{wanted:.places$}%");
    format!(
        "{name}{wanted:>width$}{:>9.2}%{:>9}{:>10.2}{:>11}{:>9.2}%\n",
        outcome.percent(operation),
        tally.calls,
        seconds,
        each,
        share,
        width = 14_usize.saturating_sub(name.len()),
    )
}

fn summary(outcome: &Outcome) -> String {
    format!(
        "{:.0} sec {} calls {:.2} calls/sec {} msec/call\n",
        outcome.elapsed.as_secs_f64(),
        outcome.calls(),
        outcome.calls_per_s(),
        msec(outcome.mean()),
    )
}

/// Of no call with the expected answer there is none.
fn msec(mean: Option<Nanos>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| format!("{:.2}", mean.as_millis_f64()))
}

/// Why the run does not count, and what to try. The words for the mix are the original's.
pub(super) fn invalid(outcome: &Outcome) -> Option<(String, &'static str)> {
    Some(match outcome.breach()? {
        Breach::OtherMix => (
            format!("INVALID RUN, mix generated is off by {:.2}%", outcome.off_percent()),
            "more calls (-c), or a mix with the operations that others bring with them",
        ),
        Breach::Failed => {
            let (percent, most) = (outcome.failed_percent(), FAILED_MAX_PERCENT);
            let failed = format!("{percent:.2}% of the calls had an unexpected answer");
            (format!("INVALID RUN, {failed}, of which {most}% are allowed"), "the server's log")
        }
    })
}

fn additions(text: &mut String, ran: &Ran) {
    let outcome = &ran.outcome;
    writeln!(text, "mix         {}: {}", outcome.mix.name, outcome.mix.source).ok();
    writeln!(text, "cached      nothing by a client: each operation is calls to the server").ok();
    writeln!(text, "durable     {}", write_stability(&outcome.mix)).ok();
    writeln!(text, "generator   {:.0} % of a processor", 100.0 * ran.generator_share).ok();
    response_times(text, outcome);
    writeln!(text, "rate        {}", rate(outcome)).ok();
    writeln!(text, "mix is off  {:.2}%, of which 10% are allowed", outcome.off_percent()).ok();
    if outcome.failed() > 0 {
        let first = outcome.first_failure.as_deref().unwrap_or("");
        let failed = outcome.failed();
        writeln!(text, "failed      {failed} calls had an unexpected answer; the first: {first}")
            .ok();
    }
    if ran.retransmissions > 0 {
        writeln!(text, "retrans     {} calls", ran.retransmissions).ok();
    }
    background(text, ran);
}

/// Whether the calls came at the offered rate.
pub(super) fn rate(outcome: &Outcome) -> String {
    let (rate, offered) = (outcome.calls_per_s(), outcome.load_per_s);
    let above = 100.0 * (rate / offered - 1.0);
    let pace = match outcome.pace() {
        Pace::Below => format!("NOT reached: {rate:.2} of "),
        Pace::AsOffered => String::new(),
        Pace::Above => format!("NOT kept: {rate:.2}, {above:.0} % above the "),
    };
    format!("{pace}{offered:.2} calls/sec offered; at most {:.2} s behind", outcome.behind_max)
}

fn response_times(text: &mut String, outcome: &Outcome) {
    let mut times = Histogram::default();
    for tally in outcome.operations.values() {
        times.merge(&tally.times);
    }
    let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|share| quantile(&times, share));
    writeln!(text, "times       median {p50}, 95 % under {p95}, 99 % under {p99}, longest {max}")
        .ok();
}

/// What this host did besides, before the run.
fn background(text: &mut String, ran: &Ran) {
    let counted = |calls: Option<u64>| {
        calls.map_or_else(|| "not known".to_owned(), |calls| calls.to_string())
    };
    let (server, client) = (counted(ran.background.server), counted(ran.background.client));
    let seconds = BACKGROUND_TIME.as_secs_f64();
    writeln!(
        text,
        "background  calls in {seconds} s before: {server} at this host's server, {client} of its \
         mounts"
    )
    .ok();
}
