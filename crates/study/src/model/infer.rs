//! `nfskit model infer`: a server's structure from its curve.

use std::path::Path;

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use perf::model::curve::{Curve, Point};
use perf::model::infer::Inferred;
use perf::model::least_squares::{FitError, Found};
use perf::model::whatif::of_server::{Base, ServerPrediction, answer};
use perf::record::Run as Record;

use super::known::Facts;
use super::page::{Page, interval, percent, span};
use super::source::{Source, keep};
use super::whatif::text::{refused, saturation};
use crate::model::args::estimate::Infer;

/// What the command shows.
pub(super) fn page(args: &Infer) -> Result<Page, Failure> {
    let source = Source::read(&args.curve, "infer", args.of.as_deref())?;
    let Source::Curve(curve, facts) = source else { return Err(no_curve(&args.curve)) };
    explain(&curve, &args.curve, &args.known.or_before(&facts))
}

fn no_curve(file: &Path) -> Failure {
    let what = "a server is inferred from a curve of response time";
    let advice = "nfskit model fit explains sweeps and traces";
    Failure::environment(format!("{}: {what}", file.display()), advice)
}

/// A curve explained.
pub(super) fn explain(curve: &Curve, path: &Path, facts: &Facts) -> Result<Page, Failure> {
    let inferred = infer(curve, path, facts)?;
    let as_it_is = as_it_is(curve, &inferred)?;
    let mut page = Page::new("infer", Some(path));
    keep(&mut page.record.model, &measured(curve));
    facts.write(&mut page.record.model);
    page.record.metric("overall_response_us", curve.overall_response_us(), "us");
    parameters(&mut page.record, &inferred, &as_it_is);
    page.text = text(curve, &inferred, &as_it_is);
    page.unidentified(inferred.unidentified());
    page.systematic(&inferred.fitted);
    Ok(page)
}

/// As it is read again.
fn measured(curve: &Curve) -> String {
    let rows =
        curve.points().iter().map(|point| format!("{} {}\n", point.per_s, point.response_us));
    rows.fold("throughput_per_s response_us\n".to_owned(), |text, row| text + &row)
}

/// The server that a file's curve shows.
pub(super) fn infer(curve: &Curve, path: &Path, facts: &Facts) -> Result<Inferred, Failure> {
    Inferred::from(curve, facts.given()).map_err(|error| failure(path, &error, Fitted::Curve))
}

/// The server without a change, with what explains the curve as well: where it saturates, and by
/// what.
fn as_it_is(curve: &Curve, inferred: &Inferred) -> Result<ServerPrediction, Failure> {
    let base = Base::at(curve.peak_per_s() / 2.0);
    let answers = answer(inferred, &base, &[]).map_err(refused)?;
    let none = || Failure::check("the curve gives no server", "more load points");
    answers.first().map(|answer| answer.before).ok_or_else(none)
}

/// What a fit was made to.
#[derive(Clone, Copy)]
pub(super) enum Fitted {
    Curve,
    Sweep,
    Trace,
}

impl Fitted {
    /// What to try where there is too little of it, where it is far off, and where it is no
    /// measurement.
    fn advice(self) -> [&'static str; 3] {
        const OFF: &str =
            "look at the rows that are far off: something that is not in the model took that time";
        const WRONG: &str = "numbers above 0, such as a measurement gives";
        match self {
            Self::Curve => [
                "more load points, or give what is known: --disks, --disk, ...",
                "look at the rows that are far off; --line-each; another --cpus",
                "other values of what is known",
            ],
            Self::Sweep => ["more rows, with other numbers outstanding", OFF, WRONG],
            Self::Trace => [
                "a longer capture, with calls of several sizes, some alone and some side by side",
                OFF,
                WRONG,
            ],
        }
    }
}

pub(super) fn failure(path: &Path, error: &FitError, to: Fitted) -> Failure {
    let [too_few, off, wrong] = to.advice();
    let advice = match error {
        FitError::TooFew { .. } => too_few,
        FitError::TooMany { .. } => {
            "every second row, every tenth: as many as show the curve's bends"
        }
        FitError::Bad { .. } | FitError::Systematic { .. } => off,
        FitError::Start { .. } | FitError::Row { .. } | FitError::NotFinite => wrong,
    };
    let what = format!("{}: {error}", path.display());
    match error {
        // The form is held to what was measured, and fails.
        FitError::Bad { .. } | FitError::Systematic { .. } => Failure::check(what, advice),
        // What was measured is nothing that a form can be held to.
        _ => Failure::environment(what, advice),
    }
}

fn parameters(record: &mut Record, inferred: &Inferred, as_it_is: &ServerPrediction) {
    let n = inferred.fitted.residuals.len() as u64;
    for found in &inferred.fitted.parameters {
        record.estimate(found.name, &found.estimate, found.unit, n);
    }
    record.metric("disks/least", f64::from(inferred.disks.0), "disks");
    record.metric_if_known("disks/most", inferred.disks.1.map(f64::from), "disks");
    record.metric("typical_error", inferred.fitted.deviation, "1");
    if let Some(saturation_per_s) = &as_it_is.saturation_per_s {
        record.estimate("saturation_per_s", saturation_per_s, "1/s", n);
    }
}

fn text(curve: &Curve, inferred: &Inferred, as_it_is: &ServerPrediction) -> String {
    let mut found = found(&inferred.fitted.parameters);
    found.row(disks(inferred));
    format!(
        "{:<22}{}\n{:<22}{}\n\n{}\n{}typical error {:.1} %\n",
        "overall response time",
        span(curve.overall_response_us()),
        "saturation",
        saturation(as_it_is),
        found.text(),
        points(curve, inferred).text(),
        inferred.fitted.deviation * 100.0
    )
}

fn disks(inferred: &Inferred) -> [String; 3] {
    let servers = inferred.server.disks.servers();
    let (disks, range) = match (inferred.given.disks, inferred.disks) {
        (Some(disks), _) => (disks, "given".to_owned()),
        (None, (least, Some(most))) => (servers, format!("{least} to {most}")),
        (None, (least, None)) => (servers, format!("{least} or more")),
    };
    ["disks".to_owned(), disks.to_string(), range]
}

fn points(curve: &Curve, inferred: &Inferred) -> Table {
    let columns = ["calls/s", "measured", "model", "error"].map(right);
    let both = curve.points().iter().zip(&inferred.fitted.residuals);
    Table::of(columns, both.map(|(point, residual)| point_row(point, *residual)))
}

fn point_row(point: &Point, residual: f64) -> [String; 4] {
    let [measured, model] = [1.0, residual.exp()].map(|times| span(point.response_us * times));
    [format!("{:.1}", point.per_s), measured, model, percent(residual.exp_m1())]
}

/// Parameters with their intervals, in the units that read best.
pub(super) fn found(parameters: &[Found]) -> Table {
    let columns = [left("parameter"), right("value"), left("95 % interval")];
    Table::of(columns, parameters.iter().map(found_row))
}

fn found_row(found: &Found) -> [String; 3] {
    let text = |value: f64| if found.unit == "bytes" { scaled(value) } else { span(value) };
    let interval = interval(&found.estimate, text).unwrap_or_else(|| "none".to_owned());
    [found.name.to_owned(), text(found.estimate.value), interval]
}
