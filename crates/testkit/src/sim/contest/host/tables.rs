//! Ways of locking, and the tables of locks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use client::cache::attributes::Version;
use client::locks::Locks;
use parking_lot::Mutex;

/// How a lock is taken: for an open file (flock(2)), or for a process (fcntl(2)).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim::contest) enum Locking {
    Flock,
    Fcntl,
}

impl Locking {
    pub(in crate::sim::contest) fn of(lock: u32) -> Self {
        if lock == 0 { Self::Flock } else { Self::Fcntl }
    }
}

/// Who has locks; and the number of the last descriptor.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) of_all: Arc<Locks>,
    /// The mistake: for each node of a file by itself. Never walked.
    pub(super) of_nodes: Option<Mutex<HashMap<Option<Version>, Arc<Locks>>>>,
    pub(super) descriptors: AtomicU64,
}
