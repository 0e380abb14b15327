//! `nfskit model whatif`: a change of a server that was measured, by its curve, by a probe, by a
//! sweep of outstanding calls, or by a trace. Each by all methods that there are for it.

mod curve;
mod logged;
pub(crate) mod path;
mod sweep;
mod trace;

use harness::exit::Failure;
use perf::model::whatif::{Change, How, What, WhatIfError};
use perf::stats::Estimate;

pub(super) use self::curve::saturation;
pub(super) use self::path::bound;
use super::Page;
use super::source::Source;
use crate::model::args::estimate::WhatIf;

/// What the command shows.
pub(super) fn page(args: &WhatIf) -> Result<Page, Failure> {
    match Source::read(&args.file, "whatif", args.of.as_deref())? {
        Source::Curve(curve, facts) => curve::page(args, &curve, &facts),
        Source::Path(saved) => path::page(args, &saved),
        Source::Sweep(observed) => sweep::page(args, &observed),
        Source::Trace(transactions) => trace::page(args, &transactions),
    }
}

pub(super) fn refused(error: WhatIfError) -> Failure {
    let advice = match error {
        WhatIfError::Foreign { what: What::Gap, .. } => {
            "a slower G, such as G=100m; or a record of nfskit probe --link, whose rate is known"
        }
        _ => "nfskit model whatif --help lists the changes",
    };
    Failure::usage(error, advice)
}

/// Says that L= is added to `what`, in which no L is known that it could replace.
fn added_latency(changes: &[Change], what: &str, page: &mut Page) {
    let sets = |change: &Change| change.what == What::Latency && change.how == How::Set;
    if !changes.iter().any(sets) {
        return;
    }
    let note = format!("no L is known, so that of L= is added to the {what} that was found");
    let advice = "--latency TIME, if a part of it is L that the change replaces";
    page.record.warn("latency-added", &note, advice);
    page.line(format_args!("note: {note}: {advice}"));
}

/// `1702 (1609 to 1800)`, or without an interval where none is known.
fn with_interval(estimate: &Estimate, text: impl Fn(f64) -> String) -> String {
    let ci95 = estimate.ci95.map(|ci| format!(" ({} to {})", text(ci.lo), text(ci.hi)));
    text(estimate.value) + &ci95.unwrap_or_default()
}

/// To the whole number.
fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// `1.25 x`
fn times(ratio: f64) -> String {
    format!("{ratio:.2} x")
}

/// What a world has no answer for.
fn no_simulation(page: &mut Page, when: &str, why: &str) {
    page.note("no-simulation", &format!("no simulation {when} the change: {why}"), "");
}
