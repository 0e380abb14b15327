//! Bytes that a seed gives, the same on every machine.

use fastrand::Rng;

/// A generator for one thing of a suite.
pub(super) fn rng(seed: u64, thing: &str) -> Rng {
    // FNV-1a: things with different names have different content.
    let hash = thing.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Rng::with_seed(seed ^ hash)
}

/// Bytes that do not compress.
pub(super) fn bytes(seed: u64, thing: &str, len: u64) -> Vec<u8> {
    let mut content = vec![0; usize::try_from(len).unwrap_or(0)];
    rng(seed, thing).fill(&mut content);
    content
}
