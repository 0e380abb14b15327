//! TCP retransmits: the network loses segments.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "tcp-loss",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::High,
    needs: &["/proc/net/snmp", "ss -tino"],
    thresholds: &[
        Threshold { name: "segments_min", default: 1000.0, of: "fewest segments for a finding" },
        Threshold { name: "events_min", default: 10.0, of: "segments, else it is chance" },
        Threshold {
            name: "share",
            default: 0.001,
            of: "share of segments that were retransmitted",
        },
        Threshold { name: "high_share", default: 0.01, of: "share that is high" },
    ],
    source: "ours (in a LAN next to nothing is lost); RFC 5681 for what a loss costs",
    explanation: "A lost segment halves the congestion window, and one at the end of a message \
                  waits for a timeout of 200 ms or more. Causes are a cable, duplex, a switch's \
                  full buffer, or a slower link after a faster one.",
    remedy: "Errors of the interface (`ip -s link`, `ethtool -S`), duplex, the switch's counters; \
             then a rate limit before the slower link (`fq`).",
    gain: "Cannot be predicted: what a loss costs depends on where in a message it is.",
    explained_by: &["interface-errors"],
    judge,
};

/// Segments retransmitted and sent, of NFS's connections; none where there are none.
fn of_nfs(case: &Case<'_>) -> Option<(u64, u64)> {
    let connections = case.evidence.last.connections.iter();
    let nfs =
        connections.filter(|one| one.peer_port() == Some(2049) || one.local.ends_with(":2049"));
    let counted = nfs.filter_map(|one| Some((one.retransmitted?, one.segments_sent?)));
    counted.reduce(|sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)))
}

fn judge(case: &Case<'_>) -> Judged {
    let Some(protocols) = &case.host.protocols else {
        let what = "whether the network loses segments";
        return Err(NoFinding::missing(what, "cat /proc/net/snmp /proc/net/netstat"));
    };
    let of = |name| protocols.of("Tcp", name);
    let (again, sent) = of("RetransSegs").zip(of("OutSegs")).ok_or(NoFinding::NotApplicable)?;
    not_applicable_if((sent as f64) < case.limit(&RULE, "segments_min"))?;
    let share = again as f64 / sent as f64;
    let numbers = format!("{again} of {sent} TCP segments retransmitted ({:.2} %)", share * 100.0);
    let is_chance = (again as f64) < case.limit(&RULE, "events_min");
    fine_if(share <= case.limit(&RULE, "share") || is_chance, &numbers)?;
    let is_high = share > case.limit(&RULE, "high_share");
    let found = Found::new(&RULE, numbers, "ip -s link; ethtool -S DEVICE; then the switch")
        .severity(if is_high { Severity::High } else { Severity::Medium })
        .unpredicted("what a loss costs depends on where in a message it is");
    Ok(match of_nfs(case) {
        None => found.against("it is of all connections of this host"),
        Some((0, _)) => found
            .against("no segment of NFS's connections was: other connections lose segments")
            .severity(Severity::Low),
        Some((lost, all)) => {
            found.evidence(format!("{lost} of {all} segments of NFS's connections"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, wants_more};

    fn snmp(again: u64) -> String {
        format!("Tcp: OutSegs RetransSegs\nTcp: 100000 {again}\n")
    }

    #[test]
    fn segments_that_are_lost_are_found_and_whose_they_are() {
        let lost = snmp(2_000);
        let all = found(&RULE, &files(&[("proc/net/snmp", &lost)]));
        assert!(all.what.contains("2.00 %") && all.severity == Severity::High, "{all:?}");
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t segs_out:5000 retrans:0/0 rtt:1/1\n";
        // An ss that prints no `retrans` has seen none, which is not known to be so.
        let others = found(&RULE, &files(&[("proc/net/snmp", &lost), ("ss.txt", ss)]));
        assert_eq!(others.severity, Severity::Low, "{others:?}");
    }

    #[test]
    fn a_network_that_loses_nothing_is_fine() {
        is_fine(&RULE, &files(&[("proc/net/snmp", &snmp(3))]));
        wants_more(&RULE, &files(&[]));
    }
}
