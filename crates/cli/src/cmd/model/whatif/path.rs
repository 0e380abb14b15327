//! A change of the path that a probe found: by the formula of the transaction cycle, by mean value
//! analysis, and by a world.

use std::fmt::Write;

use perf::model::saved::SavedPath;
use perf::model::transaction::{Bound, Term};
use perf::model::whatif::path::{Case, Outlook};
use perf::units::Nanos;

use super::super::{record, show, span};
use super::{interval, refused};
use crate::args::Verbosity;
use crate::args::estimate::WhatIf;
use crate::exit::Failure;
use crate::records::scaled;

pub(super) fn run(args: &WhatIf, saved: &SavedPath, verbosity: Verbosity) -> Result<(), Failure> {
    let mut before = saved.case();
    if let Some(outstanding) = args.outstanding {
        before.transfer.outstanding = outstanding;
    }
    before.latency_us = args.latency.map_or(before.latency_us, Nanos::as_micros_f64);
    let after = before.changed(&args.changes).map_err(refused)?;
    let mut record = record("whatif", Some(&args.file));
    let mut text = String::new();
    writeln!(
        text,
        "{:<8}{:>12}{:>11}  {:<28}{:>10}{:>12}  bound by",
        "MiB/s", "outstanding", "calls of", "formula", "MVA", "simulation"
    )
    .ok();
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for (when, case) in [("before", &before), ("after", &after)] {
        let outlook = case.outlook(&saved.spread()).map_err(|error| refused(error.into()))?;
        let world =
            world(case).map_err(|why| notes.push(format!("no simulation {when}: {why}"))).ok();
        writeln!(text, "{}", row(when, case, &outlook, world)).ok();
        record.estimate(&format!("formula/{when}/mib_per_s"), &outlook.formula, "MiB/s", 1);
        record.metric(&format!("mva/{when}/mib_per_s"), outlook.closed_mib_per_s, "MiB/s");
        if let Some(world) = world {
            record.metric(&format!("simulation/{when}/mib_per_s"), world, "MiB/s");
        }
        found.push((outlook, world));
    }
    if let [(before, world_before), (after, world_after)] = &found[..] {
        let formula = after.formula.value / before.formula.value;
        let closed = after.closed_mib_per_s / before.closed_mib_per_s;
        let world = world_before.zip(*world_after).map(|(before, after)| after / before);
        let said = world.map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2} x"));
        let (formula_said, closed_said) = (format!("{formula:.2} x"), format!("{closed:.2} x"));
        writeln!(text, "{:<8}{:>23}  {formula_said:<28}{closed_said:>10}{said:>12}", "gain", "")
            .ok();
        record.metric("formula/gain", formula, "ratio");
    }
    writeln!(text, "\nthe cycle after the change: {}", cycle(&after)).ok();
    for note in notes {
        writeln!(text, "note: {note}").ok();
        record.warn("no-simulation", &note, "");
    }
    show(&text, &record, args.json.as_deref(), verbosity)
}

/// The same in a world, or why there is none.
fn world(case: &Case) -> Result<f64, String> {
    if case.transfer.outstanding > OUTSTANDING_MAX {
        return Err(format!("it is run with at most {OUTSTANDING_MAX} calls outstanding"));
    }
    world::path::case_mib_per_s(case).map_err(|error| error.to_string())
}

/// Calls outstanding in a world: each keeps its data in memory.
const OUTSTANDING_MAX: u32 = 4096;

fn row(when: &str, case: &Case, outlook: &Outlook, world: Option<f64>) -> String {
    let mib = |value: f64| format!("{value:.1}");
    let formula = format!("{}{}", mib(outlook.formula.value), interval(&outlook.formula, &mib));
    let world = world.map_or_else(|| "-".to_owned(), mib);
    let size = scaled(case.transfer.call_bytes as f64);
    format!(
        "{when:<8}{:>12}{size:>11}  {formula:<28}{:>10}{world:>12}  {}",
        case.transfer.outstanding,
        mib(outlook.closed_mib_per_s),
        bound(outlook.bound)
    )
}

pub(crate) fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Cycle(Term::Prop) => "the way (2 T_prop)",
        Bound::Cycle(Term::Ser) => "the bytes' time (T_ser)",
        Bound::Cycle(Term::Op) => "processing (T_op)",
        Bound::Cycle(Term::Block) => "the wait for storage (T_B)",
        Bound::Capacity => "link and processing, always busy",
        Bound::Storage => "storage, always busy",
        Bound::Server => "a server that does one thing at a time",
    }
}

fn cycle(case: &Case) -> String {
    let cycle = case.formula().cycle;
    format!(
        "2 T_prop {}, T_ser {}, T_op {}, T_B {}",
        span(cycle.prop_us),
        span(cycle.ser_us),
        span(cycle.op_us),
        span(cycle.block_us)
    )
}
