//! A change of a sweep of outstanding calls: by both of its forms, and by a world.

use std::fmt::Write;

use harness::exit::Failure;
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
    writeln!(text, "{:<8}{:<8}{:>12}  {:<34}saturation", "", "", "outstanding", "calls/s").ok();
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        let form = name(explained.form);
        let answers = answer(explained, outstanding, &args.changes).map_err(refused)?;
        for (when, outlook) in ["before", "after"].into_iter().zip(&answers) {
            writeln!(text, "{}", row(form, when, outlook)).ok();
            let n = observed.len() as u64;
            record.estimate(&format!("{form}/{when}/per_s"), &outlook.per_s, "1/s", n);
        }
    }
    simulated(&best, outstanding, &args.changes, &mut text, &mut record)?;
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
    text: &mut String,
    record: &mut Record,
) -> Result<(), Failure> {
    for (when, changes) in [("before", &[][..]), ("after", changes)] {
        let (values, calls) =
            changed(&worlds::values(best), outstanding, changes).map_err(refused)?;
        match Stage::of_sweep(&values, calls).per_s() {
            Ok(per_s) => {
                writeln!(text, "{:<8}{when:<8}{calls:>12}  {per_s:.0}", "world").ok();
                record.metric(&format!("simulation/{when}/per_s"), per_s, "1/s");
            }
            Err(why) => {
                writeln!(text, "note: no simulation {when} the change: {why}").ok();
                record.warn("no-simulation", &format!("{when}: {why}"), "");
            }
        }
    }
    Ok(())
}

fn row(form: &str, when: &str, outlook: &Outlook) -> String {
    let Outlook { outstanding, per_s, saturation_per_s, is_full } = outlook;
    let said = format!("{:.0}{}", per_s.value, interval(per_s, &|value| format!("{value:.0}")));
    let by = if *is_full { "the stage" } else { "the window" };
    format!("{form:<8}{when:<8}{outstanding:>12}  {said:<34}{saturation_per_s:.0}, bound by {by}")
}
