//! The same table for a document.

use harness::table::{Table, left};
use load::recover::{Parameter, Point};
use perf::stats::Estimate;

use super::outcome::Outcome;
use super::table::{amount, interval, is_gap_unchanged, of, predicted_block_us};
use super::verdict::{Verdict, error_pct};

pub(super) fn text(outcome: &Outcome) -> String {
    let names = [
        "put in",
        "read back",
        "95 % interval",
        "error",
        "L (us)",
        "o (us)",
        "g (us)",
        "G (ns/B)",
        "WRITE of 8 KiB",
        "model",
    ];
    let mut table = Table::new(names.map(left));
    outcome.sweep.iter().for_each(|(parameter, point)| table.row(row(*parameter, point)));
    format!("{}\n{}.\n", table.markdown(), Verdict::of(&outcome.sweep))
}

fn row(parameter: Parameter, point: &Point) -> [String; 10] {
    let injected = parameter.of(&point.injected);
    let own = of(parameter, point);
    let or_hidden = |shown: Option<String>| shown.unwrap_or_else(|| "hidden".to_owned());
    let [latency, overhead, gap, gap_per_byte] = Parameter::ALL.map(|other| {
        if other == parameter {
            return String::new();
        }
        or_hidden(of(other, point).map(|found| moved(other, &found, point)))
    });
    let predicted = predicted_block_us(point);
    [
        format!("{parameter} {}", amount(parameter, injected)),
        or_hidden(own.map(|own| amount(parameter, own.value))),
        own.map_or_else(String::new, |own| interval(parameter, &own)),
        own.map_or_else(String::new, |own| format!("{:+.1} %", error_pct(injected, own.value))),
        latency,
        overhead,
        gap,
        gap_per_byte,
        format!("{:.0} us", point.block_us.1),
        format!("{:+.1} %", error_pct(point.block_us.1, predicted)),
    ]
}

/// What has become of a parameter that was not put in: unchanged within noise, where its interval
/// has nothing in it (g: where it meets that of the bare path).
fn moved(parameter: Parameter, found: &Estimate, point: &Point) -> String {
    if parameter == Parameter::Gap {
        let bare = point.recovered.bare_gap_us.map_or(f64::NAN, |bare| bare.value);
        return match is_gap_unchanged(found, point) {
            true => "unchanged".to_owned(),
            false => format!("{bare:.1} to {:.1}", found.value),
        };
    }
    match found.ci95 {
        Some(ci95) if ci95.contains(0.0) => "unchanged".to_owned(),
        Some(ci95) => format!("{:+.2} ({:+.2} to {:+.2})", found.value, ci95.lo, ci95.hi),
        None => format!("{:+.2}", found.value),
    }
}
