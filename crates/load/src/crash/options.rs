//! How much load, and of which files.

use perf::units::Nanos;

/// What the load has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calls {
    /// WRITE and COMMIT.
    pub data: bool,
    /// What makes, removes and moves names. Some files are made in any case.
    pub names: bool,
    /// SETATTR.
    pub attributes: bool,
    /// READs of what nobody is writing just then, whose bytes are compared at once.
    pub reads: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Self { data: true, names: true, attributes: true, reads: false }
    }
}

/// How much load, and of which files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Options {
    pub seed: u64,
    /// Each with a connection and a directory.
    pub clients: u32,
    /// Calls of each at once.
    pub outstanding: u32,
    pub calls: Calls,
    /// Longest file.
    pub file_bytes_max: u64,
    /// The load before a kill: at least and at most.
    pub load: (Nanos, Nanos),
    /// The last calls are retransmitted after the restart. For servers whose replies outlive it: of
    /// others, that would undo what came after.
    pub retransmits: bool,
    /// How long a server may take to answer again.
    pub answer_limit: Nanos,
    /// How long the server behind it may take to have everything.
    pub behind_limit: Nanos,
}
