//! What was simulated.

use perf::units::Nanos;
use world::simulate::{Outcome, ServerOutcome, Topology};

/// A run, and what it cost this machine.
pub(super) struct Simulated {
    pub(super) topology: Topology,
    pub(super) outcome: Outcome,
    pub(super) started: String,
    /// Real time of the run, without its load points.
    pub(super) took: Nanos,
    pub(super) memory_bytes_max: Option<u64>,
    /// Load points, if they were requested.
    pub(super) curve: Vec<LoadPoint>,
}

/// Response time at a rate.
pub(super) struct LoadPoint {
    pub(super) offered_per_s: f64,
    pub(super) per_s: f64,
    pub(super) mean: Nanos,
    pub(super) p95: Nanos,
    pub(super) processor: f64,
    pub(super) disk: f64,
}

impl LoadPoint {
    pub(super) fn of(offered_per_s: f64, outcome: &Outcome) -> Self {
        let servers = outcome.servers.len().max(1) as f64;
        let mean =
            |of: fn(&ServerOutcome) -> f64| outcome.servers.iter().map(of).sum::<f64>() / servers;
        Self {
            offered_per_s,
            per_s: outcome.per_s,
            mean: outcome.response_time.mean(),
            p95: outcome.response_time.quantile(0.95),
            processor: mean(|server| server.processor_utilization),
            disk: mean(|server| server.disk_utilization),
        }
    }
}
