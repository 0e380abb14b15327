//! What a cache has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why something was not served from the cache.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Cause {
    /// It was never there, as far as is known.
    Cold,
    /// The file is in another state than what was stored.
    Changed,
    /// It had to make room.
    Evicted,
    /// It was not what it should be, and was dropped.
    Damaged,
    /// Nobody could say which state the file is in: the file is being written here.
    Unsure,
    /// It was dropped by somebody's order.
    Invalidated,
    /// The local disk has failed, or was not read.
    Failed,
}

impl Cause {
    pub const ALL: [Self; 7] = [
        Self::Cold,
        Self::Changed,
        Self::Evicted,
        Self::Damaged,
        Self::Unsure,
        Self::Invalidated,
        Self::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Changed => "changed",
            Self::Evicted => "evicted",
            Self::Damaged => "damaged",
            Self::Unsure => "unsure",
            Self::Invalidated => "invalidated",
            Self::Failed => "failed",
        }
    }
}

/// Counters; each only grows.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) hits: AtomicU64,
    pub(crate) hit_bytes: AtomicU64,
    pub(crate) misses: [AtomicU64; Cause::ALL.len()],
    pub(crate) stored_blocks: AtomicU64,
    pub(crate) stored_bytes: AtomicU64,
    /// Blocks that were not stored because too much waited.
    pub(crate) unstored_bytes: AtomicU64,
    pub(crate) dropped: [AtomicU64; Cause::ALL.len()],
    pub(crate) failures: AtomicU64,
    pub(crate) catalog_hits: AtomicU64,
    pub(crate) catalog_misses: [AtomicU64; Cause::ALL.len()],
    pub(crate) stored_catalogs: AtomicU64,
}

/// What was counted by a moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Reads that were served, and their bytes.
    pub hits: u64,
    pub hit_bytes: u64,
    /// Reads that were not, by [`Cause::ALL`].
    pub misses: [u64; Cause::ALL.len()],
    pub stored_blocks: u64,
    pub stored_bytes: u64,
    /// What came faster than the local disk takes it.
    pub unstored_bytes: u64,
    /// Local files that were removed, by [`Cause::ALL`].
    pub dropped: [u64; Cause::ALL.len()],
    /// Errors of the local disk.
    pub failures: u64,
    /// Directories that were found as they were known, and those that were not, by [`Cause::ALL`].
    pub catalog_hits: u64,
    pub catalog_misses: [u64; Cause::ALL.len()],
    pub stored_catalogs: u64,
    /// What lies there.
    pub filled: crate::limits::Filled,
}

impl Statistics {
    pub fn misses_of(&self, cause: Cause) -> u64 {
        self.misses[cause as usize]
    }

    pub fn dropped_of(&self, cause: Cause) -> u64 {
        self.dropped[cause as usize]
    }

    pub fn misses_all(&self) -> u64 {
        self.misses.iter().sum()
    }
}

impl Counts {
    pub(crate) fn hit(&self, bytes: u64) {
        self.hits.fetch_add(1, Relaxed);
        self.hit_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn missed(&self, cause: Cause) {
        self.misses[cause as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn dropped(&self, cause: Cause) {
        self.dropped[cause as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn now(&self) -> Statistics {
        let all = |counts: &[AtomicU64; Cause::ALL.len()]| {
            std::array::from_fn(|index| counts[index].load(Relaxed))
        };
        Statistics {
            hits: self.hits.load(Relaxed),
            hit_bytes: self.hit_bytes.load(Relaxed),
            misses: all(&self.misses),
            stored_blocks: self.stored_blocks.load(Relaxed),
            stored_bytes: self.stored_bytes.load(Relaxed),
            unstored_bytes: self.unstored_bytes.load(Relaxed),
            dropped: all(&self.dropped),
            failures: self.failures.load(Relaxed),
            catalog_hits: self.catalog_hits.load(Relaxed),
            catalog_misses: all(&self.catalog_misses),
            stored_catalogs: self.stored_catalogs.load(Relaxed),
            filled: crate::limits::Filled::default(),
        }
    }
}
