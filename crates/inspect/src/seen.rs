//! What was read of captures.

use std::path::PathBuf;

use trace::Analyzer;

use crate::explain;

/// What was read.
pub(super) struct Seen {
    pub(super) analyzer: Analyzer,
    pub(super) notes: Vec<String>,
    pub(super) bytes: u64,
    /// Captures; none of what was live.
    pub(super) files: Vec<PathBuf>,
    /// Packets that a live capture has missed.
    pub(super) dropped: Option<u64>,
    /// The model of the busiest client and server, or why there is none, if it was requested.
    pub(super) explained: Option<explain::Explanation>,
}

impl Seen {
    pub(super) fn of(
        analyzer: Analyzer,
        bytes: u64,
        files: Vec<PathBuf>,
        notes: Vec<String>,
    ) -> Self {
        Self { analyzer, notes, bytes, files, dropped: None, explained: None }
    }
}
