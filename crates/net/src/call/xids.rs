//! Tables by XID.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// XIDs that are looked up come from the peer, those that are stored are our own and count up:
/// nobody can fill one place of the table, and a cheaper hash than the usual one will do.
pub(super) type Xids<V> = HashMap<u32, V, BuildHasherDefault<XidHasher>>;

/// 2^64 divided by the golden ratio (Knuth, volume 3, section 6.4): neighbours come to lie far
/// apart.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Default)]
pub(super) struct XidHasher(u64);

impl Hasher for XidHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(MULTIPLIER);
        }
    }

    fn write_u32(&mut self, xid: u32) {
        self.0 = u64::from(xid).wrapping_mul(MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
