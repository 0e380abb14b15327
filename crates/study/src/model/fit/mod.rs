//! `nfskit model fit`: a sweep of outstanding calls, a trace or a curve explained.

mod trace;

use std::fmt::Write;
use std::path::Path;

use harness::exit::Failure;
use harness::table::{Table, right};
use harness::verbosity::Verbosity;
use perf::model::sweep::{Explained, Form, Observed};

use super::infer::{Fitted, failure, found};
use super::source::{Source, keep};
use crate::model::args::estimate::Fit;

/// Runs the command.
pub(super) fn run(args: &Fit, verbosity: Verbosity) -> Result<(), Failure> {
    let json = args.json.as_deref();
    match Source::read(&args.file, "fit", args.of.as_deref())? {
        Source::Curve(curve, told) => {
            super::infer::explain(&curve, &args.file, &args.known.or_before(&told), json, verbosity)
        }
        Source::Sweep(observed) => explain(&observed, &args.file, json, verbosity),
        Source::Trace(transactions) => trace::explain(&transactions, &args.file, json, verbosity),
        Source::Path(_) => Err(Failure::usage(
            format!("{}: a probe's record holds parameters already", args.file.display()),
            "nfskit model whatif, with a change",
        )),
    }
}

fn explain(
    observed: &[Observed],
    file: &Path,
    json: Option<&Path>,
    verbosity: Verbosity,
) -> Result<(), Failure> {
    let (best, other) =
        Explained::best(observed).map_err(|error| failure(file, &error, Fitted::Sweep))?;
    let mut record = super::record("fit", Some(file));
    let mut text = "outstanding throughput_per_s\n".to_owned();
    for Observed { outstanding, per_s } in observed {
        writeln!(text, "{outstanding} {per_s}").ok();
    }
    keep(&mut record.model, &text);
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        let form = name(explained.form);
        for found in &explained.fitted.parameters {
            let n = observed.len() as u64;
            record.estimate(&format!("{form}/{}", found.name), &found.estimate, found.unit, n);
        }
        record.metric(&format!("{form}/typical_error"), explained.fitted.deviation, "1");
        record.metric(&format!("{form}/saturation_per_s"), explained.saturation_per_s(), "1/s");
    }
    for said in best.unidentified() {
        record.warn("not-identified", &said, "");
    }
    let mut text = screen(observed, &best, other.as_ref());
    super::pattern(&best.fitted, &mut text, &mut record);
    super::show(&text, &record, json, verbosity)
}

pub(super) fn name(form: Form) -> &'static str {
    match form {
        Form::Corner => "corner",
        Form::Curve => "curve",
    }
}

fn screen(observed: &[Observed], best: &Explained, other: Option<&Explained>) -> String {
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
    let mut points =
        Table::new([right("outstanding"), right("measured"), right("model"), right("error")]);
    for (point, residual) in observed.iter().zip(&best.fitted.residuals) {
        let (model, percent) = (point.per_s * residual.exp(), residual.exp_m1() * 100.0);
        let Observed { outstanding, per_s } = point;
        points.row([
            outstanding.to_string(),
            format!("{per_s:.1}"),
            format!("{model:.1}"),
            format!("{percent:+.1} %"),
        ]);
    }
    write!(text, "\n{}", points.text()).ok();
    for said in best.unidentified() {
        writeln!(text, "note: {said}").ok();
    }
    text
}
