//! `nfskit bench compare`: records of two places, number by number.

pub mod args;
mod cases;
mod check;

use std::fmt::Write as _;
use std::path::PathBuf;

use harness::compared::{Better, Compared, Repeated, Which};
use harness::exit::Failure;
use harness::hints;
use harness::input;
use harness::records::{self, number, sample};
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::record::{Metric, Run as Record};
use perf::stats::{Estimate, Interval, Sample};
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
    /// Or why the medians decide nothing.
    compared: Result<Compared, &'static str>,
}

/// There is no interval of a ratio of 0, and none that is known of values without a spread.
const NO_RATIO: &str = "cannot be compared: a value is 0, of which there is no ratio";
const NO_SPREAD: &str = "cannot be distinguished: all records of each have one value, so that \
                         their spread is not known; more of each";

impl Row {
    fn faster(&self) -> Option<Which> {
        self.compared.as_ref().ok()?.faster()
    }

    fn sentence(&self) -> String {
        let [a, b] = NAMES;
        match &self.compared {
            Ok(compared) => compared.sentence_of(Repeated::Records, a, b),
            Err(why) => format!("{a} and {b} {why}"),
        }
    }
}

/// Warnings of one code, of the records of a place.
#[derive(Clone, Debug)]
struct Warned {
    code: String,
    records: usize,
    /// Of the first.
    text: String,
}

/// The places, number by number.
#[derive(Debug)]
pub(crate) struct Comparison {
    places: [String; 2],
    /// Parameters that differ.
    differing: Vec<String>,
    /// Records with whose parameters the other place has none.
    left_out: [usize; 2],
    /// Records that were given more than once, and count once.
    again: [usize; 2],
    warned: [Vec<Warned>; 2],
    /// Results that the other place has not.
    alone: [Vec<String>; 2],
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

    fn is_untimed(&self) -> bool {
        true
    }

