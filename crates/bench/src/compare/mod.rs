//! `nfskit bench compare`: records of two places, number by number.

pub mod args;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use harness::compared::{Better, Compared, Which};
use harness::exit::Failure;
use harness::hints;
use harness::records::{self, number, sample};
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::record::Run as Record;
use perf::stats::{Estimate, Interval};
use serde_json::{Value, json};

use crate::compare::args::Compare;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// What the places are called.
const NAMES: [&str; 2] = ["A", "B"];
/// A record that was written is far below.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// A number that both have.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    unit: String,
    medians: [f64; 2],
    compared: Compared,
}

/// The places, number by number.
#[derive(Debug)]
pub(crate) struct Comparison {
    places: [String; 2],
    /// Parameters that differ.
    differing: Vec<String>,
    rows: Vec<Row>,
}

/// Nothing is measured: what others have measured is read.
impl Workload for Compare {
    type Plan = ();
    type Measured = Comparison;

    fn plan(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    async fn run(&self, (): &(), _: Conditions) -> Result<Outcome<Comparison>, Failure> {
        let (first, second) = (read(&self.first)?, read(&self.second)?);
        let differing = check(&first, &second, self.mix_durability)?;
        let rows = rows(&first, &second);
        if rows.is_empty() {
            return Err(Failure::usage(
                "the records have no time and no rate in common",
                "records of one workload, with the same parameters",
            ));
        }
        let places = [place(&first), place(&second)];
        Ok(Outcome::whole(Comparison { places, differing, rows }))
    }

    fn table(&self, (): &(), compared: &Comparison, _: Verbosity) -> String {
        text(compared)
    }

    fn document(&self, (): &(), compared: &Comparison) -> Option<Value> {
        Some(as_json(compared))
    }
}

/// All records of these files.
fn read(files: &[PathBuf]) -> Result<Vec<Record>, Failure> {
    let mut all = Vec::new();
    for file in files {
        let cannot = |cause: std::io::Error| {
            let what = format!("cannot read {}: {cause}", file.display());
            Failure::environment(what, hints::reading(&cause))
        };
        let bytes = fs::metadata(file).map_err(cannot)?.len();
        let wrong = |why: String| {
            let what = format!("{}: {why}", file.display());
            Failure::usage(what, "a record, as --json of a benchmark writes it")
        };
        if bytes > RECORD_BYTES_MAX {
            return Err(wrong(format!("{bytes} bytes are too many for a record")));
        }
        let text = fs::read_to_string(file).map_err(cannot)?;
        let value: Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for one in list {
            let record = Record::from_json(&one.to_string());
            all.push(record.map_err(|error| wrong(error.to_string()))?);
        }
    }
    Ok(all)
}

/// Whether they can be compared; parameters that differ.
fn check(first: &[Record], second: &[Record], mix: bool) -> Result<Vec<String>, Failure> {
    let (Some(one), Some(two)) = (first.first(), second.first()) else {
        return Err(Failure::usage("a list without records", "files with records in them"));
    };
    let mut differing = Vec::new();
    for other in first.iter().chain(second) {
        let (name, wanted) = (&other.workload.name, &one.workload.name);
        if name != wanted {
            let what = format!("records of {wanted} and of {name}");
            return Err(Failure::usage(what, "records of one workload"));
        }
        for (name, value) in &one.workload.parameters {
            if other.workload.parameters.get(name) != Some(value) && !differing.contains(name) {
                differing.push(name.clone());
            }
        }
    }
    if let Err(mismatch) = two.check_comparable(one)
        && !mix
    {
        return Err(Failure::usage(mismatch, "--mix-durability compares all the same"));
    }
    Ok(differing)
}

fn place(records: &[Record]) -> String {
    let target = records.first().map(|record| record.target.clone()).unwrap_or_default();
    let name = target.url.or(target.path).unwrap_or(target.kind);
    format!("{name}, {} record(s)", records.len())
}

/// Whether more of a unit is better; `None` for what says nothing of speed.
fn better(unit: &str) -> Option<Better> {
    match unit {
        "ns" | "us" | "ms" | "s" => Some(Better::Smaller),
        _ if unit.ends_with("/s") => Some(Better::Larger),
        _ => None,
    }
}

/// Metrics of how a run went, and not of the place that it measured.
fn is_own(name: &str) -> bool {
    ["own", "cpu", "took", "behind", "generator", "_min", "_max", "late"]
        .iter()
        .any(|word| name.contains(word))
}

fn rows(first: &[Record], second: &[Record]) -> Vec<Row> {
    let Some(leading) = first.first() else { return Vec::new() };
    let names = leading.metrics().keys().filter(|name| !is_own(name));
    names.filter_map(|name| row(name, first, second)).collect()
}

fn row(name: &str, first: &[Record], second: &[Record]) -> Option<Row> {
    let unit = first.first()?.metrics().get(name)?.unit.clone();
    let better = better(&unit)?;
    let values = |records: &[Record]| {
        sample(records.iter().filter_map(|record| record.value(name)).filter(|v| v.is_finite()))
    };
    let (one, two) = (values(first)?, values(second)?);
    let compared = match (first, second) {
        ([a], [b]) => Compared::of_ratio(of_two(name, a, b)?, better),
        _ => Compared::of(&one, &two, better)?,
    };
    let medians = [one.median(), two.median()];
    Some(Row { name: name.to_owned(), unit, medians, compared })
}

/// Of one record each: by their own intervals, where they have such; wider than needed.
fn of_two(name: &str, first: &Record, second: &Record) -> Option<Estimate> {
    let of = |record: &Record| {
        let metric = record.metrics().get(name)?;
        Some((metric.value, metric.ci95))
    };
    let ((a, own), (b, other)) = (of(first)?, of(second)?);
    let ci95 = own.zip(other).filter(|([a, _], [b, _])| *a > 0.0 && *b > 0.0);
    let ci95 =
        ci95.map(|([a_lo, a_hi], [b_lo, b_hi])| Interval { lo: b_lo / a_hi, hi: b_hi / a_lo });
    (a > 0.0 && b > 0.0).then(|| Estimate { value: b / a, ci95 })
}

/// How many numbers each is faster by.
fn tally(rows: &[Row]) -> String {
    let [a, b] = NAMES;
    let count = |which| rows.iter().filter(|row| row.compared.faster() == which).count();
    let (first, second, neither) =
        (count(Some(Which::First)), count(Some(Which::Second)), count(None));
    let all = rows.len();
    let said = match (first, second) {
        (0, 0) => format!("{a} and {b} cannot be told apart by any of {all} numbers"),
        (_, 0) => format!("{a} is faster by {first} of {all} numbers, {b} by none"),
        (0, _) => format!("{b} is faster by {second} of {all} numbers, {a} by none"),
        _ => format!("{a} is faster by {first} of {all} numbers, {b} by {second}"),
    };
    format!("{said}; {neither} cannot be told (each at 95 %)")
}

fn text(Comparison { places, differing, rows }: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    for (name, place) in NAMES.iter().zip(places) {
        writeln!(text, "{name}           {place}").ok();
    }
    if !differing.is_empty() {
        writeln!(text, "differ      in {}: the numbers may, too", differing.join(", ")).ok();
    }
    let [a, b] = NAMES;
    let mut table = Table::new([left(""), right(a), right(b), left("")]);
    for Row { name, unit, medians, compared } in rows {
        let [one, two] = medians.map(number);
        let name = format!("{name} ({unit})");
        table.row([name, one, two, compared.sentence(a, b)]);
    }
    text.push_str(&table.text());
    writeln!(text, "compared    {}", tally(rows)).ok();
    text
}

fn as_json(Comparison { places, differing, rows }: &Comparison) -> Value {
    let ([a, b], said) = (NAMES, tally(rows));
    let numbers: Vec<Value> = rows
        .iter()
        .map(|row| {
            let times = row.compared.times;
            json!({
                "name": row.name,
                "unit": row.unit,
                "medians": row.medians,
                "times_as_fast": {
                    "value": times.value,
                    "ci95": times.ci95.map(|ci| [ci.lo, ci.hi]),
                },
                "said": row.compared.sentence(a, b),
            })
        })
        .collect();
    let started = records::now();
    json!({
        "schema": "nfskit.comparison/1",
        "started": started,
        "places": places,
        "differ_in": differing,
        "numbers": numbers,
        "said": said,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: f64, rate: f64) -> Record {
        let mut record = Record::new(perf::record::Tool::default(), "2026-01-01T00:00:00Z");
        record.workload.name = "basic".to_owned();
        record.workload.parameters.insert("files".to_owned(), 5.into());
        record.metric("create_s", seconds, "s");
        record.metric("write_bytes_per_s", rate, "B/s");
        record.metric("retransmissions", 0.0, "calls");
        record.metric("test1_own_s", 1.0, "s");
        record
    }

    fn records(of: [(f64, f64); 3]) -> Vec<Record> {
        of.map(|(seconds, rate)| record(seconds, rate)).into()
    }

    #[test]
    fn the_numbers_of_repetitions_decide() {
        let fast = records([(1.0, 300.0), (1.01, 303.0), (0.99, 298.0)]);
        let slow = records([(2.0, 100.0), (2.02, 101.0), (1.98, 99.0)]);
        let said = |a: &[Record], b: &[Record]| tally(&rows(a, b));
        assert_eq!(rows(&fast, &slow).len(), 2, "neither counts nor the program's own time");
        let first = "A is faster by 2 of 2 numbers, B by none; 0 cannot be told (each at 95 %)";
        assert_eq!(said(&fast, &slow), first);
        assert!(said(&slow, &fast).starts_with("B is faster by 2 of 2"));
        assert!(said(&fast, &fast).starts_with("A and B cannot be told apart by any of 2"));
        let mixed = records([(2.0, 300.0), (2.02, 303.0), (1.98, 298.0)]);
        let one_each = records([(1.0, 100.0), (1.01, 101.0), (0.99, 99.0)]);
        assert!(said(&mixed, &one_each).starts_with("A is faster by 1 of 2 numbers, B by 1"));
    }

    #[test]
    fn one_record_each_is_compared_by_its_own_intervals_or_not_at_all() {
        let (one, two) = (vec![record(1.0, 10.0)], vec![record(9.0, 90.0)]);
        assert!(tally(&rows(&one, &two)).contains("cannot be told apart by any"));
        let with = |value: f64| {
            let mut record = record(1.0, 10.0);
            let ci95 = Some(Interval { lo: 0.9 * value, hi: 1.1 * value });
            record.estimate("throughput_mib_per_s", &Estimate { value, ci95 }, "MiB/s", 9);
            vec![record]
        };
        assert!(tally(&rows(&with(10.0), &with(20.0))).starts_with("B is faster by 1 of 3"));
        assert!(tally(&rows(&with(10.0), &with(11.0))).starts_with("A and B cannot be told"));
    }

    #[test]
    fn records_of_other_things_are_refused_and_other_parameters_are_reported() {
        let one = vec![record(1.0, 1.0)];
        let mut other = record(1.0, 1.0);
        other.workload.parameters.insert("files".to_owned(), 6.into());
        assert_eq!(check(&one, &[other.clone()], false).unwrap(), ["files"]);
        other.workload.name = "rtt".to_owned();
        assert!(check(&one, &[other], false).unwrap_err().what().contains("of basic and of rtt"));
        let mut durable = vec![record(1.0, 1.0)];
        durable[0].target.durability = Some(perf::record::Durability::Stable);
        let mut memory = durable.clone();
        memory[0].target.durability = Some(perf::record::Durability::Memory);
        assert!(check(&durable, &memory, false).is_err() && check(&durable, &memory, true).is_ok());
    }
}
