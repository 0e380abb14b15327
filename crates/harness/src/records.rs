//! What the records and reports of the commands have in common.

use std::path::Path;

use client::url::Target;
use load::mix::{Mix, Operation};
use net::clock::Clock;
use perf::histogram::Histogram;
use perf::record::{Better, Run as Record, Target as Measured, Tool};
use perf::stats::Sample;
use perf::units::Nanos;
use serde_json::Value;

use crate::exit::Failure;
use crate::output;
use crate::verdict::Errors;

/// Others may use this much of the processors before a run is called disturbed: the kernel's own
/// threads, which write our data back, need some.
pub const NEIGHBOURS_SHARE_MAX: f64 = 0.2;

/// A generator that uses so much of a processor may be what limits.
const BUSY_SHARE: f64 = 0.9;

/// The beginning of every record: by what, when, on which machine.
pub fn begin(started: String) -> Record {
    let mut record = computed(started);
    record.environment = load::environment::describe();
    record
}

/// The beginning of a record of this workload, which begins now.
pub fn of(workload: &str) -> Record {
    let mut record = begin(now());
    record.workload.name = workload.to_owned();
    record
}

/// The same of what was not measured, for which no machine matters.
pub fn computed(started: String) -> Record {
    let tool = Tool { version: env!("CARGO_PKG_VERSION").to_owned(), ..Tool::default() };
    Record::new(tool, started)
}

/// What time it is, as records have it (RFC 3339).
pub fn now() -> String {
    load::environment::rfc3339(&Clock::real())
}

/// States that no metric whose name begins with one of these is faster than an emulated link, of
/// which there may be none.
pub fn limit_to(record: &mut Record, link_mib_per_s: Option<f64>, names: &[&str]) {
    let Some(mib_per_s) = link_mib_per_s else { return };
    for names in names {
        record.limit(names, mib_per_s, "MiB/s", "the emulated link");
    }
}

/// A server, as a record names what was measured.
pub fn server(target: &Target) -> Measured {
    Measured {
        kind: "server".to_owned(),
        url: Some(target.to_string()),
        version: Some(target.version.number()),
        proto: Some(target.protocol.name().to_owned()),
        ..Measured::default()
    }
}

/// Adds the parameters of a workload; of an option that was not given there is none.
pub fn parameters<V: Into<Value>, const N: usize>(record: &mut Record, given: [(&str, V); N]) {
    let given = given.map(|(name, value)| (name.to_owned(), value.into()));
    record.workload.parameters.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
}

/// Tells how much of the processors others used, where that is known.
pub fn neighbours(record: &mut Record, share: Option<f64>) {
    let Some(share) = share else { return };
    record.metric("neighbours_share", share, "");
    if share > NEIGHBOURS_SHARE_MAX {
        let text = format!("others used {:.0} % of the processors", 100.0 * share);
        record.warn("busy_machine", &text, "when the machine is quiet");
    }
}

/// The errors of predictions, below the limit and at it.
pub fn errors(record: &mut Record, errors: &Errors) {
    let parts = [("below_the_limit", &errors.below), ("at_the_limit", &errors.at)];
    for (name, errors) in parts.into_iter().filter(|(_, errors)| !errors.is_empty()) {
        let name = format!("error_pct_median_{name}");
        record.metric(&name, median(errors.clone()), "%");
    }
}

/// Tells the generator's own share of a processor.
pub fn generator(record: &mut Record, share: f64) {
    record.metric("generator_cpu_share", share, "");
    if share > BUSY_SHARE {
        let text = format!("the generator used {:.0} % of a processor", share * 100.0);
        record.warn("client-was-bottleneck", &text, "a faster processor here, or larger messages");
    }
}

/// The shares of a mix's operations.
pub fn mix_percent(mix: &Mix) -> Value {
    let share = |(operation, _): &(Operation, u32)| {
        (operation.name().to_owned(), (100.0 * mix.share(*operation)).into())
    };
    Value::Object(mix.shares.iter().map(share).collect())
}

/// What a mix's WRITEs ask for.
pub fn write_stability(mix: &Mix) -> &'static str {
    match mix.commits() {
        true => "WRITEs are UNSTABLE, and the mix's COMMITs make them stable",
        false => "each WRITE is FILE_SYNC: stable before it is answered",
    }
}

/// Adds the median, its interval, the lowest and the highest.
pub fn spread(record: &mut Record, name: &str, sample: &Sample, unit: &str) {
    record.estimate(name, &sample.median_estimate(), unit, sample.n() as u64);
    record.metric(&format!("{name}_min"), sample.min(), unit);
    record.metric(&format!("{name}_max"), sample.max(), unit);
}

/// The same of several, where they were measured.
pub fn spreads<const N: usize>(record: &mut Record, samples: [(&str, Option<Sample>, &str); N]) {
    for (name, sample, unit) in samples {
        if let Some(sample) = sample {
            spread(record, name, &sample, unit);
        }
    }
}

