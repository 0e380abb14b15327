//! `nfskit model whatif`: a change of a server that was measured, by its curve, by a probe, by a
//! sweep of outstanding calls, or by a trace. Each by all methods that there are for it.

mod curve;
mod logged;
pub(crate) mod path;
mod sweep;
pub(super) mod text;
mod trace;

use harness::exit::Failure;
use perf::model::whatif::{Change, How, What};

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

/// What a world has no answer for.
fn no_simulation(page: &mut Page, when: &str, why: &str) {
    page.note("no-simulation", &format!("no simulation {when} the change: {why}"), "");
}
