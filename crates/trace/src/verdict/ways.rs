//! Whether what a verdict gives to an end may be the network's.
//!
//! A capture shows the way to an end by what this end's kernel acknowledges. The least of that is
//! the way of an empty link; on a full one, or one that other traffic fills, data wait as long as
//! the cause would take. A verdict is sure only where its own numbers exclude that.

use super::evidence::{is_delayed, share};
use super::rules::LONG_NS;
use super::{Doubt, Evidence, Suspect};
use crate::work::Work;

/// No way takes as long: 1 s.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Bytes of a message, from which on it may wait for a link's rate (threshold ours).
pub const BULK_BYTES: u64 = 1024;
/// Messages that came in one packet each pass in less of that time (threshold ours).
const SPREAD: f64 = 0.05;

/// What speaks for the network, where the verdict blames an end: 0 is the client, 1 the server.
pub(super) fn doubt(evidence: &Evidence, suspect: Suspect) -> Option<Doubt> {
    if evidence.between_ns.is_some() {
        return None;
    }
    let took_ns = took_ns(evidence, suspect)?;
    let end = usize::from(suspect != Suspect::IdleClient);
    let acks = [evidence.client_ack_ns, evidence.server_ack_ns][end];
    match acks {
        None if end == 0 && took_ns < PATIENCE_NS => Some(Doubt::NoAcks),
        // What an idle client acknowledges late shows no way either.
        Some(acks) if is_queue(acks, took_ns) && (end == 0 || !is_delayed(acks)) => {
            Some(Doubt::LateAcks(end))
        }
        _ if may_be_full(evidence, end, took_ns) => Some(Doubt::Steady(end)),
        _ => None,
    }
}

/// What the end is blamed for, each time.
fn took_ns(evidence: &Evidence, suspect: Suspect) -> Option<u64> {
    let median_ns = |work| evidence.work(work).median_ns;
    let (syncs, pauses) = (evidence.syncs, evidence.pauses);
    match suspect {
        Suspect::IdleClient if evidence.is_idle_in_pauses() => pauses.ns.checked_div(pauses.count),
        Suspect::IdleClient => Some(evidence.think_median_ns),
        _ if evidence.relay_ns.is_some() => None,
        Suspect::SmallSyncs => syncs.small_ns.checked_div(syncs.small),
        Suspect::SlowCommit => Some(median_ns(Work::Commit)),
        Suspect::SlowStableWrite => Some(median_ns(Work::StableWrite)),
        Suspect::SlowServer | Suspect::OneOutstanding => Some(median_ns(evidence.main())),
        _ => None,
    }
}

/// Acknowledgements take half of it, and three times what they take at least.
const fn is_queue((least_ns, median_ns): (u64, u64), took_ns: u64) -> bool {
    median_ns >= 3 * least_ns && median_ns * 2 >= took_ns
}

/// This end sends more than the other, at one rate, and each message came in one packet: how long
/// it was on its way is not seen.
fn may_be_full(evidence: &Evidence, end: usize, took_ns: u64) -> bool {
    let side = &evidence.sides[end];
    let spread_ns = side.stretch_ns / evidence.replies().max(1);
    let is_most = side.bytes >= evidence.sides[1 - end].bytes;
    let is_bulk = side.bytes >= BULK_BYTES * evidence.replies();
    let is_rate = is_most && is_bulk && side.is_at_one_rate(evidence.waited.all());
    is_rate && took_ns >= LONG_NS && share(spread_ns, took_ns) < SPREAD
}

#[cfg(test)]
mod tests {
    use super::super::{Certainty, SideNumbers, WorkNumbers, judge};
    use super::*;
    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// 1,000 calls that take so long, and as much time after each.
    fn calls(work: Work, took_ns: u64, think_ns: u64) -> Evidence {
        let mut evidence = Evidence { outstanding_max: 8, ..Evidence::default() };
        let bytes = 1_000 << 12;
        let (median_ns, mean_ns) = (took_ns, took_ns);
        evidence.works[work as usize] = WorkNumbers { calls: 1_000, bytes, median_ns, mean_ns };
        evidence.waited.works[work as usize] = 1_000 * took_ns;
        (evidence.thinks, evidence.think_median_ns) = (1_000, think_ns);
        evidence.waited.idle = 1_000 * think_ns;
        evidence.server_ack_ns = Some((10 * US, 20 * US));
        evidence.client_ack_ns = Some((7 * US, 20 * US));
        evidence
    }

