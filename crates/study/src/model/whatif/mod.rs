//! `nfskit model whatif`: a change of a server that was measured, by its curve, by a probe, by a
//! sweep of outstanding calls, or by a trace. Each by all methods that there are for it.

mod curve;
mod logged;
pub(crate) mod path;
mod sweep;
mod trace;

use harness::exit::Failure;
use harness::verbosity::Verbosity;
use perf::model::whatif::{Change, How, What, WhatIfError};
use perf::record::Run as Record;
use perf::stats::Estimate;

pub(super) use self::curve::saturation;
pub(super) use self::path::bound;
use super::source::Source;
use crate::model::args::estimate::WhatIf;

/// Runs the command.
pub(super) fn run(args: &WhatIf, verbosity: Verbosity) -> Result<(), Failure> {
    match Source::read(&args.file, "whatif", args.of.as_deref())? {
        Source::Curve(curve, told) => curve::run(args, &curve, &told, verbosity),
        Source::Path(saved) => path::run(args, &saved, verbosity),
        Source::Sweep(observed) => sweep::run(args, &observed, verbosity),
        Source::Trace(transactions) => trace::run(args, &transactions, verbosity),
    }
}

pub(super) fn refused(error: WhatIfError) -> Failure {
    Failure::usage(error, "nfskit model whatif --help lists the changes")
}

/// Says that L= is added to `what`, in which no L is known that it could replace.
fn added_latency(changes: &[Change], what: &str, record: &mut Record) -> String {
    let sets = |change: &Change| change.what == What::Latency && change.how == How::Set;
    if !changes.iter().any(sets) {
        return String::new();
    }
    let note = format!("no L is known, so that of L= is added to the {what} that was found");
    let advice = "--latency TIME, if a part of it is L that the change replaces";
    record.warn("latency-added", &note, advice);
    format!("note: {note}: {advice}\n")
}

fn interval(estimate: &Estimate, said: &dyn Fn(f64) -> String) -> String {
    estimate.ci95.map_or_else(String::new, |interval| {
        format!(" ({} to {})", said(interval.lo), said(interval.hi))
    })
}
