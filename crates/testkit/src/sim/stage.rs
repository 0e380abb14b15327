//! What all who take part know.

use std::sync::Arc;

use cache::medium::Memory;
use cache::{Cache, Geometry, Limits};
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;

use super::history::History;
use super::machine::Machine;
use super::planted::Planted;
use super::trace::Trace;

/// What a local disk of a client keeps of files and directories: blocks as small as they can be,
/// and few.
pub(super) fn on_disk(memory: &Memory, planted: Option<Planted>) -> Cache {
    let limits = Limits { bytes_max: 1 << 20, files_max: 8, ..Limits::default() };
    let (memory, geometry) = (memory.clone(), Geometry::of_reads_of(4096));
    match planted {
        Some(Planted::Cache(mistake)) => Cache::mistaken(memory, geometry, limits, mistake),
        _ => Cache::in_memory(memory, geometry, limits),
    }
}

/// How long it takes until nothing is under way any more.
pub(super) const QUIET: Nanos = Nanos::from_secs(120);

/// What all who take part know.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) clock: Clock,
    pub(crate) machine: Machine,
    pub(crate) history: Arc<History>,
    pub(crate) trace: Arc<Mutex<Trace>>,
    /// The public files, by their writers.
    pub(crate) public: Arc<Mutex<Vec<crate::reference::shared::Sessions>>>,
    /// What is done wrong on purpose.
    pub(crate) planted: Option<Planted>,
}
