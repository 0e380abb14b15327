//! Whether records can be compared at all.

use std::collections::BTreeMap;

use harness::exit::Failure;
use perf::record::{Better, Metric, Run as Record};

/// # Errors
/// They are of other things, or one is of both places.
pub(super) fn check(first: &[Record], second: &[Record], mix: bool) -> Result<(), Failure> {
    let (Some(one), Some(_)) = (first.first(), second.first()) else {
        let what = "a list without records";
        return Err(Failure::environment(what, "files with records in them"));
    };
    let wanted = &one.workload.name;
    let mut results = BTreeMap::new();
    for record in first.iter().chain(second) {
        let name = &record.workload.name;
        if name != wanted {
            let what = format!("records of {wanted} and of {name}");
            return Err(Failure::usage(what, "records of one workload"));
        }
        if let Err(mismatch) = record.check_comparable(one)
            && !mix
        {
            return Err(Failure::usage(mismatch, "--mix-durability compares all the same"));
        }
        has_results(record)?;
        alike(record, &mut results)?;
    }
    match first.iter().find(|record| second.contains(record)) {
        Some(Record { started, .. }) => {
            let what = format!("the run that started at {started} is a record of both places");
            Err(Failure::usage(what, "each record once, of the place that it is of"))
        }
        None => Ok(()),
    }
}

fn has_results(record: &Record) -> Result<(), Failure> {
    if record.metrics().values().any(|one| one.better.is_some()) {
        return Ok(());
    }
    let (name, version) = (&record.workload.name, &record.tool.version);
    let what =
        format!("a record of {name}, written by nfskit {version}, marks no number as a result");
    Err(Failure::usage(what, "records of a benchmark, written by this version"))
}

/// Whether its results have the units and directions of those before it.
fn alike<'a>(record: &'a Record, known: &mut BTreeMap<&'a str, &'a Metric>) -> Result<(), Failure> {
    for (name, metric) in record.metrics().iter().filter(|(_, one)| one.better.is_some()) {
        let before = *known.entry(name).or_insert(metric);
        let (one, two) = (&before.unit, &metric.unit);
        if one != two {
            let what = format!("{name} is in {one} and in {two}");
            return Err(Failure::usage(what, "records in the same units"));
        }
        if let (Some(one), Some(two)) = (before.better, metric.better)
            && one != two
        {
            let [one, two] = [one, two].map(direction);
            let what = format!("{name} is better when {one} and when {two}");
            return Err(Failure::usage(what, "records that were not changed"));
        }
    }
    Ok(())
}

fn direction(better: Better) -> &'static str {
    match better {
        Better::Larger => "larger",
        Better::Smaller => "smaller",
    }
}
