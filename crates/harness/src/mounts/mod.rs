//! Mounts of `nfskit mount`: what they are to be, what can stand in their way, and those that a
//! command makes for itself.

pub mod embedded;
pub mod failures;
pub mod settings;
