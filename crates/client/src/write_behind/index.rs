//! Where the written bytes of one file are until they are stable: what every kind of index can do.
//!
//! Bytes go through four states. *Pending*: taken from a writer. *Under way*: in a WRITE that has
//! not been answered. *Unstable*: acknowledged, and held because the server may still lose them.
//! Then they are stable and no longer here. What the server lost, or took only in part, is pending
//! again. An index never gives out bytes that overlap something under way, so that no WRITE
//! overtakes another of the same bytes.
//!
//! Time is counted in *ages*: each insertion has the next number. Whoever flushes waits until
//! nothing of his age or older is left, and not until there is nothing at all, which under a busy
//! writer may be never.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

/// Bytes of a writer.
#[derive(Clone, Debug)]
pub(super) enum Data<'a> {
    /// To be copied.
    Lent(&'a [u8]),
    /// May be held as they are; the buffer they are a part of has `of_bytes`.
    Given { bytes: Bytes, of_bytes: usize },
}

impl Data<'_> {
    pub(super) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Lent(data) => data,
            Self::Given { bytes, .. } => bytes,
        }
    }

    /// The bytes within `range`, held or to be copied as before.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Lent(data) => Self::Lent(&data[range]),
            Self::Given { bytes, of_bytes } => {
                Self::Given { bytes: bytes.slice(range), of_bytes: *of_bytes }
            }
        }
    }
}

/// What goes into one WRITE. Its offset names it while it is under way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    pub(super) data: Bytes,
    /// Who wrote it; a number that the caller gives meaning.
    pub(super) caller: u32,
}

/// What the server promised for acknowledged bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Promise {
    Stable,
    Unstable { verifier: [u8; 8] },
}

/// The bytes cannot be taken before those that are in their way are stable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Busy;

/// Sums over a file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Sums {
    /// Pending and under way.
    pub(super) unanswered_bytes: u64,
    pub(super) unstable_bytes: u64,
    /// What counts against the bound of memory: all of it, and what it takes to know of it.
    pub(super) held_bytes: u64,
    /// Of that, what a COMMIT would give back.
    pub(super) held_unstable_bytes: u64,
    /// Internal requests, for policies that limit them.
    pub(super) requests: usize,
}

/// See the module's head.
pub(super) trait Index: fmt::Debug + Send {
    /// The age of the newest insertion; 0 before the first.
    fn age(&self) -> u64;

    /// How much `len` bytes at `offset` may add to [`Sums::held_bytes`] at most.
    fn charge(&self, offset: u64, len: usize) -> u64;

    /// Takes bytes from a writer.
    fn insert(&mut self, offset: u64, data: &Data<'_>, caller: u32) -> Result<(), Busy>;

    /// True when [`Index::take`] would give something.
    fn is_ready(&self, urgent_age: u64) -> bool;

    /// The next bytes to send, at most `bytes_max`: what fills a WRITE, or what is no younger than
    /// `urgent_age`.
    fn take(&mut self, bytes_max: u32, urgent_age: u64) -> Option<Chunk>;

    /// The chunk at `offset` was acknowledged for `count` of its bytes, at least one.
    fn written(&mut self, offset: u64, count: u32, promise: Promise);

    /// The chunk at `offset` cannot be written; gives how many bytes are dropped with it.
    fn failed(&mut self, offset: u64) -> u64;

    /// A COMMIT is about to be sent: it covers what is unstable now.
    fn begin_commit(&mut self);

    /// That COMMIT was answered; gives how many bytes the server lost, which are pending again.
    fn committed(&mut self, verifier: [u8; 8]) -> u64;

    /// That COMMIT failed; gives how many bytes nothing can be concluded of, which are dropped.
    fn commit_failed(&mut self) -> u64;

    /// Drops what lies at `from` or beyond; what of it is under way is not held when it is
    /// answered.
    fn discard(&mut self, from: u64);

    /// Is any byte of `range`, no younger than `age`, pending or under way?
    fn is_unanswered(&self, range: &Range<u64>, age: u64) -> bool;

    /// The end of the last byte that is pending or under way.
    fn dirty_end(&self) -> Option<u64>;

    /// What of `range` is unstable, in order: where each part begins, and its bytes.
    fn unstable(&self, range: &Range<u64>) -> Vec<(u64, Bytes)>;

    /// Whose bytes are unstable: each caller once.
    fn unstable_callers(&self) -> BTreeSet<u32>;

    /// The end of the last byte that is unstable.
    fn unstable_end(&self) -> Option<u64>;

    fn oldest_unanswered(&self) -> Option<u64>;

    fn oldest_unstable(&self) -> Option<u64>;

    fn sums(&self) -> Sums;
}

/// The ages of things, of which many may have the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Ages(BTreeMap<u64, u32>);

impl Ages {
    pub(super) fn add(&mut self, age: u64) {
        *self.0.entry(age).or_default() += 1;
    }

    pub(super) fn remove(&mut self, age: u64) {
        if let Some(count) = self.0.get_mut(&age) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&age);
            }
        }
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.0.first_key_value().map(|(age, _)| *age)
    }
}
