//! The run records: one for each place and number of copies.

use harness::records;
use perf::record::{Better, Run as Record, Target};
use serde_json::{Map, Value, json};

use super::measured::{Measured, Outcome, Ran};
use super::plan::Plan;
use super::summary::{is_fair, own_share, ratio};
use crate::suite13::args::{Caches, Suite13};

pub(super) fn all(outcome: &Outcome, plan: &Plan, args: &Suite13) -> Vec<Record> {
    let targets = 0..outcome.places.len();
    let each = targets.flat_map(|target| plan.copies.iter().map(move |copies| (target, *copies)));
    each.map(|(target, copies)| record(outcome, plan, args, target, copies)).collect()
}

fn record(outcome: &Outcome, plan: &Plan, args: &Suite13, target: usize, copies: u32) -> Record {
    let mut record = records::of("suite13");
    record.target = describe(outcome, target);
    parameters(&mut record, plan, args, copies);
    let before = json!(outcome.places[target].cached);
    records::parameters(&mut record, [("before_each_test", before)]);
    let mut all = Map::new();
    for &test in &plan.tests {
        let Some(one) = outcome.of(target, copies, test) else { continue };
        times(&mut record, one);
        let name = format!("test_{}", test.number());
        if target > 0
            && let Some(ratio) = ratio(outcome, plan, target, copies, test)
        {
            record.metric(&format!("{name}_ratio_to_first"), ratio, "");
        }
        all.insert(name, runs(one));
    }
    record.other.insert("tests".to_owned(), all.into());
    if let Some((median, most)) = own_share(outcome, target) {
        record.metric("generator_cpu_share", median, "");
        record.metric("generator_cpu_share_max", most, "");
    }
    warn(&mut record, outcome, plan, target);
    record
}

fn parameters(record: &mut Record, plan: &Plan, args: &Suite13, copies: u32) {
    let caches = match args.caches {
        Caches::Cold => "cold",
        Caches::Paper => "paper",
        Caches::Warm => "warm",
        Caches::Restart => "restart",
    };
    let parameters = [
        ("copies", json!(copies)),
        ("tests", plan.tests.iter().map(|test| test.number()).collect::<Value>()),
        ("repeats", json!(plan.repeats)),
        ("scale", json!(plan.scale)),
        ("seed", json!(plan.seed)),
        ("caches", json!(caches)),
        ("flushed_in_time", json!(plan.sync)),
    ];
    records::parameters(record, parameters);
}

fn describe(outcome: &Outcome, target: usize) -> Target {
    let place = &outcome.places[target];
    let (kind, path, url) = match place.is_server {
        true => ("server", None, Some(place.place.clone())),
        false => ("directory", Some(place.place.clone()), None),
    };
    let mut target = Target {
        kind: kind.to_owned(),
        path,
        url,
        durability: place.durability,
        mount_options: place.mount_options.clone(),
        ..Target::default()
    };
    target.other.insert("name".to_owned(), place.name.clone().into());
    target.other.insert("file_system".to_owned(), place.file_system.clone().into());
    target.other.insert("calls_counted".to_owned(), place.counted.into());
    target
}

/// Time that counts, time to the last copy's end where that is another one, and calls.
fn times(record: &mut Record, one: &Measured) {
    let name = format!("test_{}", one.test.number());
    if let Some(sample) = one.seconds(|ran| Some(ran.span())) {
        records::spread(record, &format!("{name}_s"), &sample, "s");
        record.result(&format!("{name}_s"), Better::Smaller);
    }
    if let Some(sample) = one.seconds(|ran| ran.flushed.is_some().then_some(ran.elapsed)) {
        records::spread(record, &format!("{name}_unflushed_s"), &sample, "s");
    }
    let calls = one.runs.iter().filter_map(|ran| Some(ran.calls.as_ref()?.total() as f64));
    if let Some(sample) = records::sample(calls) {
        records::spread(record, &format!("{name}_calls"), &sample, "calls");
    }
}

/// Everything of every run of a test.
fn runs(one: &Measured) -> Value {
    let run = |ran: &Ran| {
        let copies: Value = ran.copies.iter().map(|span| span.as_secs_f64()).collect();
        let mut run = Map::new();
        run.insert("s".to_owned(), ran.span().as_secs_f64().into());
        run.insert("copies_s".to_owned(), copies);
        if let Some(calls) = &ran.calls {
            run.insert("calls".to_owned(), json!(calls.calls));
        }
        Value::Object(run)
    };
    json!({ "name": one.test.name(), "runs": one.runs.iter().map(run).collect::<Value>() })
}

fn warn(record: &mut Record, outcome: &Outcome, plan: &Plan, target: usize) {
    let (place, first) = (&outcome.places[target], &outcome.places[0]);
    if target > 0 {
        record.other.insert("compared_with".to_owned(), first.name.clone().into());
    }
    if !is_fair(place, first, plan) && target > 0 {
        record.warn(
            "durability-differs",
            "what tests write does not survive the same things here and in the first place",
            "other places, or --mix-durability to compare all the same",
        );
    }
    if !plan.missing.is_empty() {
        let text = format!("test 5 was left off: there is no {}", plan.missing.join(" and "));
        record.warn("left-off", &text, "install a C compiler and make");
    }
}
