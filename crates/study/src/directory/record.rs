//! A study of a directory as a run record (docs/formats/run-record.md) and as a table of calls.

use std::fmt::Write as _;

use harness::records;
use load::directory::Kind;
use load::floor::storage;
use perf::histogram::Histogram;
use perf::record::{Durability, Run, Target, Warning};
use perf::units::Nanos;
use serde_json::json;

use super::counted::Counted;
use super::job::{Measured, PROGRAMS, name};
use super::outcome::DirectoryStudy;

/// The whole record.
pub(super) fn record(outcome: &DirectoryStudy) -> Run {
    let mut run = records::begin(outcome.started.clone());
    run.target = target(outcome);
    run.workload.name = "study".to_owned();
    let parameters = [
        ("file_bytes", json!(outcome.measured.file_bytes)),
        ("block_bytes", load::directory::BLOCK_BYTES.into()),
        ("programs", PROGRAMS.to_vec().into()),
        ("repeats", outcome.plan.repeats.into()),
        ("stable_by", "fdatasync".into()),
    ];
    records::parameters(&mut run, parameters);
    calls(&mut run, outcome);
    throughput(&mut run, outcome);
    files(&mut run, &outcome.measured);
    if let (Some(share), _) = outcome.memory_share() {
        run.metric("read_from_memory", share, "ratio");
    }
    model(&mut run, outcome);
    records::neighbours(&mut run, outcome.neighbours_share);
    run.warnings.extend(warnings(outcome));
    run
}

fn target(outcome: &DirectoryStudy) -> Target {
    let mut target = Target {
        kind: "directory".to_owned(),
        path: Some(outcome.dir.display().to_string()),
        durability: outcome.file_system.flushed,
        mount_options: outcome.file_system.mount_options.clone(),
        ..Target::default()
    };
    let kind = outcome.file_system.kind.clone();
    target.other.insert("file_system".to_owned(), kind.into());
    target
}

/// What the kernel counted in each step, and what doctor makes of it.
fn model(run: &mut Run, outcome: &DirectoryStudy) {
    for (name, counted) in steps(&outcome.measured) {
        let value = counted.map_or(json!(null), of_kernel);
        run.model.insert(format!("counted_{name}"), value);
    }
    let Some(report) = &outcome.diagnosis else { return };
    let findings = report.findings.iter().map(|finding| {
        json!({"rule": finding.rule.name, "layer": finding.layer.name(),
               "severity": finding.found.severity.name(), "what": finding.found.what,
               "try": finding.found.remedy, "gain": finding.found.gain.to_string()})
    });
    let findings: Vec<serde_json::Value> = findings.collect();
    let doctor = json!({"verdict": report.verdict, "findings": findings});
    run.model.insert("doctor".to_owned(), doctor);
}

/// Calls of single programs.
fn calls(run: &mut Run, outcome: &DirectoryStudy) {
    let measured = &outcome.measured;
    for (name, times) in single(measured) {
        if let Some(sample) = us(times) {
            let n = sample.n() as u64;
            run.estimate(&format!("{name}_us"), &sample.median_estimate(), "us", n);
        }
        let mut histogram = Histogram::new();
        times.iter().for_each(|time| histogram.record(*time));
        run.histogram(name, &histogram);
    }
    if let Some((time, names)) = measured.names.of.listed.filter(|(_, names)| *names > 0) {
        run.metric("list_us_per_name", time.as_micros_f64() / names as f64, "us");
    }
    for part in outcome.parts() {
        let name = part.place.name().replace([' ', '\'', ',', '('], "_").replace(')', "");
        run.metric(&format!("write_stable_8k_{name}_us"), part.us, "us");
    }
}

fn throughput(run: &mut Run, outcome: &DirectoryStudy) {
    for (kind, name) in [Kind::Write, Kind::Read].map(|kind| (kind, name(kind))) {
        for point in outcome.curve(kind) {
            let n = point.programs;
            if let Some(sample) = &point.mib_per_s {
                records::spread(run, &format!("{name}_mib_per_s_n{n}"), sample, "MiB/s");
            }
            let predicted = format!("predicted_{name}_mib_per_s_n{n}");
            run.metric_if_known(&predicted, point.predicted_mib_per_s, "MiB/s");
        }
        if let Some((programs, gain)) = outcome.gain(kind) {
            run.metric(&format!("best_programs_{name}"), programs as f64, "programs");
            run.metric(&format!("predicted_gain_{name}"), gain.predicted, "ratio");
            run.metric(&format!("measured_gain_{name}"), gain.measured, "ratio");
        }
    }
}

/// Whole files: the four spans, and how much of what was read was in memory.
fn files(run: &mut Run, measured: &Measured) {
    for (name, span) in SPANS {
        if let Some(sample) = file_rates(measured, span) {
            records::spread(run, &format!("file_{name}_mib_per_s"), &sample, "MiB/s");
        }
    }
    let runs = &measured.files.of.runs;
    let at_once = records::sample(runs.iter().filter_map(|run| run.read_resident));
    let dropped = records::sample(runs.iter().filter_map(|run| run.reread_resident));
    for (name, share) in [("read_at_once", at_once), ("reread", dropped)] {
        let share = share.map(|share| share.mean());
        run.metric_if_known(&format!("file_{name}_resident"), share, "ratio");
    }
}

