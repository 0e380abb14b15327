//! How much may lie in a cache, and when it is cleaned. Pure.

/// What a cache may take. Cleaning begins above `high` percent of either bound and ends below
/// `low` percent of both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Of a local disk.
    pub bytes_max: u64,
    /// Local files: one for each 256 blocks of a file of the origin. Some 160 bytes of memory each.
    pub files_max: u64,
    pub high_percent: u8,
    pub low_percent: u8,
    /// What is to stay free of the local file system, whoever takes it.
    pub free_bytes_min: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 10 << 30,
            files_max: 1_000_000,
            high_percent: 95,
            low_percent: 90,
            free_bytes_min: 256 << 20,
        }
    }
}

/// What lies in a cache.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Filled {
    pub bytes: u64,
    pub files: u64,
}

/// Says when to clean.
#[derive(Clone, Debug)]
pub struct Cleaner {
    limits: Limits,
    is_cleaning: bool,
}

impl Cleaner {
    pub fn new(limits: Limits) -> Self {
        Self { limits, is_cleaning: false }
    }

    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether something is to go, when so much is to be stored besides what is there.
    pub fn is_due(&mut self, filled: Filled, more: Filled) -> bool {
        let percent =
            if self.is_cleaning { self.limits.low_percent } else { self.limits.high_percent };
        let part = |max: u64| u128::from(max) * u128::from(percent) / 100;
        let is_above = |now: u64, more: u64, max| u128::from(now) + u128::from(more) > part(max);
        self.is_cleaning = is_above(filled.bytes, more.bytes, self.limits.bytes_max)
            || is_above(filled.files, more.files, self.limits.files_max);
        self.is_cleaning
    }

    /// Whether so much fits: what does not is not stored.
    pub fn has_room(&self, filled: Filled, more: Filled) -> bool {
        filled.bytes.saturating_add(more.bytes) <= self.limits.bytes_max
            && filled.files.saturating_add(more.files) <= self.limits.files_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_begins_above_the_high_mark_and_ends_at_the_low_one() {
        let limits = Limits { bytes_max: 1000, files_max: 100, ..Limits::default() };
        let mut cleaner = Cleaner::new(limits);
        let filled = |bytes, files| Filled { bytes, files };
        let nothing = Filled::default();
        assert!(!cleaner.is_due(filled(950, 1), nothing));
        assert!(cleaner.is_due(filled(950, 1), filled(1, 0)));
        assert!(cleaner.is_due(filled(901, 1), nothing), "until it is below the low mark");
        assert!(!cleaner.is_due(filled(900, 1), nothing));
        assert!(!cleaner.is_due(filled(950, 1), nothing));
        assert!(cleaner.is_due(filled(0, 96), nothing), "files count, too");
        assert!(cleaner.has_room(filled(999, 0), filled(1, 1)));
        assert!(!cleaner.has_room(filled(999, 0), filled(2, 0)));
        assert!(!cleaner.has_room(filled(0, 100), filled(0, 1)));
        assert!(!cleaner.has_room(filled(u64::MAX, 0), filled(u64::MAX, 0)));
    }
}
