//! SipHash-2-4 (Aumasson and Bernstein, 2012): a short keyed hash, which seals handles and tells
//! calls apart.

/// The hash of `message` under `key`.
pub(crate) fn siphash(key: &[u8; 16], message: &[u8]) -> u64 {
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut state = State {
        v0: k0 ^ 0x736f_6d65_7073_6575,
        v1: k1 ^ 0x646f_7261_6e64_6f6d,
        v2: k0 ^ 0x6c79_6765_6e65_7261,
        v3: k1 ^ 0x7465_6462_7974_6573,
    };
    let mut chunks = message.chunks_exact(8);
    for chunk in &mut chunks {
        state.absorb(word(chunk));
    }
    // The last word: what remains, and the length's lowest byte on top.
    let length = (message.len() as u64) << 56;
    state.absorb(word(chunks.remainder()) | length);
    state.v2 ^= 0xff;
    (0..4).for_each(|_| state.round());
    state.v0 ^ state.v1 ^ state.v2 ^ state.v3
}

/// Up to eight bytes, little endian.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    fn absorb(&mut self, word: u64) {
        self.v3 ^= word;
        self.round();
        self.round();
        self.v0 ^= word;
    }

    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the paper's appendix A and its reference implementation: key 00 01 .. 0f, message
    /// 00 01 .. of each length.
    #[test]
    fn agrees_with_the_published_vectors() {
        let key = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(&key, &message), 0xa129_ca61_49be_45e5);
        assert_eq!(siphash(&key, &[]), 0x726f_db47_dd0e_0e31);
    }
}
