//! Calls that are seen twice, over two connections: a relay between client and server passes them
//! on, and both of its sides were captured; or a client whose connection ended retransmits them
//! from another port.
//!
//! The same call has the same transaction number, length and first bytes, with the credential, the
//! file and the place in it, and the one with which it began still waits for its reply. At most
//! [`TWINS_MAX`] calls are remembered, each in the place of an older one.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use super::calls::Key;

/// Calls that are remembered.
pub const TWINS_MAX: usize = 1 << 14;
/// Bytes that are compared.
const COMPARED: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Twins {
    seed: RandomState,
    slots: Vec<Option<(u64, Key)>>,
}

/// How a call comes to be seen twice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Twin {
    /// A relay passed it on.
    PassedOn,
    /// Its client retransmitted it.
    Retransmitted,
}

impl Twins {
    /// The call that is the same as this one, by another connection, if `how` says how. This one is
    /// remembered, unless it was passed on.
    pub(super) fn of(
        &mut self,
        key: Key,
        head: &[u8],
        len: u32,
        how: impl FnOnce(Key) -> Option<Twin>,
    ) -> Option<(Key, Twin)> {
        // Where less was captured than of the other the bytes cannot be compared.
        let print = self.seed.hash_one((head.get(..COMPARED.min(len as usize))?, len));
        if self.slots.is_empty() {
            self.slots = vec![None; TWINS_MAX];
        }
        let slot = &mut self.slots[usize::try_from(print % TWINS_MAX as u64).ok()?];
        let twin = slot.filter(|(other, twin)| *other == print && twin.flow != key.flow);
        let twin = twin.and_then(|(_, twin)| Some((twin, how(twin)?)));
        if twin.is_none_or(|(_, how)| how == Twin::Retransmitted) {
            *slot = Some((print, key));
        }
        twin
    }
}
