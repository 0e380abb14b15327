//! `nfskit model`: what would be.

pub(crate) mod simulate;
