//! A study as a run record (docs/formats/run-record.md) and as a table of calls.

use client::transfer::{Event, Kind};
use harness::csv;
use harness::emulated;
use harness::records;
use load::study::Measured;
use perf::histogram::Histogram;
use perf::model::transaction::{Path, Server};
use perf::record::{Run, Target, Workload};
use perf::series::Series;
use perf::units::{Instant, Nanos};
use serde_json::{Map, Value, json};

use super::outcome::ServerStudy;
use crate::explain::{Row, half};

/// Points of each series; the calls themselves are in calls.csv.
const SERIES_POINTS_MAX: usize = 1_000;

/// The whole record.
pub(crate) fn record(outcome: &ServerStudy) -> Run {
    let mut run = records::begin(outcome.started.clone());
    run.target = target(outcome);
    run.workload = workload(outcome);
    let stable = ["throughput_mib_per_s", "before_mib_per_s", "after_mib_per_s"];
    records::limit_to(&mut run, outcome.target.link_mib_per_s, &stable);
    parameters(&mut run, outcome);
    throughput(&mut run, outcome);
    judgement(&mut run, outcome);
    calls(&mut run, outcome);
    if let Some(logged) = &outcome.logged {
        logged.record(&mut run);
    }
    run.model = model(outcome);
    run.warnings.extend(outcome.warnings.iter().cloned());
    run
}

fn target(outcome: &ServerStudy) -> Target {
    let info = &outcome.target;
    let mut target = Target {
        kind: info.kind.to_owned(),
        url: info.url.clone(),
        path: info.path.clone(),
        version: Some(3),
        proto: Some("tcp".to_owned()),
        rsize: Some(u64::from(info.read_bytes_max)),
        wsize: Some(u64::from(info.write_bytes_max)),
        durability: Some(info.durability),
        ..Target::default()
    };
    target.other.insert("link".to_owned(), info.link.clone().into());
    let emulator = match outcome.emulator {
        None if emulated::is_untried() => Some("not tried out".to_owned()),
        emulator => emulator.map(|emulator| emulator.to_string()),
    };
    if let Some(emulator) = emulator {
        target.other.insert("apparatus".to_owned(), emulator.into());
    }
    target
}

