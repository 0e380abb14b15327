//! The witness of durability.
//!
//! A FILE_SYNC or COMMIT reply can only be built from a [`Durable`], and a `Durable` can only be
//! made by `Durable::after_sync`, which stores call with the outcome of a sync, or by
//! `Durable::after_log`, with that of a frame of the write log. Forgetting either does not compile;
//! lying takes a line that a reviewer sees.

use crate::types::{Stability, Status, Verifier};

/// Proof that the bytes an operation speaks of survive power loss, as far as the store's medium
/// does (a memory store's medium is its memory, and its banner says so).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Durable {
    verifier: Verifier,
}

impl Durable {
    /// Turns a sync's outcome into proof. `verifier` is the one that was valid before the sync
    /// began, so that a loss in between is seen by the client.
    pub(crate) fn after_sync(
        outcome: Result<(), Status>,
        verifier: Verifier,
    ) -> Result<Self, Status> {
        outcome.map(|()| Self { verifier })
    }

    /// The same for data in a write log. `told` is what became of the frame that has them: an error
    /// if it is not known.
    pub(crate) fn after_log<E>(told: Result<(), E>, verifier: Verifier) -> Result<Self, E> {
        told.map(|()| Self { verifier })
    }

    pub fn verifier(self) -> Verifier {
        self.verifier
    }
}

/// Where the bytes of a WRITE are at the time of its reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Committed {
    /// In memory: lost in a crash, which the changed verifier tells.
    Unstable(Verifier),
    /// On stable storage, with at least the stability that was asked for.
    Stable(Stability, Durable),
}
