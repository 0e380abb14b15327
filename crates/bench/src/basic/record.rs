//! The run record.

use harness::records;
use load::basic::{CALL_BYTES, Ended, Measured, Plan, Test};
use perf::record::{Better, Run as Record, Target};
use serde_json::{Value, json};

use super::ran::Ran;

pub(super) fn record(ran: &Ran, plan: &Plan) -> Record {
    let mut record = records::begin(ran.started.clone());
    record.target = target(ran);
    parameters(&mut record, ran, plan);
    ran.measured.iter().for_each(|one| measured(&mut record, one));
    if let Some(again) = ran.place.retransmissions {
        record.metric("retransmissions", again as f64, "calls");
    }
    let lines =
        ran.measured.iter().flat_map(|one| &one.lines).map(|line| Value::from(line.to_string()));
    record.other.insert("lines".to_owned(), lines.collect());
    let outcomes = ran.measured.iter().map(outcome).collect();
    record.other.insert("tests".to_owned(), Value::Array(outcomes));
    record.other.insert("passed".to_owned(), ran.failure.is_none().into());
    warnings(&mut record, ran);
    record
}

fn target(ran: &Ran) -> Target {
    let place = &ran.place;
    let is_server = place.kind == "server";
    let name = Some(place.name.clone());
    let mut target = Target {
        kind: place.kind.to_owned(),
        url: name.clone().filter(|_| is_server),
        path: name.filter(|_| !is_server),
        version: place.version,
        proto: place.proto.map(str::to_owned),
        durability: place.durability,
        mount_options: place.mount_options.clone(),
        ..Target::default()
    };
    target.other.insert("file_system".to_owned(), place.file_system.clone().into());
    if let Some(link) = &place.link {
        target.other.insert("link".to_owned(), link.clone().into());
    }
    target
}

fn parameters(record: &mut Record, ran: &Ran, plan: &Plan) {
    record.workload.name = "basic".to_owned();
    let tests: Vec<usize> = plan.tests.iter().map(|test| test.number()).collect();
    let given = [
        ("mode", json!(plan.mode.argument())),
        ("tests", json!(tests)),
        ("file_bytes", plan.file_bytes.into()),
        ("call_bytes", CALL_BYTES.into()),
        ("sync", plan.sync.into()),
        ("in_place", plan.in_place.into()),
        ("cache", ran.place.cache.into()),
    ];
    for (name, value) in given {
        record.workload.parameters.insert(name.to_owned(), value);
    }
    for &test in &plan.tests {
        let name = format!("test{}", test.number());
        record.workload.parameters.insert(name, sizes(plan, test));
    }
}

fn sizes(plan: &Plan, test: Test) -> Value {
    let sizes = plan.sizes(test);
    match test {
        Test::Create | Test::Remove => {
            json!({"levels": sizes.levels, "files": sizes.files, "dirs": sizes.dirs})
        }
        Test::Lookup | Test::Data | Test::Statfs => json!({"count": sizes.count}),
        _ => json!({"files": sizes.files, "count": sizes.count}),
    }
}

fn measured(record: &mut Record, one: &Measured) {
    for line in &one.lines {
        let name = line.work.name();
        let seconds = line.elapsed.as_secs_f64();
        record.metric(&format!("{name}_s"), seconds, "s");
        let operations = line.work.operations(&line.numbers) as f64;
        let (name, rate, unit) = match line.bytes_per_s() {
            Some(rate) => (format!("{name}_bytes_per_s"), rate, "B/s"),
            None => (format!("{name}_per_s"), operations / seconds, "operations/s"),
        };
        record.metric(&name, rate, unit).result(&name, Better::Larger);
    }
    let test = format!("test{}", one.test.number());
    record.metric(&format!("{test}_own_s"), one.own().as_secs_f64(), "s");
    record.metric(&format!("{test}_process_cpu_s"), one.cpu.as_secs_f64(), "s");
    if !one.operations.is_empty() {
        record.histogram(&format!("{test}_operation"), &one.operations);
    }
}

fn outcome(one: &Measured) -> Value {
    let test = one.test.number();
    match &one.ended {
        None => json!({"test": test, "outcome": "passed"}),
        Some(Ended::Failed(failed)) => json!({
            "test": test,
            "outcome": "failed",
            "step": failed.step,
            "expected": failed.expected,
            "seen": failed.seen,
        }),
        Some(Ended::Unsupported(why)) => {
            json!({"test": test, "outcome": "unsupported", "answer": why})
        }
        Some(Ended::Broken { .. } | Ended::Stopped) => json!({"test": test, "outcome": "not done"}),
    }
}

fn warnings(record: &mut Record, ran: &Ran) {
    let Some(failure) = &ran.failure else { return };
    let left: Vec<String> = ran.left.iter().map(|test| test.number().to_string()).collect();
    if ran.measured.iter().any(|one| matches!(one.ended, Some(Ended::Failed(_)))) {
        record.warn("failed", failure.what(), failure.advice());
    } else {
        record.warn("incomplete", failure.what(), failure.advice());
    }
    if !left.is_empty() {
        let text = format!("these tests were not begun: {}", left.join(", "));
        record.warn("left-off", &text, "");
    }
}
