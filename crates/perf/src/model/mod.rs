//! Models that predict. One file per model; the symbols are those of docs/models.md.

pub mod fit;
pub mod loggp;
pub mod station;
pub mod transaction;
