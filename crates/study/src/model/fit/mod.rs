//! `nfskit model fit`: a sweep of outstanding calls, a trace or a curve explained.

mod trace;

use std::fmt::Write;
use std::path::Path;

use harness::exit::Failure;
use harness::table::{Table, right};
use harness::verbosity::Verbosity;
use perf::model::sweep::{Explained, Form, SweepPoint};
use perf::record::Run as Record;

use super::Page;
use super::infer::{Fitted, failure, found};
use super::source::{Source, keep};
use crate::model::args::estimate::Fit;

/// Runs the command.
pub(super) fn run(args: &Fit, verbosity: Verbosity) -> Result<(), Failure> {
    let json = args.json.as_deref();
    match Source::read(&args.file, "fit", args.of.as_deref())? {
        Source::Curve(curve, facts) => super::infer::explain(
            &curve,
            &args.file,
            &args.known.or_before(&facts),
            json,
            verbosity,
        ),
        Source::Sweep(observed) => explain(&observed, &args.file, json, verbosity),
        Source::Trace(transactions) => trace::explain(&transactions, &args.file, json, verbosity),
        Source::Path(_) => Err(Failure::usage(
            format!("{}: a probe's record holds parameters already", args.file.display()),
            "nfskit model whatif, with a change",
        )),
    }
}

fn explain(
    observed: &[SweepPoint],
    file: &Path,
    json: Option<&Path>,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let (best, other) =
        Explained::best(observed).map_err(|error| failure(file, &error, Fitted::Sweep))?;
    let mut page = Page::new("fit", Some(file));
    keep(&mut page.record.model, &measured(observed));
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        parameters(&mut page.record, explained, observed.len() as u64);
    }
    page.text = screen(observed, &best, other.as_ref());
    page.unidentified(best.unidentified());
    page.systematic(&best.fitted);
    page.show(json, verbosity)
}

/// As it is read again.
fn measured(observed: &[SweepPoint]) -> String {
    let rows =
        observed.iter().map(|SweepPoint { outstanding, per_s }| format!("{outstanding} {per_s}\n"));
    rows.fold("outstanding throughput_per_s\n".to_owned(), |text, row| text + &row)
}

fn parameters(record: &mut Record, explained: &Explained, n: u64) {
    let form = name(explained.form);
    for found in &explained.fitted.parameters {
        record.estimate(&format!("{form}/{}", found.name), &found.estimate, found.unit, n);
    }
    record.metric(&format!("{form}/typical_error"), explained.fitted.deviation, "1");
    record.metric(&format!("{form}/saturation_per_s"), explained.saturation_per_s(), "1/s");
}

pub(super) fn name(form: Form) -> &'static str {
    match form {
        Form::Corner => "corner",
        Form::Curve => "curve",
    }
}

fn screen(observed: &[SweepPoint], best: &Explained, other: Option<&Explained>) -> String {
    let mut text = String::new();
    let percent = best.fitted.deviation * 100.0;
    let form = name(best.form);
    write!(text, "explained best by the {form}, typical error {percent:.1} %").ok();
    if let Some(other) = other {
        let percent = other.fitted.deviation * 100.0;
        write!(text, " (the {}: {percent:.1} %)", name(other.form)).ok();
    }
    write!(text, "\n\n{}", found(&best.fitted.parameters).text()).ok();
    let saturation = best.saturation_per_s();
    writeln!(text, "\nsaturation {saturation:.0} calls/s from {:.0} calls on", best.knee()).ok();
    text + &format!("\n{}", points(observed, best).text())
}

fn points(observed: &[SweepPoint], best: &Explained) -> Table {
    let mut points = Table::new(["outstanding", "measured", "model", "error"].map(right));
    for (point, residual) in observed.iter().zip(&best.fitted.residuals) {
        let (model, percent) = (point.per_s * residual.exp(), residual.exp_m1() * 100.0);
        let SweepPoint { outstanding, per_s } = point;
        points.row([
            outstanding.to_string(),
            format!("{per_s:.1}"),
            format!("{model:.1}"),
            format!("{percent:+.1} %"),
        ]);
    }
    points
}
