//! `nfskit model fit`: a sweep of outstanding calls, a trace or a curve explained.

pub(super) mod trace;

use std::path::Path;

use harness::exit::Failure;
use harness::table::{Table, right};
use perf::model::sweep::{Explained, Form, SweepPoint, highest_per_s};
use perf::record::Run as Record;

use super::infer::{self, Fitted, failure, found};
use super::page::{Page, percent, span};
use super::source::{Source, keep};
use crate::model::args::estimate::Fit;

/// What the command shows.
pub(super) fn page(args: &Fit) -> Result<Page, Failure> {
    let file = &args.file;
    let source = Source::read(file, "fit", args.of.as_deref())?;
    source.check_known(&args.known)?;
    match source {
        Source::Curve(curve, facts) => infer::explain(&curve, file, &args.known.or_before(&facts)),
        Source::Sweep(observed) => explain(&observed, file),
        Source::Trace(transactions) => trace::explain(&transactions, file),
        Source::Path(..) => Err(Failure::usage(
            format!("{}: a probe's record holds parameters already", file.display()),
            "nfskit model whatif, with a change",
        )),
    }
}

/// A sweep by the form that fits better, and by the other where that fits at all.
pub(super) fn sweep(
    observed: &[SweepPoint],
    file: &Path,
) -> Result<(Explained, Option<Explained>), Failure> {
    Explained::best(observed).map_err(|error| failure(file, &error, Fitted::Sweep))
}

fn explain(observed: &[SweepPoint], file: &Path) -> Result<Page, Failure> {
    let (best, other) = sweep(observed, file)?;
    let mut page = Page::new("fit", Some(file));
    keep(&mut page.record.model, &measured(observed));
    for explained in [Some(&best), other.as_ref()].into_iter().flatten() {
        parameters(&mut page.record, explained, observed.len() as u64);
    }
    page.text = screen(observed, &best, other.as_ref());
    page.falls(&best);
    page.unidentified(best.unidentified());
    page.systematic(&best.fitted);
    Ok(page)
}

/// As it is read again.
fn measured(observed: &[SweepPoint]) -> String {
    let rows =
        observed.iter().map(|SweepPoint { outstanding, per_s }| format!("{outstanding} {per_s}\n"));
    rows.fold("outstanding throughput_per_s\n".to_owned(), |text, row| text + &row)
}

fn parameters(record: &mut Record, explained: &Explained, n: u64) {
    let form = name(explained.form);
    for found in explained.shown() {
        record.estimate(&format!("{form}/{}", found.name), &found.estimate, found.unit, n);
    }
    record.metric(&format!("{form}/typical_error"), explained.fitted.deviation, "1");
    let saturation = explained.saturation().map(|found| found.per_s);
    record.metric_if_known(&format!("{form}/saturation_per_s"), saturation, "1/s");
}

pub(super) fn name(form: Form) -> &'static str {
    match form {
        Form::Corner => "corner",
        Form::Curve => "curve",
    }
}

fn screen(observed: &[SweepPoint], best: &Explained, other: Option<&Explained>) -> String {
    let other = other.map(|other| format!(" (the {}: {})", name(other.form), typical_error(other)));
    format!(
        "explained best by the {}, typical error {}{}\n\n{}\n{}\n\n{}",
        name(best.form),
        typical_error(best),
        other.unwrap_or_default(),
        shown(observed, best).text(),
        saturation(observed, best),
        points(observed, best).text()
    )
}

/// The parameters; of a stage that does not show, what it takes at most.
fn shown(observed: &[SweepPoint], best: &Explained) -> Table {
    let mut table = found(&best.shown().copied().collect::<Vec<_>>());
    if !best.shows_stage {
        let most = format!("{} at most", span(1e6 / least_per_s(observed, best)));
        table.row(["stage".to_owned(), "-".to_owned(), most]);
    }
    table
}

/// Calls a second that are reached at least: what the model gives with the most outstanding, or
/// the highest that was measured.
fn least_per_s(observed: &[SweepPoint], best: &Explained) -> f64 {
    best.least_per_s().max(highest_per_s(observed))
}

fn saturation(observed: &[SweepPoint], best: &Explained) -> String {
    match best.saturation() {
        Some(found) => {
            format!("saturation {:.0} calls/s from {:.0} calls on", found.per_s, found.knee)
        }
        None => format!(
            "no saturation shows up to {} calls outstanding: {:.0} calls/s at least",
            best.most,
            least_per_s(observed, best)
        ),
    }
}

fn typical_error(explained: &Explained) -> String {
    format!("{:.1} %", explained.fitted.deviation * 100.0)
}

fn points(observed: &[SweepPoint], best: &Explained) -> Table {
    let columns = ["outstanding", "measured", "model", "error"].map(right);
    let both = observed.iter().zip(&best.fitted.residuals);
    Table::of(columns, both.map(|(point, residual)| row(point, *residual)))
}

fn row(point: &SweepPoint, residual: f64) -> [String; 4] {
    let SweepPoint { outstanding, per_s } = point;
    let [measured, model] = [*per_s, per_s * residual.exp()].map(|rate| format!("{rate:.1}"));
    [outstanding.to_string(), measured, model, percent(residual.exp_m1())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reached_at_least_is_not_below_what_was_measured() {
        let point = |(outstanding, per_s)| SweepPoint { outstanding, per_s };
        let measured = [(1, 3_000.0), (2, 5_900.0), (4, 11_000.0), (8, 26_493.0)].map(point);
        let (best, _) = Explained::best(&measured).unwrap();
        assert!(!best.shows_stage && best.least_per_s() < 26_000.0, "{best:?}");
        let line = saturation(&measured, &best);
        assert!(line.ends_with("26493 calls/s at least"), "{line}");
        assert!(shown(&measured, &best).text().contains("37.7 us at most"));
        let falling = [(1, 1000.0), (2, 900.0), (4, 800.0), (8, 700.0), (16, 600.0)].map(point);
        let (best, _) = Explained::best(&falling).unwrap();
        let line = saturation(&falling, &best);
        assert!(line.ends_with("1000 calls/s at least"), "{line}");
    }
}
