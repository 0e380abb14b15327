//! Which seeds a test plays.

use std::ops::Range;

/// The first of them, as many as `NFSKIT_SEEDS` says, or just those that it names
/// (`NFSKIT_SEEDS=77..78`); where it is not set, so many.
///
/// # Panics
/// `NFSKIT_SEEDS` is neither.
pub fn seeds(otherwise: u64) -> Range<u64> {
    let Ok(text) = std::env::var("NFSKIT_SEEDS") else { return 0..otherwise };
    let number = |text: &str| text.parse().expect("NFSKIT_SEEDS is N or N..M");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}
