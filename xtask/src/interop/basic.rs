//! `nfskit bench basic` on a server, and on the folder that it serves.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::host::child::{finish, text};
use crate::host::report::Report;

/// Far above what a disk needs that syncs every change.
const WITHIN: Duration = Duration::from_secs(300);
/// Lines of a whole run: nine tests, the fifth with two.
const LINES: usize = 10;

/// The whole suite against each URL, in words what is special about it before: checked, and once
/// timed. Directories of the machine have the same done to them.
pub(super) fn check(
    report: &mut Report,
    peer: &'static str,
    nfskit: &Path,
    urls: &[(&str, String)],
    export: &Path,
) {
    for (what, url) in urls {
        report.check(peer, format!("bench basic -f, {what}"), || {
            run(nfskit, &["-f", "--target", url])
        });
    }
    if let Some((what, url)) = urls.first() {
        report.check(peer, format!("bench basic -t, {what}"), || {
            run(nfskit, &["-t", "--target", url])
        });
    }
    report.check(peer, "bench basic -t, its folder", || {
        run(nfskit, &["-t", "--dir", &export.display().to_string()])
    });
}

/// Runs the suite; all of its lines must be there.
fn run(nfskit: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(nfskit);
    command.args(["bench", "basic", "--json", "-"]).args(arguments);
    let ran = finish(&mut command, WITHIN, text)?;
    let lines = lines(&ran.value)?;
    Ok(format!("{lines} lines, {:.1} s", ran.seconds))
}

/// How many lines a record has, all of whose tests passed.
fn lines(record: &str) -> Result<usize, String> {
    let record: Value = serde_json::from_str(record).map_err(|error| error.to_string())?;
    let tests = record["tests"].as_array().ok_or("the record has no tests")?;
    if let Some(other) = tests.iter().find(|test| test["outcome"] != "passed") {
        return Err(other.to_string());
    }
    match record["lines"].as_array().map(Vec::len) {
        Some(LINES) => Ok(LINES),
        lines => Err(format!("{lines:?} lines of {LINES}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_test_must_have_passed_and_every_line_be_there() {
        let record = |outcome: &str, lines: usize| {
            let lines = vec!["created"; lines];
            json!({"tests": [{"test": 1, "outcome": outcome}], "lines": lines}).to_string()
        };
        assert_eq!(lines(&record("passed", 10)), Ok(10));
        assert!(lines(&record("unsupported", 10)).unwrap_err().contains("\"test\":1"));
        assert!(lines(&record("passed", 9)).is_err());
        assert!(lines("").is_err());
    }
}