    async fn run(&self, (): &(), _: Conditions) -> Result<Outcome<Comparison>, Failure> {
        let (first, second) = (read(&self.first)?, read(&self.second)?);
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
    check::check(first, second, args.mix_durability)?;
    let given = [first, second];
    let [first, second] = &given.map(distinct);
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
    Ok(Comparison {
        places: [place(first), place(second)],
        differing: cases::differing(&cases),
        left_out,
        again: [given[0].len() - first.len(), given[1].len() - second.len()],
        warned: [warned(first), warned(second)],
        alone: [alone(first, second), alone(second, first)],
        rows,
    })
}

/// Each record once: a copy is no repetition, and would make the spread smaller than it is.
fn distinct(records: &[Record]) -> Vec<Record> {
    let mut distinct: Vec<Record> = Vec::new();
    for record in records {
        if !distinct.contains(record) {
            distinct.push(record.clone());
        }
    }
    distinct
}

fn warned(records: &[Record]) -> Vec<Warned> {
    let mut found: Vec<Warned> = Vec::new();
    for record in records {
        let mut seen = Vec::new();
        for warning in &record.warnings {
            if seen.contains(&&warning.code) {
                continue;
            }
            seen.push(&warning.code);
            match found.iter_mut().find(|known| known.code == warning.code) {
                Some(known) => known.records += 1,
                None => found.push(Warned {
                    code: warning.code.clone(),
                    records: 1,
                    text: warning.text.clone(),
                }),
            }
        }
    }
    found
}

/// Results of these that none of the others has.
fn alone(records: &[Record], others: &[Record]) -> Vec<String> {
    let is_there = |name: &String| others.iter().any(|other| other.metrics().contains_key(name));
    let metrics = records.iter().flat_map(Record::metrics);
    let results = metrics.filter(|(name, metric)| metric.better.is_some() && !is_there(name));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in results {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
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
        if text.trim().is_empty() {
            return Err(wrong("it is empty".to_owned()));
        }
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
    let has_spread = |sample: &Sample| sample.n() == 1 || sample.min() < sample.max();
    let compared = match (&case.first[..], &case.second[..]) {
        ([a], [b]) => of_two(name, a, b).map(|ratio| Compared::of_ratio(ratio, better)),
        _ => Compared::of(&one, &two, better),
    };
    let compared = match compared {
        Some(_) if !has_spread(&one) && !has_spread(&two) => Err(NO_SPREAD),
        compared => compared.ok_or(NO_RATIO),
    };
    let medians = [one.median(), two.median()];
    let name = match case.name.as_str() {
        "" => name.to_owned(),
        case => format!("{case}: {name}"),
    };
    Some(Row { name, unit, medians, compared })
}

/// Of one record each: by their own intervals, where they have such; wider than needed. One in
/// which its value does not lie, or of no width, is none.
fn of_two(name: &str, first: &Record, second: &Record) -> Option<Estimate> {
    let of = |record: &Record| {
        let &Metric { value, ci95, .. } = record.metrics().get(name)?;
        Some((value, ci95.filter(|[lo, hi]| lo < hi && (*lo..=*hi).contains(&value))))
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
    let count = |which| rows.iter().filter(|row| row.faster() == which).count();
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

fn text(compared: &Comparison) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    head(&mut text, compared).ok();
    let [a, b] = NAMES;
    let mut table = Table::new([left(""), right(a), right(b), left("")]);
    for row in &compared.rows {
        let [one, two] = row.medians.map(number);
        table.row([format!("{} ({})", row.name, row.unit), one, two, row.sentence()]);
    }
    text.push_str(&table.text());
    text + &format!("compared    {}\n", tally(&compared.rows))
}

/// The places, and what the reader must know before the numbers.
fn head(text: &mut String, compared: &Comparison) -> std::fmt::Result {
    let Comparison { places, differing, left_out, again, warned, alone, .. } = compared;
    for (name, place) in NAMES.iter().zip(places) {
        writeln!(text, "{name}           {place}")?;
    }
    for (name, again) in NAMES.iter().zip(again).filter(|(_, again)| **again > 0) {
        let again = counted(*again as u64, "record");
        writeln!(text, "again       {again} of {name}, equal to others, which count once")?;
    }
    for (name, warned) in NAMES.iter().zip(warned) {
        for Warned { code, records, text: why } in warned {
            let records = counted(*records as u64, "record");
            writeln!(text, "{name} warns     {code}, in {records}: {why}")?;
        }
    }
    if !differing.is_empty() {
        writeln!(text, "differ      in {}: the numbers may, too", differing.join(", "))?;
    }
    let [a, b] = NAMES;
    if let [one, two] = left_out
        && one + two > 0
    {
        let why = "whose parameters the other place has no record of";
        let one = counted(*one as u64, "record");
        writeln!(text, "left out    {one} of {a} and {two} of {b}, {why}")?;
    }
    for (name, alone) in NAMES.iter().zip(alone).filter(|(_, alone)| !alone.is_empty()) {
        writeln!(text, "only in {name}   {}", alone.join(", "))?;
    }
    Ok(())
}

fn as_json(compared: &Comparison) -> Value {
    let Comparison { places, differing, left_out, again, warned, alone, rows } = compared;
    let warning = |warned: &Warned| {
        let Warned { code, records, text } = warned;
        json!({"code": code, "records": records, "text": text})
    };
    let warnings = |warned: &Vec<Warned>| warned.iter().map(warning).collect::<Vec<Value>>();
    json!({
        "schema": "nfskit.comparison/1",
        "started": records::now(),
        "places": places,
        "differ_in": differing,
        "records_left_out": left_out,
        "records_again": again,
        "warnings": warned.each_ref().map(warnings),
        "only_in": alone,
        "numbers": rows.iter().map(number_as_json).collect::<Vec<Value>>(),
        "said": tally(rows),
    })
}

fn number_as_json(row: &Row) -> Value {
    let mut number = json!({
        "name": row.name,
        "unit": row.unit,
        "medians": row.medians,
        "said": row.sentence(),
    });
    if let Ok(Compared { times }) = row.compared {
        let ci95 = times.ci95.map(|ci| [ci.lo, ci.hi]);
        number["times_as_fast"] = json!({"value": times.value, "ci95": ci95});
    }
    number
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
        let alike = records([(1.02, 299.0), (1.0, 302.0), (0.98, 301.0)]);
        assert!(summary(&fast, &alike).starts_with("A and B cannot be distinguished by any of 2"));
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
        let check = |a: &[Record], b: &[Record], mix| check::check(a, b, mix);
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

    #[test]
    fn a_record_that_is_given_twice_is_no_repetition() {
        let (one, two) = (record(1.0, 10.0), record(2.0, 10.0));
        let twice = compared(&[one.clone(), one.clone()], &[two.clone(), two.clone()], &[]);
        let twice = twice.unwrap();
        assert!(tally(&twice.rows).starts_with("A and B cannot be distinguished by any of 2"));
        assert_eq!(twice.again, [1, 1]);
        assert!(text(&twice).contains("again       1 record of A, equal to others"));
        let both = compared(&[one.clone(), two.clone()], &[two], &[]).unwrap_err();
        assert!(both.what().contains("is a record of both places"), "{}", both.what());
        // Two runs whose values are equal, as far as they are written.
        let other = with(one.clone(), "seed", 7);
        let b = [3.0, 3.1].map(|seconds| record(seconds, 10.0));
        let summary = |a: &[Record], b: &[Record]| tally(&compared(a, b, &[]).unwrap().rows);
        let rounded = [one, other];
        assert!(summary(&rounded, &b).starts_with("A is faster by 1 of 2"));
        let b = [1, 2].map(|seed| with(record(3.0, 10.0), "seed", seed));
        assert!(summary(&rounded, &b).starts_with("A and B cannot be distinguished by any of 2"));
    }

    #[test]
    fn a_value_of_0_is_shown_and_decides_nothing() {
        let lossless = [0.0, 0.0].iter().zip([1, 2]);
        let a: Vec<Record> =
            lossless.map(|(loss, seed)| with(record(*loss, 10.0), "seed", seed)).collect();
        let b = [3.0, 3.1].map(|seconds| record(seconds, 10.0));
        let compared = compared(&a, &b, &[]).unwrap();
        assert_eq!(compared.rows.len(), 2);
        assert!(text(&compared).contains("a value is 0, of which there is no ratio"));
        assert!(tally(&compared.rows).ends_with("2 cannot be decided (each at 95 %)"));
    }

    #[test]
    fn what_records_warn_of_is_reported_with_the_comparison() {
        let quiet = [1.0, 1.1].map(|seconds| record(seconds, 10.0));
        let mut loud = [2.0, 2.1].map(|seconds| record(seconds, 10.0));
        loud[1].warn("partial", "the run ended before its end: no server", "").warn("x", "y", "");
        let warned = compared(&quiet, &loud, &[]).unwrap();
        let line = "B warns     partial, in 1 record: the run ended before its end: no server";
        assert!(text(&warned).contains(line) && !text(&warned).contains("A warns"));
        assert_eq!(as_json(&warned)["warnings"][1][0]["code"], "partial");
        let silent = compared(&quiet, &[record(3.0, 1.0)], &[]).unwrap();
        assert!(!text(&silent).contains("warns"), "{}", text(&silent));
    }

    #[test]
    fn every_record_is_checked_and_not_the_first_alone() {
        use perf::record::Durability::{Memory, Stable};
        let durable = |seconds, durability| {
            let mut record = record(seconds, 1.0);
            record.target.durability = Some(durability);
            record
        };
        let (a, b) = ([durable(1.0, Stable)], [durable(2.0, Stable), durable(3.0, Memory)]);
        assert!(compared(&a, &b, &[]).is_err() && compared(&b, &a, &[]).is_err());
        assert!(compared(&a, &b[..1], &[]).is_ok());
        assert!(compared(&a, &b, &["--mix-durability"]).is_ok());
        let mut bare = Record::new(perf::record::Tool::default(), "2026-01-01T00:00:00Z");
        bare.workload.name = "basic".to_owned();
        assert!(compared(&a, &[durable(2.0, Stable), bare], &[]).is_err());
    }

    #[test]
    fn numbers_of_different_units_or_directions_are_refused() {
        let of = |unit: &str, better| {
            let mut record = record(1.0, 1.0);
            record.metric("mean", 2.0, unit).result("mean", better);
            record
        };
        let a = [of("us", Better::Smaller)];
        let refused = |b: Record| compared(&a, &[b], &[]).unwrap_err().what().to_owned();
        let unit = refused(of("ms", Better::Smaller));
        assert!(unit.contains("mean is in us and in ms"), "{unit}");
        let direction = refused(of("us", Better::Larger));
        assert!(direction.contains("mean is better when smaller and"), "{direction}");
        assert!(compared(&a, &[with(of("us", Better::Smaller), "seed", 1)], &[]).is_ok());
    }

    #[test]
    fn an_interval_without_its_value_decides_nothing() {
        let of = |value, lo, hi| {
            let mut record = record(1.0, 1.0);
            let ci95 = Some(Interval { lo, hi });
            record.estimate("mean", &Estimate { value, ci95 }, "us", 9);
            record.result("mean", Better::Smaller);
            vec![record]
        };
        let b = of(300.0, 10.0, 20.0);
        assert!(summary(&of(100.0, 90.0, 110.0), &b).starts_with("A and B cannot be"));
        let b = of(300.0, 290.0, 310.0);
        assert!(summary(&of(100.0, 90.0, 110.0), &b).starts_with("A is faster by 1 of 3"));
    }

    #[test]
    fn a_result_of_one_place_alone_is_named() {
        let mut more = record(1.0, 1.0);
        more.metric("mean", 2.0, "us").result("mean", Better::Smaller);
        let compared = compared(&[record(2.0, 1.0)], &[more], &[]).unwrap();
        assert!(text(&compared).contains("only in B   mean\n"), "{}", text(&compared));
    }
}
