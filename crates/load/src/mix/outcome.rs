//! What a mix of operations has measured.

use std::collections::BTreeMap;

use perf::histogram::Histogram;
use perf::units::Nanos;

use super::effort::OwnLoad;
use super::operation::Operation;
use super::table::Mix;

/// An operation that starts later than this after it was meant to is a late one: far more than the
/// clock's own error, and a noticeable part of a response.
pub const LATE: Nanos = Nanos::from_millis(1);

/// Equal parts of a run, whose means say how sure its own are (batch means).
pub const BATCHES: usize = 20;

/// A part of a run: of its time, or of its sessions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// Answers that came in it and were as expected.
    pub answered: u64,
    /// Those of operations that were meant to start in it.
    pub responses: u64,
    /// The sum of their response times.
    pub response_total: Nanos,
}

impl Batch {
    pub fn add_response(&mut self, time: Nanos) {
        self.responses += 1;
        self.response_total += time;
    }

    /// `None` without a response.
    pub fn response_mean(&self) -> Option<Nanos> {
        (self.responses > 0).then(|| self.response_total / self.responses)
    }

    /// Adds another part.
    pub fn merge(&mut self, other: Self) {
        self.answered += other.answered;
        self.responses += other.responses;
        self.response_total += other.response_total;
    }
}

/// One kind of operation.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// From when it was meant to start until its answer.
    pub response_time: Histogram,
    /// The exact sum of these, which a histogram knows within 0.1 % only.
    pub total: Nanos,
    /// Answered with a status that was not expected.
    pub failed: u64,
}

/// A run of a mix, between the warm-up and the end. Response times, and what failed of each
/// operation, are those of what was meant to start in that time; throughput is what came in it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub operations: BTreeMap<Operation, Tally>,
    /// How long was measured.
    pub span: Nanos,
    /// Operations that were meant to start in that time; of a closed loop those that did.
    pub meant: u64,
    /// Answers that came in that time and were as expected.
    pub answered: u64,
    /// The others that came in that time: they are no throughput.
    pub unexpected: u64,
    /// By how much operations started later than they were meant to.
    pub lateness: Histogram,
    /// How many by more than [`LATE`], though there was room: the generator's own fault.
    pub late: u64,
    /// How many by more than [`LATE`] because as many were outstanding as may be.
    pub held: u64,
    /// How many found no name in the state that they need: they made what was there, or removed
    /// what was not.
    pub hollow: u64,
    /// Operations of an open loop that never started, because the server was too far behind.
    pub given_up: u64,
    /// Bytes of the READs and WRITEs among the [`Self::answered`].
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// The most operations that were outstanding at a time.
    pub outstanding_max: usize,
    /// What the measured part cost the generator; a world has none.
    pub effort: Option<OwnLoad>,
    /// Equal parts of the run: none, or [`BATCHES`].
    pub batches: Vec<Batch>,
    /// What each session had of it, in their order; a run of another process does not have them.
    pub of_session: Vec<Batch>,
    /// Files that the run might touch, and different ones that it did, from its warm-up on.
    pub accessed: usize,
    pub touched: usize,
    /// The first unexpected answer, for people.
    pub first_failure: Option<String>,
    /// Why the run ended before its end, for people.
    pub broken: Option<String>,
}

impl Outcome {
    /// Operations a second that were requested.
    pub fn offered_per_s(&self) -> f64 {
        self.meant as f64 / self.span.as_secs_f64()
    }

    /// Operations a second that were answered as expected.
    pub fn achieved_per_s(&self) -> f64 {
        self.answered as f64 / self.span.as_secs_f64()
    }

