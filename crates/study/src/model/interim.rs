//! `nfskit model interim`: the thesis's interim model, fitted to some points and refuted by others.

use harness::exit::Failure;
use harness::table::{Table, left, right};
use perf::model::cycle::interim::{Interim, MtuPoint, parse};
use perf::record::Run as Record;

use super::page::{Page, percent};
use super::source;
use crate::model::args::cycle::Interim as Args;

/// What the command shows.
pub(super) fn page(args: &Args) -> Result<Page, Failure> {
    let observed = source::text(&args.file)
        .and_then(|text| parse(&text).map_err(|error| error.to_string()))
        .map_err(|cause| super::page::unreadable(&args.file, "interim", &cause))?;
    let (fitted, model) = fit(args, &observed)?;
    let mut page = Page::new("interim", Some(&args.file));
    let Interim { alpha_us_per_byte, fixed_us } = model;
    page.record.metric("alpha_us_per_byte", alpha_us_per_byte, "us/B");
    page.record.metric("fixed_us", fixed_us, "us");
    page.line(format_args!("T(M) = {alpha_us_per_byte:.5} us/B x M + {fixed_us:.2} us\n"));
    points(&model, &observed, fitted, &mut page);
    judge(&model, &observed[fitted..], args.tolerance, &mut page);
    Ok(page)
}

/// Whether a measurement that was predicted refutes the model.
fn judge(model: &Interim, predicted: &[MtuPoint], tolerance_pct: u32, page: &mut Page) {
    let Some((point, error)) = model.refuted_by(predicted, f64::from(tolerance_pct) / 100.0) else {
        let what = "what was predicted is within";
        return page.line(format_args!("not refuted: {what} {tolerance_pct} %"));
    };
    let (mtu, off) = (point.mtu_bytes, percent(error));
    page.line(format_args!("refuted: at an MTU of {mtu} it is {off} off"));
    page.record.warn("refuted", &format!("at an MTU of {mtu} by {off}"), "");
}

/// How many of the measurements the model is fitted to, and the model.
fn fit(args: &Args, observed: &[MtuPoint]) -> Result<(usize, Interim), Failure> {
    let fitted = args.fit.map_or_else(|| observed.len().saturating_sub(1), |fit| fit as usize);
    let file = args.file.display();
    if fitted < 2 || fitted >= observed.len() {
        let all = observed.len();
        return Err(Failure::environment(
            format!(
                "{file}: {all} measurements of which {fitted} are fitted: two points confirm any \
                 line"
            ),
            "three measurements or more, and at least one that is not fitted",
        ));
    }
    let model = Interim::fit(&observed[..fitted]).ok_or_else(|| {
        let what = format!("{file}: the rows that are fitted have one MTU only");
        Failure::environment(what, "rows with different MTUs first")
    })?;
    Ok((fitted, model))
}

fn points(model: &Interim, observed: &[MtuPoint], fitted: usize, page: &mut Page) {
    let names = ["MTU", "measured", "model", "error"].map(right);
    let rows = observed.iter().enumerate().map(|(at, point)| {
        let how = if at < fitted { "fitted" } else { "predicted" };
        row(model, point, how, &mut page.record)
    });
    let table = Table::of(names.into_iter().chain([left("")]), rows);
    page.table(&table);
}

fn row(model: &Interim, point: &MtuPoint, how: &str, record: &mut Record) -> [String; 5] {
    let MtuPoint { mtu_bytes, mbit_per_s } = *point;
    let predicted = model.mbit_per_s(mtu_bytes);
    let error = predicted / mbit_per_s - 1.0;
    record.metric(&format!("{mtu_bytes}/error"), 100.0 * error, "%");
    let [measured, predicted] = [mbit_per_s, predicted].map(|rate| format!("{rate:.2} Mb/s"));
    [mtu_bytes.to_string(), measured, predicted, percent(error), how.to_owned()]
}
