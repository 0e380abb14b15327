//! What is to be run.

use crate::mix::Mix;

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub mix: Mix,
    /// Calls a second of all tasks.
    pub load_per_s: f64,
    /// When it ends.
    pub calls: u64,
    /// Processes of the original.
    pub tasks: usize,
    pub seed: u64,
}
