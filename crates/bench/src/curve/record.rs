//! The run record of a curve, one for each server.

use harness::records;
use load::curve::{Kind, Loads, Point, Signature};
use load::mix::Operation;
use perf::record::{Better, Run as Record, Target};
use serde_json::{Value, json};

use super::beside;
use super::outcome::{Outcome, Server};
use super::text::{self, us_per_operation, verdict};

/// One for each server.
pub(super) fn records(outcome: &Outcome) -> Vec<Record> {
    outcome.servers.iter().map(|server| record(outcome, server)).collect()
}

fn record(outcome: &Outcome, server: &Server) -> Record {
    let mut record = records::begin(outcome.started.clone());
    let built = &server.measured.built;
    record.target = target(server);
    record.workload.name = "curve".to_owned();
    parameters(&mut record, outcome);
    record.metric("files", built.files as f64, "");
    record.metric("file_bytes", built.bytes as f64, "B");
    record.metric("took_s", outcome.took.as_secs_f64(), "s");
    if let Some(signature) = &server.signature {
        add_signature(&mut record, signature);
    }
    if let Some(search) = &server.measured.search {
        record.metric("found_per_s", search.best_per_s(), "1/s");
    }
    for point in &server.measured.points {
        add_point(&mut record, point);
    }
    let verdicts = server.measured.points.iter().map(|point| (name(point), json!(verdict(point))));
    let verdicts: serde_json::Map<_, _> = verdicts.collect();
    record.other.insert("verdicts".to_owned(), verdicts.into());
    let deviations = outcome.deviations(server);
    record.other.insert("not_as_sfs".to_owned(), json!(deviations));
    warn(&mut record, server);
    let lines = text::lines(server.signature.as_ref()).into_iter();
    let sentences = lines.map(|(name, value)| (name.to_owned(), json!(value)));
    record.other.insert("said".to_owned(), serde_json::Map::from_iter(sentences).into());
    let compared = beside::names(outcome).into_iter().chain(beside::lines(outcome));
    let compared: Vec<String> =
        compared.map(|(what, sentence)| format!("{what}: {sentence}")).collect();
    if !compared.is_empty() {
        record.other.insert("compared".to_owned(), json!(compared));
    }
    records::neighbours(&mut record, outcome.neighbours_share);
    record
}

fn target(server: &Server) -> Target {
    Target {
        kind: "server".to_owned(),
        url: Some(server.name.clone()),
        version: Some(server.target.version.number()),
        proto: Some(server.target.protocol.name().to_owned()),
        ..Target::default()
    }
}

fn add_signature(record: &mut Record, signature: &Signature) {
    let n = signature.points as u64;
    if let Some(base) = &signature.base_us {
        record.estimate("base_us", base, "us", n);
    }
    if let (Some(slope), Some(intercept)) = (&signature.slope, &signature.intercept_us) {
        record.estimate("slope_us_per_op_s", slope, "us s", n);
        record.estimate("intercept_us", intercept, "us", n);
    }
    if let Some((per_s, response_us)) = signature.knee {
        record.metric("knee_per_s", per_s, "1/s");
        record.metric("knee_us", response_us, "us");
    }
    record.estimate("highest_per_s", &signature.highest_per_s, "1/s", n);
    if signature.is_saturated {
        record.estimate("saturation_per_s", &signature.highest_per_s, "1/s", n);
    }
    if let Some(overall) = &signature.overall_us {
        record.estimate("overall_response_us", overall, "us", n);
    }
    record.result("base_us", Better::Smaller).result("saturation_per_s", Better::Larger);
    record.result("overall_response_us", Better::Smaller);
}

fn warn(record: &mut Record, server: &Server) {
    for point in &server.measured.points {
        for breach in &point.breaches {
            record.warn(breach.code(), &format!("{}: {breach}", name(point)), breach.advice());
        }
        if let Some(failed) = text::few_failed(point) {
            record.warn("failed", &format!("{}: {failed}", name(point)), "the server's log");
        }
    }
    if let Some(broken) = &server.measured.broken {
        record.warn("partial", &broken.why, "the numbers are of what was done before; run again");
    }
}

