//! A change of a trace's servers: by the formula, by mean value analysis, and by a world.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::trace::Transaction;
use perf::model::whatif::of_trace::{TraceCase, TracePrediction, answer};

use super::text::no_simulation;
use super::text::{refused, times, whole, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::fit;
use crate::model::page::{Page, or_dash, span};
use crate::model::worlds::Stage;

pub(super) fn page(args: &WhatIf, transactions: &[Transaction]) -> Result<Page, Failure> {
    let explained = fit::trace::explained(transactions, &args.file)?;
    let answers = answer(&explained, args.outstanding, &args.changes).map_err(refused)?;
    let mut page = Page::new("whatif", Some(&args.file));
    let mut table = table();
    for (when, prediction) in ["before", "after"].into_iter().zip(&answers) {
        let simulated = answered(when, prediction, explained.transactions as u64, &mut page);
        table.row(row(when, prediction, simulated));
    }
    let [before, after] = &answers;
    let gain = after.per_s.value / before.per_s.value;
    page.record.metric("formula/gain", gain, "ratio");
    table.row(["gain".to_owned(), String::new(), at_most(after) + &times(gain)]);
    let average = format!("\nthe average call after the change: {}\n", call(&after.case));
    page.text.insert_str(0, &(table.text() + &average));
    page.unidentified(explained.unidentified());
    Ok(page)
}

fn table() -> Table {
    let names = [right("MVA"), right("simulation"), right("saturation"), left("bound by")];
    let first = [left("calls/s"), right("outstanding"), left("formula")];
    Table::new(first.into_iter().chain(names))
}

/// Records what the models have, and gives the simulation's.
fn answered(when: &str, prediction: &TracePrediction, n: u64, page: &mut Page) -> Option<f64> {
    page.record.estimate(&format!("formula/{when}/per_s"), &prediction.per_s, "1/s", n);
    page.record.metric(&format!("mva/{when}/per_s"), prediction.closed_per_s, "1/s");
    let simulated = Stage::of_trace(&prediction.case).per_s();
    let per_s = simulated.map_err(|why| no_simulation(page, when, &why)).ok()?;
    page.record.metric(&format!("simulation/{when}/per_s"), per_s, "1/s");
    Some(per_s)
}

fn row(when: &str, prediction: &TracePrediction, simulated: Option<f64>) -> [String; 7] {
    let by = match (prediction.is_full, prediction.is_at_most) {
        (true, _) => "the servers, always busy",
        (false, true) => "the window; no limit was seen",
        (false, false) => "the window",
    };
    [
        when.to_owned(),
        prediction.case.outstanding.to_string(),
        at_most(prediction) + &with_interval(&prediction.per_s, whole),
        whole(prediction.closed_per_s),
        or_dash(simulated.map(whole)),
        or_dash(prediction.saturation_per_s.map(whole)),
        by.to_owned(),
    ]
}

/// Before a number that is the most there can be.
fn at_most(prediction: &TracePrediction) -> String {
    if prediction.is_at_most { "at most ".to_owned() } else { String::new() }
}

fn call(case: &TraceCase) -> String {
    let (size, servers) = (scaled(case.kib * 1024.0), case.servers);
    let [way, demand] = [case.way_us, case.demand_us()].map(span);
    format!("{size} of data, network round trip {way}, demand {demand} on one of {servers} servers")
}
