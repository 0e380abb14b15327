//! `nfskit model interim`: the thesis's interim model, fitted to some points and refuted by others.

use harness::exit::Failure;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::model::cycle::interim::{Interim, MtuPoint, parse};
use perf::record::Run as Record;

use super::{Page, source};
use crate::model::args::cycle::Interim as Args;

/// Runs the command.
pub(super) fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    let observed = source::text(&args.file)
        .and_then(|text| parse(&text).map_err(|error| error.to_string()))
        .map_err(|cause| super::unreadable(&args.file, "interim", &cause))?;
    let (fitted, model) = fit(args, &observed)?;
    let tolerance = f64::from(args.tolerance) / 100.0;
    let refuted = model.refuted_by(&observed[fitted..], tolerance);

    let mut page = Page::new("interim", Some(&args.file));
    let Interim { alpha_us_per_byte, fixed_us } = model;
    page.record.metric("alpha_us_per_byte", alpha_us_per_byte, "us/B");
    page.record.metric("fixed_us", fixed_us, "us");
    page.line(format_args!("T(M) = {alpha_us_per_byte:.5} us/B x M + {fixed_us:.2} us\n"));
    page.text.push_str(&points(&model, &observed, fitted, &mut page.record));
    match refuted {
        Some((MtuPoint { mtu_bytes, .. }, error)) => {
            let percent = error * 100.0;
            page.line(format_args!("refuted: at an MTU of {mtu_bytes} it is {percent:+.1} % off"));
            let text = format!("at an MTU of {mtu_bytes} by {percent:+.1} %");
            page.record.warn("refuted", &text, "");
        }
        None => page
            .line(format_args!("not refuted: what was predicted is within {} %", args.tolerance)),
    }
    page.show(args.json.as_deref(), verbosity)
}

/// How many of the measurements the model is fitted to, and the model.
fn fit(args: &Args, observed: &[MtuPoint]) -> Result<(usize, Interim), Failure> {
    let fitted = match args.fit {
        Some(fit) => fit as usize,
        None => observed.len().saturating_sub(1),
    };
    if fitted < 2 || fitted >= observed.len() {
        return Err(Failure::check(
            format!(
                "{}: {} measurements of which {fitted} are fitted: two points confirm any line",
                args.file.display(),
                observed.len()
            ),
            "three measurements or more, and at least one that is not fitted",
        ));
    }
    let model = Interim::fit(&observed[..fitted]).ok_or_else(|| {
        let what = "the rows that are fitted have one MTU only";
        Failure::check(format!("{}: {what}", args.file.display()), "rows with different MTUs first")
    })?;
    Ok((fitted, model))
}

fn points(model: &Interim, observed: &[MtuPoint], fitted: usize, record: &mut Record) -> String {
    let names = ["MTU", "measured", "model", "error"].map(right);
    let mut table = Table::new(names.into_iter().chain([left("")]));
    for (at, MtuPoint { mtu_bytes, mbit_per_s }) in observed.iter().enumerate() {
        let predicted = model.mbit_per_s(*mtu_bytes);
        let percent = (predicted / mbit_per_s - 1.0) * 100.0;
        let how = if at < fitted { "fitted" } else { "predicted" };
        table.row([
            mtu_bytes.to_string(),
            format!("{mbit_per_s:.2} Mb/s"),
            format!("{predicted:.2} Mb/s"),
            format!("{percent:+.1} %"),
            how.to_owned(),
        ]);
        record.metric(&format!("{mtu_bytes}/error"), percent, "%");
    }
    table.text()
}