    fn judged(evidence: &Evidence) -> (Suspect, Certainty, Vec<Doubt>) {
        let found = judge(evidence);
        let (finding, certainty) = found.verdict.unwrap();
        (finding.suspect, certainty, found.doubts)
    }

    #[test]
    fn a_client_that_acknowledges_late_or_never_may_not_be_idle() {
        // Over UDP nothing is acknowledged; over TCP that may have gone another way.
        let idle = |client_ack_ns: Option<(u64, u64)>, think_ns| {
            let of = calls(Work::Read, 100 * US, think_ns);
            judged(&Evidence { client_ack_ns, ..of })
        };
        let is = |certainty, doubts: &[Doubt]| (Suspect::IdleClient, certainty, doubts.to_vec());
        let late = is(Certainty::Likely, &[Doubt::LateAcks(0)]);
        assert_eq!(idle(Some((7 * US, 6_680 * US)), 1_610 * US), late);
        assert_eq!(idle(Some((11 * US, 38_800 * US)), 16_500 * US), late);
        assert_eq!(idle(Some((7 * US, 31 * US)), 1_610 * US), is(Certainty::Sure, &[]));
        assert_eq!(idle(Some((7 * US, 40 * MS)), 200 * MS), is(Certainty::Sure, &[]));
        assert_eq!(idle(None, 200 * MS), is(Certainty::Likely, &[Doubt::NoAcks]));
        assert_eq!(idle(None, 2_000 * MS), is(Certainty::Sure, &[]));
    }

    #[test]
    fn connections_of_one_direction_leave_open_what_is_outstanding() {
        let idle = |one_way| {
            let of = calls(Work::Read, 100 * US, 200 * MS);
            judged(&Evidence { one_way, client_ack_ns: Some((7 * US, 40 * MS)), ..of })
        };
        assert_eq!(idle(0), (Suspect::IdleClient, Certainty::Sure, vec![]));
        assert_eq!(idle(1), (Suspect::IdleClient, Certainty::Possible, vec![Doubt::OneWay]));
    }

    #[test]
    fn a_commit_that_takes_what_acknowledgements_take_may_not_be_the_disks() {
        let commits = |server_ack_ns| {
            let of = calls(Work::Commit, 16 * MS, 100 * US);
            judged(&Evidence { server_ack_ns, ..of })
        };
        let is = |certainty, doubts: &[Doubt]| (Suspect::SlowCommit, certainty, doubts.to_vec());
        let late = is(Certainty::Likely, &[Doubt::LateAcks(1)]);
        assert_eq!(commits(Some((10 * US, 16_500 * US))), late);
        assert_eq!(commits(Some((10 * US, 800 * US))), is(Certainty::Sure, &[]));
        // A kernel that waits for the reply shows nothing.
        assert_eq!(commits(Some((10 * US, 40 * MS))), is(Certainty::Sure, &[]));
    }

    #[test]
    fn replies_at_one_rate_may_be_a_links_unless_their_packets_show_how_they_came() {
        let reads = |p50: f64, stretch_ns: u64| {
            let mut evidence = calls(Work::Read, 10 * MS, 50 * US);
            let (bins, bytes) = (200, 1_000 << 12);
            let (bytes_per_s_p50, bytes_per_s_p95) = (p50, 12e6);
            let rates = SideNumbers { bytes_per_s_p50, bytes_per_s_p95, ..SideNumbers::default() };
            evidence.sides[1] = SideNumbers { bins, bytes, stretch_ns, ..rates };
            judged(&evidence)
        };
        let is = |certainty, doubts: &[Doubt]| (Suspect::SlowServer, certainty, doubts.to_vec());
        assert_eq!(reads(11.9e6, 0), is(Certainty::Likely, &[Doubt::Steady(1)]));
        assert_eq!(reads(8e6, 0), is(Certainty::Sure, &[]));
        assert_eq!(reads(11.9e6, 1_000 * MS), is(Certainty::Sure, &[]));
    }

    #[test]
    fn who_sends_alike_now_and_then_has_not_one_rate() {
        let (bytes_per_s_p50, bytes_per_s_p95) = (11.9e6, 12e6);
        let side =
            SideNumbers { bins: 20, bytes_per_s_p50, bytes_per_s_p95, ..SideNumbers::default() };
        assert!(side.is_at_one_rate(1_100 * MS) && !side.is_at_one_rate(1_200 * MS));
    }
}
