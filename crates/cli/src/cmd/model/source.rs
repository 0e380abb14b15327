//! What a file of measurements is: told by its heading, or a record that keeps what it rests on.

use std::path::Path;

use perf::model::curve::Curve;
use perf::model::saved::SavedPath;
use perf::model::sweep::{self, Observed};
use perf::model::trace::{self, Transaction};
use perf::record::Run as Record;
use serde_json::{Map, Value, json};

use crate::exit::Failure;

/// Measurements, read.
#[derive(Debug)]
pub(super) enum Source {
    Curve(Curve),
    Sweep(Vec<Observed>),
    Trace(Vec<Transaction>),
    /// The parameters of a probe.
    Path(Box<SavedPath>),
}

/// Where a record keeps the text of the curve or the sweep that it explains.
const MEASURED: &str = "measured";

impl Source {
    pub(super) fn read(path: &Path, verb: &str) -> Result<Self, Failure> {
        let text = super::read(path, verb)?;
        let text = match text.trim_start().starts_with('{') {
            true => match in_record(&text, path, verb)? {
                Ok(saved) => return Ok(Self::Path(saved)),
                Err(measured) => measured,
            },
            false => text,
        };
        let unreadable = |error| super::unreadable(path, verb, &error);
        if trace::is_trace(&text) {
            return trace::parse(&text).map(Self::Trace).map_err(unreadable);
        }
        if is_sweep(&text) {
            return sweep::parse(&text).map(Self::Sweep).map_err(unreadable);
        }
        Curve::parse(&text).map(Self::Curve).map_err(unreadable)
    }
}

/// A record's path, or the text that it explains.
type InRecord = Result<Box<SavedPath>, String>;

fn in_record(text: &str, path: &Path, verb: &str) -> Result<InRecord, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| super::unreadable(path, verb, error);
    let record = Record::from_json(text).map_err(|error| unreadable(&error))?;
    if let Some(measured) = record.model.get(MEASURED).and_then(Value::as_str) {
        return Ok(Err(measured.to_owned()));
    }
    SavedPath::read(&record.model).map(|saved| Ok(Box::new(saved))).map_err(|e| unreadable(&e))
}

fn is_sweep(text: &str) -> bool {
    text.lines().any(|line| line.trim().starts_with("outstanding"))
}

/// Keeps what a fit rests on in its record, from which [`Source::read`] takes it again: the same
/// fit with the same covariances, without a second form to keep in step.
pub(super) fn keep(model: &mut Map<String, Value>, text: &str) {
    model.insert(MEASURED.to_owned(), json!(text));
}
