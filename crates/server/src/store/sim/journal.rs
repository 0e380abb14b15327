//! What is to be made stable, in the order in which it happened, and how it is done again to the
//! stable image. The same operations in the same order give the same handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;

use crate::store::Store;
use crate::store::mem::{MemStore, TimeSource};
use crate::types::{Attr, Caller, CreateHow, Handle, SetAttr, Special, Status, Time};

/// What an entry takes in the journal beside its names: an inode's worth (guess).
const ENTRY_BYTES: u64 = 256;

/// An operation that succeeded on the live image.
#[derive(Clone, Debug)]
pub(super) enum Op {
    SetAttr { caller: Caller, handle: Handle, changes: SetAttr },
    Create { caller: Caller, dir: Handle, name: Bytes, how: CreateHow },
    MakeDir { caller: Caller, dir: Handle, name: Bytes, attrs: SetAttr },
    Symlink { caller: Caller, dir: Handle, name: Bytes, target: Bytes, attrs: SetAttr },
    MakeNode { caller: Caller, dir: Handle, name: Bytes, what: Special, attrs: SetAttr },
    Remove { caller: Caller, dir: Handle, name: Bytes },
    RemoveDir { caller: Caller, dir: Handle, name: Bytes },
    Rename { caller: Caller, from_dir: Handle, from: Bytes, to_dir: Handle, to: Bytes },
    Link { caller: Caller, handle: Handle, dir: Handle, name: Bytes },
}

#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A change of names or attributes, which the journal itself carries.
    Names { op: Op, time: Time },
    /// Data of a file, which go to their place before the journal is written. Without a stable
    /// image only their number is recorded.
    Data { handle: Handle, file: u64, offset: u64, len: u64, data: Bytes, attr: Attr },
}

impl Entry {
    /// Bytes it takes in the journal.
    pub(super) fn journal_bytes(&self) -> u64 {
        match self {
            Self::Data { .. } => 0,
            Self::Names { op, .. } => ENTRY_BYTES + op.names_len() as u64,
        }
    }

    pub(super) fn data_bytes(&self) -> u64 {
        match self {
            Self::Data { len, .. } => *len,
            Self::Names { .. } => 0,
        }
    }
}

impl Op {
    fn names_len(&self) -> usize {
        match self {
            Self::SetAttr { .. } => 0,
            Self::Symlink { name, target, .. } => name.len() + target.len(),
            Self::Rename { from, to, .. } => from.len() + to.len(),
            Self::Create { name, .. }
            | Self::MakeDir { name, .. }
            | Self::MakeNode { name, .. }
            | Self::Remove { name, .. }
            | Self::RemoveDir { name, .. }
            | Self::Link { name, .. } => name.len(),
        }
    }
}

/// The time that an image's files get: set before each operation, so that a second image gets the
/// same.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    secs: AtomicI64,
    nanos: AtomicU32,
}

impl Stamp {
    /// Callers hold the store's lock.
    pub(super) fn set(&self, time: Time) {
        self.secs.store(time.secs, Ordering::Relaxed);
        self.nanos.store(time.nanos, Ordering::Relaxed);
    }

    pub(super) fn source(self: &Arc<Self>) -> TimeSource {
        let own = Arc::clone(self);
        Arc::new(move || Time {
            secs: own.secs.load(Ordering::Relaxed),
            nanos: own.nanos.load(Ordering::Relaxed),
        })
    }
}

/// What a memory store does completes at once.
pub(super) fn now<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("a memory store never waits")
}

/// An image of what is stable.
#[derive(Debug)]
pub(super) struct Stable {
    pub(super) store: MemStore,
    pub(super) stamp: Arc<Stamp>,
}

impl Stable {
    /// Does again what the entry says.
    ///
    /// # Errors
    /// It cannot be done here, which is a fault of ours unless something before it was left out.
    pub(super) fn apply(&self, entry: &Entry) -> Result<(), Status> {
        match entry {
            Entry::Data { handle, offset, data, attr, .. } => {
                self.store.put(handle, *offset, data, attr)
            }
            Entry::Names { op, time } => {
                self.stamp.set(*time);
                self.repeat(op)
            }
        }
    }

    fn repeat(&self, op: &Op) -> Result<(), Status> {
        let store = &self.store;
        match op {
            Op::SetAttr { caller, handle, changes } => {
                now(store.set_attr(caller, handle, *changes, None)).result
            }
            Op::Create { caller, dir, name, how } => {
                now(store.create(caller, dir, name, *how)).result.map(drop)
            }
            Op::MakeDir { caller, dir, name, attrs } => {
                now(store.make_dir(caller, dir, name, *attrs)).result.map(drop)
            }
            Op::Symlink { caller, dir, name, target, attrs } => {
                now(store.symlink(caller, dir, name, target, *attrs)).result.map(drop)
            }
            Op::MakeNode { caller, dir, name, what, attrs } => {
                now(store.make_node(caller, dir, name, *what, *attrs)).result.map(drop)
            }
            Op::Remove { caller, dir, name } => now(store.remove(caller, dir, name)).result,
            Op::RemoveDir { caller, dir, name } => now(store.remove_dir(caller, dir, name)).result,
            Op::Rename { caller, from_dir, from, to_dir, to } => {
                now(store.rename(caller, from_dir, from, to_dir, to)).result
            }
            Op::Link { caller, handle, dir, name } => {
                now(store.link(caller, handle, dir, name)).result
            }
        }
    }
}
