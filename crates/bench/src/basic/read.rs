//! `--read`: logs of the suite, to CSV and JSON.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use harness::exit::Failure;
use harness::output;
use load::basic::log::time::{Rate, Time};
use load::basic::log::{self, Log, Measured, Run, Test};
use serde_json::{Map, Value, json};

use crate::basic::args::Basic;

/// Bytes of a log, at most.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// Problems that are told one by one.
const PROBLEMS_TOLD: usize = 20;
/// The mark of what is written as JSON.
const SCHEMA: &str = "nfskit.connectathon/1";

/// Reads the logs and writes what is in them; what could not be read is told, and is a failure.
pub(super) fn run(args: &Basic) -> Result<(), Failure> {
    let mut logs = Vec::new();
    for path in &args.read {
        logs.push((name(path), log::read(&content(path)?)));
    }
    let is_empty = |log: &Log| log.runs.iter().all(|run| run.tests.is_empty());
    if let Some((name, log)) = logs.iter().find(|(_, log)| is_empty(log) && log.problems.is_empty())
    {
        let what = format!("{name} has {} lines, and none of the suite's", log.lines);
        return Err(Failure::check(what, "a log of the basic tests: their standard output"));
    }
    let standard = PathBuf::from("-");
    let csv_out = match (&args.csv, &args.json) {
        (Some(csv), _) => Some(csv),
        (None, None) => Some(&standard),
        (None, Some(_)) => None,
    };
    if let Some(out) = csv_out {
        output::write(out, &csv(&logs))?;
    }
    if let Some(out) = &args.json {
        output::write(out, &format!("{:#}\n", as_json(&logs)))?;
    }
    problems(&logs)
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn content(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let take = |source: &mut dyn Read, bytes: &mut Vec<u8>| {
        source.take(LOG_BYTES_MAX + 1).read_to_end(bytes)
    };
    let read = match path == Path::new("-") {
        true => take(&mut io::stdin().lock(), &mut bytes),
        false => File::open(path).and_then(|mut file| take(&mut file, &mut bytes)),
    };
    read.map_err(|cause| {
        let what = format!("cannot read {}: {cause}", path.display());
        Failure::environment(what, "a file that this user may read")
    })?;
    if bytes.len() as u64 > LOG_BYTES_MAX {
        let what = format!("{} has more than {LOG_BYTES_MAX} bytes", path.display());
        return Err(Failure::environment(what, "parts of it, one after the other"));
    }
    Ok(bytes)
}

fn problems(logs: &[(String, Log)]) -> Result<(), Failure> {
    let all = logs.iter().map(|(_, log)| log.problems.len() + log.problems_left_off).sum::<usize>();
    if all == 0 {
        return Ok(());
    }
    let told = logs.iter().flat_map(|(name, log)| log.problems.iter().map(move |one| (name, one)));
    for (name, problem) in told.take(PROBLEMS_TOLD) {
        output::say(format_args!("{name}: {problem}"));
    }
    let lines = if all == 1 { "line looks" } else { "lines look" };
    let what = format!("{all} {lines} like the suite's and cannot be read; all others were");
    Err(Failure::check(what, "these lines in the log: a program may have broken them"))
}

const HEADER: &str = "log,run,line,directory,test,operation,numbers,seconds,reading,\
                      seconds_as_hundredths,seconds_as_decimals,seconds_from_rate,bytes_per_s,\
                      test_passed,run_passed\n";

/// One line for each result.
fn csv(logs: &[(String, Log)]) -> String {
    let mut csv = HEADER.to_owned();
    for (name, log) in logs {
        for (number, run) in log.runs.iter().enumerate() {
            for test in &run.tests {
                for result in &test.results {
                    row(&mut csv, name, number + 1, run, test, result);
                }
            }
        }
    }
    csv
}

fn row(csv: &mut String, log: &str, number: usize, run: &Run, test: &Test, result: &Measured) {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let time = result.time;
    let of_time = |of: fn(Time) -> Option<f64>| text(time.and_then(of));
    let passed = run.passed.map_or("", |passed| if passed { "yes" } else { "no" });
    let fields = [
        output::field(log),
        number.to_string(),
        result.line.to_string(),
        output::field(run.directory.as_deref().unwrap_or_default()),
        output::field(&test.name),
        result.work.name().to_owned(),
        numbers(result).join(" "),
        of_time(|time| time.seconds()),
        time.map_or("", |time| time.reading.name()).to_owned(),
        of_time(|time| Some(time.hundredths_s)),
        of_time(|time| Some(time.decimal_s)),
        of_time(|time| time.from_rate_s),
        match result.rate {
            None => String::new(),
            Some(Rate::Exactly(rate)) => rate.to_string(),
            Some(Rate::Above(rate)) => format!(">{rate}"),
        },
        if test.passed { "yes" } else { "no" }.to_owned(),
        passed.to_owned(),
    ];
    // Writing to a String does not fail.
    writeln!(csv, "{}", fields.join(",")).ok();
}

/// As many as the words have places.
fn numbers(result: &Measured) -> Vec<String> {
    result.numbers[..result.work.places()].iter().map(u64::to_string).collect()
}

fn as_json(logs: &[(String, Log)]) -> Value {
    let logs: Vec<Value> = logs
        .iter()
        .map(|(name, log)| {
            let runs: Vec<Value> = log.runs.iter().map(of_run).collect();
            let problems: Vec<Value> = log
                .problems
                .iter()
                .map(|one| json!({"line": one.line, "what": one.what, "text": one.text}))
                .collect();
            json!({
                "log": name,
                "lines": log.lines,
                "runs": runs,
                "problems": problems,
                "problems_left_off": log.problems_left_off,
            })
        })
        .collect();
    json!({"schema": SCHEMA, "logs": logs})
}

fn of_run(run: &Run) -> Value {
    let tests: Vec<Value> = run.tests.iter().map(of_test).collect();
    let mut value = Map::new();
    value.insert("line".to_owned(), run.line.into());
    for (name, known) in [("directory", &run.directory), ("argument", &run.argument)] {
        if let Some(known) = known {
            value.insert(name.to_owned(), known.clone().into());
        }
    }
    if let Some(passed) = run.passed {
        value.insert("passed".to_owned(), passed.into());
    }
    value.insert("tests".to_owned(), tests.into());
    value.into()
}

fn of_test(test: &Test) -> Value {
    let results: Vec<Value> = test.results.iter().map(of_result).collect();
    let mut value = json!({"line": test.line, "test": test.name, "passed": test.passed});
    if !test.complaints.is_empty() {
        value["complaints"] = test.complaints.clone().into();
    }
    value["results"] = results.into();
    value
}

/// What is not known is not there.
fn of_result(result: &Measured) -> Value {
    let numbers = &result.numbers[..result.work.places()];
    let operation = result.work.name();
    let mut value = json!({"line": result.line, "operation": operation, "numbers": numbers});
    if let Some(time) = result.time {
        value["reading"] = time.reading.name().into();
        if let Some(seconds) = time.seconds() {
            value["seconds"] = seconds.into();
        }
        value["seconds_as_hundredths"] = time.hundredths_s.into();
        value["seconds_as_decimals"] = time.decimal_s.into();
        if let Some(seconds) = time.from_rate_s {
            value["seconds_from_rate"] = seconds.into();
        }
    }
    match result.rate {
        None => {}
        Some(Rate::Exactly(rate)) => value["bytes_per_s"] = rate.into(),
        Some(Rate::Above(rate)) => value["bytes_per_s_above"] = rate.into(),
    }
    value
}
