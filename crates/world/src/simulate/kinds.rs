//! What clients of each kind had: of a site with near and far ones, the sum says little.

use load::mix;
use perf::units::Nanos;

use super::topology::Topology;

/// Clients that are all alike, together, in the time that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct KindOutcome {
    pub clients: usize,
    /// The name of their link.
    pub link: String,
    /// Operations a second.
    pub per_s: f64,
    /// `None` where nothing was answered.
    pub response_mean: Option<Nanos>,
}

/// Of each kind in the topology, from what came of each server's sessions: clients are spread over
/// the servers in turn.
pub(super) fn of(topology: &Topology, parts: &[mix::Outcome]) -> Vec<KindOutcome> {
    let secs = topology.workload.time.nanos().as_secs_f64();
    let mut begin = 0;
    let of_kind = |kind: &super::topology::Clients| {
        let own = begin..begin + kind.count;
        begin = own.end;
        let mut sum = mix::outcome::Batch::default();
        let session = |client: usize| {
            parts[client % parts.len()].of_session.get(client / parts.len()).copied()
        };
        own.filter_map(session).for_each(|session| sum.merge(session));
        KindOutcome {
            clients: kind.count,
            link: kind.link.0.name.clone(),
            per_s: sum.answered as f64 / secs,
            response_mean: sum.response_mean(),
        }
    };
    topology.clients.iter().map(of_kind).collect()
}
