//! SipHash-2-4 (Aumasson and Bernstein, 2012): a short keyed hash, which seals handles and tells
//! calls apart. What it gives is stored on disks: it must stay what it is.

use siphasher::sip::SipHasher24;

/// The hash of `message` under `key`.
pub(crate) fn siphash(key: &[u8; 16], message: &[u8]) -> u64 {
    SipHasher24::new_with_key(key).hash(message)
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
