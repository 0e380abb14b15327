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

/// One of these numbers, as pages of metrics have it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sample {
    pub name: &'static str,
    pub help: &'static str,
    /// Its label, where numbers differ by cause.
    pub cause: Option<Cause>,
    pub count: u64,
}

impl Sample {
    pub fn labels(&self) -> Vec<(&'static str, String)> {
        self.cause.map(|cause| ("cause", cause.name().to_owned())).into_iter().collect()
    }
}

impl Statistics {
    /// All of them.
    pub fn samples(&self) -> Vec<Sample> {
        let one = |name, help, count| Sample { name, help, cause: None, count };
        let mut all = vec![
            one("nfskit_cache_hits_total", "Reads served from the disk.", self.hits),
            one("nfskit_cache_hit_bytes_total", "Their bytes.", self.hit_bytes),
            one("nfskit_cache_stored_blocks_total", "Blocks stored.", self.stored_blocks),
            one("nfskit_cache_stored_bytes_total", "Their bytes.", self.stored_bytes),
            one(
                "nfskit_cache_unstored_bytes_total",
                "Bytes that found no room or came faster than the disk takes them.",
                self.unstored_bytes,
            ),
            one("nfskit_cache_failures_total", "Errors of the disk.", self.failures),
            one(
                "nfskit_cache_directory_hits_total",
                "Directories whose names were found on the disk.",
                self.catalog_hits,
            ),
            one(
                "nfskit_cache_stored_directories_total",
                "Directories whose names were stored.",
                self.stored_catalogs,
            ),
            one("nfskit_cache_bytes", "Bytes that it takes of the disk.", self.filled.bytes),
            one("nfskit_cache_files", "Local files that it has.", self.filled.files),
        ];
        let by_cause = [
            ("nfskit_cache_misses_total", "Reads not served from the disk.", self.misses),
            (
                "nfskit_cache_directory_misses_total",
                "Directories whose names were not.",
                self.catalog_misses,
            ),
            ("nfskit_cache_dropped_total", "Local files removed.", self.dropped),
        ];
        for (name, help, counts) in by_cause {
            let each = Cause::ALL.into_iter().zip(counts);
            all.extend(each.map(|(cause, count)| Sample { name, help, cause: Some(cause), count }));
        }
        all
    }

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