    /// Adds another generator's run of the same time, on sessions of its own.
    pub fn merge(&mut self, other: Self) {
        for (operation, theirs) in other.operations {
            let ours = self.operations.entry(operation).or_default();
            ours.response_time.merge(&theirs.response_time);
            ours.total += theirs.total;
            ours.failed += theirs.failed;
        }
        if self.batches.len() < other.batches.len() {
            self.batches.resize(other.batches.len(), Batch::default());
        }
        for (ours, theirs) in self.batches.iter_mut().zip(other.batches) {
            ours.merge(theirs);
        }
        self.of_session.extend(other.of_session);
        self.span = self.span.max(other.span);
        self.meant += other.meant;
        self.answered += other.answered;
        self.unexpected += other.unexpected;
        self.lateness.merge(&other.lateness);
        self.late += other.late;
        self.held += other.held;
        self.hollow += other.hollow;
        self.given_up += other.given_up;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.outstanding_max += other.outstanding_max;
        match (&mut self.effort, other.effort) {
            (Some(ours), Some(theirs)) => ours.merge(&theirs),
            (ours, theirs) => *ours = ours.or(theirs),
        }
        self.accessed += other.accessed;
        self.touched += other.touched;
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.broken = self.broken.take().or(other.broken);
    }

    /// Adds a later run of the same: its time comes on top, and its batches behind ours.
    pub fn append(&mut self, later: Self) {
        if self.span == Nanos::ZERO {
            *self = later;
            return;
        }
        let span = self.span + later.span;
        let outstanding_max = self.outstanding_max.max(later.outstanding_max);
        let (accessed, touched) = (self.accessed, self.touched.min(later.touched));
        let threads = self.effort.map_or(0, |effort| effort.threads);
        let mut batches = std::mem::take(&mut self.batches);
        batches.extend(&later.batches);
        let mut of_session = std::mem::take(&mut self.of_session);
        of_session.iter_mut().zip(&later.of_session).for_each(|(ours, theirs)| ours.merge(*theirs));
        self.merge(Self { batches: Vec::new(), of_session: Vec::new(), ..later });
        self.of_session = of_session;
        (self.span, self.outstanding_max, self.batches) = (span, outstanding_max, batches);
        (self.accessed, self.touched) = (accessed, touched);
        if let Some(effort) = &mut self.effort {
            effort.threads = threads;
        }
    }

    /// Of what was meant to start in that time.
    pub fn failed(&self) -> u64 {
        self.operations.values().map(|tally| tally.failed).sum()
    }

    /// Those of all operations together.
    pub fn response_times(&self) -> Histogram {
        let mut all = Histogram::new();
        self.operations.values().for_each(|tally| all.merge(&tally.response_time));
        all
    }

    /// The benchmarks' response time: that of all operations over their number. `None` without
    /// any.
    pub fn response_mean(&self) -> Option<Nanos> {
        let count: u64 = self.operations.values().map(|tally| tally.response_time.count()).sum();
        let total: f64 = self.operations.values().map(|tally| tally.total.as_secs_f64()).sum();
        (count > 0).then(|| Nanos::from_secs_f64(total / count as f64))
    }

    /// The medians of the operations, each counting as often as there were of it: what a mean would
    /// be without the pauses of the machine that one operation in a thousand meets.
    pub fn response_of_medians(&self) -> Option<Nanos> {
        let (sum, count) = self.operations.values().fold((0.0, 0.0), |(sum, count), tally| {
            let times = tally.response_time.count() as f64;
            (sum + times * tally.response_time.quantile(0.5).as_secs_f64(), count + times)
        });
        (count > 0.0).then(|| Nanos::from_secs_f64(sum / count))
    }

    /// By how many percentage points the share of an operation is off at most: SFS calls a run
    /// invalid over 1.5.
    pub fn mix_error_points(&self, mix: &Mix) -> f64 {
        let count = |tally: &Tally| tally.response_time.count() + tally.failed;
        let all: u64 = self.operations.values().map(count).sum();
        let share_of = |operation: Operation| {
            self.operations.get(&operation).map_or(0, count) as f64 / all.max(1) as f64
        };
        let errors = Operation::ALL
            .into_iter()
            .map(|operation| 100.0 * (share_of(operation) - mix.share(operation)).abs());
        errors.fold(0.0, f64::max)
    }
}
