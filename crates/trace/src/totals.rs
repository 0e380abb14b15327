//! Counts over all flows.

use perf::histogram::Histogram;
use perf::units::Nanos;

use super::message::Guard;
use super::operation::{Kind, OPERATIONS, Operation};
use super::transaction::Transaction;

/// What is counted of an operation in all flows.
#[derive(Clone, Debug, Default)]
pub struct OperationTotal {
    /// Calls seen, answered or not, repetitions not counted.
    pub calls: u64,
    pub replies: u64,
    pub errors: u64,
    pub bytes: u64,
    pub retransmissions: u64,
    /// Replies whose times are not known, because the capture has lost bytes.
    pub untimed: u64,
    /// Of the others; exact, for means.
    pub latency_ns_sum: u64,
    pub latency_ns_min: u64,
    pub latency_ns_max: u64,
    pub latency: Histogram,
}

impl OperationTotal {
    fn took(&mut self, latency: Nanos) {
        let ns = latency.as_nanos();
        let is_first = self.timed() == 0;
        self.latency_ns_min = if is_first { ns } else { self.latency_ns_min.min(ns) };
        self.latency_ns_max = self.latency_ns_max.max(ns);
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(ns);
        self.latency.record(latency);
    }

    /// Replies whose times are known.
    pub const fn timed(&self) -> u64 {
        self.replies - self.untimed
    }

    pub fn latency_mean(&self) -> Nanos {
        Nanos::from_nanos(self.latency_ns_sum.checked_div(self.timed()).unwrap_or(0))
    }

    /// This share of the replies came within so much: by the histogram, whose buckets are wider
    /// than the longest one is exact. `None` where too few replies show it.
    pub fn latency_at(&self, share: f64) -> Option<Nanos> {
        let most = Nanos::from_nanos(self.latency_ns_max);
        self.latency.quantile_if_known(share).map(|time| time.min(most))
    }
}

/// How data are made stable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sync {
    /// WRITEs by what they ask for: UNSTABLE, DATA_SYNC, FILE_SYNC.
    pub writes: [u64; 3],
    pub written_bytes: u64,
    pub commits: u64,
    /// WRITEs of less than 4 KiB.
    pub small_writes: u64,
    /// WRITEs whose arguments were not captured: they are in none of these.
    pub unknown: u64,
}

/// Calls with RPCSEC_GSS, by its service.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Guards {
    pub authentication: u64,
    pub integrity: u64,
    /// Their operations of version 4, files, sizes and statuses are not seen.
    pub privacy: u64,
}

#[derive(Debug)]
pub struct Totals {
    operations: Vec<Option<Box<OperationTotal>>>,
    /// Operations inside COMPOUNDs of version 4, by number.
    pub v4_operations: [u64; 128],
    /// COMPOUNDs that were cut off before the operation that they are for.
    pub v4_cut: u64,
    pub sync: Sync,
    pub guards: Guards,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Calls that no filter left out, and that got no reply.
    pub unanswered: u64,
    /// Calls that found no place in the table.
    pub unfollowed: u64,
    /// Calls that the filter left out.
    pub left_out: u64,
    /// Calls that a relay passed on, and that count where its client made them.
    pub passed_on: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            operations: (0..OPERATIONS).map(|_| None).collect(),
            v4_operations: [0; 128],
            v4_cut: 0,
            sync: Sync::default(),
            guards: Guards::default(),
            first_ns: 0,
            last_ns: 0,
            unanswered: 0,
            unfollowed: 0,
            left_out: 0,
            passed_on: 0,
        }
    }
}

impl Totals {
    fn of(&mut self, operation: Operation) -> &mut OperationTotal {
        self.operations[operation.index()].get_or_insert_default()
    }

    pub(super) fn called(&mut self, operation: Operation, at_ns: u64) {
        if self.first_ns == 0 {
            self.first_ns = at_ns;
        }
        self.last_ns = self.last_ns.max(at_ns);
        self.of(operation).calls += 1;
    }

    pub(super) const fn guarded(&mut self, guard: Guard) {
        match guard {
            Guard::None => {}
            Guard::Authentication => self.guards.authentication += 1,
            Guard::Integrity => self.guards.integrity += 1,
            Guard::Privacy => self.guards.privacy += 1,
        }
    }

    pub(super) fn sent_again(&mut self, operation: Operation) {
        self.of(operation).retransmissions += 1;
    }

    pub(super) fn answered(&mut self, transaction: &Transaction) {
        self.last_ns = self.last_ns.max(transaction.reply_ns);
        let total = self.of(transaction.operation);
        match transaction.latency() {
            Some(latency) => total.took(latency),
            None => total.untimed += 1,
        }
        total.replies += 1;
        total.errors += u64::from(transaction.is_error());
        total.bytes += u64::from(transaction.bytes);
        match transaction.operation.kind() {
            Kind::Write if !transaction.is_sized => self.sync.unknown += 1,
            Kind::Write => {
                let sync = &mut self.sync;
                sync.writes[usize::from(transaction.stable.min(2))] += 1;
                sync.written_bytes += u64::from(transaction.bytes);
                sync.small_writes += u64::from(transaction.count < 4096);
            }
            Kind::Commit => self.sync.commits += 1,
            _ => {}
        }
    }

    /// Operations that were called, in the order of their programs and numbers.
    pub fn operations(&self) -> impl Iterator<Item = (Operation, &OperationTotal)> {
        let all = self.operations.iter().enumerate();
        all.filter_map(|(index, total)| Some((Operation::at(index)?, total.as_deref()?)))
    }

    /// Calls of all operations.
    pub fn calls(&self) -> u64 {
        self.operations().map(|(_, total)| total.calls).sum()
    }

    pub fn replies(&self) -> u64 {
        self.operations().map(|(_, total)| total.replies).sum()
    }

    /// From the first call to the last reply.
    pub const fn span(&self) -> Nanos {
        Nanos::from_nanos(self.last_ns.saturating_sub(self.first_ns))
    }
}
