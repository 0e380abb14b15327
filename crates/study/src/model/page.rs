//! What a command computes, and the words for its numbers.

use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};

use harness::exit::Failure;
use harness::table::Table;
use harness::verbosity::Verbosity;
use harness::{output, records};
use perf::model::least_squares::Fitted;
use perf::model::sweep::Explained;
use perf::record::Run as Record;
use perf::record::{Target, Workload};
use perf::stats::{Estimate, Interval};
use world::simulate::values::Span;

/// What a command computes, from a file or from parameters: for the terminal, and as a record.
pub(super) struct Page {
    /// What it was read from.
    from: Option<PathBuf>,
    pub(super) text: String,
    pub(super) record: Record,
}

impl Page {
    pub(super) fn new(name: &str, from: Option<&Path>) -> Self {
        let mut record = records::computed(records::now());
        let path = from.map(|path| path.display().to_string());
        record.target = Target { kind: "model".to_owned(), path, ..Target::default() };
        record.workload = Workload { name: name.to_owned(), ..Workload::default() };
        Self { from: from.map(Path::to_owned), text: String::new(), record }
    }

    pub(super) fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").ok();
    }

    pub(super) fn table(&mut self, table: &Table) {
        self.text.push_str(&table.text());
    }

    /// A line that is a warning of the record, too.
    pub(super) fn note(&mut self, code: &str, note: &str, advice: &str) {
        self.line(format_args!("note: {note}"));
        self.record.warn(code, note, advice);
    }

    /// Parameters that the data do not show.
    pub(super) fn unidentified(&mut self, notes: impl IntoIterator<Item = String>) {
        notes.into_iter().for_each(|note| self.note("not-identified", &note, ""));
    }

    /// Where a fit is off in a pattern: what follows from it is not as sure as it looks.
    pub(super) fn systematic(&mut self, fitted: &Fitted) {
        let Some(systematic) = &fitted.systematic else { return };
        self.line(format_args!("warning: {systematic}"));
        let advice = "the rows that are off; fewer loads, of one kind; another model";
        self.record.warn("systematic-residuals", &systematic.to_string(), advice);
    }

    /// A sweep whose throughput falls, which no form of it does.
    pub(super) fn falls(&mut self, explained: &Explained) {
        let Some(fall) = &explained.fall else { return };
        self.line(format_args!("warning: {fall}"));
        let advice = "runs up to the highest throughput alone; what slows the server beyond it";
        self.record.warn("throughput-falls", &fall.to_string(), advice);
    }

    /// The text on the terminal, the record where it was requested.
    pub(super) fn show(&self, json: &Option<PathBuf>, verbosity: Verbosity) -> Result<(), Failure> {
        output::check([json], &self.from)?;
        output::print_text(verbosity, [json], || &self.text)?;
        output::write_to(json, || self.record.to_json_pretty())
    }
}

pub(super) fn unreadable(path: &Path, verb: &str, cause: &dyn Display) -> Failure {
    let advice = match rustix::fs::access(path, rustix::fs::Access::READ_OK) {
        Ok(()) => format!("nfskit model {verb} --help shows such a file"),
        Err(_) => "a file that is there, and that this user may read".to_owned(),
    };
    Failure::environment(format!("{}: {cause}", path.display()), advice)
}

pub(super) fn us(span: Span) -> f64 {
    span.picos() as f64 / 1e6
}

/// A share as `+1.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// What is not known as a dash.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// `1609 to 1800`. Of an end so far away that it says nothing, that it is not known.
pub(super) fn interval(estimate: &Estimate, text: impl Fn(f64) -> String) -> Option<String> {
    let Interval { lo, hi } = estimate.ci95?;
    let lo = text(lo);
    Some(match hi > ABSURD * estimate.value.abs() {
        true => format!("{lo} or more: how much more does not show"),
        false => format!("{lo} to {}", text(hi)),
    })
}

/// Ends of an interval that are as many times the value come from a parameter that the data do not
/// show.
const ABSURD: f64 = 100.0;

/// us in the unit that reads best.
pub(super) fn span(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.3} ms", us / 1e3),
        us => format!("{:.3} s", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_an_end_says_so() {
        let of = |hi| {
            let ci95 = Some(Interval { lo: 901.8, hi });
            interval(&Estimate { value: 1_200.0, ci95 }, span).unwrap()
        };
        assert_eq!(of(1_500.0), "901.8 us to 1.500 ms");
        assert_eq!(of(1.5e12), "901.8 us or more: how much more does not show");
    }
}
