//! How many files of which length: the file set of SFS 3.0, scaled.

use fastrand::Rng;

use super::GROWTH_MAX;
use crate::deck::Deck;
use crate::space::{ALLOCATED_BYTES, Need};

/// Lengths of the files that are read and written, in KiB, with their shares of 100 (SFS 3.0,
/// `sfs_c_dat.c`).
const LENGTHS_KIB: [(u64, u32); 10] =
    [(1, 33), (2, 21), (4, 13), (8, 10), (16, 8), (32, 5), (64, 4), (128, 3), (256, 2), (1024, 1)];

/// Their mean: 26.71 KiB.
pub const MEAN_BYTES: u64 = 26_71 * 1024 / 100;

/// What SFS 3.0 makes for each operation a second that is requested.
pub const BYTES_PER_RATE: u64 = 10 << 20;

/// The most files that are made: a directory entry, a handle and a length of each are stored.
pub const FILES_MAX: usize = 4_000_000;

/// See the module's head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Files that are read and written.
    pub files: usize,
    /// The share of them, from 0 to 1, that a run touches.
    pub accessed: f64,
    /// Names that come and go; half of them are there at the beginning.
    pub entries: usize,
    /// Directories that come and go, likewise.
    pub subdirs: usize,
    pub symlinks: usize,
    pub files_per_dir: usize,
    pub seed: u64,
}

impl Layout {
    /// A set of about so many bytes, with the other numbers as SFS 3.0 has them.
    pub fn of_bytes(bytes: u64, seed: u64) -> Self {
        let files = usize::try_from(bytes.div_ceil(MEAN_BYTES)).unwrap_or(FILES_MAX);
        let files = files.clamp(1, FILES_MAX);
        Self {
            files,
            accessed: 0.1,
            entries: 100,
            subdirs: 40,
            symlinks: 20,
            files_per_dir: 30,
            seed,
        }
    }

    /// Scaled to a rate, as SFS scales.
    pub fn of_rate(per_s: f64, bytes_per_rate: u64, seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let bytes = (per_s.max(0.0) * bytes_per_rate as f64) as u64;
        Self::of_bytes(bytes, seed)
    }

    /// About the bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.files as u64 * MEAN_BYTES
    }

    /// Files that a run touches: at least one.
    pub fn accessed_files(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
        let accessed = (self.files as f64 * self.accessed).ceil() as usize;
        accessed.clamp(1, self.files.max(1))
    }

    pub fn dirs(&self) -> usize {
        self.files.div_ceil(self.files_per_dir.max(1)).max(1)
    }

    /// What a server must have for it, and for what it may grow by while it runs.
    pub fn need(&self) -> Need {
        let dirs = self.dirs() as u64;
        let names = (self.files + self.entries + self.subdirs + self.symlinks) as u64;
        let files: u64 =
            self.lengths().iter().map(|bytes| bytes.next_multiple_of(ALLOCATED_BYTES)).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let growth = (files as f64 * GROWTH_MAX).ceil() as u64;
        let others =
            (dirs + (self.entries + self.subdirs + self.symlinks) as u64) * ALLOCATED_BYTES;
        Need { bytes: files + growth + others, inodes: names + dirs }
    }

    /// Length of each file: the first are those that a run touches, so that these have the
    /// distribution by themselves.
    pub fn lengths(&self) -> Vec<u64> {
        let mut random = Rng::with_seed(self.seed);
        let Some(mut deck) = Deck::new(&LENGTHS_KIB) else { return Vec::new() };
        (0..self.files).map(|_| deck.draw(&mut random) << 10).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_about_the_bytes_that_were_requested() {
        let layout = Layout::of_rate(25.0, BYTES_PER_RATE, 1);
        let lengths = layout.lengths();
        let bytes: u64 = lengths.iter().sum();
        assert!((bytes as f64 / (250 << 20) as f64 - 1.0).abs() < 0.01, "{bytes}");
        // SFS's own constant for 25 operations a second: 975 files.
        assert!((957..=975).contains(&layout.accessed_files()), "{layout:?}");
        assert_eq!(layout.dirs(), layout.files.div_ceil(30));
        let need = layout.need();
        assert!(need.bytes > bytes * 11 / 10 && need.bytes < bytes * 13 / 10, "{need:?}");
        assert_eq!(need.inodes, (layout.files + layout.dirs() + 160) as u64);
        // 95 decks and a part of one.
        assert!((95..=96).contains(&lengths.iter().filter(|bytes| **bytes == 1 << 20).count()));
    }

    #[test]
    fn any_number_gives_a_set() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let layout = Layout::of_rate(rate, BYTES_PER_RATE, 1);
            assert!((1..=FILES_MAX).contains(&layout.files));
            assert!(layout.accessed_files() >= 1);
        }
    }
}
