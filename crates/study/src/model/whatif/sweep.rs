//! A change of a sweep of outstanding calls: by both of its forms, and by a world.

use std::fmt::Write;

use harness::exit::Failure;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::sweep::{Explained, Observed};
use perf::model::whatif::Change;
use perf::model::whatif::sweep::{Outlook, answer, changed};
use perf::record::Run as Record;

use super::{interval, refused};
use crate::model::args::estimate::WhatIf;
use crate::model::fit::name;
use crate::model::infer::{self, Fitted};
use crate::model::worlds::{self, Stage};
use crate::model::{record, show};

pub(super) fn run(
    args: &WhatIf,
    observed: &[Observed],
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let (best, other) = Explained::best(observed)
        .map_err(|error| infer::failure(&args.file, &error, Fitted::Sweep))?;
    let outstanding = args.outstanding.unwrap_or(1);
    let mut record = record("whatif", Some(&args.file));
    let mut text = String::new();
    let mut table =
        Table::new([left(""), left(""), right("outstanding"), left("calls/s"), left("saturation")]);
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        let form = name(explained.form);
        let answers = answer(explained, outstanding, &args.changes).map_err(refused)?;
        for (when, outlook) in ["before", "after"].into_iter().zip(&answers) {
            table.row(row(form, when, outlook));
            let n = observed.len() as u64;
            record.estimate(&format!("{form}/{when}/per_s"), &outlook.per_s, "1/s", n);
        }
    }
    let notes = simulated(&best, outstanding, &args.changes, &mut table, &mut record)?;
    text.push_str(&table.text());
    text.push_str(&notes);
    crate::model::pattern(&best.fitted, &mut text, &mut record);
    for said in best.unidentified() {
        writeln!(text, "note: {said}").ok();
        record.warn("not-identified", &said, "");
    }
    show(&text, &record, args.json.as_deref(), verbosity)
}

/// The same in a world: one server of S, a way of what T has besides, a client that takes o.
fn simulated(
    best: &Explained,
    outstanding: u32,
    changes: &[Change],
    table: &mut Table,
    record: &mut Record,
) -> Result<String, Failure> {
    let mut notes = String::new();
    for (when, changes) in [("before", &[][..]), ("after", changes)] {
        let (values, calls) =
            changed(&worlds::values(best), outstanding, changes).map_err(refused)?;
        match Stage::of_sweep(&values, calls).per_s() {
            Ok(per_s) => {
                table.row(["world", when, &calls.to_string(), &format!("{per_s:.0}")]);
                record.metric(&format!("simulation/{when}/per_s"), per_s, "1/s");
            }
            Err(why) => {
                writeln!(notes, "note: no simulation {when} the change: {why}").ok();
                record.warn("no-simulation", &format!("{when}: {why}"), "");
            }
        }
    }
    Ok(notes)
}

fn row(form: &str, when: &str, outlook: &Outlook) -> [String; 5] {
    let Outlook { outstanding, per_s, saturation_per_s, is_full } = outlook;
    let said = format!("{:.0}{}", per_s.value, interval(per_s, &|value| format!("{value:.0}")));
    let by = if *is_full { "the stage" } else { "the window" };
    let saturation = format!("{saturation_per_s:.0}, bound by {by}");
    [form.to_owned(), when.to_owned(), outstanding.to_string(), said, saturation]
}
