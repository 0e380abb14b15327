//! Reading a record: an error says what is wrong, and where.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::{Run, SCHEMA};

/// Why a text is not a run record of this schema.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Not JSON, or broken off.
    #[error("not a run record: {what} (line {line}, column {column})")]
    Syntax { what: String, line: usize, column: usize },
    #[error("not a run record: it is empty")]
    Empty,
    /// JSON without the mark of a run record.
    #[error("not a run record: no text in the field \"schema\"; ours says \"{SCHEMA}\"")]
    NoSchema,
    #[error("run record of schema \"{found}\", this program reads \"{SCHEMA}\"")]
    UnknownSchema { found: String },
    /// A field is missing or of the wrong kind; `field` is its path, such as `metrics.rtt.value`.
    #[error("run record field {field}: {what} (line {line}, column {column})")]
    Field { field: String, what: String, line: usize, column: usize },
    #[error("run record series {name}: {times} times but {values} values")]
    UnevenSeries { name: String, times: usize, values: usize },
}

impl Run {
    /// Reads a record, compact or pretty. The error says what is wrong and where.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        if text.trim().is_empty() {
            return Err(RecordError::Empty);
        }
        let marked: Marked = serde_json::from_str(text).map_err(|e| syntax(&e))?;
        match marked.schema {
            Value::String(schema) if schema == SCHEMA => {}
            Value::String(found) => return Err(RecordError::UnknownSchema { found }),
            _ => return Err(RecordError::NoSchema),
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let run: Self = serde_path_to_error::deserialize(&mut reader).map_err(|e| field(&e))?;
        for (name, series) in &run.series {
            if series.t_us.len() != series.v.len() {
                return Err(RecordError::UnevenSeries {
                    name: name.clone(),
                    times: series.t_us.len(),
                    values: series.v.len(),
                });
            }
        }
        Ok(run)
    }
}

/// The part of a record that says what the rest means.
#[derive(Deserialize)]
struct Marked {
    #[serde(default)]
    schema: Value,
}

fn syntax(error: &serde_json::Error) -> RecordError {
    RecordError::Syntax {
        what: without_position(error),
        line: error.line(),
        column: error.column(),
    }
}

fn field(error: &serde_path_to_error::Error<serde_json::Error>) -> RecordError {
    let inner = error.inner();
    RecordError::Field {
        field: error.path().to_string(),
        what: without_position(inner),
        line: inner.line(),
        column: inner.column(),
    }
}

/// serde_json ends its messages with the position, which our errors carry as numbers.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_record_is_reported_where() {
        let at = |text: &str| Run::from_json(text).unwrap_err().to_string();
        assert_eq!(
            at("{\n  \"schema\": \"nfskit.run/1\",\n  \"tool\": }"),
            "not a run record: expected value (line 3, column 11)"
        );
        assert_eq!(at("\n"), "not a run record: it is empty");
        assert!(at("{\"a\": 1}").contains("no text in the field \"schema\""));
        assert_eq!(
            at(r#"{"schema": "nfskit.run/7"}"#),
            "run record of schema \"nfskit.run/7\", this program reads \"nfskit.run/1\""
        );
        let head = r#""schema": "nfskit.run/1", "tool": {"version": "1"}, "started": "now""#;
        assert_eq!(
            at(&format!("{{{head},\n\"metrics\": {{\"rtt\": {{\"value\": \"fast\"}}}}}}")),
            "run record field metrics.rtt.value: invalid type: string \"fast\", expected f64 \
             (line 2, column 35)"
        );
        let series = r#""series": {"s": {"unit": "B", "t_us": [1, 2], "v": [1.0]}}"#;
        assert_eq!(
            at(&format!("{{{head}, {series}}}")),
            "run record series s: 2 times but 1 values"
        );
        let durability = r#""target": {"durability": "hope"}"#;
        assert!(at(&format!("{{{head}, {durability}}}")).starts_with("run record field target."));
    }
}
