//! A change of a server that a curve shows: by the open formula, with callers by mean value
//! analysis, and by a world.

use harness::exit::Failure;
use harness::table::{Table, left, right};
use perf::model::curve::Curve;
use perf::model::queue::file_server::FileServer;
use perf::model::whatif::of_server::{Answer, Base, Method, ServerPrediction, answer};
use perf::record::Run as Record;
use perf::units::Nanos;
use world::simulate::Outcome;

use super::text::added_latency;
use super::text::{refused, saturation, whole, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::infer;
use crate::model::known::Facts;
use crate::model::page::{Page, or_dash, span};
use crate::model::worlds::{self, Load};

/// What the command shows.
pub(super) fn page(args: &WhatIf, curve: &Curve, facts: &Facts) -> Result<Page, Failure> {
    let inferred = infer::infer(curve, &args.file, &args.known.or_before(facts))?;
    let base = Base {
        callers: args.callers,
        latency_us: args.latency.map_or(0.0, Nanos::as_micros_f64),
        messages_per_op: args.messages.unwrap_or(2.0),
        ..Base::at(args.rate.unwrap_or_else(|| curve.peak_per_s() / 2.0))
    };
    let answers = answer(&inferred, &base, &args.changes).map_err(refused)?;
    let mut page = Page::new("whatif", Some(&args.file));
    let names = [right("calls/s"), left("response time"), left("saturation")];
    let mut table = Table::new([left(""), left("")].into_iter().chain(names));
    for answer in &answers {
        formula(answer, curve.points().len() as u64, &mut table, &mut page.record);
    }
    // The rate is of arrivals that do not wait, the saturation of the callers where there are some.
    if let (Some(open), Some(last)) = (answers.first(), answers.last()) {
        simulated("before", (&open.before, &last.before), &mut table, &mut page);
        simulated("after", (&open.after, &last.after), &mut table, &mut page);
    }
    page.text.insert_str(0, &table.text());
    if base.latency_us == 0.0 {
        added_latency(&args.changes, "D", &mut page);
    }
    page.systematic(&inferred.fitted);
    page.unidentified(inferred.unidentified());
    Ok(page)
}

/// Before and after, by one of the methods.
fn formula(answer: &Answer, n: u64, table: &mut Table, record: &mut Record) {
    let method = match answer.method {
        Method::Open => "open",
        Method::Closed => "closed",
    };
    for (when, prediction) in [("before", &answer.before), ("after", &answer.after)] {
        table.row(row(method, when, prediction));
        let name = |what: &str| format!("{method}/{when}/{what}");
        if let Some(us) = &prediction.response_us {
            record.estimate(&name("response_us"), us, "us", n);
        }
        if let Some(per_s) = &prediction.saturation_per_s {
            record.estimate(&name("saturation_per_s"), per_s, "1/s", n);
        }
    }
}

/// The same in a world: at the rate, and with nobody waiting; its cache is as at either.
fn simulated(
    when: &str,
    (open, full): (&ServerPrediction, &ServerPrediction),
    table: &mut Table,
    page: &mut Page,
) {
    let ServerPrediction { server, per_s, callers, .. } = *full;
    let [edge_per_s, full_per_s] =
        [open, full].map(|prediction| prediction.saturation_per_s.map(|found| found.value));
    let mut run = |load: Load, per_s: f64, what: &str| {
        let run = world(&server, per_s, load);
        let note = |why: &String| format!("no simulation {when} the change, {what}: {why}");
        run.map_err(|why| page.note("no-simulation", &note(&why), "")).ok()
    };
    // Callers that are too few do not reach it either.
    let is_reached =
        full.response_us.is_some() && edge_per_s.is_none_or(|edge| per_s < FULL * edge);
    let at_rate = is_reached.then(|| run(Load::Rate(per_s), per_s, "at the rate")).flatten();
    let full = full_per_s.and_then(|saturation| {
        let callers = callers.unwrap_or_else(|| enough(&server, saturation));
        run(Load::Callers(callers), saturation, "at the saturation")
    });
    let (at_rate, full) =
        (at_rate.map(|world| worlds::response(&world)), full.map(|world| world.per_s));
    let values = [("response_us", at_rate, "us"), ("saturation_per_s", full, "1/s")];
    for (name, value, unit) in values {
        let name = format!("simulation/{when}/{name}");
        page.record.metric_if_known(&name, value, unit);
    }
    let response = at_rate.map_or_else(|| "not reached".to_owned(), span);
    let saturation = or_dash(full.map(whole));
    table.row([
        "simulation".to_owned(),
        when.to_owned(),
        format!("{per_s:.1}"),
        response,
        saturation,
    ]);
}

fn world(server: &FileServer, per_s: f64, load: Load) -> Result<Outcome, String> {
    worlds::run(&worlds::file_server(server, per_s, load)?)
}

/// A rate so near to the saturation has no steady state in the time of a run.
const FULL: f64 = 0.98;

/// Callers that fill the server: some times as many as are in it at half its load.
fn enough(server: &FileServer, saturation_per_s: f64) -> u32 {
    let base_us = server.response_us(saturation_per_s / 2.0).unwrap_or(0.0);
    let servers = f64::from(server.cpu.servers()) + f64::from(server.disks.servers());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let callers = (4.0 * (saturation_per_s * base_us / 1e6 + servers)).ceil() as u32;
    callers
}

fn row(method: &str, when: &str, prediction: &ServerPrediction) -> [String; 5] {
    let response = match &prediction.response_us {
        Some(us) => with_interval(us, span),
        None => "not reached".to_owned(),
    };
    let per_s = format!("{:.1}", prediction.per_s);
    [method.to_owned(), when.to_owned(), per_s, response, saturation(prediction)]
}
