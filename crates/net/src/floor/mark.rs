//! What a datagram of ours begins with: a mark, the token of its run, and its number.
//!
//! The mark's second half is neither a call nor a reply, so that no datagram of ours is taken for
//! RPC, and the token is known only to who requested the run: the far end echoes for nobody else,
//! and two far ends cannot be made to echo each other.

pub(super) const HEADER_BYTES: usize = 24;
const MARK: [u8; 8] = *b"NFSKITst";

/// See the module's head.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Header {
    pub(super) token: u64,
    /// From zero; of a transfer its number in the upper half.
    pub(super) number: u64,
}

impl Header {
    /// The header at the front of `datagram`; `None` when it is not ours.
    pub(super) fn of(datagram: &[u8]) -> Option<Self> {
        let (mark, rest) = datagram.split_first_chunk::<8>()?;
        let (token, rest) = rest.split_first_chunk::<8>()?;
        let (number, _) = rest.split_first_chunk::<8>()?;
        let (token, number) = (u64::from_be_bytes(*token), u64::from_be_bytes(*number));
        (*mark == MARK).then_some(Self { token, number })
    }

    /// Puts it at the front of a datagram, which has at least [`HEADER_BYTES`].
    pub(super) fn put(self, datagram: &mut [u8]) {
        let words = [MARK, self.token.to_be_bytes(), self.number.to_be_bytes()];
        for (place, word) in datagram.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word);
        }
    }
}

/// The number of the sentinel that answers a transfer.
pub(super) const fn sentinel(transfer: u32) -> u64 {
    (transfer as u64) << 32 | 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_nothing_else_is_one() {
        let mut datagram = [7_u8; 40];
        let header = Header { token: 5, number: sentinel(3) };
        header.put(&mut datagram);
        assert_eq!(Header::of(&datagram), Some(header));
        assert_eq!(datagram[24..], [7; 16]);
        assert_eq!(Header::of(&datagram[..23]), None);
        datagram[4] = 0;
        assert_eq!(Header::of(&datagram), None);
    }

    #[test]
    fn no_datagram_of_ours_is_a_message_of_rpc() {
        let mut datagram = [0_u8; 40];
        Header { token: 1, number: 2 }.put(&mut datagram);
        assert!(wire::rpc::peek(&datagram).is_err());
    }
}
