//! `nfskit model whatif`: a change of a server that was measured, by its curve, by a probe, by a
//! sweep of outstanding calls, or by a trace. Each by all methods that there are for it.

mod curve;
mod logged;
pub(crate) mod path;
mod sweep;
pub(super) mod text;
mod trace;

use harness::exit::Failure;
use harness::unused;

pub(super) use self::path::bound;
use super::page::Page;
use super::source::Source;
use crate::model::args::estimate::WhatIf;

/// What the command shows.
pub(super) fn page(args: &WhatIf) -> Result<Page, Failure> {
    let source = Source::read(&args.file, "whatif", args.of.as_deref())?;
    check(args, &source)?;
    match source {
        Source::Curve(curve, facts) => curve::page(args, &curve, &facts),
        Source::Path(saved, warnings) => path::page(args, &saved, &warnings),
        Source::Sweep(observed) => sweep::page(args, &observed),
        Source::Trace(transactions) => trace::page(args, &transactions),
    }
}

/// Options are of what they describe.
fn check(args: &WhatIf, source: &Source) -> Result<(), Failure> {
    let of_curves = [
        (args.rate.is_some(), "--rate"),
        (args.callers.is_some(), "--callers"),
        (args.messages.is_some(), "--messages"),
    ];
    let latency = [(args.latency.is_some(), "--latency")];
    match source {
        Source::Curve(..) => {
            let outstanding = [(args.outstanding.is_some(), "--outstanding")];
            return unused::refuse(outstanding, "a probe, a sweep or a trace");
        }
        Source::Path(..) => {}
        Source::Sweep(_) | Source::Trace(_) => unused::refuse(latency, "a curve or a probe")?,
    }
    source.check_known(&args.known)?;
    unused::refuse(of_curves, "a curve")
}
