//! The words for predictions, and for changes that are refused.

use harness::exit::Failure;
use perf::model::whatif::of_server::ServerPrediction;
use perf::model::whatif::{Change, How, What, WhatIfError};
use perf::stats::Estimate;

use crate::model::known::name;
use crate::model::page::{Page, interval};

/// `1702 (1609 to 1800) calls/s, by the disks`.
pub(in crate::model) fn saturation(prediction: &ServerPrediction) -> String {
    let by = match prediction.bottleneck_is_identified {
        true => format!("by {}", name(prediction.bottleneck)),
        false => "by the processor or the disks: the curve does not tell".to_owned(),
    };
    match &prediction.saturation_per_s {
        Some(per_s) => format!("{} calls/s, {by}", with_interval(per_s, whole)),
        None => format!("none shows up to {:.0} calls/s", prediction.peak_per_s),
    }
}

pub(in crate::model) fn refused(error: WhatIfError) -> Failure {
    let advice = match error {
        WhatIfError::Foreign { what: What::Gap, .. } => {
            "a slower G, such as G=100m; or a record of nfskit probe --link, whose rate is known"
        }
        _ => "nfskit model whatif --help lists the changes",
    };
    Failure::usage(error, advice)
}

/// `1702 (1609 to 1800)`, or without an interval where none is known.
pub(super) fn with_interval(estimate: &Estimate, text: impl Fn(f64) -> String) -> String {
    let ci95 = interval(estimate, &text).map(|ci95| format!(" ({ci95})"));
    text(estimate.value) + &ci95.unwrap_or_default()
}

/// To the whole number.
pub(super) fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// `1.25 x`
pub(super) fn times(ratio: f64) -> String {
    format!("{ratio:.2} x")
}

/// Says that L= is added to `what`, in which no L is known that it could replace.
pub(super) fn added_latency(changes: &[Change], what: &str, page: &mut Page) {
    let sets = |change: &Change| change.what == What::Latency && change.how == How::Set;
    if !changes.iter().any(sets) {
        return;
    }
    let note = format!("no L is known, so that of L= is added to the {what} that was found");
    let advice = "--latency TIME, if a part of it is L that the change replaces";
    page.record.warn("latency-added", &note, advice);
    page.line(format_args!("note: {note}: {advice}"));
}

/// What a world has no answer for.
pub(super) fn no_simulation(page: &mut Page, when: &str, why: &str) {
    page.note("no-simulation", &format!("no simulation {when} the change: {why}"), "");
}
