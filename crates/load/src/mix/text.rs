//! An [`Outcome`] as text, for generators in other processes; histograms as run records have them.

use perf::histogram::Histogram;
use perf::units::Nanos;
use serde::{Deserialize, Serialize};

use super::effort::OwnLoad;
use super::operation::Operation;
use super::outcome::{BATCHES, Batch, Outcome, Tally};

#[derive(Deserialize, Serialize)]
struct Text {
    span_ns: u64,
    operations: Vec<OperationText>,
    meant: u64,
    answered: u64,
    unexpected: u64,
    lateness: String,
    late: u64,
    held: u64,
    hollow: u64,
    given_up: u64,
    read_bytes: u64,
    written_bytes: u64,
    outstanding_max: u64,
    effort: Option<EffortText>,
    /// Answered, responses, the sum of their times in nanoseconds.
    batches: Vec<(u64, u64, u64)>,
    accessed: u64,
    touched: u64,
    first_failure: Option<String>,
    broken: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct OperationText {
    name: String,
    response_time: String,
    total_ns: u64,
    failed: u64,
}

#[derive(Deserialize, Serialize)]
struct EffortText {
    threads: u32,
    busy_ns: u64,
    watched_ns: u64,
    busiest: f64,
}

impl Outcome {
    /// The outcome as one line.
    pub fn to_text(&self) -> String {
        let operation = |(operation, tally): (&Operation, &Tally)| OperationText {
            name: operation.name().to_owned(),
            response_time: tally.response_time.to_base64(),
            total_ns: tally.total.as_nanos(),
            failed: tally.failed,
        };
        let batch = |batch: &Batch| (batch.answered, batch.responses, batch.response_total);
        let text = Text {
            span_ns: self.span.as_nanos(),
            operations: self.operations.iter().map(operation).collect(),
            meant: self.meant,
            answered: self.answered,
            unexpected: self.unexpected,
            lateness: self.lateness.to_base64(),
            late: self.late,
            held: self.held,
            hollow: self.hollow,
            given_up: self.given_up,
            read_bytes: self.read_bytes,
            written_bytes: self.written_bytes,
            outstanding_max: self.outstanding_max as u64,
            effort: self.effort.map(|effort| EffortText {
                threads: effort.threads,
                busy_ns: effort.busy.as_nanos(),
                watched_ns: effort.watched.as_nanos(),
                busiest: effort.busiest,
            }),
            batches: self.batches.iter().map(batch).map(|(a, r, t)| (a, r, t.as_nanos())).collect(),
            accessed: self.accessed as u64,
            touched: self.touched as u64,
            first_failure: self.first_failure.clone(),
            broken: self.broken.clone(),
        };
        serde_json::to_string(&text).expect("numbers, texts and lists of them")
    }

    /// Reads what [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// The text is wrong, and where.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let text: Text = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if text.batches.len() > BATCHES {
            return Err(format!("{} batches: at most {BATCHES} are known", text.batches.len()));
        }
        let histogram = |base64: &str| {
            Histogram::from_base64(base64).map_err(|error| format!("a histogram: {error}"))
        };
        let mut outcome = Self {
            span: Nanos::from_nanos(text.span_ns),
            meant: text.meant,
            answered: text.answered,
            unexpected: text.unexpected,
            lateness: histogram(&text.lateness)?,
            late: text.late,
            held: text.held,
            hollow: text.hollow,
            given_up: text.given_up,
            read_bytes: text.read_bytes,
            written_bytes: text.written_bytes,
            outstanding_max: usize::try_from(text.outstanding_max).unwrap_or(usize::MAX),
            accessed: usize::try_from(text.accessed).unwrap_or(usize::MAX),
            touched: usize::try_from(text.touched).unwrap_or(usize::MAX),
            first_failure: text.first_failure,
            broken: text.broken,
            ..Self::default()
        };
        for OperationText { name, response_time, total_ns, failed } in text.operations {
            let operation: Operation = name
                .parse()
                .map_err(|error: super::operation::UnknownOperation| error.to_string())?;
            let (response_time, total) = (histogram(&response_time)?, Nanos::from_nanos(total_ns));
            outcome.operations.insert(operation, Tally { response_time, total, failed });
        }
        let batch = |(answered, responses, total): (u64, u64, u64)| Batch {
            answered,
            responses,
            response_total: Nanos::from_nanos(total),
        };
        outcome.batches = text.batches.into_iter().map(batch).collect();
        outcome.effort = text.effort.map(|effort| OwnLoad {
            threads: effort.threads,
            busy: Nanos::from_nanos(effort.busy_ns),
            watched: Nanos::from_nanos(effort.watched_ns),
            busiest: effort.busiest,
        });
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let mut outcome = Outcome {
            span: Nanos::from_secs(2),
            meant: 7,
            answered: 6,
            held: 1,
            hollow: 2,
            outstanding_max: 3,
            batches: vec![Batch {
                answered: 6,
                responses: 5,
                response_total: Nanos::from_micros(9),
            }],
            effort: Some(OwnLoad { threads: 1, busiest: 0.25, ..OwnLoad::default() }),
            broken: Some("\"gone\"".to_owned()),
            ..Outcome::default()
        };
        outcome.lateness.record(Nanos::from_micros(3));
        let tally = outcome.operations.entry(Operation::Read).or_default();
        tally.response_time.record(Nanos::from_micros(500));
        tally.total = Nanos::from_micros(500);
        outcome
    }

    #[test]
    fn what_was_written_is_read() {
        let read = Outcome::from_text(&outcome().to_text()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", outcome()));
    }

    #[test]
    fn two_generators_are_one_with_twice_the_load() {
        let mut both = outcome();
        both.merge(outcome());
        assert_eq!((both.meant, both.answered, both.outstanding_max), (14, 12, 6));
        assert_eq!(both.achieved_per_s(), 6.0);
        assert_eq!(both.response_mean(), outcome().response_mean());
        assert_eq!(both.batches[0].responses, 10);
        let effort = both.effort.unwrap();
        assert_eq!((effort.threads, effort.busiest), (2, 0.25));
        let mut none = Outcome::default();
        none.merge(outcome());
        assert_eq!(format!("{none:?}"), format!("{:?}", outcome()));
    }

    #[test]
    fn what_is_no_outcome_is_refused() {
        let text = outcome().to_text();
        let batches = format!("\"batches\":[{}]", ["[1,1,1]"; 21].join(","));
        for (from, to) in [
            ("\"read\"", "\"mount\""),
            ("\"meant\":7", "\"meant\":-7"),
            ("HIST", "TSIH"),
            ("\"batches\":[[6,5,9000]]", &batches),
        ] {
            let wrong = text.replacen(from, to, 1);
            assert!(wrong != text && Outcome::from_text(&wrong).is_err(), "{wrong}");
        }
        assert!(Outcome::from_text("").is_err());
    }
}
