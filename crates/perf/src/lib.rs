//! The vocabulary of performance: units, statistics, the run record, models. Pure.

pub mod histogram;
pub mod model;
mod named;
pub mod printable;
pub mod record;
pub mod series;
pub mod stats;
pub mod units;
pub mod words;
