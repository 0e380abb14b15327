//! Which records are repetitions of which: those with the same parameters.

use harness::exit::Failure;
use perf::record::Run as Record;
use serde_json::{Map, Value};

/// Parameters that do not make it another measurement: how much of it is drawn, and what the place
/// is.
const NOT_DECIDING: [&str; 5] = ["before_each_test", "cache", "cached", "repeats", "seed"];

/// A longer value says nothing in a sentence.
const SHOWN_BYTES_MAX: usize = 40;

/// Records of both places with the same parameters.
#[derive(Debug)]
pub(super) struct Case<'a> {
    /// The parameters that other cases have not; empty where there is one case.
    pub(super) name: String,
    pub(super) first: Vec<&'a Record>,
    pub(super) second: Vec<&'a Record>,
}

impl<'a> Case<'a> {
    /// All, whatever their parameters are.
    pub(super) fn whole(first: &'a [Record], second: &'a [Record]) -> Self {
        let name = String::new();
        Self { name, first: first.iter().collect(), second: second.iter().collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'a Record> {
        self.first.iter().chain(&self.second).copied()
    }
}

/// Records by their parameters, as far as both places have some, in the order of the first.
///
/// # Errors
/// No record of the one has the parameters of one of the other.
pub(super) fn matched<'a>(
    first: &'a [Record],
    second: &'a [Record],
) -> Result<Vec<Case<'a>>, Failure> {
    let mut distinct: Vec<Map<String, Value>> = Vec::new();
    for parameters in first.iter().map(deciding) {
        if !distinct.contains(&parameters) {
            distinct.push(parameters);
        }
    }
    let varying = varying(&distinct);
    let case = |parameters: &Map<String, Value>| {
        let of = |records: &'a [Record]| -> Vec<&'a Record> {
            records.iter().filter(|record| deciding(record) == *parameters).collect()
        };
        let named = varying.iter().map(|name| format!("{name} {}", shown(parameters.get(name))));
        let name = named.collect::<Vec<_>>().join(", ");
        Case { name, first: of(first), second: of(second) }
    };
    let cases = distinct.iter().map(case).filter(|case| !case.second.is_empty());
    let cases: Vec<Case<'a>> = cases.collect();
    match (cases.is_empty(), first, second) {
        (true, [one, ..], [two, ..]) => Err(unmatched(&deciding(one), &deciding(two))),
        _ => Ok(cases),
    }
}

/// Parameters that differ within a case.
pub(super) fn differing(cases: &[Case<'_>]) -> Vec<String> {
    let of_case = |case: &Case<'_>| {
        let all: Vec<_> = case.all().map(|record| record.workload.parameters.clone()).collect();
        varying(&all)
    };
    let mut names: Vec<String> = cases.iter().flat_map(of_case).collect();
    names.sort();
    names.dedup();
    names
}

fn deciding(record: &Record) -> Map<String, Value> {
    let all = record.workload.parameters.clone().into_iter();
    all.filter(|(name, _)| !NOT_DECIDING.contains(&name.as_str())).collect()
}

/// The names of what is not the same in all of these.
fn varying(all: &[Map<String, Value>]) -> Vec<String> {
    let Some(one) = all.first() else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().flat_map(Map::keys) {
        let is_same = all.iter().all(|other| other.get(name) == one.get(name));
        if !is_same && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn unmatched(one: &Map<String, Value>, two: &Map<String, Value>) -> Failure {
    let both = varying(&[one.clone(), two.clone()]);
    let values = both.iter().map(|name| match (shown(one.get(name)), shown(two.get(name))) {
        (a, b) if a.len().max(b.len()) > SHOWN_BYTES_MAX => name.clone(),
        (a, b) => format!("{name} ({a} and {b})"),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    Failure::usage(
        format!("the places were not measured alike: they differ in {values}"),
        "records of runs with the same parameters; --mix-parameters compares all the same",
    )
}

fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "none".to_owned(),
    }
}
