//! The names of links, and the keys of what can be changed of one.

/// The keys.
pub(super) const KEYS: [&str; 16] = [
    "L",
    "g",
    "G",
    "o",
    "o.send",
    "o.receive",
    "loss",
    "duplicate",
    "reorder",
    "corrupt",
    "jitter",
    "queue",
    "mtu",
    "partition",
    "stall",
    "seed",
];

/// The names, in the order in which they are listed.
pub const NAMES: [&str; 8] =
    ["none", "lan-100m", "lan-1g", "lan-10g", "campus", "wan-10ms", "wan-80ms", "lossy"];
