//! What the tests measured.

use harness::records;
use load::suite13::Test;
use perf::stats::Sample;
use perf::units::Nanos;

use super::calls::Calls;
use super::target::Described;

/// One run of one test.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// Until the last copy had ended, and until what it wrote had been flushed.
    pub(super) elapsed: Nanos,
    pub(super) flushed: Option<Nanos>,
    pub(super) copies: Vec<Nanos>,
    pub(super) cpu: Nanos,
    /// None where nobody counts them.
    pub(crate) calls: Option<Calls>,
}

impl Ran {
    /// The time that counts.
    pub(crate) fn span(&self) -> Nanos {
        self.flushed.unwrap_or(self.elapsed)
    }
}

/// All runs of one test by so many copies in one place.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(super) target: usize,
    pub(super) copies: u32,
    pub(super) test: Test,
    pub(super) runs: Vec<Ran>,
}

impl Measured {
    pub(crate) fn seconds(&self, span: impl Fn(&Ran) -> Option<Nanos>) -> Option<Sample> {
        records::sample(self.runs.iter().filter_map(span).map(|span| span.as_secs_f64()))
    }

    pub(crate) fn runs(&self) -> &[Ran] {
        &self.runs
    }

    /// The run whose time is the median.
    pub(crate) fn typical(&self) -> Option<&Ran> {
        let mut runs: Vec<&Ran> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.span());
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }
}

/// Everything that came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) places: Vec<Described>,
    pub(super) measured: Vec<Measured>,
}

impl Outcome {
    pub(crate) fn of(&self, target: usize, copies: u32, test: Test) -> Option<&Measured> {
        self.measured
            .iter()
            .find(|one| (one.target, one.copies, one.test) == (target, copies, test))
    }
}