fn workload(outcome: &ServerStudy) -> Workload {
    let plan = &outcome.plan;
    let parameters = object(json!({
        "file_bytes": outcome.file_bytes,
        "commit_bytes": outcome.commit_bytes,
        "stable_how": "UNSTABLE",
        "overwrites_in_place": true,
        "windows": load::study::WINDOWS,
        "repeats": outcome.repeats() as u64,
        "run_time_ms": plan.run_time.as_millis_f64(),
    }));
    Workload { name: "study".to_owned(), parameters, ..Workload::default() }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn parameters(run: &mut Run, outcome: &ServerStudy) {
    let findings = &outcome.findings;
    let null = findings.null_us.len() as u64;
    let rounds = findings.rounds as u64;
    run.estimate("t_prop_us", &half(findings.round_trip), "us", null);
    run.estimate("rtt_us_median", &findings.round_trip, "us", null);
    if let Ok(sample) = perf::stats::Sample::new(findings.null_us.clone()) {
        run.metric("rtt_us_min", sample.min(), "us");
        run.metric("rtt_us_p99", sample.quantile(0.99), "us");
    }
    run.estimate("t_ser_us_per_kib", &findings.ser_us_per_kib, "us/KiB", rounds);
    run.estimate("t_op_us", &findings.op_us, "us", rounds);
    run.estimate("t_b_us", &findings.block_us, "us", rounds);
    for &(bytes, unstable, stable) in &findings.writes_us {
        let kib = bytes / 1024;
        run.metric(&format!("write_unstable_us_{kib}k"), unstable, "us");
        run.metric(&format!("write_file_sync_us_{kib}k"), stable, "us");
    }
    run.estimate("commit_us", &findings.commit_us, "us", outcome.findings.bursts as u64);
    if let Some(local) = &outcome.local {
        run.estimate("t_b_local_us", &local.block_us, "us", local.trials as u64);
    }
}

fn throughput(run: &mut Run, outcome: &ServerStudy) {
    for configuration in outcome.main_curve() {
        let n = configuration.outstanding;
        if let Some(measured) = outcome.measured(configuration) {
            measured_throughput(run, &format!("n{n}"), measured);
        }
        let predicted = outcome.predicted(configuration);
        run.metric(&format!("predicted_mib_per_s_n{n}"), predicted, "MiB/s");
    }
    for row in &outcome.explanation.rows {
        let suffix = suffix(outcome, row.configuration);
        if let Some(measured) = outcome.measured(row.configuration) {
            measured_throughput(run, &suffix, measured);
            processor_time(run, &suffix, measured);
        }
        predicted_throughput(run, &suffix, row);
    }
}

fn predicted_throughput(run: &mut Run, suffix: &str, row: &Row) {
    let name = |model: &str| format!("{model}_mib_per_s_{suffix}");
    run.metric(&name("predicted"), row.prediction.mib_per_s, "MiB/s");
    run.metric_if_known(&name("mva"), row.closed_mib_per_s, "MiB/s");
    run.metric_if_known(&name("simulated"), row.simulated_mib_per_s, "MiB/s");
}

fn processor_time(run: &mut Run, suffix: &str, measured: &Measured) {
    let calls = measured.typical.events.len().max(1) as f64;
    let cpu = measured.typical.cpu;
    for (of, time) in [("client", cpu.thread), ("process", cpu.process)] {
        run.metric(&format!("{of}_cpu_us_per_call_{suffix}"), time.as_micros_f64() / calls, "us");
    }
}

/// Of all repetitions: none where in half of them no COMMIT was answered.
fn measured_throughput(run: &mut Run, suffix: &str, measured: &Measured) {
    if let Some(estimate) = measured.estimate() {
        let n = measured.mib_per_s.len() as u64;
        run.estimate(&format!("throughput_mib_per_s_{suffix}"), &estimate, "MiB/s", n);
    }
}

fn judgement(run: &mut Run, outcome: &ServerStudy) {
    let explanation = &outcome.explanation;
    run.metric("best_window", explanation.after.outstanding as f64, "calls");
    run.metric("best_call_bytes", f64::from(explanation.after.call_bytes), "B");
    model_errors(run, outcome);
    run.metric("gain_error_pct", outcome.gain().error_pct(), "%");
    limits(run, outcome);
    run.metric("before_mib_per_s", outcome.before_mib_per_s(), "MiB/s");
    run.metric("after_mib_per_s", outcome.after_mib_per_s(), "MiB/s");
    run.metric_if_known("other_cpu_share", outcome.neighbours_share, "ratio");
    run.metric("predicted_gain", outcome.predicted_gain(), "ratio");
    run.metric("measured_gain", outcome.measured_gain(), "ratio");
}

fn model_errors(run: &mut Run, outcome: &ServerStudy) {
    let explanation = &outcome.explanation;
    let main = outcome.main_curve().filter_map(|configuration| explanation.row(configuration));
    let errors = main.filter_map(|row| row.error_pct().map(f64::abs)).collect();
    run.metric("model_error_pct_median_n1_n64", records::median(errors), "%");
    run.metric("model_error_pct_median", explanation.error_pct_median, "%");
    run.metric_if_known("repetitions_differ_pct", explanation.choice.noise_pct, "%");
    for (model, error) in &explanation.choice.errors_pct {
        let name = model.name().replace(' ', "_");
        run.metric(&format!("error_pct_median_{name}"), *error, "%");
    }
    run.metric("model_error_pct_worst", explanation.error_pct_worst, "%");
    records::errors(run, &explanation.errors);
}

/// Of link and storage.
fn limits(run: &mut Run, outcome: &ServerStudy) {
    run.metric("link_mib_per_s", outcome.link_mib_per_s(), "MiB/s");
    match &outcome.local {
        Some(local) => {
            let passes = local.ceilings as u64;
            run.estimate("storage_mib_per_s", &local.ceiling, "MiB/s", passes);
        }
        None if outcome.storage_mib_per_s().is_finite() => {
            run.metric("storage_mib_per_s", outcome.storage_mib_per_s(), "MiB/s");
        }
        None => {}
    }
    run.metric("limit_mib_per_s", outcome.limit_mib_per_s(), "MiB/s");
    run.metric("efficiency_of_limit", outcome.efficiency_of_limit(), "ratio");
}

fn calls(run: &mut Run, outcome: &ServerStudy) {
    let mut null = Histogram::new();
    outcome.findings.null_us.iter().for_each(|us| null.record(Nanos::from_micros_f64(*us)));
    run.histogram("null_response_time", &null);
    for measured in &outcome.measured {
        let suffix = suffix(outcome, measured.configuration);
        run.histogram(&format!("write_response_time_{suffix}"), &histogram(measured));
        let (transferred, response) = series(measured);
        run.series(&format!("transferred_{suffix}"), &transferred.thinned(SERIES_POINTS_MAX));
        run.series(&format!("response_time_{suffix}"), &response.thinned(SERIES_POINTS_MAX));
    }
}

/// Response times of the WRITEs of the typical run.
pub(crate) fn histogram(measured: &Measured) -> Histogram {
    let mut histogram = Histogram::new();
    for us in measured.typical.response_times_us() {
        histogram.record(Nanos::from_micros_f64(us));
    }
    histogram
}

/// Bytes acknowledged (MiB), and the response time of every WRITE (us), over time.
pub(crate) fn series(measured: &Measured) -> (Series, Series) {
    let started = measured.typical.started;
    let (mut transferred, mut response) = (Series::new("MiB"), Series::new("us"));
    let mut bytes = 0;
    for event in measured.typical.events.iter().filter(|event| event.kind == Kind::Write) {
        bytes += u64::from(event.bytes);
        transferred.push(event.received.since(started), bytes as f64 / f64::from(1 << 20));
        let time = event.received.since(event.sent);
        response.push(event.sent.since(started), time.as_micros_f64());
    }
    (transferred, response)
}

fn model(outcome: &ServerStudy) -> Map<String, Value> {
    let explanation = &outcome.explanation;
    let subjects = outcome.target.subjects.iter().zip(&explanation.servers);
    let server =
        |(name, server): (&&str, &Server)| ((*name).to_owned(), server_name(*server).into());
    let servers: Map<String, Value> = subjects.map(server).collect();
    let rows: Vec<Value> = explanation.rows.iter().map(|row| model_row(outcome, row)).collect();
    object(json!({
        "name": "transaction cycle",
        "parameters": path(&outcome.findings.path),
        "servers": servers,
        "rows": rows,
    }))
}

fn path(path: &Path) -> Value {
    json!({
        "round_trip_us": path.round_trip_us,
        "ser_us_per_kib": path.ser_us_per_kib,
        "op_us": path.op_us,
        "overhead_us": path.overhead_us,
        "capacity_call_us": path.capacity.call_us,
        "capacity_us_per_kib": path.capacity.us_per_kib,
        "sync_us": path.storage.sync_us,
        "storage_us_per_kib": path.storage.us_per_kib,
        "storage_left_us_per_kib": path.storage.left_us_per_kib,
        "storage_unhidden_us_per_kib": path.storage.unhidden_us_per_kib,
    })
}

fn model_row(outcome: &ServerStudy, row: &Row) -> Value {
    let cycle = row.prediction.cycle;
    let mut value = json!({
        "configuration": suffix(outcome, row.configuration),
        "predicted_mib_per_s": row.prediction.mib_per_s,
        "bound": format!("{:?}", row.prediction.bound),
        "cycle_us": {
            "prop": cycle.prop_us, "ser": cycle.ser_us,
            "op": cycle.op_us, "block": cycle.block_us,
        },
    });
    if let Some((measured, error)) = row.measured_mib_per_s.zip(row.error_pct()) {
        value["measured_mib_per_s"] = measured.into();
        value["error_pct"] = error.into();
    }
    value
}

/// `8k_stall_n1`
fn suffix(outcome: &ServerStudy, configuration: load::study::Configuration) -> String {
    let (kib, n) = (configuration.call_bytes / 1024, configuration.outstanding);
    format!("{kib}k_{}_n{n}", outcome.server_name(configuration))
}

fn server_name(server: Server) -> &'static str {
    match server {
        Server::Stall => "stall",
        Server::Concurrent => "concurrent",
    }
}

fn procedure(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "READ",
        Kind::Write => "WRITE",
        Kind::Commit => "COMMIT",
    }
}

/// Every call of every run of every configuration, one line each. Run 0 is the typical one, which
/// the record and the report show.
pub(crate) fn calls_csv(outcome: &ServerStudy) -> String {
    csv::text("configuration,run,procedure,sent_us,received_us,bytes", |rows| {
        for measured in &outcome.measured {
            let suffix = suffix(outcome, measured.configuration);
            let runs = std::iter::once(&measured.typical).chain(&measured.others);
            for (number, run) in runs.enumerate() {
                for &Event { kind, sent, received, bytes, .. } in &run.events {
                    let procedure = procedure(kind);
                    let us = |at: Instant| format!("{:.3}", at.since(run.started).as_micros_f64());
                    rows.add((&suffix, number, procedure, us(sent), us(received), bytes));
                }
            }
        }
    })
}
