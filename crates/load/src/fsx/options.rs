//! What to do, and for how long.

use perf::units::Instant;

/// Longest file: its copy is in memory.
pub const FILE_BYTES_MAX: u64 = 1 << 30;

/// What to do, and for how long.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Options {
    pub seed: u64,
    /// Operations at most.
    pub operations_max: u64,
    /// When to end, at the latest.
    pub until: Option<Instant>,
    /// Longest that the file may become; above zero, at most [`FILE_BYTES_MAX`].
    pub file_bytes_max: u64,
    /// Most bytes of one operation; above zero.
    pub call_bytes_max: u32,
    /// Reads and writes through memory mappings, too.
    pub mapped: bool,
}
