//! Models that predict. One file per model; the symbols are those of docs/models.md.

mod answer;
pub mod closed;
pub mod curve;
pub mod cycle;
mod dependent;
pub mod disk;
pub mod error;
pub mod gathered;
pub mod infer;
pub mod informed;
pub mod least_squares;
pub mod loggp;
pub mod queue;
pub mod recovered;
pub mod relative_line;
pub mod saved;
pub mod sensitivity;
pub mod station;
pub mod sweep;
mod symmetric;
pub mod systematic;
pub mod trace;
pub mod transaction;
pub mod whatif;
pub mod write_log;