/// Adds response times, whose mean, median and p99 are results, as far as they are known.
pub fn times(record: &mut Record, name: &str, times: &Histogram) {
    record.histogram(name, times);
    let mean = (!times.is_empty()).then(|| times.mean());
    let (p50, p99) = (times.quantile_if_known(0.5), times.quantile_if_known(0.99));
    for (what, time) in [("mean", mean), ("p50", p50), ("p99", p99)] {
        let name = format!("{name}_us_{what}");
        record.metric_if_known(&name, time.map(Nanos::as_micros_f64), "us");
        record.result(&name, Better::Smaller);
    }
}

/// Prints a report, unless it is not wanted, and writes the records to `json`. Where something
/// `failed` before the end, both say so, and it is what comes of it all.
pub fn deliver(
    text: impl FnOnce() -> String,
    records: impl FnOnce() -> Vec<Record>,
    json: Option<&Path>,
    prints_text: bool,
    failed: Option<Failure>,
) -> Result<(), Failure> {
    let why = failed.as_ref().map(Failure::what);
    if prints_text {
        let partial = why.map_or_else(String::new, |why| {
            format!("PARTIAL     the run ended before its end: {why}\n")
        });
        output::print(&(text() + &partial))?;
    }
    if let Some(path) = json {
        let mut records = records();
        if let Some(why) = why {
            let text = format!("the run ended before its end: {why}");
            let advice = "the numbers are of what was done before; run again";
            for record in &mut records {
                record.warn("partial", &text, advice);
            }
        }
        output::write(path, &list(&records))?;
    }
    match failed {
        None => Ok(()),
        Some(failure) => Err(failure.and("what was measured before is recorded")),
    }
}

/// Several records as a list, one as itself.
pub fn list(records: &[Record]) -> String {
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
pub fn cell(sample: Option<&Sample>, places: usize) -> String {
    sample.map_or_else(
        || "-".to_owned(),
        |sample| {
            let (median, min, max) = (sample.median(), sample.min(), sample.max());
            format!("{median:.places$} ({min:.places$}..{max:.places$})")
        },
    )
}

/// `p50 1.2 ms  p90 2.3 ms  p99 4.5 ms  max 5.6 ms`.
pub fn quantiles(times: &Histogram) -> String {
    let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|share| quantile(times, share));
    format!("p50 {p50}  p90 {p90}  p99 {p99}  max {max}")
}

/// `1.2 ms`, or `-` where too few times show it.
pub fn quantile(times: &Histogram, share: f64) -> String {
    known(times.quantile_if_known(share))
}

/// The same in milliseconds, without the unit.
pub fn quantile_ms(times: &Histogram, share: f64) -> String {
    number(times.quantile_if_known(share).map_or(f64::NAN, Nanos::as_millis_f64))
}

/// What is known, or `-`.
pub fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Of the values that there are.
pub fn sample(values: impl IntoIterator<Item = f64>) -> Option<Sample> {
    Sample::new(values.into_iter().collect::<Vec<f64>>()).ok()
}

/// Not a number of no values.
pub fn median(values: Vec<f64>) -> f64 {
    Sample::new(values).map_or(f64::NAN, |sample| sample.median())
}

/// A number of bytes in the largest unit that leaves it whole.
pub fn bytes(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    match whole {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} B"),
    }
}

/// Bytes in the power of 1,024 that reads best.
pub fn scaled(bytes: f64) -> String {
    let (mut number, mut unit) = (bytes, "B");
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, next);
    }
    match unit {
        "B" => format!("{number:.0} B"),
        _ => format!("{number:.2} {unit}"),
    }
}

/// Three digits that count.
pub fn number(value: f64) -> String {
    let places = match value.abs() {
        size if !size.is_finite() => return "-".to_owned(),
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.099_95 => 3,
        size if size >= 0.009_995 => 4,
        _ => 5,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_that_too_few_times_show_is_a_dash() {
        let of = |count| quantiles(&(0..count).map(|_| Nanos::from_micros(5)).collect());
        assert_eq!(of(0), "p50 -  p90 -  p99 -  max -");
        assert!(of(1).starts_with("p50 -  p90 -  p99 -  max 5"), "{}", of(1));
        assert!(of(99).contains("  p99 -  ") && !of(100).contains('-'), "{}", of(100));
        assert_eq!(quantile_ms(&Histogram::new(), 0.5), "-");
    }

    #[test]
    fn bytes_stay_whole() {
        assert_eq!(bytes(25 << 20), "25 MiB");
        assert_eq!(bytes(8192), "8 KiB");
        assert_eq!(bytes(1 << 30), "1 GiB");
        assert_eq!(bytes(1500), "1500 B");
    }
}
