//! What was measured, live and in a world.

use load::mix::Mix;
use perf::units::Nanos;

use super::findings::Findings;
use super::points::{Course, Measured, Part};
use super::world::Simulated;

/// Everything that was measured, and how.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) mix: Mix,
    /// The URL of somebody else's server.
    pub(super) url: Option<String>,
    pub(super) started: String,
    pub(super) took: Nanos,
    pub(super) course: Course,
    pub(super) live: Vec<Measured>,
    pub(super) world: Vec<Measured>,
    pub(super) simulated: Simulated,
    pub(super) findings: Findings,
    pub(super) neighbours_share: Option<f64>,
}

impl Outcome {
    /// A point as it was live and in the world.
    pub(super) fn pairs(&self, part: Part) -> impl Iterator<Item = (&Measured, &Measured)> {
        let both = self.live.iter().zip(&self.world);
        both.filter(move |(live, _)| live.point.part == part)
    }
}
