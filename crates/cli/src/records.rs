//! What the records and reports of the commands have in common.

use std::fmt::Display;
use std::path::Path;

use load::mix::{Mix, Operation};
use net::clock::Clock;
use perf::record::{Run as Record, Tool};
use perf::stats::Sample;
use serde_json::Value;

use crate::args::Verbosity;
use crate::exit::Failure;
use crate::output;

/// Others may use this much of the processors before a run is called disturbed: the kernel's own
/// threads, which write our data back, need some.
pub(crate) const NEIGHBOURS_SHARE_MAX: f64 = 0.2;

/// A generator that uses so much of a processor may be what limits.
const BUSY_SHARE: f64 = 0.9;

/// The beginning of every record: by what, when, on which machine.
pub(crate) fn begin(started: String) -> Record {
    let mut record = computed(started);
    record.environment = load::environment::describe();
    record
}

/// The beginning of a record of this workload, which begins now.
pub(crate) fn of(workload: &str) -> Record {
    let mut record = begin(now());
    record.workload.name = workload.to_owned();
    record
}

/// The same of what was not measured, for which no machine matters.
pub(crate) fn computed(started: String) -> Record {
    let tool = Tool { version: env!("CARGO_PKG_VERSION").to_owned(), ..Tool::default() };
    Record::new(tool, started)
}

/// What time it is, as records have it (RFC 3339).
pub(crate) fn now() -> String {
    load::environment::rfc3339(&Clock::real())
}

/// Tells how much of the processors others used, where that is known.
pub(crate) fn neighbours(record: &mut Record, share: Option<f64>) {
    let Some(share) = share else { return };
    record.metric("neighbours_share", share, "");
    if share > NEIGHBOURS_SHARE_MAX {
        let text = format!("others used {:.0} % of the processors", 100.0 * share);
        record.warn("busy_machine", &text, "when the machine is quiet");
    }
}

/// Tells the generator's own share of a processor.
pub(crate) fn generator(record: &mut Record, share: f64) {
    record.metric("generator_cpu_share", share, "");
    if share > BUSY_SHARE {
        let text = format!("the generator used {:.0} % of a processor", share * 100.0);
        record.warn("client-was-bottleneck", &text, "a faster processor here, or larger messages");
    }
}

/// The shares of a mix's operations.
pub(crate) fn mix_percent(mix: &Mix) -> Value {
    let share = |(operation, _): &(Operation, u32)| {
        (operation.name().to_owned(), (100.0 * mix.share(*operation)).into())
    };
    Value::Object(mix.shares.iter().map(share).collect())
}

/// What a mix's WRITEs ask for.
pub(crate) fn write_stability(mix: &Mix) -> &'static str {
    match mix.commits() {
        true => "WRITEs are UNSTABLE, and the mix's COMMITs make them stable",
        false => "each WRITE is FILE_SYNC: stable before it is answered",
    }
}

/// Adds the median, its interval, the lowest and the highest.
pub(crate) fn spread(record: &mut Record, name: &str, sample: &Sample, unit: &str) {
    record.estimate(name, &sample.median_estimate(), unit, sample.n() as u64);
    record.metric(&format!("{name}_min"), sample.min(), unit);
    record.metric(&format!("{name}_max"), sample.max(), unit);
}

/// Marks a record whose run was ended by a failure.
pub(crate) fn mark_partial(record: &mut Record, failed: Option<&impl Display>) {
    if let Some(error) = failed {
        record.warn(
            "partial",
            &format!("the run ended before its end: {error}"),
            "the numbers are of what was done before; run again",
        );
    }
}

/// Prints a report, unless it is not wanted, and writes the records to `json`; both say so when
/// something `failed` before the end.
pub(crate) fn deliver(
    text: impl FnOnce() -> String,
    records: impl FnOnce() -> Vec<Record>,
    json: Option<&Path>,
    verbosity: Verbosity,
    failed: Option<&impl Display>,
) -> Result<(), Failure> {
    if verbosity > Verbosity::Quiet && json != Some(Path::new("-")) {
        let partial = failed.map_or_else(String::new, |error| {
            format!("PARTIAL     the run ended before its end: {error}\n")
        });
        output::print(&(text() + &partial))?;
    }
    let Some(path) = json else { return Ok(()) };
    let mut records = records();
    records.iter_mut().for_each(|record| mark_partial(record, failed));
    output::write(path, &list(&records))
}

/// Several records as a list, one as itself.
pub(crate) fn list(records: &[Record]) -> String {
    match records {
        [only] => only.to_json_pretty(),
        _ => {
            let records: Vec<String> = records.iter().map(Record::to_json_pretty).collect();
            let records: Vec<&str> = records.iter().map(|record| record.trim()).collect();
            format!("[\n{}\n]\n", records.join(",\n"))
        }
    }
}

/// `median (lowest..highest)`.
pub(crate) fn cell(sample: Option<&Sample>, places: usize) -> String {
    sample.map_or_else(
        || "-".to_owned(),
        |sample| {
            let (median, min, max) = (sample.median(), sample.min(), sample.max());
            format!("{median:.places$} ({min:.places$}..{max:.places$})")
        },
    )
}

/// Of the values that there are.
pub(crate) fn sample(values: impl IntoIterator<Item = f64>) -> Option<Sample> {
    Sample::new(values.into_iter().collect::<Vec<f64>>()).ok()
}

/// A number of bytes in the largest unit that leaves it whole.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match whole {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stay_whole() {
        assert_eq!(bytes(25 << 20), "25 MiB");
        assert_eq!(bytes(8192), "8 KiB");
        assert_eq!(bytes(1 << 30), "1 GiB");
        assert_eq!(bytes(1500), "1500 B");
    }
}
