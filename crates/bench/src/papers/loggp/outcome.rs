//! What the probe put in and read back.

use load::recover::{Parameter, Point};
use perf::units::Nanos;

/// Everything that was measured, and how.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The URL of somebody else's server.
    pub(super) url: Option<String>,
    pub(super) started: String,
    pub(super) took: Nanos,
    /// What the path has before anything is put in.
    pub(super) base_latency: Nanos,
    pub(super) sweep: Vec<(Parameter, Point)>,
    pub(super) neighbours_share: Option<f64>,
}
