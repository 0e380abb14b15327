//! What a file of measurements is: recognized by its heading, or a record with what it rests on.
//!
//! | file | is |
//! |---|---|
//! | two columns, `throughput_per_s response_ms` | a curve |
//! | two columns, `outstanding throughput_per_s` | a sweep |
//! | four columns, `sent_us answered_us bytes stable` | a trace |
//! | CSV or record of `nfskit bench curve` | a curve; of a closed loop, a sweep |
//! | CSV of `nfskit trace` | a trace |
//! | record of `model infer`, `model fit` | what it was fitted to |
//! | record of `nfskit probe` | a path |

mod bench;
mod csv;
mod transactions;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::string::FromUtf8Error;

use harness::exit::Failure;
use harness::unused;
use perf::model::curve::Curve;
use perf::model::saved::SavedPath;
use perf::model::sweep::{self, SweepPoint};
use perf::model::trace::{self, Transaction};
use perf::record::{Run as Record, Warning};
use serde_json::{Map, Value, json};

use super::known::Facts;
use crate::model::args::estimate::Known;

/// Measurements, read.
#[derive(Debug)]
pub(super) enum Source {
    /// With what was given of its server, if it is from a record of `model infer`.
    Curve(Curve, Facts),
    Sweep(Vec<SweepPoint>),
    Trace(Vec<Transaction>),
    /// The parameters of a probe, and what it warned of that every answer rests on.
    Path(Box<SavedPath>, Vec<Warning>),
}

/// Where a record keeps the text of the curve, the sweep or the trace that it explains.
const MEASURED: &str = "measured";

/// Warnings of a record about the conditions that it was measured under.
const UNRELIABLE: [&str; 3] = ["busy_machine", "client-was-bottleneck", "partial"];

/// Bytes of a file that are read; more than any table that is looked at whole.
const BYTES_MAX: u64 = 64 << 20;

/// Names that an error lists.
const NAMES_MAX: usize = 8;

impl Source {
    /// Reads a file; `of` chooses where it holds several servers or connections.
    pub(super) fn read(path: &Path, verb: &str, of: Option<&str>) -> Result<Self, Failure> {
        let unreadable = |cause: &dyn Display| super::page::unreadable(path, verb, cause);
        let text = text(path).map_err(|cause| unreadable(&cause))?;
        let has_names = is_json(&text) || bench::is_csv(&text) || transactions::is_csv(&text);
        unused::refuse([(of.is_some() && !has_names, "--of")], "a file with several records")?;
        Self::of_text(&text, of).map_err(|error| match error {
            SourceError::Several(_) => Failure::usage(
                format!("{}: {error}", path.display()),
                "--of with a part of one of these names",
            ),
            SourceError::Unreadable(why) => unreadable(&why),
        })
    }

    /// What is given of a server describes the one behind a curve: nothing else takes it.
    pub(super) fn check_known(&self, known: &Known) -> Result<(), Failure> {
        match self {
            Self::Curve(..) => Ok(()),
            Self::Sweep(_) | Self::Trace(_) | Self::Path(..) => {
                unused::refuse(known.given(), "a curve")
            }
        }
    }

    fn of_text(text: &str, of: Option<&str>) -> Result<Self, SourceError> {
        if is_json(text) {
            return Self::of_json(text, of);
        }
        if bench::is_csv(text) {
            return bench::of_csv(text, of);
        }
        if transactions::is_csv(text) {
            return transactions::of_csv(text, of).map(Self::Trace);
        }
        let reason = |error: perf::model::curve::CurveError| error.to_string().into();
        if trace::is_trace(text) {
            return trace::parse(text).map(Self::Trace).map_err(reason);
        }
        if is_sweep(text) {
            return sweep::parse(text).map(Self::Sweep).map_err(reason);
        }
        Curve::parse(text).map(Self::curve).map_err(reason)
    }

    fn curve(curve: Curve) -> Self {
        Self::Curve(curve, Facts::default())
    }

    fn of_json(text: &str, of: Option<&str>) -> Result<Self, SourceError> {
        let records = records(text)?;
        let names: Vec<String> = records.iter().map(name).collect();
        let record = &records[choose("records", &names, of)?];
        if let Some(measured) = record.model.get(MEASURED).and_then(Value::as_str) {
            return Ok(match Self::of_text(measured, None)? {
                Self::Curve(curve, _) => Self::Curve(curve, Facts::of_record(&record.model)),
                other => other,
            });
        }
        if record.workload.name == "curve" {
            return Ok(bench::of_record(record)?);
        }
        match SavedPath::read(&record.model) {
            Ok(saved) => {
                let warnings =
                    record.warnings.iter().filter(|one| UNRELIABLE.contains(&&*one.code));
                Ok(Self::Path(Box::new(saved), warnings.cloned().collect()))
            }
            Err(perf::model::saved::SavedError::Missing) => Err(SourceError::Unreadable(format!(
                "a record of {:?} has nothing to explain: give one of bench curve, probe, \
                 model infer or model fit",
                record.workload.name
            ))),
            Err(error) => Err(error.to_string().into()),
        }
    }
}

/// The records of a file: a list of some, or one.
fn records(text: &str) -> Result<Vec<Record>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let records = match value {
        Value::Array(records) => records,
        one => vec![one],
    };
    if records.iter().any(|record| record.get("capture").is_some()) {
        return Err("a trace's --json has no single transactions: give its --csv".to_owned());
    }
    let record = |record: &Value| Record::from_json(&record.to_string());
    records.iter().map(record).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// How a record is distinguished from others in its file.
