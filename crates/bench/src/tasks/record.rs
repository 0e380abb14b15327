//! The run records: one for each number of tasks, length and kind of files.

use harness::records;
use load::tasks::Run;
use perf::record::{Better, Run as Record, Target};
use serde_json::{Value, json};

use super::plan::{Plan, files};
use super::summary::{deviation, each, is_busy};
use super::targets::Place;
use super::{Measured, Outcome};
use crate::tasks::args::Tasks;

/// One for each case.
pub(super) fn all(outcome: &Outcome, plan: &Plan, args: &Tasks) -> Vec<Record> {
    outcome.measured.iter().map(|one| record(one, outcome, plan, args)).collect()
}

fn record(one: &Measured, outcome: &Outcome, plan: &Plan, args: &Tasks) -> Record {
    let mut record = records::of("tasks");
    record.target = target(one, outcome);
    let (case, work) = (&one.case, &one.case.workload);
    let seats = plan.seats(case);
    let parameters = [
        ("tasks", json!(seats.len())),
        ("file_bytes", json!(work.file_bytes)),
        ("call_bytes", json!(work.call_bytes)),
        ("times", json!(work.times)),
        ("files", json!(files(work.names))),
        ("sync", json!(work.sync)),
        ("clients", json!(plan.clients)),
        ("alone", json!(case.only.is_some())),
        ("repeats", json!(one.runs.len())),
        ("cached", json!("as the tasks leave it: nothing is read, and nothing is dropped")),
    ];
    records::parameters(&mut record, parameters);
    if !args.target.is_empty() {
        args.client.record(&mut record);
    }
    results(&mut record, one, outcome);
    record.other.insert("task_seconds".to_owned(), spans(one));
    let tasks = seats.iter().map(|(target, client)| json!([target + 1, client + 1]));
    record.other.insert("task_targets_and_clients".to_owned(), tasks.collect());
    warn(&mut record, one, outcome);
    record
}

fn results(record: &mut Record, one: &Measured, outcome: &Outcome) {
    let samples = [
        ("sum_mbit_per_s", one.sample(|run| run.sum_mbit_per_s(|_| true)), "Mbit/s"),
        ("all_mbit_per_s", one.sample(Run::wall_mbit_per_s), "Mbit/s"),
        ("task_mbit_per_s", one.sample(each), "Mbit/s"),
        ("task_deviation_mbit_per_s", one.sample(deviation), "Mbit/s"),
        ("all_s", one.sample(|run| run.wall.as_secs_f64()), "s"),
    ];
    records::spreads(record, samples);
    // The sum is that of each task, multiplied.
    record.result("all_mbit_per_s", Better::Larger).result("task_mbit_per_s", Better::Larger);
    if one.case.only.is_none() && outcome.places.len() > 1 {
        for target in 0..outcome.places.len() {
            let of_it = one.sample(|run| run.sum_mbit_per_s(|task| task.target == target));
            if let Some(sample) = of_it {
                let name = format!("target_{}_sum_mbit_per_s", target + 1);
                records::spread(record, &name, &sample, "Mbit/s");
                record.result(&name, Better::Larger);
            }
        }
    }
    record.metric("generator_cpu_share", one.own_share(), "");
}

/// The only target as records have it; of several a list besides.
fn target(one: &Measured, outcome: &Outcome) -> Target {
    let places = outcome.places.iter().enumerate();
    let places = places.filter(|(number, _)| one.case.only.is_none_or(|only| only == *number));
    let places: Vec<_> = places.map(|(_, place)| place).collect();
    match places[..] {
        [place] => single(place),
        _ => several(&places),
    }
}

fn single(place: &Place) -> Target {
    let name = Some(place.name.clone());
    let (kind, url, path) = match place.is_server {
        true => ("server", name, None),
        false => ("directory", None, name),
    };
    let mut target = Target {
        kind: kind.to_owned(),
        url,
        path,
        durability: place.durability,
        mount_options: place.mount_options.clone(),
        ..Target::default()
    };
    target.other.insert("file_system".to_owned(), place.file_system.clone().into());
    target
}

fn several(places: &[&Place]) -> Target {
    let first = places[0].durability;
    let mut target = Target {
        kind: "several".to_owned(),
        // Of what differs there is no one word.
        durability: first.filter(|_| places.iter().all(|one| one.durability == first)),
        ..Target::default()
    };
    target.other.insert("targets".to_owned(), places.iter().map(|place| listed(place)).collect());
    target
}

fn listed(place: &Place) -> Value {
    let mut listed = json!({"name": place.name, "file_system": place.file_system});
    if let Some(durability) = place.durability {
        listed["durability"] = durability.name().into();
    }
    listed
}

/// Seconds of every task of every repetition.
fn spans(one: &Measured) -> Value {
    let run = |run: &Run| -> Value {
        run.tasks.iter().map(|task| Value::from(task.span.as_secs_f64())).collect()
    };
    one.runs.iter().map(run).collect()
}

fn warn(record: &mut Record, one: &Measured, outcome: &Outcome) {
    if is_busy(one.own_share()) {
        let text = format!("the generator used {:.0} % of a processor", one.own_share() * 100.0);
        record.warn("client-was-bottleneck", &text, "a faster processor here, or larger calls");
    }
    let first = outcome.places[0].durability;
    let differs = outcome.places.iter().any(|place| place.durability != first);
    if differs && one.case.only.is_none() {
        record.warn(
            "durability-differs",
            "what was written does not survive the same things on all targets",
            "--sync, or targets of one kind; compare no target with another",
        );
    }
}
