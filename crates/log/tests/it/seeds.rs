//! How many simulated machines are played, and within how many a mistake must show.

use std::fmt::Debug;

const SEEDS_OF_MISTAKES: u64 = 1000;

/// As many as `NFSKIT_SEEDS` says, or these, as in the gate.
pub(crate) fn seeds(otherwise: u64) -> u64 {
    std::env::var("NFSKIT_SEEDS").map_or(otherwise, |seeds| seeds.parse().unwrap())
}

/// Each of the mistakes that a server could make shows in the life of some machine.
pub(crate) fn are_found<M: Copy + Debug, T>(
    mistakes: &[M],
    live: impl Fn(u64, M) -> Result<T, String>,
) {
    for &mistake in mistakes {
        let found = (0..SEEDS_OF_MISTAKES).find(|&seed| live(seed, mistake).is_err());
        assert!(found.is_some(), "{mistake:?} is not found within {SEEDS_OF_MISTAKES} seeds");
    }
}
