//! `nfskit bench compare`: records of two places, number by number.

pub mod args;
mod cases;

use std::fmt::Write as _;
use std::path::PathBuf;

use harness::compared::{Better, Compared, Repeated, Which};
use harness::exit::Failure;
use harness::hints;
use harness::input;
use harness::records::{self, number, sample};
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::record::Run as Record;
use perf::stats::{Estimate, Interval};
use perf::words::counted;
use serde_json::{Value, json};

use self::cases::Case;
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
    /// Records with whose parameters the other place has none.
    left_out: [usize; 2],
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

    fn inputs(&self) -> Vec<PathBuf> {
        [&self.first[..], &self.second].concat()
    }

    async fn run(&self, (): &(), conditions: Conditions) -> Result<Outcome<Comparison>, Failure> {
        let (first, second) = (self.first.clone(), self.second.clone());
        let (first, second) = conditions.read(move || Ok((read(&first)?, read(&second)?))).await?;
        Ok(Outcome::whole(compare(&first, &second, self)?))
    }

    fn table(&self, (): &(), compared: &Comparison, _: Verbosity) -> String {
        text(compared)
    }

    fn document(&self, (): &(), compared: &Comparison) -> Option<Value> {
        Some(as_json(compared))
    }
}

fn compare(first: &[Record], second: &[Record], args: &Compare) -> Result<Comparison, Failure> {
    check(first, second, args.mix_durability)?;
    let cases = match args.mix_parameters {
        true => vec![Case::whole(first, second)],
        false => cases::matched(first, second)?,
    };
    let rows: Vec<Row> = cases.iter().flat_map(rows).collect();
    if rows.is_empty() {
        let advice = "records of runs that have measured the same";
        return Err(Failure::usage("the records have no result in common", advice));
    }
    let compared = |of: fn(&Case<'_>) -> usize| cases.iter().map(of).sum::<usize>();
    let left_out = [
        first.len() - compared(|case| case.first.len()),
        second.len() - compared(|case| case.second.len()),
    ];
    let places = [place(first), place(second)];
    Ok(Comparison { places, differing: cases::differing(&cases), left_out, rows })
}

/// All records of these files.
fn read(files: &[PathBuf]) -> Result<Vec<Record>, Failure> {
    let mut all = Vec::new();
    for file in files {
        let cannot = |cause: std::io::Error| {
            let what = format!("cannot read {}: {cause}", file.display());
            Failure::environment(what, hints::reading(&cause))
        };
        let text = input::text(file, RECORD_BYTES_MAX).map_err(cannot)?;
        let wrong = |why: String| {
            let what = format!("{}: {why}", file.display());
            Failure::environment(what, "a record, as --json of a benchmark writes it")
        };
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

/// Whether they can be compared at all.
fn check(first: &[Record], second: &[Record], mix: bool) -> Result<(), Failure> {
    let (Some(one), Some(two)) = (first.first(), second.first()) else {
        let what = "a list without records";
        return Err(Failure::environment(what, "files with records in them"));
    };
    let wanted = &one.workload.name;
    let names = first.iter().chain(second).map(|record| &record.workload.name);
    if let Some(name) = names.into_iter().find(|name| *name != wanted) {
        let what = format!("records of {wanted} and of {name}");
        return Err(Failure::usage(what, "records of one workload"));
    }
    let has_results = |record: &Record| record.metrics().values().any(|one| one.better.is_some());
    if let Some(without) = [one, two].into_iter().find(|record| !has_results(record)) {
        let version = &without.tool.version;
        let what = format!(
            "a record of {wanted}, written by nfskit {version}, marks no number as a result"
        );
        return Err(Failure::usage(what, "records of a benchmark, written by this version"));
    }
    if let Err(mismatch) = two.check_comparable(one)
        && !mix
    {
        return Err(Failure::usage(mismatch, "--mix-durability compares all the same"));
    }
    Ok(())
}

fn place(records: &[Record]) -> String {
    let target = records.first().map(|record| record.target.clone()).unwrap_or_default();
    let name = target.url.or(target.path).unwrap_or(target.kind);
    format!("{name}, {}", counted(records.len() as u64, "record"))
}

fn rows(case: &Case<'_>) -> Vec<Row> {
    let metrics = case.all().flat_map(|record| record.metrics());
    let results = metrics.filter_map(|(name, metric)| Some((name.as_str(), metric.better?)));
    // Each once, in the order in which they were measured.
    let mut distinct: Vec<(&str, Better)> = Vec::new();
    for (name, better) in results {
        if distinct.iter().all(|(other, _)| *other != name) {
            distinct.push((name, better));
        }
    }
    distinct.into_iter().filter_map(|(name, better)| row(name, better, case)).collect()
}

fn row(name: &str, better: Better, case: &Case<'_>) -> Option<Row> {
    let unit = case.all().find_map(|record| record.metrics().get(name))?.unit.clone();
    let values =
        |records: &[&Record]| sample(records.iter().filter_map(|record| record.value(name)));
    let (one, two) = (values(&case.first)?, values(&case.second)?);
    let compared = match (&case.first[..], &case.second[..]) {
        ([a], [b]) => Compared::of_ratio(of_two(name, a, b)?, better),
        _ => Compared::of(&one, &two, better)?,
    };
    let medians = [one.median(), two.median()];
    let name = match case.name.as_str() {
        "" => name.to_owned(),
        case => format!("{case}: {name}"),
    };
    Some(Row { name, unit, medians, compared })
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
    let summary = match (first, second) {
        (0, 0) => format!("{a} and {b} cannot be distinguished by any of {all} numbers"),
        (_, 0) => format!("{a} is faster by {first} of {all} numbers, {b} by none"),
        (0, _) => format!("{b} is faster by {second} of {all} numbers, {a} by none"),
        _ => format!("{a} is faster by {first} of {all} numbers, {b} by {second}"),
    };
    format!("{summary}; {neither} cannot be decided (each at 95 %)")
}

fn text(Comparison { places, differing, left_out, rows }: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    for (name, place) in NAMES.iter().zip(places) {
        writeln!(text, "{name}           {place}").ok();
    }
    if !differing.is_empty() {
        writeln!(text, "differ      in {}: the numbers may, too", differing.join(", ")).ok();
    }
    let [a, b] = NAMES;
    if let [one, two] = left_out
        && one + two > 0
    {
        let why = "whose parameters the other place has no record of";
        let one = counted(*one as u64, "record");
        writeln!(text, "left out    {one} of {a} and {two} of {b}, {why}").ok();
    }
    let mut table = Table::new([left(""), right(a), right(b), left("")]);
    for Row { name, unit, medians, compared } in rows {
        let [one, two] = medians.map(number);
        let name = format!("{name} ({unit})");
        table.row([name, one, two, compared.sentence_of(Repeated::Records, a, b)]);
    }
    text.push_str(&table.text());
    writeln!(text, "compared    {}", tally(rows)).ok();
    text
}

fn as_json(Comparison { places, differing, left_out, rows }: &Comparison) -> Value {
    let ([a, b], summary) = (NAMES, tally(rows));
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
                "said": row.compared.sentence_of(Repeated::Records, a, b),
            })
        })
        .collect();
    let started = records::now();
    json!({
        "schema": "nfskit.comparison/1",
        "started": started,
        "places": places,
        "differ_in": differing,
        "records_left_out": left_out,
        "numbers": numbers,
        "said": summary,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn record(seconds: f64, rate: f64) -> Record {
        let mut record = Record::new(perf::record::Tool::default(), "2026-01-01T00:00:00Z");
        record.workload.name = "basic".to_owned();
        record.workload.parameters.insert("files".to_owned(), 5.into());
        record.metric("create_s", seconds, "s").result("create_s", Better::Smaller);
        record.metric("write_bytes_per_s", rate, "B/s");
        record.result("write_bytes_per_s", Better::Larger);
        // Of the run, and not of the place.
        record.metric("retransmissions", 0.0, "calls");
        record.metric("elapsed_s", seconds, "s").metric("offered_per_s", rate, "1/s");
        record
    }

    fn records(of: [(f64, f64); 3]) -> Vec<Record> {
        of.map(|(seconds, rate)| record(seconds, rate)).into()
    }

    fn with(mut record: Record, name: &str, value: u64) -> Record {
        record.workload.parameters.insert(name.to_owned(), value.into());
        record
    }

    fn compared(a: &[Record], b: &[Record], options: &[&str]) -> Result<Comparison, Failure> {
        let arguments = ["compare", "--first", "a", "--second", "b"];
        compare(a, b, &Compare::parse_from([&arguments, options].concat()))
    }

    fn summary(a: &[Record], b: &[Record]) -> String {
        tally(&compared(a, b, &[]).unwrap().rows)
    }

    #[test]
    fn the_results_of_repetitions_decide() {
        let fast = records([(1.0, 300.0), (1.01, 303.0), (0.99, 298.0)]);
        let slow = records([(2.0, 100.0), (2.02, 101.0), (1.98, 99.0)]);
        let first = "A is faster by 2 of 2 numbers, B by none; 0 cannot be decided (each at 95 %)";
        assert_eq!(summary(&fast, &slow), first);
        assert!(summary(&slow, &fast).starts_with("B is faster by 2 of 2"));
        assert!(summary(&fast, &fast).starts_with("A and B cannot be distinguished by any of 2"));
        let mixed = records([(2.0, 300.0), (2.02, 303.0), (1.98, 298.0)]);
        let one_each = records([(1.0, 100.0), (1.01, 101.0), (0.99, 99.0)]);
        assert!(summary(&mixed, &one_each).starts_with("A is faster by 1 of 2 numbers, B by 1"));
    }

    #[test]
    fn one_record_each_is_compared_by_its_own_intervals_or_not_at_all() {
        let (one, two) = (vec![record(1.0, 10.0)], vec![record(9.0, 90.0)]);
        assert!(summary(&one, &two).contains("cannot be distinguished by any"));
        let text = text(&compared(&one, &two, &[]).unwrap());
        assert!(text.contains("one record has no interval; several of each"), "{text}");
        assert!(!text.contains("--repeats"), "{text}");
        let with = |value: f64| {
            let mut record = record(1.0, 10.0);
            let ci95 = Some(Interval { lo: 0.9 * value, hi: 1.1 * value });
            record.estimate("throughput_mib_per_s", &Estimate { value, ci95 }, "MiB/s", 9);
            record.result("throughput_mib_per_s", Better::Larger);
            vec![record]
        };
        assert!(summary(&with(10.0), &with(20.0)).starts_with("B is faster by 1 of 3"));
        assert!(summary(&with(10.0), &with(11.0)).starts_with("A and B cannot be distinguished"));
    }

    #[test]
    fn what_was_measured_with_other_parameters_is_not_compared() {
        let one = [record(1.0, 1.0)];
        let refused = |b: Record| compared(&one, &[b], &[]).unwrap_err().what().to_owned();
        let other = with(record(1.0, 1.0), "files", 6);
        assert!(refused(other.clone()).contains("files (5 and 6)"), "{}", refused(other));
        // Also where only the second has it.
        let more = with(record(1.0, 1.0), "outstanding", 8);
        assert!(refused(more.clone()).contains("outstanding (none and 8)"));
        let all_the_same = compared(&one, &[more], &["--mix-parameters"]).unwrap();
        assert_eq!(
            (all_the_same.differing, all_the_same.rows.len()),
            (vec!["outstanding".to_owned()], 2)
        );
        // What is drawn anew does not make it another measurement, and is reported.
        let seeds = [1, 2].map(|seed| with(record(1.0, 1.0), "seed", seed));
        let drawn = compared(&seeds[..1], &seeds[1..], &[]).unwrap();
        assert_eq!((drawn.differing, drawn.rows.len()), (vec!["seed".to_owned()], 2));
    }

    #[test]
    fn records_of_several_cases_are_compared_case_by_case() {
        let of = |seconds: f64| [5, 6].map(|files| with(record(seconds, 1.0), "files", files));
        let (a, mut b) = (of(1.0).to_vec(), of(2.0).to_vec());
        b.push(with(record(1.0, 1.0), "files", 7));
        let compared = compared(&a, &b, &[]).unwrap();
        let names: Vec<&str> = compared.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[2], "files 6: create_s");
        assert!(text(&compared).contains("left out    0 records of A and 1 of B"));
    }

    #[test]
    fn records_of_other_things_are_refused() {
        let one = vec![record(1.0, 1.0)];
        let mut other = record(1.0, 1.0);
        other.workload.name = "rtt".to_owned();
        assert!(check(&one, &[other], false).unwrap_err().what().contains("of basic and of rtt"));
        let mut older = Record::new(perf::record::Tool::default(), "2026-01-01T00:00:00Z");
        older.workload.name = "basic".to_owned();
        older.metric("create_s", 1.0, "s");
        let refused = check(&one, &[older], false).unwrap_err();
        assert!(refused.what().contains("marks no number as a result"), "{}", refused.what());
        let mut durable = vec![record(1.0, 1.0)];
        durable[0].target.durability = Some(perf::record::Durability::Stable);
        let mut memory = durable.clone();
        memory[0].target.durability = Some(perf::record::Durability::Memory);
        assert!(check(&durable, &memory, false).is_err() && check(&durable, &memory, true).is_ok());
    }
}
