//! What was counted, and what must not happen.

use std::collections::BTreeMap;
use std::fmt;

/// Violations that are listed word by word; beyond, they are counted.
const LISTED_MAX: usize = 12;

/// What the server did that it must never do.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Violation {
    /// Bytes, sizes, names or counts of links are not what was acknowledged.
    Differs,
    /// The second execution of a call failed on what the first had done.
    ExecutedTwice,
    /// A name leads to another handle than before.
    HandleChanged,
    /// Less stable than requested.
    LessStable,
    /// Nothing came within every limit.
    NoAnswer,
    /// What is there is called stale or unknown.
    Stale,
    /// A reply that does not decode, or a status that has no reason.
    Unexpected,
    /// Two processes had the same verifier: lost data would not be written again.
    VerifierStays,
    /// A process changed its verifier although no sync had failed.
    VerifierMoved,
}

/// What one client, or all together, counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Calls answered.
    pub(super) calls: u64,
    /// Connections lost to a server that went, or given up for want of an answer.
    pub(super) broken: u64,
    /// Connections that the client cut itself, with calls in progress.
    pub(super) cut: u64,
    /// Calls retransmitted as they were.
    pub(super) retransmissions: u64,
    /// Of these, calls that must not be executed twice.
    pub(super) retransmitted_once_only: u64,
    /// Bytes written again because the verifier had changed.
    pub(super) rewritten_bytes: u64,
    pub(super) written_bytes: u64,
    pub(super) commits: u64,
    /// Answers to try again later.
    pub(super) jukebox: u64,
    /// What was compared: reads, attributes, names.
    pub(super) checks: u64,
    violations: BTreeMap<Violation, u64>,
    listed: Vec<String>,
}

impl Tally {
    pub(super) fn violation(&mut self, violation: Violation, what: String) {
        *self.violations.entry(violation).or_default() += 1;
        if self.listed.len() < LISTED_MAX {
            println!("stress: {violation:?}: {what}");
            self.listed.push(format!("{violation:?}: {what}"));
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.broken += other.broken;
        self.cut += other.cut;
        self.retransmissions += other.retransmissions;
        self.retransmitted_once_only += other.retransmitted_once_only;
        self.rewritten_bytes += other.rewritten_bytes;
        self.written_bytes += other.written_bytes;
        self.commits += other.commits;
        self.jukebox += other.jukebox;
        self.checks += other.checks;
        for (violation, count) in other.violations {
            *self.violations.entry(violation).or_default() += count;
        }
        self.listed.extend(other.listed);
    }

    pub(super) fn violations(&self) -> u64 {
        self.violations.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  calls answered    {}, {} of them JUKEBOX", self.calls, self.jukebox)?;
        writeln!(f, "  connections lost  {}, and {} cut by clients", self.broken, self.cut)?;
        writeln!(
            f,
            "  retransmissions   {}, {} of calls that are executed once only",
            self.retransmissions, self.retransmitted_once_only
        )?;
        writeln!(
            f,
            "  bytes written     {}, {} of them again, {} commits",
            self.written_bytes, self.rewritten_bytes, self.commits
        )?;
        writeln!(f, "  comparisons       {}", self.checks)?;
        write!(f, "  violations        {}", self.violations())?;
        for (violation, count) in &self.violations {
            write!(f, "\n    {violation:?}: {count}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_of_all_clients_are_counted_by_sort() {
        let (mut all, mut one) = (Tally::default(), Tally::default());
        one.violation(Violation::Stale, "a".to_owned());
        one.violation(Violation::Stale, "b".to_owned());
        all.add(one);
        all.violation(Violation::Differs, "c".to_owned());
        assert_eq!(all.violations(), 3);
        assert!(all.to_string().contains("Stale: 2"));
    }
}