fn parameters(record: &mut Record, outcome: &Outcome) {
    let settings = &outcome.settings;
    let given = [
        ("mix", json!(settings.mix.name)),
        ("mix_source", json!(settings.mix.source)),
        ("mix_percent", records::mix_percent(&settings.mix)),
        ("cache", json!(text::CACHED)),
        ("write_stability", json!(text::durable(outcome))),
        ("loop", json!(kind(settings.kind()))),
        ("arrivals", json!(settings.arrivals.name())),
        ("loads", loads(&settings.loads)),
        ("warm_up_ns", json!(settings.warm_up.as_nanos())),
        ("time_ns", json!(settings.time.as_nanos())),
        ("repeats", json!(settings.repeats)),
        ("outstanding_max", json!(settings.outstanding_max)),
        ("file_bytes_per_op_s", json!(settings.files.bytes_per_rate)),
        ("file_bytes_max", json!(settings.files.bytes_max)),
        ("accessed", json!(settings.files.accessed)),
        ("threads", json!(outcome.threads)),
        ("processes", json!(outcome.processes)),
        ("connections", json!(outcome.connections)),
        ("seed", json!(settings.seed)),
    ];
    records::parameters(record, given);
}

fn loads(loads: &Loads) -> Value {
    match loads {
        Loads::Find { points } => json!(format!("{points} up to the saturation, one above")),
        Loads::Rates(rates) => json!(rates),
        Loads::Outstanding(numbers) => json!(numbers),
    }
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Open => "open",
        Kind::Closed => "closed",
    }
}

/// How a point's metrics begin.
fn name(point: &Point) -> String {
    match point.kind {
        Kind::Open => format!("load/{:.3}", point.load),
        Kind::Closed => format!("outstanding/{:.0}", point.load),
    }
}

fn add_point(record: &mut Record, point: &Point) {
    let (name, run) = (name(point), &point.outcome);
    let mut metric = |what: &str, value: f64, unit: &str| {
        record.metric(&format!("{name}/{what}"), value, unit);
    };
    metric("offered_per_s", run.offered_per_s(), "1/s");
    metric("read_mib_per_s", mib_per_s(point, run.read_bytes), "MiB/s");
    metric("written_mib_per_s", mib_per_s(point, run.written_bytes), "MiB/s");
    counts(point).into_iter().for_each(|(what, count)| metric(what, count, ""));
    if let Some(effort) = run.effort {
        metric("generator_cpu_share", effort.busiest, "");
        metric("generator_watched_us", effort.watched.as_micros_f64(), "us");
    }
    if let Some(us) = us_per_operation(point) {
        metric("generator_us_per_op", us, "us");
    }
    let times = run.response_times();
    for (what, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
        if let Some(time) = times.quantile_if_known(share) {
            metric(&format!("response_us_{what}"), time.as_micros_f64(), "us");
        }
    }
    add_times(record, &name, point);
}

fn counts(point: &Point) -> [(&'static str, f64); 9] {
    let run = &point.outcome;
    [
        ("late", run.late as f64),
        ("held", run.held as f64),
        ("hollow", run.hollow as f64),
        ("given_up", run.given_up as f64),
        ("failed", run.failed() as f64),
        ("touched_files", run.touched as f64),
        ("accessed_files", run.accessed as f64),
        ("outstanding_mean", point.outstanding()),
        ("outstanding_max", run.outstanding_max as f64),
    ]
}

fn add_times(record: &mut Record, name: &str, point: &Point) {
    let run = &point.outcome;
    let batches = run.batches.len() as u64;
    record.estimate(&format!("{name}/achieved_per_s"), &point.achieved_per_s(), "1/s", batches);
    if let Some(response) = point.response_us() {
        record.estimate(&format!("{name}/response_us"), &response, "us", batches);
    }
    // Over the saturation a response time says how long was measured, and in an open loop a rate
    // what was offered.
    if point.is_valid() && !point.is_over() {
        record.result(&format!("{name}/response_us"), Better::Smaller);
        if point.kind == Kind::Closed {
            record.result(&format!("{name}/achieved_per_s"), Better::Larger);
        }
    }
    record.histogram(&format!("{name}/lateness"), &run.lateness);
    for operation in Operation::ALL {
        if let Some(tally) = run.operations.get(&operation) {
            record.histogram(&format!("{name}/{}", operation.name()), &tally.response_time);
        }
    }
}

fn mib_per_s(point: &Point, bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20) / point.outcome.span.as_secs_f64()
}
