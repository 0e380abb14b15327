//! A change of a trace's servers: by the formula, by mean value analysis, and by a world.

use std::fmt::Write;

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::trace::{Explained, Transaction};
use perf::model::whatif::trace::{Case, Outlook, answer};

use super::{interval, refused};
use crate::model::args::estimate::WhatIf;
use crate::model::infer::{self, Fitted};
use crate::model::worlds::Stage;
use crate::model::{record, show, span};

pub(super) fn run(
    args: &WhatIf,
    transactions: &[Transaction],
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let explained = Explained::from(transactions)
        .map_err(|error| infer::failure(&args.file, &error, Fitted::Trace))?;
    let answers = answer(&explained, args.outstanding, &args.changes).map_err(refused)?;
    let mut record = record("whatif", Some(&args.file));
    let mut text = String::new();
    let mut table = Table::new([
        left("calls/s"),
        right("outstanding"),
        left("formula"),
        right("MVA"),
        right("simulation"),
        right("saturation"),
        left("bound by"),
    ]);
    let mut notes = String::new();
    for (when, outlook) in ["before", "after"].into_iter().zip(&answers) {
        let simulated = Stage::of_trace(&outlook.case).per_s();
        let n = explained.transactions as u64;
        record.estimate(&format!("formula/{when}/per_s"), &outlook.per_s, "1/s", n);
        record.metric(&format!("mva/{when}/per_s"), outlook.closed_per_s, "1/s");
        match &simulated {
            Ok(per_s) => {
                record.metric(&format!("simulation/{when}/per_s"), *per_s, "1/s");
            }
            Err(why) => {
                let note = format!("no simulation {when} the change: {why}");
                writeln!(notes, "note: {note}").ok();
                record.warn("no-simulation", &note, "");
            }
        }
        table.row(row(when, outlook, simulated.ok()));
    }
    let [before, after] = &answers;
    let gain = after.per_s.value / before.per_s.value;
    record.metric("formula/gain", gain, "ratio");
    table.row(["gain".to_owned(), String::new(), format!("{gain:.2} x")]);
    text.push_str(&table.text());
    writeln!(text, "\nthe average call after the change: {}", call(&after.case)).ok();
    text.push_str(&notes);
    for said in explained.unidentified() {
        writeln!(text, "note: {said}").ok();
        record.warn("not-identified", &said, "");
    }
    show(&text, &record, args.json.as_deref(), verbosity)
}

fn row(when: &str, outlook: &Outlook, simulated: Option<f64>) -> [String; 7] {
    let said = |value: f64| format!("{value:.0}");
    let formula = format!("{}{}", said(outlook.per_s.value), interval(&outlook.per_s, &said));
    let simulated = simulated.map_or_else(|| "-".to_owned(), said);
    let by = if outlook.is_full { "the servers, always busy" } else { "the window" };
    [
        when.to_owned(),
        outlook.case.outstanding.to_string(),
        formula,
        said(outlook.closed_per_s),
        simulated,
        said(outlook.saturation_per_s),
        by.to_owned(),
    ]
}

fn call(case: &Case) -> String {
    format!(
        "{} of data, way {}, demand {} on one of {} servers",
        scaled(case.kib * 1024.0),
        span(case.way_us),
        span(case.demand_us()),
        case.servers
    )
}
