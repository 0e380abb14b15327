//! The table on the terminal: what was put in, what was read back, and what else has moved.

use std::fmt::Write as _;

use harness::table::{Table, right};
use load::recover::{Injected, Parameter, Point};
use perf::stats::Estimate;
use perf::units::Nanos;

use super::outcome::Outcome;
use super::verdict::{Verdict, error_pct};

/// Headers of a WRITE and of its reply, to the nearest hundred bytes: as in `model::sensitivity`.
const HEADERS_BYTES: f64 = 300.0;

pub(super) fn text(outcome: &Outcome) -> String {
    let server = outcome.url.as_deref().unwrap_or("a server of our own in memory, one thread");
    let mut text = format!(
        "LogGP put in and read back: {server}, behind an L of {} in any case (but for g), {}\n",
        outcome.base_latency, outcome.took
    );
    let names = [
        "put in",
        "read back",
        "error",
        "95 % interval",
        "L (us)",
        "o (us)",
        "g (us)",
        "G (ns/B)",
        "8 KiB WRITE (us)",
        "model",
    ];
    let mut table = Table::new(names.map(right));
    let mut before = None;
    for (parameter, point) in &outcome.sweep {
        if before.is_some_and(|before| before != parameter) {
            table.row::<&str>([]);
        }
        before = Some(parameter);
        table.row(row(*parameter, point));
    }
    writeln!(text, "\n{}", table.text().trim_end()).ok();
    writeln!(text, "\n{}", Verdict::of(&outcome.sweep)).ok();
    text.push_str(
        "The others' columns are differences to the bare path with half of their interval (* does \
         not have 0 in it: moved); g is the time per call of a burst, in brackets that of the bare \
         path; hidden: behind a slower stage.\n",
    );
    text
}

fn row(parameter: Parameter, point: &Point) -> [String; 10] {
    let found = &point.recovered;
    let injected = parameter.of(&point.injected);
    let own = of(parameter, point);
    let others = Parameter::ALL.map(|other| {
        if other == parameter {
            return String::new();
        }
        match (other, of(other, point)) {
            (Parameter::Gap, Some(gap)) => {
                let bare = found.bare_gap_us.map_or(f64::NAN, |bare| bare.value);
                let mark = if is_gap_unchanged(&gap, point) { "" } else { "*" };
                format!("{:.1} ({bare:.1}){mark}", gap.value)
            }
            (_, Some(moved)) => format!("{:+.2} {}", moved.value, spread(&moved)),
            (_, None) => "hidden".to_owned(),
        }
    });
    let predicted = predicted_block_us(point);
    let [latency, overhead, gap, gap_per_byte] = others;
    [
        format!("{parameter} {}", amount(parameter, injected)),
        own.map_or_else(|| "hidden".to_owned(), |own| amount(parameter, own.value)),
        own.map_or_else(String::new, |own| format!("{:+.1} %", error_pct(injected, own.value))),
        own.map_or_else(String::new, |own| interval(parameter, &own)),
        latency,
        overhead,
        gap,
        gap_per_byte,
        format!("{:.0} of {predicted:.0}", point.block_us.1),
        format!("{:+.1} %", error_pct(point.block_us.1, predicted)),
    ]
}

/// Whether the time per call of a burst is that of the bare path, as far as both are known.
pub(super) fn is_gap_unchanged(gap: &Estimate, point: &Point) -> bool {
    let bare = point.recovered.bare_gap_us.and_then(|bare| bare.ci95);
    gap.ci95.zip(bare).is_none_or(|(gap, bare)| gap.overlaps(&bare))
}

/// What was read back of a parameter.
pub(super) fn of(parameter: Parameter, point: &Point) -> Option<Estimate> {
    let found = &point.recovered;
    match parameter {
        Parameter::Latency => Some(found.latency_us),
        Parameter::Overhead => found.overhead_us,
        Parameter::Gap => found.gap_us,
        Parameter::GapPerByte => Some(found.gap_per_byte_ns),
    }
}

/// The response time of a WRITE of 8 KiB by the transaction model: as it was, and what was put in.
pub(super) fn predicted_block_us(point: &Point) -> f64 {
    let Injected { link, overhead } = point.injected;
    let bytes_us = link.gap_per_byte_ps as f64 * (8192.0 + HEADERS_BYTES) / 1e6;
    let spent = 2.0 * point.calls.busy_ends * overhead.as_micros_f64();
    let added = 2.0 * link.latency.as_micros_f64() + spent + bytes_us;
    point.block_us.0 + added
}

/// An amount for eyes: a time, or the rate that a time per byte is.
pub(super) fn amount(parameter: Parameter, amount: f64) -> String {
    match parameter {
        Parameter::GapPerByte => format!("{:.2} MB/s", 1e3 / amount),
        _ => Nanos::from_micros_f64(amount).to_string(),
    }
}

pub(super) fn interval(parameter: Parameter, estimate: &Estimate) -> String {
    let Some(ci95) = estimate.ci95 else { return String::new() };
    match parameter {
        Parameter::GapPerByte => format!("{:.2} to {:.2}", 1e3 / ci95.hi, 1e3 / ci95.lo),
        _ => format!("{:.2} to {:.2} us", ci95.lo, ci95.hi),
    }
}

/// Half of an interval, and a mark where it does not have nothing in it.
fn spread(estimate: &Estimate) -> String {
    let Some(ci95) = estimate.ci95 else { return String::new() };
    let mark = if ci95.contains(0.0) { "" } else { "*" };
    format!("±{:.2}{mark}", (ci95.hi - ci95.lo) / 2.0)
}
