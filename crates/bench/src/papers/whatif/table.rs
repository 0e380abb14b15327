//! Gains, predicted beside measured.

use std::fmt::Write as _;

use harness::table::{Table, left, right};

use super::{Outcome, Verified};

pub(super) fn text(outcome: &Outcome, markdown: bool) -> String {
    let mut text = String::new();
    let Outcome { link, held, base_per_s, repeats, took, .. } = outcome;
    let alone = held.iter().map(|held| {
        let per_s = |mib_per_s: f64| mib_per_s * 128.0;
        let (formula, simulated) = (per_s(held.formula), per_s(held.simulated));
        format!(", by the probe alone {formula:.0} (formula) and {simulated:.0} (simulation)")
    });
    writeln!(
        text,
        "WRITEs of 8 KiB, 4 outstanding, behind {link}: {base_per_s:.0} calls/s{}; medians of \
         {repeats} runs; {:.0} s\n",
        alone.collect::<String>(),
        took.as_secs_f64()
    )
    .ok();
    let mut table = Table::new([
        left("change"),
        left("measured (range)"),
        right("formula"),
        right("MVA"),
        right("simulation"),
        left("chosen"),
        right("error"),
        left("verdict"),
    ]);
    outcome.verified.iter().for_each(|verified| table.row(row(verified)));
    text.push_str(&table.shown(markdown));
    writeln!(text, "\n{}", outcome.summary()).ok();
    text
}

fn row(verified: &Verified) -> [String; 8] {
    let gain = |value: f64| format!("{value:.3} x");
    let range = verified
        .measured
        .ci95
        .map_or_else(String::new, |ci95| format!(" ({:.3} to {:.3})", ci95.lo, ci95.hi));
    [
        verified.name.to_owned(),
        format!("{}{range}", gain(verified.measured.value)),
        gain(verified.formula),
        gain(verified.closed),
        verified.world.map_or_else(|| "-".to_owned(), gain),
        verified.believed.0.name().to_owned(),
        format!("{:+.1} %", verified.error_pct()),
        verified.gain().verdict().to_owned(),
    ]
}
