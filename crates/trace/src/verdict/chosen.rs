//! Which client and server a capture's verdict is of, and of which others it has a word.
//!
//! That is the pair that had the most calls answered. But a client that hangs makes no calls, and
//! is never the busiest: one that waits in vain until the end goes before it.

use std::cmp::Reverse;

use super::SHARE_MIN;
use super::evidence::{Evidence, share};
use crate::flows::Flows;
use crate::pace::Waited;
use crate::pair::Pair;
use crate::service::Service;

/// Calls that had no reply when the capture ended wait in vain from then on.
const VAIN_NS_MIN: u64 = 1_000_000_000;
/// Other pairs of which calls hang that are looked at: those that wait longest.
const OTHERS_MAX: usize = 3;

type Place<'f> = (&'f Pair, &'f Service);

/// The evidence of the pair that is judged, and of others.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub evidence: Evidence,
    /// The busiest, where that is another.
    pub busiest: Option<Evidence>,
    /// Those of which calls hang for much of the time, the longest first.
    pub hanging: Vec<Evidence>,
    /// As many more.
    pub more: usize,
}

impl Chosen {
    /// None without a call that was answered.
    pub fn of(flows: &Flows) -> Option<Self> {
        let busiest = busiest(flows)?;
        let others = called(flows).filter(|(pair, _)| !std::ptr::eq(*pair, busiest.0));
        let mut hanging: Vec<Place<'_>> = others.filter(|(pair, _)| hangs_ns(pair) > 0).collect();
        hanging.sort_by_key(|place| Reverse((is_vain(place), hangs_ns(place.0))));
        let is_other = !is_vain(&busiest) && hanging.first().is_some_and(is_vain);
        let chosen = if is_other { hanging.remove(0) } else { busiest };
        let of = |place| of(flows, place);
        Some(Self {
            evidence: of(chosen),
            busiest: is_other.then(|| of(busiest)),
            more: hanging.len().saturating_sub(OTHERS_MAX),
            hanging: hanging.into_iter().take(OTHERS_MAX).map(of).collect(),
        })
    }
}

impl Evidence {
    /// Of the client and server that had the most calls answered; none without any.
    pub fn busiest(flows: &Flows) -> Option<Self> {
        busiest(flows).map(|place| of(flows, place))
    }
}

/// With what the other pairs say of it.
fn of(flows: &Flows, (pair, service): Place<'_>) -> Evidence {
    let server = |pair: &Pair| pair.hosts.map(|hosts| hosts.server);
    Evidence {
        pairs: called(flows).count(),
        is_busiest: busiest(flows).is_some_and(|(busiest, _)| std::ptr::eq(busiest, pair)),
        clients: called(flows).filter(|(other, _)| server(other) == server(pair)).count(),
        ..Evidence::of(pair, service)
    }
}

/// Pairs that had a call answered.
fn called(flows: &Flows) -> impl Iterator<Item = Place<'_>> {
    flows.pairs().filter(|(pair, _)| replies(pair) > 0)
}

fn busiest(flows: &Flows) -> Option<Place<'_>> {
    called(flows).max_by_key(|(pair, _)| replies(pair))
}

fn replies(pair: &Pair) -> u64 {
    pair.works.iter().map(|work| work.calls).sum()
}

/// Calls have had no reply until the end, for much of the time.
pub(super) fn is_in_vain(waited: &Waited) -> bool {
    let is_much = share(waited.unanswered, waited.all()) >= SHARE_MIN;
    is_much && waited.unanswered >= VAIN_NS_MIN
}

fn is_vain((pair, _): &Place<'_>) -> bool {
    is_in_vain(&pair.pace.waited)
}

/// How long calls of a pair have hung, where that is much of its time; otherwise 0.
fn hangs_ns(pair: &Pair) -> u64 {
    let waited = &pair.pace.waited;
    match () {
        () if is_in_vain(waited) => waited.unanswered,
        () if share(waited.late, waited.all()) >= SHARE_MIN => waited.late,
        () => 0,
    }
}
