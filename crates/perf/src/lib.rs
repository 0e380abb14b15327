//! The vocabulary of performance: units, statistics, the run record, models. Pure.

pub mod model;
pub mod units;
