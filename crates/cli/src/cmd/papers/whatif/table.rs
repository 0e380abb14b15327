//! Gains, predicted beside measured.

use std::fmt::Write as _;

use super::Outcome;

pub(super) fn text(outcome: &Outcome, markdown: bool) -> String {
    let mut text = String::new();
    let Outcome { link, base, base_per_s, repeats, took, .. } = outcome;
    let formula_per_s = base.formula().mib_per_s * 128.0;
    writeln!(
        text,
        "WRITEs of 8 KiB, 4 outstanding, behind {link}: {base_per_s:.0} calls/s, by the formula \
         {formula_per_s:.0}; medians of {repeats} runs; {:.0} s\n",
        took.as_secs_f64()
    )
    .ok();
    let heading = ["change", "measured (range)", "formula", "error", "MVA", "simulation"];
    match markdown {
        true => {
            writeln!(text, "| {} |\n|---|---|---|---|---|---|", heading.join(" | ")).ok();
        }
        false => line(&mut text, &heading.map(str::to_owned)),
    }
    for verified in &outcome.verified {
        let gain = |value: f64| format!("{value:.3} x");
        let range = verified
            .measured
            .ci95
            .map_or_else(String::new, |ci95| format!(" ({:.3} to {:.3})", ci95.lo, ci95.hi));
        let cells = [
            verified.name.to_owned(),
            format!("{}{range}", gain(verified.measured.value)),
            gain(verified.formula),
            format!("{:+.1} %", verified.error_pct()),
            gain(verified.closed),
            verified.world.map_or_else(|| "-".to_owned(), gain),
        ];
        match markdown {
            true => {
                writeln!(text, "| {} |", cells.join(" | ")).ok();
            }
            false => line(&mut text, &cells),
        }
    }
    writeln!(text, "\n{}", outcome.summary()).ok();
    text
}

fn line(text: &mut String, cells: &[String; 6]) {
    let [change, measured, formula, error, closed, world] = cells;
    writeln!(text, "{change:<18}{measured:<30}{formula:>9}{error:>10}{closed:>10}{world:>12}").ok();
}
