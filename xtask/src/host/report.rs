//! What the checks found, as a short table.

use std::fmt;

/// Rows in the order of the checks; each is printed when it is known, and all again at the end.
#[derive(Debug)]
pub(crate) struct Report {
    /// Who checks, for the lines that are printed.
    command: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    peer: &'static str,
    check: String,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Report {
    pub(crate) fn new(command: &'static str) -> Self {
        Self { command, rows: Vec::new() }
    }

    /// Runs one check; it returns what is worth a word, such as a rate. True when it passed.
    pub(crate) fn check(
        &mut self,
        peer: &'static str,
        check: impl Into<String>,
        work: impl FnOnce() -> Result<String, String>,
    ) -> bool {
        let outcome = match work() {
            Ok(detail) => Outcome::Passed(detail),
            Err(message) => Outcome::Failed(message),
        };
        let passed = matches!(outcome, Outcome::Passed(_));
        self.push(Row { peer, check: check.into(), outcome });
        passed
    }

    /// Runs a check of which nothing is worth a word.
    pub(crate) fn done(
        &mut self,
        peer: &'static str,
        check: impl Into<String>,
        work: impl FnOnce() -> Result<(), String>,
    ) -> bool {
        self.check(peer, check, || work().map(|()| String::new()))
    }

    /// Runs a check that makes what others need, with what is worth a word; none when it failed.
    pub(crate) fn make<T>(
        &mut self,
        peer: &'static str,
        check: impl Into<String>,
        work: impl FnOnce() -> Result<(T, String), String>,
    ) -> Option<T> {
        let mut made = None;
        self.check(peer, check, || {
            let (value, detail) = work()?;
            made = Some(value);
            Ok(detail)
        });
        made
    }

    /// Notes a check that could not run, and why.
    pub(crate) fn skip(&mut self, peer: &'static str, check: &str, why: String) {
        self.push(Row { peer, check: check.to_owned(), outcome: Outcome::Skipped(why) });
    }

    fn push(&mut self, row: Row) {
        println!("{}: {row}", self.command);
        self.rows.push(row);
    }

    /// Fails when a check failed, or, with `all_must_run`, when one was skipped.
    pub(crate) fn verdict(&self, all_must_run: bool) -> Result<(), String> {
        let count =
            |is: fn(&Outcome) -> bool| self.rows.iter().filter(|row| is(&row.outcome)).count();
        let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        match (failed, skipped) {
            (0, 0) => Ok(()),
            (0, _) if !all_must_run => Ok(()),
            (0, _) => Err(format!("{}: {skipped} checks were skipped, but CI=true", self.command)),
            _ => Err(format!("{}: {failed} of {} checks failed", self.command, self.rows.len())),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, detail) = match &self.outcome {
            Outcome::Passed(detail) => ("passed", detail),
            Outcome::Failed(message) => ("FAILED", message),
            Outcome::Skipped(why) => ("SKIPPED", why),
        };
        let detail = detail.trim().replace('\n', "; ");
        write!(f, "{:<13} {:<38} {word:<8} {detail}", self.peer, self.check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_check_fails_only_where_all_must_run() {
        let mut report = Report::new("test");
        assert!(report.check("libnfs", "copy", || Ok("80 MiB/s".to_owned())));
        assert_eq!(report.verdict(true), Ok(()));
        report.skip("ganesha", "study", "no ganesha.nfsd".to_owned());
        assert_eq!(report.verdict(false), Ok(()));
        assert!(report.verdict(true).is_err());
    }

    #[test]
    fn a_failed_check_fails_and_is_quoted() {
        let mut report = Report::new("test");
        assert!(!report.check("libnfs", "copy", || Err("differs".to_owned())));
        assert!(report.verdict(false).is_err());
        let printed = report.to_string();
        assert!(printed.contains("FAILED   differs"), "{printed}");
    }
}
