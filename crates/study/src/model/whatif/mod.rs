//! `nfskit model whatif`: a change of a server that was measured, by its curve, by a probe, by a
//! sweep of outstanding calls, or by a trace. Each by all methods that there are for it.

mod curve;
mod logged;
pub(crate) mod path;
mod sweep;
pub(super) mod text;
mod trace;

use harness::exit::Failure;

pub(super) use self::path::bound;
use super::page::Page;
use super::source::Source;
use crate::model::args::estimate::WhatIf;

/// What the command shows.
pub(super) fn page(args: &WhatIf) -> Result<Page, Failure> {
    match Source::read(&args.file, "whatif", args.of.as_deref())? {
        Source::Curve(curve, facts) => curve::page(args, &curve, &facts),
        Source::Path(saved, warnings) => path::page(args, &saved, &warnings),
        Source::Sweep(observed) => sweep::page(args, &observed),
        Source::Trace(transactions) => trace::page(args, &transactions),
    }
}
