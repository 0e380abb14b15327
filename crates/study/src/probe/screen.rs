//! What a probe found, on one screen.

use std::fmt::Write as _;

use harness::records::number;
use harness::table::{Table, left, right};
use load::probe::concurrency::Servers;
use perf::stats::Estimate;

use super::notes;
use super::probed::Probed;
use crate::explain::{Row, bytes};

pub(super) fn text(outcome: &Probed) -> String {
    let mut text = String::new();
    let Probed { url, link, took, .. } = outcome;
    writeln!(text, "{url}, link {link}; {:.0} s\n", took.as_secs_f64()).ok();
    text.push_str(&table(outcome).text());
    let explanation = &outcome.explanation;
    writeln!(text, "\n{}", best(outcome)).ok();
    writeln!(text, "{}", notes::form(outcome)).ok();
    if let Some(sentence) = explanation.first_sentence() {
        writeln!(text, "{sentence}").ok();
    }
    text.push_str(&curve(outcome));
    for (_, note) in notes::unidentified(outcome) {
        writeln!(text, "note: {note}").ok();
    }
    text
}

/// Which window is best, and whether it gave what it was to give.
pub(super) fn best(outcome: &Probed) -> String {
    let after = outcome.explanation.after;
    let (size, calls) = (bytes(after.call_bytes), after.outstanding);
    format!("Best: calls of {size}, {calls} outstanding{}.", gain(outcome))
}

fn table(outcome: &Probed) -> Table {
    let interval = left("95 % interval");
    let columns = [left("parameter"), right("value"), left("unit"), interval, right("n")];
    Table::of(columns, parameters(outcome).iter().map(row))
}

/// What the best window should gain, and what it gained in the sweep.
fn gain(outcome: &Probed) -> String {
    match outcome.gain() {
        Some(gain) => format!(
            ": {:.1} times as much as one call of {} should come of it, {:.1} times came, {}",
            gain.predicted,
            bytes(outcome.explanation.before.call_bytes),
            gain.measured,
            gain.sentence()
        ),
        None => String::new(),
    }
}

/// A parameter as it is shown and recorded.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// In the record.
    pub(super) key: &'static str,
    pub(super) estimate: Estimate,
    pub(super) unit: &'static str,
    pub(super) n: u64,
    pub(super) at_least: bool,
}

pub(super) fn parameters(outcome: &Probed) -> Vec<Parameter> {
    let (findings, concurrency) = (&outcome.findings, &outcome.concurrency);
    let (null, rounds) = (findings.null_us.len() as u64, findings.rounds as u64);
    let (bursts, full) = (findings.bursts as u64, concurrency.rounds as u64);
    let parameter =
        |name, key, estimate, unit, n| Parameter { name, key, estimate, unit, n, at_least: false };
    let mut all = vec![
        parameter("T_prop", "t_prop_us", outcome.t_prop(), "us", null),
        parameter("T_ser", "t_ser_us_per_kib", findings.ser_us_per_kib, "us/KiB", rounds),
        parameter("G", "gap_us_per_kib", findings.gap_us_per_kib, "us/KiB", bursts),
        parameter("g", "gap_us", findings.gap_us, "us", bursts),
        parameter("o", "overhead_us", findings.overhead_us, "us", bursts),
    ];
    if let Some(client) = concurrency.client_us {
        all.push(parameter("T_op, client", "t_op_client_us", client, "us", full));
    }
    if outcome.is_stable_only() {
        all.push(parameter("T_op + T_B", "t_op_us", findings.op_us, "us", rounds));
    } else {
        all.push(parameter("T_op, server", "t_op_us", findings.op_us, "us", rounds));
        all.push(parameter("T_B, 8 KiB", "t_b_us", findings.block_us, "us", rounds));
        all.push(parameter("T_B, COMMIT", "commit_us", findings.commit_us, "us", bursts));
    }
    let shown = notes::Shown::of(outcome);
    let servers = concurrency.servers.filter(|_| shown.operation);
    let stable = concurrency.stable_servers.filter(|_| shown.block);
    all.extend(servers.map(|found| counted("servers", "servers", found, full)));
    all.extend(stable.map(|found| counted("stable together", "stable_servers", found, full)));
    all
}

/// How many the server works on side by side.
fn counted(name: &'static str, key: &'static str, servers: Servers, n: u64) -> Parameter {
    let Servers { count: estimate, at_least } = servers;
    Parameter { name, key, estimate, unit: "", n, at_least: at_least.is_some() }
}

fn row(parameter: &Parameter) -> [String; 5] {
    let Parameter { name, estimate, unit, n, at_least, .. } = parameter;
    let interval = match estimate.ci95 {
        _ if *at_least => "at least".to_owned(),
        Some(ci95) => match estimate.at_most() {
            Some(most) => format!("at most {}", number(most)),
            None => format!("{} to {}", number(ci95.lo), number(ci95.hi)),
        },
        None => "-".to_owned(),
    };
    let value = number(estimate.value);
    [(*name).to_owned(), value, (*unit).to_owned(), interval, n.to_string()]
}

fn cells(row: &Row) -> String {
    let predicted = row.prediction.mib_per_s;
    match row.measured_mib_per_s.zip(row.error_pct()) {
        Some((measured, error)) => format!("{predicted:>11.1}{measured:>11.1}{error:>+6.0} %"),
        None => format!("{predicted:>11.1}{:>11}{:>8}", "-", "-"),
    }
}

/// Throughput over calls outstanding: by the model, and measured.
fn curve(outcome: &Probed) -> String {
    let mut text = String::new();
    let explanation = &outcome.explanation;
    let sizes = explanation.sizes();
    write!(text, "\n{:<12}", "outstanding").ok();
    for &size in &sizes {
        write!(text, "{:>30}", format!("{} (MiB/s)", bytes(size))).ok();
    }
    write!(text, "\n{:<12}", "").ok();
    for _ in &sizes {
        write!(text, "{:>11}{:>11}{:>8}", "predicted", "measured", "error").ok();
    }
    for window in load::study::WINDOWS {
        write!(text, "\n{window:<12}").ok();
        for &size in &sizes {
            let row =
                explanation.curve(0, size).find(|row| row.configuration.outstanding == window);
            text.extend(row.map(cells));
        }
    }
    writeln!(text, "\nerror {}", explanation.errors.sentence()).ok();
    text
}
