//! The run record of a simulation.

use harness::records;
use perf::record::{Durability, Run as Record, Target, Workload};
use perf::series::Series;
use perf::units::Nanos;
use serde_json::Value;
use world::simulate::{LinkOutcome, Outcome};

use super::simulated::{LoadPoint, Simulated, shortfall};

pub(super) fn json(simulated: &Simulated) -> String {
    let Simulated { outcome, .. } = simulated;
    let mut record = records::begin(simulated.started.clone());
    let durability = Some(Durability::Memory);
    record.target =
        Target { kind: "simulation".to_owned(), version: Some(3), durability, ..Target::default() };
    record.workload = workload(simulated);
    record.metric("operations", outcome.operations as f64, "calls");
    record.metric("failed", outcome.failed as f64, "calls");
    if simulated.topology.workload.rate.is_some() {
        record.metric("operations_due", outcome.meant as f64, "calls");
        record.metric("operations_given_up", outcome.given_up as f64, "calls");
    }
    record.metric("operations_per_s", outcome.per_s, "1/s");
    record.metric("read_bytes_per_s", outcome.read_bytes_per_s, "B/s");
    record.metric("written_bytes_per_s", outcome.written_bytes_per_s, "B/s");
    let formula = simulated.formula_mib_per_s.map(|mib_per_s| mib_per_s * f64::from(1 << 20));
    record.metric_if_known("formula/written_bytes_per_s", formula, "B/s");
    record.metric("virtual_time_s", outcome.elapsed.as_secs_f64(), "s");
    record.metric("messages", outcome.digest.messages as f64, "messages");
    record.metric("simulator/time_s", simulated.took.as_secs_f64(), "s");
    record.metric("simulator/polls", outcome.polls as f64, "polls");
    let memory_bytes_max = simulated.memory_bytes_max.map(|bytes| bytes as f64);
    record.metric_if_known("simulator/memory_bytes_max", memory_bytes_max, "B");
    servers(&mut record, simulated);
    simulated.curve.iter().for_each(|point| load_point(&mut record, point));
    for LinkOutcome { name, there, back } in &outcome.links {
        record.metric(&format!("link/{name}/there_utilization_max"), *there, "1");
        record.metric(&format!("link/{name}/back_utilization_max"), *back, "1");
    }
    for (number, kind) in (1..).zip(&outcome.kinds) {
        record.metric(&format!("clients{number}/operations_per_s"), kind.per_s, "1/s");
        let mean_us = kind.response_mean.map(Nanos::as_micros_f64);
        record.metric_if_known(&format!("clients{number}/response_us"), mean_us, "us");
    }
    record.metric("client/cpu_utilization_max", outcome.client.utilization, "1");
    response_times(&mut record, outcome);
    if let Some(why) = shortfall(simulated) {
        record.warn("rate-not-kept", &why, "a lower workload.rate");
    }
    record.to_json_pretty()
}

fn load_point(record: &mut Record, point: &LoadPoint) {
    let name = |what: &str| format!("curve/{:.1}/{what}", point.offered_per_s);
    record.metric(&name("per_s"), point.per_s, "1/s");
    let us = |time: Option<Nanos>| time.map(Nanos::as_micros_f64);
    record.metric_if_known(&name("response_us"), us(point.mean), "us");
    record.metric_if_known(&name("response_us_p95"), us(point.p95), "us");
}

fn response_times(record: &mut Record, outcome: &Outcome) {
    if !outcome.response_time.is_empty() {
        record.histogram("response_time", &outcome.response_time);
    }
    for (operation, times) in outcome.of_operation.iter().filter(|(_, times)| !times.is_empty()) {
        record.histogram(&format!("response_time/{}", operation.name()), times);
    }
}

fn workload(simulated: &Simulated) -> Workload {
    let Simulated { topology, outcome, .. } = simulated;
    let load = &topology.workload;
    let name = match load.write {
        Some(_) => "sequential write".to_owned(),
        None => load.mix.to_string(),
    };
    let mut workload = Workload { name, ..Workload::default() };
    let mut parameter = |name: &str, value: Value| {
        workload.parameters.insert(name.to_owned(), value);
    };
    if let Some(write) = load.write {
        parameter("call_bytes", write.0.into());
        parameter("commit_bytes", load.commit.0.into());
    }
    parameter("seed", topology.seed.into());
    parameter("clients", topology.clients_count().into());
    parameter("servers", topology.server.count.into());
    parameter("disk", topology.server.disk.0.to_string().into());
    parameter("digest", outcome.digest.to_string().into());
    match load.rate {
        Some(rate) => parameter("rate_per_s", rate.into()),
        None => parameter("outstanding", load.outstanding.into()),
    }
    workload
}

fn servers(record: &mut Record, simulated: &Simulated) {
    for (number, server) in simulated.outcome.servers.iter().enumerate() {
        let name = |what: &str| format!("server{}/{what}", number + 1);
        record.metric(&name("cpu_utilization"), server.processor_utilization, "1");
        record.metric(&name("disk_utilization"), server.disk_utilization, "1");
        record.metric(&name("cache_hits"), server.cache_hits as f64, "pages");
        record.metric(&name("cache_misses"), server.cache_misses as f64, "pages");
        let (mut processor, mut disk) = (Series::new("1"), Series::new("1"));
        for slice in &server.over_time {
            processor.push(slice.until, slice.processor);
            disk.push(slice.until, slice.disk);
        }
        record.series(&name("cpu_utilization"), &processor);
        record.series(&name("disk_utilization"), &disk);
    }
}
