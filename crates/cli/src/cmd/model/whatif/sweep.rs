//! A change of a sweep of outstanding calls.

use std::fmt::Write;

use perf::model::sweep::{Explained, Observed};
use perf::model::whatif::sweep::{Outlook, answer};

use super::super::fit::name;
use super::super::{infer, record, show};
use super::{interval, refused};
use crate::args::Verbosity;
use crate::args::estimate::WhatIf;
use crate::exit::Failure;

pub(super) fn run(
    args: &WhatIf,
    observed: &[Observed],
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let (best, other) =
        Explained::best(observed).map_err(|error| infer::failure(&args.file, &error))?;
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
    for said in best.unidentified() {
        writeln!(text, "note: {said}").ok();
        record.warn("not-identified", &said, "");
    }
    show(&text, &record, args.json.as_deref(), verbosity)
}

fn row(form: &str, when: &str, outlook: &Outlook) -> String {
    let Outlook { outstanding, per_s, saturation_per_s, is_full } = outlook;
    let said = format!("{:.0}{}", per_s.value, interval(per_s, &|value| format!("{value:.0}")));
    let by = if *is_full { "the stage" } else { "the window" };
    format!("{form:<8}{when:<8}{outstanding:>12}  {said:<34}{saturation_per_s:.0}, bound by {by}")
}
