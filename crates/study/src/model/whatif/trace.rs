//! A change of a trace's servers: by its own calls made again, by the formula, by mean value
//! analysis, and by a world. Before the change the first is held to what the trace itself shows.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::trace::{Explained, Measured, TOLERATED, Transaction};
use perf::model::whatif::of_trace::{TraceCase, TracePrediction, answer, off};
use perf::model::whatif::replay::{Replay, ReplayAnswer};

use super::text::no_simulation;
use super::text::{refused, times, whole, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::fit;
use crate::model::infer::{Fitted, failure};
use crate::model::page::{Page, or_dash, percent, span};
use crate::model::worlds::Stage;

pub(super) fn page(args: &WhatIf, transactions: &[Transaction]) -> Result<Page, Failure> {
    let explained = fit::trace::explained(transactions, &args.file)?;
    let [before, after] = answer(&explained, args.outstanding, &args.changes).map_err(refused)?;
    let mut page = Page::new("whatif", Some(&args.file));
    // Of a number of outstanding calls that was given, the trace shows nothing.
    let replayed = match args.outstanding {
        None => Some(replayed(args, transactions, &explained)?),
        Some(_) => None,
    };
    if let Some(replayed) = &replayed {
        base(&explained, replayed, &mut page);
    }
    let n = explained.transactions as u64;
    let models = [("before", &before), ("after", &after)]
        .map(|(when, prediction)| Models::of(when, prediction, n, &mut page));
    page.table(&table(&[before, after], &models, explained.measured, replayed.as_ref()));
    page.record.metric("formula/gain", after.per_s.value / before.per_s.value, "ratio");
    page.line(format_args!("\nthe average call after the change: {}", call(&after.case)));
    thinks(&before, &after, &mut page);
    page.unidentified(explained.unidentified());
    Ok(page)
}

/// The trace's own calls made again. Fails where that is not what was measured: what such a model
/// has of a change is no prediction.
fn replayed(
    args: &WhatIf,
    transactions: &[Transaction],
    explained: &Explained,
) -> Result<ReplayAnswer, Failure> {
    let replay =
        Replay::of(transactions).map_err(|error| failure(&args.file, &error, Fitted::Trace))?;
    let replayed = replay.answer(explained, &args.changes).map_err(refused)?;
    if off(&replayed.before.measured, &explained.measured) <= TOLERATED {
        return Ok(replayed);
    }
    Err(Failure::check(
        format!(
            "{}: no prediction: {}, which is more than {:.0} % off",
            args.file.display(),
            both(&explained.measured, &replayed.before.measured),
            TOLERATED * 100.0
        ),
        "a stretch in which the load is steady (nfskit trace --from --until --csv); a probe of the \
         path; --outstanding N, of so many calls that are always outstanding",
    ))
}

/// What the trace has, and what the model has of it as it is; first of all, how little the servers
/// may explain.
fn base(explained: &Explained, replayed: &ReplayAnswer, page: &mut Page) {
    let ReplayAnswer { before, after, gain, alone } = replayed;
    let measured = &explained.measured;
    let all = [
        ("measured/before", measured),
        ("replay/before", &before.measured),
        ("replay/after", &after.measured),
        ("servers-alone/before", alone),
    ];
    for (name, Measured { per_s, response_us }) in all {
        page.record.metric(&format!("{name}/per_s"), *per_s, "1/s");
        page.record.metric(&format!("{name}/response_us"), *response_us, "us");
    }
    page.record.estimate("replay/gain", gain, "ratio", explained.transactions as u64);
    if off(alone, measured) > TOLERATED {
        let note = format!(
            "not sure: the servers that were found explain {} of {}, by themselves; what calls \
             took besides is taken to stay as it is",
            rate("calls/s ", alone),
            rate("", measured),
        );
        let advice = "a stretch in which the load is steady (nfskit trace --from --until --csv)";
        page.note("not-explained", &note, advice);
    }
    page.line(format_args!("base: {}\n", both(measured, &before.measured)));
}

/// `the trace has 65 calls/s of 3.100 ms, and its replay 66 (+1.5 %) of 3.200 ms (+3.2 %)`
fn both(measured: &Measured, replayed: &Measured) -> String {
    format!(
        "the trace has {}, and its replay {} ({}) of {} ({})",
        rate("calls/s ", measured),
        whole(replayed.per_s),
        percent(replayed.per_s / measured.per_s - 1.0),
        span(replayed.response_us),
        percent(replayed.response_us / measured.response_us - 1.0),
    )
}

/// `65 calls/s of 3.100 ms`
fn rate(unit: &str, Measured { per_s, response_us }: &Measured) -> String {
    format!("{} {unit}of {}", whole(*per_s), span(*response_us))
}

/// What the models of the average call have for a case.
struct Models {
    closed: Measured,
    simulation: Option<Measured>,
}

impl Models {
    /// Records it, too.
    fn of(when: &str, prediction: &TracePrediction, n: u64, page: &mut Page) -> Self {
        let TracePrediction { per_s, formula, closed, case, .. } = prediction;
        let simulated = Stage::of_trace(case).measured().map(|Measured { per_s, response_us }| {
            Measured { per_s, response_us: response_us - case.think_us }
        });
        let simulation = simulated.map_err(|why| no_simulation(page, when, &why)).ok();
        page.record.estimate(&format!("formula/{when}/per_s"), per_s, "1/s", n);
        page.record.metric(&format!("formula/{when}/response_us"), formula.response_us, "us");
        for (name, found) in [("mva", Some(*closed)), ("simulation", simulation)] {
            let Some(found) = found else { continue };
            page.record.metric(&format!("{name}/{when}/per_s"), found.per_s, "1/s");
            page.record.metric(&format!("{name}/{when}/response_us"), found.response_us, "us");
        }
        Self { closed: *closed, simulation }
    }
}

fn table(
    predictions: &[TracePrediction; 2],
    models: &[Models; 2],
    measured: Measured,
    replayed: Option<&ReplayAnswer>,
) -> Table {
    let names = [right("MVA"), right("simulation"), right("saturation"), left("bound by")];
    let first = [left("calls/s"), right("outstanding"), right("measured"), right("replay")];
    let mut table = Table::new(first.into_iter().chain([left("formula")]).chain(names));
    let replays = replayed.map(|replayed| [replayed.before, replayed.after]);
    for (at, when) in ["before", "after"].into_iter().enumerate() {
        let (prediction, models) = (&predictions[at], &models[at]);
        let replay = replays.map(|replays| replays[at]);
        let cell = |found: Option<Measured>| or_dash(found.map(|found| rate("", &found)));
        let formula = with_interval(&prediction.per_s, whole);
        table.row([
            when.to_owned(),
            prediction.case.outstanding.to_string(),
            cell(replayed.map(|_| measured).filter(|_| at == 0)),
            at_most(prediction).to_owned() + &cell(replay.map(|replay| replay.measured)),
            format!("{}{formula} of {}", at_most(prediction), span(prediction.formula.response_us)),
            cell(Some(models.closed)),
            cell(models.simulation),
            or_dash(prediction.saturation_per_s.map(whole)),
            bound(prediction, replay.map(|replay| replay.utilization)).to_owned(),
        ]);
    }
    table.row(gains(predictions, models, replayed));
    table
}

/// Servers that are busy for more of the time are full.
const FULL: f64 = 0.95;

fn bound(prediction: &TracePrediction, utilization: Option<f64>) -> &'static str {
    let is_full = utilization.map_or(prediction.is_full, |busy| busy > FULL);
    let is_idle = prediction.case.think_us > prediction.formula.response_us;
    match (is_full, prediction.is_at_most) {
        (true, _) => "the servers, always busy",
        (false, _) if is_idle => "the client, between calls",
        (false, true) => "the window; no limit was seen",
        (false, false) => "the window",
    }
}

