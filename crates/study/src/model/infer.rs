//! `nfskit model infer`: a server's structure from its curve.

use std::fmt::Write;
use std::path::Path;

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::curve::Curve;
use perf::model::infer::Inferred;
use perf::model::least_squares::{FitError, Found};
use perf::model::whatif::of_server::{Base, ServerPrediction, answer};
use perf::record::Run as Record;

use super::known::Facts;
use super::source::Source;
use super::{Page, span, whatif};
use crate::model::args::estimate::Infer;

/// Runs the command.
pub(super) fn run(args: &Infer, verbosity: Verbosity) -> Result<(), Failure> {
    let Source::Curve(curve, facts) = Source::read(&args.curve, "infer", args.of.as_deref())?
    else {
        return Err(Failure::usage(
            format!("{}: a server is inferred from a curve of response time", args.curve.display()),
            "nfskit model fit explains sweeps and traces",
        ));
    };
    explain(&curve, &args.curve, &args.known.or_before(&facts), args.json.as_deref(), verbosity)
}

/// A curve explained.
pub(super) fn explain(
    curve: &Curve,
    path: &Path,
    facts: &Facts,
    json: Option<&Path>,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let inferred = infer(curve, path, facts)?;
    let mut page = Page::new("infer", Some(path));
    super::source::keep(&mut page.record.model, &measured(curve));
    facts.write(&mut page.record.model);
    page.record.metric("overall_response_us", curve.overall_response_us(), "us");
    let as_it_is = as_it_is(curve, &inferred)?;
    parameters(&mut page.record, &inferred, &as_it_is);
    page.text = text(curve, &inferred, &as_it_is);
    page.unidentified(inferred.unidentified());
    page.systematic(&inferred.fitted);
    page.show(json, verbosity)
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
    let base = Base {
        per_s: curve.peak_per_s() / 2.0,
        callers: None,
        latency_us: 0.0,
        messages_per_op: 1.0,
        client_pays: false,
    };
    let answers = answer(inferred, &base, &[]).map_err(whatif::refused)?;
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

pub(super) fn failure(path: &Path, error: &FitError, to: Fitted) -> Failure {
    let advice = match (error, to) {
        (FitError::TooFew { .. }, Fitted::Curve) => {
            "more load points, or give what is known: --disks, --disk, ..."
        }
        (FitError::TooFew { .. }, Fitted::Sweep) => "more rows, with other numbers outstanding",
        (FitError::TooFew { .. }, Fitted::Trace) => {
            "a longer capture, with calls of several sizes, some alone and some side by side"
        }
        (FitError::Bad { .. } | FitError::Systematic { .. }, Fitted::Curve) => {
            "look at the rows that are far off; --line-each; another --cpus"
        }
        (FitError::Bad { .. } | FitError::Systematic { .. }, _) => {
            "look at the rows that are far off: something that is not in the model took that time"
        }
        (FitError::Start { .. } | FitError::Row { .. } | FitError::NotFinite, Fitted::Curve) => {
            "other values of what is known"
        }
        (FitError::Start { .. } | FitError::Row { .. } | FitError::NotFinite, _) => {
            "numbers above 0, such as a measurement gives"
        }
    };
    Failure::check(format!("{}: {error}", path.display()), advice)
}

fn parameters(record: &mut Record, inferred: &Inferred, as_it_is: &ServerPrediction) {
    let n = inferred.fitted.residuals.len() as u64;
    for found in &inferred.fitted.parameters {
        record.estimate(found.name, &found.estimate, found.unit, n);
    }
    record.metric("disks/least", f64::from(inferred.disks.0), "disks");
    record.metric_if_known("disks/most", inferred.disks.1.map(f64::from), "disks");
    record.metric("typical_error", inferred.fitted.deviation, "1");
    record.estimate("saturation_per_s", &as_it_is.saturation_per_s, "1/s", n);
}

fn text(curve: &Curve, inferred: &Inferred, as_it_is: &ServerPrediction) -> String {
    let mut text = String::new();
    let overall = span(curve.overall_response_us());
    writeln!(text, "{:<22}{overall}", "overall response time").ok();
    writeln!(text, "{:<22}{}", "saturation", whatif::saturation(as_it_is)).ok();
    let mut found = found(&inferred.fitted.parameters);
    found.row(disks(inferred));
    writeln!(text, "\n{}", found.text()).ok();
    text.push_str(&points(curve, inferred).text());
    let percent = inferred.fitted.deviation * 100.0;
    writeln!(text, "typical error {percent:.1} %").ok();
    text
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
    let mut points =
        Table::new([right("calls/s"), right("measured"), right("model"), right("error")]);
    for (point, residual) in curve.points().iter().zip(&inferred.fitted.residuals) {
        points.row([
            format!("{:.1}", point.per_s),
            span(point.response_us),
            span(point.response_us * residual.exp()),
            format!("{:+.1} %", residual.exp_m1() * 100.0),
        ]);
    }
    points
}

/// Parameters with their intervals, in the units that read best.
pub(super) fn found(parameters: &[Found]) -> Table {
    let mut table = Table::new([left("parameter"), right("value"), left("95 % interval")]);
    for found in parameters {
        let text = |value: f64| if found.unit == "bytes" { scaled(value) } else { span(value) };
        let interval = found.estimate.ci95.map(|ci| format!("{} to {}", text(ci.lo), text(ci.hi)));
        let interval = interval.unwrap_or_else(|| "none".to_owned());
        table.row([found.name.to_owned(), text(found.estimate.value), interval]);
    }
    table
}
