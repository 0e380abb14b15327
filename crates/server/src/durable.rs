//! The witness of durability.
//!
//! A FILE_SYNC or COMMIT reply can only be built from a [`Durable`], and a `Durable` can only be
//! made by `Durable::after_sync`, which stores call with the outcome of a sync, by
//! `Durable::after_log`, with that of a frame of the write log, or where the files are another
//! server's, from that server's own reply ([`Durable::of_reply`], [`Committed::of_reply`]).
//! Forgetting them does not compile; lying takes a line that a reviewer sees.

use wire::nfs3::{StableHow, commit, write};

use crate::types::{Stability, Status, Verifier};

/// Proof that the bytes an operation speaks of survive power loss, as far as the store's medium
/// does (a memory store's medium is its memory, as its banner states).
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

    /// The same for data in a write log. `outcome` is that of the frame that has them: an error
    /// if it is not known. Also for stores with a log of their own.
    ///
    /// # Errors
    /// The outcome.
    pub fn after_log<E>(outcome: Result<(), E>, verifier: Verifier) -> Result<Self, E> {
        outcome.map(|()| Self { verifier })
    }

    /// The same of another server, whose files these are: it has answered a COMMIT.
    pub fn of_reply(reply: &commit::ReplyOk) -> Self {
        Self { verifier: Verifier(reply.verf) }
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
    /// On stable storage, with at least the stability that was requested.
    Stable(Stability, Durable),
}

impl Committed {
    /// What another server, whose files these are, has answered to a WRITE.
    pub fn of_reply(reply: &write::ReplyOk) -> Self {
        let verifier = Verifier(reply.verf);
        match reply.committed {
            StableHow::Unstable => Self::Unstable(verifier),
            StableHow::DataSync => Self::Stable(Stability::DataSync, Durable { verifier }),
            StableHow::FileSync => Self::Stable(Stability::FileSync, Durable { verifier }),
        }
    }

    /// Where both are that were written by the two WRITEs of one: where the less stable is. Of two
    /// verifiers it is the first one's: if it is not that of now, all is written again.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        match (self, later) {
            (Self::Unstable(_), _) => self,
            (_, Self::Unstable(_)) => later,
            (Self::Stable(first, _), Self::Stable(second, _)) if second < first => later,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writes_are_where_the_less_stable_one_is() {
        let unstable = |number| Committed::Unstable(Verifier([number; 8]));
        let durable = |number| Durable { verifier: Verifier([number; 8]) };
        let data = Committed::Stable(Stability::DataSync, durable(2));
        let file = Committed::Stable(Stability::FileSync, durable(3));
        assert_eq!(unstable(1).and(unstable(2)), unstable(1));
        assert_eq!(file.and(unstable(2)), unstable(2));
        assert_eq!(unstable(2).and(file), unstable(2));
        assert_eq!(file.and(data), data);
        assert_eq!(data.and(file), data);
    }
}
