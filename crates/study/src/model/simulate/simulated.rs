//! What was simulated.

use perf::units::Nanos;
use world::simulate::{Outcome, ServerOutcome, Topology};

/// A run, and what it cost this machine.
pub(super) struct Simulated {
    pub(super) topology: Topology,
    /// What the formula has for it, of the record of a path.
    pub(super) formula_mib_per_s: Option<f64>,
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
    /// `None` where nothing that was due was answered.
    pub(super) mean: Option<Nanos>,
    pub(super) p95: Option<Nanos>,
    pub(super) keeps_up: bool,
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
            mean: outcome.response_mean(),
            p95: outcome.response_mean().map(|_| outcome.response_time.quantile(0.95)),
            keeps_up: outcome.keeps_up,
            processor: mean(|server| server.processor_utilization),
            disk: mean(|server| server.disk_utilization),
        }
    }
}

/// What to know of the response times where the rate did not come.
pub(super) fn shortfall(simulated: &Simulated) -> Option<String> {
    let Simulated { topology, outcome, .. } = simulated;
    let rate = topology.workload.rate.filter(|_| !outcome.keeps_up)?;
    let given_up = match outcome.given_up {
        0 => String::new(),
        count => format!(", {count} operations never started"),
    };
    Some(format!(
        "the rate was not kept: of {rate} operations/s {:.1} came{given_up}; response times depend \
         on how long is simulated",
        outcome.per_s
    ))
}