/// By how many times calls come faster.
fn gains(
    [before, after]: &[TracePrediction; 2],
    [models, models_after]: &[Models; 2],
    replayed: Option<&ReplayAnswer>,
) -> [String; 9] {
    let gain = |before: Measured, after: Measured| times(after.per_s / before.per_s);
    let replay =
        replayed.map(|replayed| with_interval(&replayed.gain, |gain| format!("{gain:.2}")));
    let simulated = models.simulation.zip(models_after.simulation);
    let none = String::new;
    [
        "gain".to_owned(),
        none(),
        none(),
        at_most(after).to_owned() + &or_dash(replay.map(|gain| gain + " x")),
        at_most(after).to_owned() + &times(after.per_s.value / before.per_s.value),
        gain(models.closed, models_after.closed),
        or_dash(simulated.map(|(before, after)| gain(before, after))),
        none(),
        none(),
    ]
}

/// Before a number that is the most there can be.
fn at_most(prediction: &TracePrediction) -> &'static str {
    if prediction.is_at_most { "at most " } else { "" }
}

/// What a client does that makes no calls for a while is its own.
fn thinks(before: &TracePrediction, after: &TracePrediction, page: &mut Page) {
    let think_us = before.case.think_us;
    if think_us <= before.formula.response_us {
        return;
    }
    let is_wider = after.is_at_most && after.case.outstanding > before.case.outstanding;
    let note = format!(
        "a caller takes {} from a reply to its next call, which no change of the server makes \
         less{}",
        span(think_us),
        if is_wider { "; whether it would make more calls at once does not show" } else { "" }
    );
    page.note("client-thinks", &note, "");
}

fn call(case: &TraceCase) -> String {
    let (size, servers) = (scaled(case.kib * 1024.0), case.servers);
    let [way, demand] = [case.way_us, case.demand_us()].map(span);
    format!("{size} of data, network round trip {way}, demand {demand} on one of {servers} servers")
}