/// A span of a run with a whole file.
pub(super) type Span = fn(&storage::Run) -> Option<Nanos>;

/// Written until the last write(2), and until fsync(2); read at once, and after it was dropped.
pub(super) const SPANS: [(&str, Span); 4] = [
    ("written", |run| run.written),
    ("flushed", |run| run.flushed),
    ("read_at_once", |run| run.read),
    ("reread", |run| run.reread),
];

/// MiB for each second of each repetition.
pub(super) fn file_rates(measured: &Measured, span: Span) -> Option<perf::stats::Sample> {
    let mib = measured.file_bytes as f64 / f64::from(1 << 20);
    let spans = measured.files.of.runs.iter().filter_map(span);
    records::sample(spans.map(|span| mib / span.as_secs_f64()))
}

/// Times of the calls of one program, by name.
pub(super) fn single(measured: &Measured) -> [(&'static str, &[Nanos]); 8] {
    let names = &measured.names.of;
    [
        ("create", &names.created),
        ("stat_known", &names.known),
        ("stat_absent", &names.absent),
        ("remove", &names.removed),
        ("write_8k", &measured.small.of.written),
        ("write_stable_8k", &measured.small.of.stable),
        ("write_1m", &measured.large.of.written),
        ("write_stable_1m", &measured.large.of.stable),
    ]
}

pub(super) fn us(times: &[Nanos]) -> Option<perf::stats::Sample> {
    records::sample(times.iter().map(|time| time.as_micros_f64()))
}

/// Each step with what the kernel counted in it.
pub(super) fn steps(measured: &Measured) -> Vec<(String, Option<&Counted>)> {
    let single = [
        ("names", measured.names.counted.as_ref()),
        ("write_stable_8k", measured.small.counted.as_ref()),
        ("write_stable_1m", measured.large.counted.as_ref()),
        ("files", measured.files.counted.as_ref()),
    ];
    let crowds = measured.crowds.iter().map(|one| (one.name(), one.counted.as_ref()));
    single.map(|(name, counted)| (name.to_owned(), counted)).into_iter().chain(crowds).collect()
}

fn of_kernel(counted: &Counted) -> serde_json::Value {
    let operations = counted.operations.iter().map(|(name, one)| {
        let value = json!({"calls": one.calls, "queue_ms": one.queue_ms, "rtt_ms": one.rtt_ms,
                           "execute_ms": one.execute_ms});
        (name.clone(), value)
    });
    serde_json::Value::Object(operations.collect())
}

/// What the reader must know before trusting a number.
pub(super) fn warnings(outcome: &DirectoryStudy) -> impl Iterator<Item = Warning> {
    durability_warning(outcome).into_iter().chain(memory_warning(outcome))
}

fn durability_warning(outcome: &DirectoryStudy) -> Option<Warning> {
    let kind = &outcome.file_system.kind;
    match outcome.file_system.flushed {
        Some(Durability::Stable) => None,
        Some(Durability::Memory | Durability::PageCache) => Some(Warning::new(
            "memory",
            &format!("{kind} lies in memory: nothing that was measured survives a crash"),
            "a directory on a disk or a server",
        )),
        None => Some(Warning::new(
            "durability_unknown",
            &format!("what fdatasync(2) makes stable on {kind} cannot be seen from here"),
            "the same on what is below it",
        )),
    }
}

fn memory_warning(outcome: &DirectoryStudy) -> Option<Warning> {
    let kind = &outcome.file_system.kind;
    match outcome.memory_share() {
        (Some(share), how) if share > FROM_MEMORY_MAX => Some(Warning::new(
            "read_from_memory",
            &format!(
                "{:.0} % of what was dropped from memory was read from there all the same ({how})",
                100.0 * share
            ),
            "as root: echo 1 > /proc/sys/vm/drop_caches; a file system that lies in memory has \
             nowhere else",
        )),
        (None, _) => Some(Warning::new(
            "cache_unknown",
            &format!("{kind} does not say what of a file is in memory: reads may come from there"),
            "the read rates beside those of a server that you know",
        )),
        (Some(_), _) => None,
    }
}

/// What is read ahead of a sample of pages is not much of a file.
const FROM_MEMORY_MAX: f64 = 0.1;

/// Every call of every step, one line each.
pub(super) fn calls_csv(measured: &Measured) -> String {
    let mut csv = String::from("step,run,time_us\n");
    let mut put = |step: &str, run: usize, times: &[Nanos]| {
        for time in times {
            writeln!(csv, "{step},{run},{:.3}", time.as_micros_f64()).ok();
        }
    };
    single(measured).iter().for_each(|(name, times)| put(name, 0, times));
    for crowds in &measured.crowds {
        let runs = crowds.runs.iter().enumerate();
        runs.for_each(|(number, run)| put(&crowds.name(), number, &run.calls));
    }
    csv
}
