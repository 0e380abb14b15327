//! Mounts of `nfskit mount`: their settings, mounting by the protocol, the cache on a local disk,
//! metrics, failures, and the mounts that a command makes for itself.

pub mod disk;
pub mod embedded;
pub mod failures;
pub mod metrics;
pub mod proxy;
pub mod reached;
pub mod settings;
