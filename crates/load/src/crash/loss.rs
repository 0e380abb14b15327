//! What can be lost.

use std::collections::BTreeMap;

perf::named! {
    /// What can be lost.
    #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
    pub enum Kind {
        /// Bytes of a WRITE that was answered as stable.
        DataSync => "data-sync",
        /// Bytes of an UNSTABLE WRITE whose COMMIT was answered with the same verifier.
        DataCommit => "data-commit",
        /// A file has bytes that nobody wrote there.
        Foreign => "foreign-bytes",
        /// CREATE, REMOVE, RENAME and the like.
        Names => "names",
        /// Size, mode, time of modification, number of links, fileid.
        Attributes => "attributes",
        /// A handle of a file that is there is not good any more.
        Handles => "handles",
        /// Unstable bytes are gone, and the write verifier does not tell.
        Verifier => "verifier",
        /// What a retransmission was answered is not what its call was, or not what was done.
        Replies => "replies",
    }
}

/// Something that was promised and is not there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Lost {
    pub kind: Kind,
    pub what: String,
    pub bytes: u64,
}

impl Lost {
    /// The same, of this file.
    pub(super) fn of(mut self, path: &str) -> Self {
        self.what = format!("{path}: {}", self.what);
        self
    }
}

/// Counts more losses of a kind.
pub fn add(kinds: &mut BTreeMap<Kind, (u64, u64)>, kind: Kind, (count, bytes): (u64, u64)) {
    let all = kinds.entry(kind).or_default();
    *all = (all.0 + count, all.1 + bytes);
}
