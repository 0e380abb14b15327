//! The same tables for a document.

use std::fmt::Write as _;

use harness::table::{Table, left};

use super::Simulated;
use super::findings::{difference_pct, model};
use super::outcome::Outcome;
use super::points::Part;
use super::table::{amount, shown, spread, summary};

pub(super) fn text(outcome: &Outcome) -> String {
    let Simulated { service, delay } = outcome.simulated;
    let mut text = format!("The world was given S = {service} and {delay} for the rest (*).\n");
    for part in Part::ALL {
        section(&mut text, outcome, part);
    }
    writeln!(text, "\n{}.", outcome.findings.summary()).ok();
    text
}

fn section(text: &mut String, outcome: &Outcome, part: Part) {
    let pairs: Vec<_> = outcome.pairs(part).collect();
    let Some((baseline, _)) = pairs.iter().find(|(live, _)| live.point.is_baseline()) else {
        return;
    };
    let parameter = part.parameter().to_string();
    let names = [&*parameter, "model", "live", "its range", "world", "differ"];
    let mut table = Table::new(names.map(left));
    let unit = if part == Part::Overhead { "/s" } else { "" };
    for (live, world) in &pairs {
        let (mark, differ) = match live.point.is_input() {
            true => ("*", String::new()),
            false => ("", format!("{:+.1} %", difference_pct(live, world))),
        };
        table.row([
            format!("{}{mark}", amount(live)),
            model(baseline, live).map_or_else(String::new, |value| shown(part, value) + unit),
            format!("{}{unit}", shown(part, live.value.value)),
            spread(part, &live.value),
            format!("{}{unit}", shown(part, world.value.value)),
            differ,
        ]);
    }
    write!(text, "\n{}", table.markdown()).ok();
    for line in summary(outcome, part).lines() {
        writeln!(text, "\n{}", line.trim()).ok();
    }
}
