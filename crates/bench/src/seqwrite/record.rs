//! The run records of a benchmark: one for each length in each place.

use harness::compared::{Better, Compared};
use harness::records;
use load::latencies::{self, Summary};
use load::seqwrite_files::Mark;
use perf::histogram::Histogram;
use perf::record::{Run as Record, Target};
use perf::series::Series;
use perf::units::Nanos;

use super::files::{At, Measured};
use crate::seqwrite::args::Seqwrite;

/// Points of the plotted calls of a run.
const SERIES_POINTS_MAX: usize = 4_000;

pub(super) fn records(measured: &[Measured], args: &Seqwrite) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for one in measured {
        let mut record = record(one, args);
        let first = measured
            .iter()
            .position(|other| other.workload == one.workload)
            .filter(|index| *index < records.len());
        if let Some(index) = first {
            compare(&mut record, one, &records[index], &measured[index], args.mix_durability);
        }
        records.push(record);
    }
    records
}

fn record(measured: &Measured, args: &Seqwrite) -> Record {
    let mut record = records::begin(records::now());
    describe(&mut record, measured, args);
    for mark in Mark::ALL {
        if let Some(rates) = measured.rates(mark) {
            let name = format!("{}_mib_per_s", mark.name());
            records::spread(&mut record, &name, &rates, "MiB/s");
            record.result(&name, Better::Larger);
        }
    }
    calls(&mut record, measured, args.slow);
    let [own, machine] = measured.cpu_s_per_gib();
    record.metric_if_known("process_cpu_s_per_gib", own, "s/GiB");
    record.metric_if_known("machine_cpu_s_per_gib", machine, "s/GiB");
    record
}

/// The target and the parameters.
fn describe(record: &mut Record, measured: &Measured, args: &Seqwrite) {
    let Measured { place, workload, runs } = measured;
    let (kind, path, url) = match &place.at {
        At::Dir(_) => ("directory", Some(place.name()), None),
        At::Target(_) => ("server", None, Some(place.name())),
    };
    record.target = Target {
        kind: kind.to_owned(),
        path,
        url,
        durability: place.file_system.flushed,
        mount_options: place.file_system.mount_options.clone(),
        ..Target::default()
    };
    let file_system = place.file_system.kind.clone();
    record.target.other.insert("file_system".to_owned(), file_system.into());
    record.workload.name = "seqwrite-files".to_owned();
    let parameters = [
        ("file_bytes", workload.file_bytes),
        ("call_bytes", u64::from(workload.call_bytes)),
        ("repeats", runs.len() as u64),
        ("slow_ns", args.slow.as_nanos()),
    ];
    records::parameters(record, parameters);
    if let At::Target(_) = place.at {
        args.client.record(record);
        // What is written may still be in our memory.
        args.client.limit(record, &["flushed_mib_per_s", "closed_mib_per_s"]);
    }
}

/// What the times of single calls say: numbers of the typical run, and all calls counted.
fn calls(record: &mut Record, measured: &Measured, slow: Nanos) {
    let Some(typical) = measured.typical() else { return };
    let mut all = Histogram::new();
    measured.runs.iter().for_each(|run| all.merge(&latencies::histogram(&run.calls)));
    record.histogram("call", &all);
    let mut series = Series::new("us");
    let mut at = Nanos::ZERO;
    for call in &typical.calls {
        series.push(at, call.as_micros_f64());
        at += *call;
    }
    record.series("call_us", &series.thinned(SERIES_POINTS_MAX));
    let Some(summary) = Summary::of(&typical.calls, slow) else { return };
    record.metric("call_mean_us", summary.mean.as_micros_f64(), "us");
    if let Some(mean) = summary.mean_without_slow {
        record.metric("call_mean_without_slow_us", mean.as_micros_f64(), "us");
    }
    record.metric("slow_calls", summary.slow_calls as f64, "calls");
    if let Some(period) = summary.period {
        record.metric("spike_period_calls", period.calls, "calls");
        record.metric("spike_height_us", period.height.as_micros_f64(), "us");
    }
    if let Some(slope) = summary.slope_us_per_1000 {
        record.estimate("call_slope_us_per_1000_calls", &slope, "us", summary.calls as u64);
    }
}

/// Throughputs against the first place's: of the calls always, of the rest where a flush survives
/// the same things.
fn compare(
    record: &mut Record,
    measured: &Measured,
    first_record: &Record,
    first: &Measured,
    mix: bool,
) {
    let mismatch = record.check_comparable(first_record).err();
    let unknown = record.target.durability.is_none();
    let compared_with = first.place.name();
    let is_fair = |mark: &Mark| *mark == Mark::Written || mix || (mismatch.is_none() && !unknown);
    let mut sentences = serde_json::Map::new();
    for mark in Mark::ALL.into_iter().filter(is_fair) {
        if let Some(ratio) = ratio(measured, first, mark) {
            record.metric(&format!("{}_ratio_to_first", mark.name()), ratio, "");
        }
        let rates = first.rates(mark).zip(measured.rates(mark));
        if let Some(compared) = rates.and_then(|(a, b)| Compared::of(&a, &b, Better::Larger)) {
            let sentence = compared.sentence(&compared_with, &measured.place.name());
            sentences.insert(mark.name().to_owned(), sentence.into());
        }
    }
    record.other.insert("compared".to_owned(), sentences.into());
    record.other.insert("compared_with".to_owned(), compared_with.into());
    if let Some(mismatch) = mismatch {
        record.warn(
            "durability-differs",
            &mismatch.to_string(),
            "another --dir, or --mix-durability to compare all the same",
        );
    }
}

/// Median throughput of the one over that of the other.
pub(super) fn ratio(of: &Measured, to: &Measured, mark: Mark) -> Option<f64> {
    let ratio = of.rates(mark)?.median() / to.rates(mark)?.median();
    ratio.is_finite().then_some(ratio)
}
