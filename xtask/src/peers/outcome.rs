//! All runs: as they are, summed up as medians.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::measure::Sample;
use super::rows::{Row, Unit};
use super::servers::Name;
use super::stats::Summary;

/// How client and server share the cores.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Mode {
    /// Both on one and the same core, over one connection.
    Pinned,
    /// On all cores, over one connection.
    Unpinned,
    /// On two cores, over two connections.
    Doubled,
}

impl Mode {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Pinned => "one core, one connection",
            Self::Unpinned => "two cores, one connection",
            Self::Doubled => "two cores, two connections",
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Unpinned => "unpinned",
            Self::Doubled => "doubled",
        }
    }
}

/// A number of a sample that is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    /// Units a second.
    Rate,
    /// CPU time of the server in ns for each unit; for a GiB where bytes are the unit.
    Cpu,
    /// The same of the client.
    ClientCpu,
    P50,
    P99,
}

/// The samples of all runs, by mode, row, server and number of the run.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    samples: BTreeMap<(Mode, &'static str, Name, usize), (Unit, Sample)>,
    pub(crate) failures: Vec<String>,
}

impl Outcomes {
    pub(crate) fn add(&mut self, mode: Mode, row: &Row, name: Name, run: usize, sample: Sample) {
        self.samples.insert((mode, row.name, name, run), (row.unit, sample));
    }

    /// A figure of all runs.
    pub(crate) fn summary(
        &self,
        mode: Mode,
        row: &str,
        name: Name,
        figure: Figure,
    ) -> Option<Summary> {
        Summary::of(self.of(mode, row, name).map(|(_, unit, sample)| value(unit, sample, figure)))
    }

    /// A figure of one to that of another, each pair from the same round of runs: what the
    /// machine did in that round concerns both.
    pub(crate) fn ratio(
        &self,
        ours: (Mode, Name),
        other: (Mode, Name),
        row: &str,
        figure: Figure,
    ) -> Option<Summary> {
        let pairs = self.of(ours.0, row, ours.1).filter_map(|(run, unit, sample)| {
            let (_, unit_other, sample_other) =
                self.of(other.0, row, other.1).find(|(run_other, ..)| *run_other == run)?;
            Some(value(unit, sample, figure) / value(unit_other, sample_other, figure))
        });
        Summary::of(pairs.filter(|ratio| ratio.is_finite()))
    }

    fn of(
        &self,
        mode: Mode,
        row: &str,
        name: Name,
    ) -> impl Iterator<Item = (usize, Unit, &Sample)> {
        let here = self.samples.iter();
        here.filter(move |((m, r, n, _), _)| (*m, *r, *n) == (mode, row, name))
            .map(|((.., run), (unit, sample))| (*run, *unit, sample))
    }

    /// One object for each run.
    pub(crate) fn to_json(&self) -> Value {
        let object = |(&(mode, row, name, run), (unit, sample)): (
            &(Mode, &str, Name, usize),
            &(Unit, Sample),
        )| {
            json!({
                "mode": mode.key(),
                "row": row,
                "server": name.label(),
                "run": run,
                "unit": match unit {
                    Unit::Bytes => "byte",
                    Unit::Calls => "call",
                    Unit::Entries => "entry",
                },
                "amount": sample.amount,
                "calls": sample.calls,
                "seconds": sample.seconds,
                "commit_seconds": sample.commit_seconds,
                "server_cpu_ns": sample.server_cpu_ns,
                "client_cpu_ns": sample.client_cpu_ns,
                "p50_ns": sample.p50_ns,
                "p99_ns": sample.p99_ns,
            })
        };
        Value::Array(self.samples.iter().map(object).collect())
    }
}

fn value(unit: Unit, sample: &Sample, figure: Figure) -> f64 {
    let amount = match unit {
        Unit::Bytes => sample.amount as f64 / (1_u64 << 30) as f64,
        Unit::Calls | Unit::Entries => sample.amount as f64,
    };
    match figure {
        Figure::Rate => amount / sample.seconds,
        Figure::Cpu => sample.server_cpu_ns as f64 / amount,
        Figure::ClientCpu => sample.client_cpu_ns as f64 / amount,
        Figure::P50 => f64::from(sample.p50_ns),
        Figure::P99 => f64::from(sample.p99_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::rows::ROWS;

    #[test]
    fn a_ratio_is_of_runs_of_the_same_round() {
        let mut outcomes = Outcomes::default();
        let row = ROWS.iter().find(|row| row.unit == Unit::Calls).unwrap();
        let sample = |amount| Sample { amount, seconds: 1.0, ..Sample::default() };
        // The machine is slower from round to round; ours is always twice as fast.
        for (run, amount) in [(0, 100), (1, 50), (2, 10)] {
            outcomes.add(Mode::Pinned, row, Name::Ganesha, run, sample(amount));
            outcomes.add(Mode::Pinned, row, Name::Ours, run, sample(2 * amount));
        }
        outcomes.add(Mode::Pinned, row, Name::Ours, 3, sample(7));
        let (ours, other) = ((Mode::Pinned, Name::Ours), (Mode::Pinned, Name::Ganesha));
        let ratio = outcomes.ratio(ours, other, row.name, Figure::Rate).unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max, ratio.runs), (2.0, 2.0, 2.0, 3));
        let rate = outcomes.summary(Mode::Pinned, row.name, Name::Ganesha, Figure::Rate).unwrap();
        assert_eq!(rate.median, 50.0);
        assert_eq!(outcomes.to_json().as_array().map(Vec::len), Some(7));
    }

    #[test]
    fn bytes_are_counted_in_gib() {
        let sample = Sample {
            amount: 1 << 29,
            seconds: 0.25,
            server_cpu_ns: 200_000_000,
            ..Sample::default()
        };
        assert_eq!(value(Unit::Bytes, &sample, Figure::Rate), 2.0);
        assert_eq!(value(Unit::Bytes, &sample, Figure::Cpu), 400_000_000.0);
    }
}
