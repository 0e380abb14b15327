//! What a relay (`nfskit link`) says of itself: statistics, a page of metrics, and a record.

pub mod metrics;
pub mod record;
pub mod stats;
