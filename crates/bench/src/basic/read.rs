//! `--read`: logs of the suite, to CSV and JSON.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use harness::csv::{self, Rows};
use harness::exit::Failure;
use harness::hints;
use harness::output;
use load::basic::log::time::{Rate, Time};
use load::basic::log::{self, Log, Measured, Run, Test};
use serde_json::{Map, Value, json};

/// Bytes of a log, at most.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// Problems that are reported one by one.
const PROBLEMS_SHOWN: usize = 20;
/// The mark of what is written as JSON.
const SCHEMA: &str = "nfskit.connectathon/1";

/// A log by the name of its file.
pub(super) type Named = (String, Log);

/// Reads the logs; each has something of the suite's.
pub(super) fn logs(paths: &[PathBuf]) -> Result<Vec<Named>, Failure> {
    let mut logs = Vec::new();
    for path in paths {
        logs.push((name(path), log::read(&content(path)?)));
    }
    let is_empty = |log: &Log| log.runs.iter().all(|run| run.tests.is_empty());
    if let Some((name, log)) = logs.iter().find(|(_, log)| is_empty(log) && log.problems.is_empty())
    {
        let what = format!("{name} has {} lines, and none of the suite's", log.lines);
        return Err(Failure::environment(what, "a log of the basic tests: their standard output"));
    }
    Ok(logs)
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
        Failure::environment(what, hints::reading(&cause))
    })?;
    if bytes.len() as u64 > LOG_BYTES_MAX {
        let what = format!("{} has more than {LOG_BYTES_MAX} bytes", path.display());
        return Err(Failure::environment(what, "parts of it, one after the other"));
    }
    Ok(bytes)
}

/// What could not be read is named, and is a failure.
pub(super) fn problems(logs: &[Named]) -> Result<(), Failure> {
    let all = logs.iter().map(|(_, log)| log.problems.len() + log.problems_left_off).sum::<usize>();
    if all == 0 {
        return Ok(());
    }
    let problems =
        logs.iter().flat_map(|(name, log)| log.problems.iter().map(move |one| (name, one)));
    for (name, problem) in problems.take(PROBLEMS_SHOWN) {
        output::say(format_args!("{name}: {problem}"));
    }
    let lines = if all == 1 { "line looks" } else { "lines look" };
    let what = format!("{all} {lines} like the suite's and cannot be read; all others were");
    Err(Failure::check(what, "these lines in the log: a program may have broken them"))
}

const COLUMNS: &str = "log,run,line,directory,test,operation,numbers,seconds,reading,\
                       seconds_as_hundredths,seconds_as_decimals,seconds_from_rate,bytes_per_s,\
                       test_passed,run_passed";

/// One line for each result.
pub(super) fn csv(logs: &[Named]) -> String {
    csv::text(COLUMNS, |rows| {
        for (name, log) in logs {
            for (number, run) in log.runs.iter().enumerate() {
                for test in &run.tests {
                    for result in &test.results {
                        add(rows, (name, number + 1), run, test, result);
                    }
                }
            }
        }
    })
}

fn add(rows: &mut Rows<Vec<u8>>, of: (&str, usize), run: &Run, test: &Test, result: &Measured) {
    let time = result.time;
    // A whole number has no point.
    let of_time = |of: fn(Time) -> Option<f64>| time.and_then(of).map(|value| value.to_string());
    let yes = |passed: bool| if passed { "yes" } else { "no" };
    let rate = result.rate.map(|rate| match rate {
        Rate::Exactly(rate) => rate.to_string(),
        Rate::Above(rate) => format!(">{rate}"),
    });
    rows.add((
        (of, result.line, &run.directory, &test.name),
        (result.work.name(), numbers(result).join(" ")),
        (of_time(|time| time.seconds()), time.map(|time| time.reading.name())),
        (of_time(|time| Some(time.hundredths_s)), of_time(|time| Some(time.decimal_s))),
        (of_time(|time| time.from_rate_s), rate),
        (yes(test.passed), run.passed.map(yes)),
    ));
}

/// As many as the words have places.
fn numbers(result: &Measured) -> Vec<String> {
    result.numbers[..result.work.places()].iter().map(u64::to_string).collect()
}

pub(super) fn as_json(logs: &[Named]) -> Value {
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
