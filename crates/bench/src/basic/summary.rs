//! What stands under the suite's lines: what was measured, and whose time it was.

use std::fmt::Write;

use harness::records::quantile;
use harness::table::{Table, left, right};
use perf::units::Nanos;

use super::ran::Ran;

/// The summary; nothing of a run in which no test came to its clock.
pub(super) fn text(ran: &Ran) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    write(&mut text, ran).ok();
    text
}

fn write(out: &mut String, ran: &Ran) -> std::fmt::Result {
    let place = &ran.place;
    writeln!(out, "\n{}: {}", place.name, place.file_system)?;
    writeln!(out, "  cache: {}", place.cache)?;
    writeln!(out, "  what is answered survives {}", place.survives)?;
    if let Some(link) = &place.link {
        writeln!(out, "  behind an emulated link: {link}")?;
    }
    if let Some(again) = place.retransmissions.filter(|again| *again > 0) {
        writeln!(out, "  calls retransmitted: {again}; their waiting is in the times")?;
    }
    let sum = |of: fn(&load::basic::Measured) -> Nanos| {
        ran.measured.iter().fold(Nanos::ZERO, |sum, one| sum + of(one))
    };
    let (all, own, cpu) = (sum(|one| one.elapsed), sum(|one| one.own()), sum(|one| one.cpu));
    writeln!(
        out,
        "  timed {all}, of which {own} this program's own; processor time of this process {cpu}"
    )?;
    if ran.measured.iter().all(|one| one.operations.is_empty()) {
        return Ok(());
    }
    out.push_str(&table(ran));
    Ok(())
}

fn table(ran: &Ran) -> String {
    let names = ["operations", "p50", "p99", "max", "own time"].map(right);
    let mut table = Table::new([left("")].into_iter().chain(names));
    for one in ran.measured.iter().filter(|one| !one.operations.is_empty()) {
        let at = |q| quantile(&one.operations, q);
        table.row([
            format!("  test{}", one.test.number()),
            one.operations.count().to_string(),
            at(0.5),
            at(0.99),
            at(1.0),
            one.own().to_string(),
        ]);
    }
    table.text()
}