fn name(record: &Record) -> String {
    let target = &record.target;
    target.url.clone().or_else(|| target.path.clone()).unwrap_or_else(|| target.kind.clone())
}

/// Names in the order in which they came, each once.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Names {
    fn number(&mut self, name: String) -> usize {
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        self.names.push(name.clone());
        self.numbers.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }
}

/// Why a file is no source.
#[derive(Debug, Eq, PartialEq)]
enum SourceError {
    /// None, or more than one, is what was requested.
    Several(String),
    Unreadable(String),
}

impl Display for SourceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Several(why) | Self::Unreadable(why)) = self;
        f.write_str(why)
    }
}

impl From<String> for SourceError {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

/// Which of several is meant: the one whose name contains what was requested.
fn choose(what: &str, names: &[String], of: Option<&str>) -> Result<usize, SourceError> {
    let fits = |name: &String| of.is_none_or(|of| name.contains(of));
    let exact = of.and_then(|of| names.iter().position(|name| name == of));
    let found: Vec<usize> = (0..names.len()).filter(|&at| fits(&names[at])).collect();
    match (&found[..], exact) {
        (_, Some(at)) => Ok(at),
        (&[at], None) => Ok(at),
        (_, None) if names.is_empty() => {
            Err(SourceError::Unreadable(format!("there are 0 {what}")))
        }
        (found, None) => {
            let is_listed = |name: &&String| found.is_empty() || fits(name);
            let listed = names.iter().filter(is_listed).take(NAMES_MAX).map(String::as_str);
            let listed: Vec<&str> = listed.collect();
            let many = match of {
                Some(of) => format!("{} of {} {what} are called {of:?}", found.len(), names.len()),
                None => format!("there are {} {what}", names.len()),
            };
            let listed = listed.join(", ");
            Err(SourceError::Several(format!("{many}: choose with --of, of {listed}")))
        }
    }
}

/// The text of a file, which is not without end.
pub(super) fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|cause| cause.to_string())?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|cause| cause.to_string())?;
    let is_cut = bytes.len() as u64 > BYTES_MAX;
    let mut text = String::from_utf8(bytes).map_err(|error| no_text(&error))?;
    if is_cut {
        // Of transactions the first are looked at; everything else is looked at whole.
        if !transactions::is_csv(&text) && !trace::is_trace(&text) {
            return Err(format!("more than {} MiB are no table", BYTES_MAX >> 20));
        }
        text.truncate(text.rfind('\n').unwrap_or_default());
    }
    Ok(text)
}

fn no_text(error: &FromUtf8Error) -> String {
    let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let row = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    format!("row {row}: this is no text")
}

/// Whether this is a record or a list of some: a list of tables in TOML begins with a name.
pub(super) fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('{')
        || text
            .strip_prefix('[')
            .is_some_and(|rest| matches!(rest.trim_start().chars().next(), Some('{' | ']') | None))
}

fn is_sweep(text: &str) -> bool {
    text.lines().any(|line| line.trim().starts_with("outstanding"))
}

/// Keeps what a fit rests on in its record, from which [`Source::read`] takes it again: the same
/// fit with the same covariances, without a second form to keep in step.
pub(super) fn keep(model: &mut Map<String, Value>, text: &str) {
    model.insert(MEASURED.to_owned(), json!(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_chosen_by_a_part_of_its_name() {
        let names = ["nfs://a/x".to_owned(), "nfs://b/x".to_owned(), "nfs://b/xy".to_owned()];
        assert_eq!(choose("records", &names[..1], None), Ok(0));
        assert_eq!(choose("records", &names, Some("//a")), Ok(0));
        assert_eq!(choose("records", &names, Some("nfs://b/x")), Ok(1));
        let reason = choose("records", &names, None).unwrap_err().to_string();
        assert_eq!(
            reason,
            "there are 3 records: choose with --of, of nfs://a/x, nfs://b/x, nfs://b/xy"
        );
        let reason = choose("records", &names, Some("//b")).unwrap_err().to_string();
        assert_eq!(
            reason,
            "2 of 3 records are called \"//b\": choose with --of, of nfs://b/x, nfs://b/xy"
        );
        let reason = choose("records", &names, Some("c")).unwrap_err().to_string();
        assert!(reason.contains("of nfs://a/x"));
        let none = "there are 0 records".to_owned();
        assert_eq!(choose("records", &[], None), Err(SourceError::Unreadable(none)));
    }

    #[test]
    fn what_is_no_measurement_is_reported_so() {
        let reason = |text: &str| Source::of_text(text, None).unwrap_err().to_string();
        assert!(reason("{").contains("line 1"), "{}", reason("{"));
        assert!(reason("{}").contains("not a run record"));
        assert!(reason("[]").contains("0 records"));
        assert!(is_json("\n [\n {}]") && !is_json("[server]") && !is_json("[[clients]]"));
        assert!(reason("{\"capture\": {}}").contains("give its --csv"));
        let empty = r#"{"schema": "nfskit.run/1", "tool": {"version": "0"}, "started": "",
            "workload": {"name": "seqwrite"}}"#;
        assert!(reason(empty).contains("a record of \"seqwrite\" has nothing to explain"));
    }
}
