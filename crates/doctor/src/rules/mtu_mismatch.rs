//! Large packets go out on this host, and the way to the server takes small ones only.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Certainty, Found, Judged, Layer, NoFinding, Severity, fine_if};

pub(super) static RULE: Rule = Rule {
    name: "mtu-mismatch",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::Low,
    needs: &["/sys/class/net/*/mtu", "ss -tino", "/proc/net/snmp"],
    thresholds: &[
        Threshold { name: "jumbo", default: 4000.0, of: "bytes of an MTU that is no Ethernet's" },
        Threshold { name: "lost", default: 0.01, of: "segments retransmitted" },
    ],
    source: "Boumenot 2002, section 8.4 (jumbo frames: -1.5 to +12 %, and therefore of low \
             priority unless packets are lost); the thresholds are ours",
    explanation: "Where one end has jumbo frames and the path does not, ICMP makes TCP fall back \
                  to small segments. If a firewall drops ICMP, all large segments are lost.",
    remedy: "The same MTU on both ends and on every switch between, or 1500 everywhere.",
    gain: "-1.5 to +12 % (Boumenot) for the size of packets; what losses cost is not predicted.",
    explained_by: &[],
    judge,
};

/// Of IPv4 and TCP with a timestamp; IPv6 has 20 more.
const HEADERS: f64 = 52.0;

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let local = |one: &str| one.starts_with("127.") || one == "::1";
    let mut away = mount.connections.iter().filter(|one| !local(one.peer_address()));
    let connection = away.next().ok_or(NoFinding::NotApplicable)?;
    let mtus = case.evidence.settings.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("sys/class/net/")?.strip_suffix("/mtu")?;
        let mtu: f64 = text.trim().parse().ok()?;
        (name != "lo").then_some((name, mtu))
    });
    let (name, mtu) = mtus.max_by(|a, b| a.1.total_cmp(&b.1)).ok_or(NoFinding::NotApplicable)?;
    let segment =
        connection.segment_bytes.map(|bytes| bytes as f64).ok_or(NoFinding::NotApplicable)?;
    let retransmitted = connection.retransmitted.unwrap_or(0) as f64;
    let lost = retransmitted / (connection.segments_sent.unwrap_or(0) as f64).max(1.0);
    let numbers = format!("segments of {segment:.0} bytes, {name} has an MTU of {mtu:.0}");
    let is_jumbo = mtu >= case.limit(&RULE, "jumbo");
    let is_small = segment + 2.0 * HEADERS < mtu;
    let is_lossy = lost > case.limit(&RULE, "lost");
    fine_if(!is_jumbo || !(is_small || is_lossy), &numbers)?;
    let remedy = format!(
        "ping -M do -s {:.0} {} shows whether the path carries them; else ip link set {name} mtu \
         1500",
        mtu - 28.0,
        connection.peer_address()
    );
    Found::new(&RULE, numbers, remedy)
        .of_settings()
        .certainty(Certainty::Possible)
        .severity(if is_lossy { Severity::Medium } else { Severity::Low })
        .evidence(format!("{:.2} % of its segments were retransmitted", lost * 100.0))
        .against("another interface than this may lead there")
        .unpredicted("for the size alone -1.5 to +12 % (Boumenot); losses not")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet, mount};

    fn evidence(mtu: &str, mss: u32, retransmitted: u32) -> crate::Evidence {
        let mount = mount("rw,addr=10.0.0.1", &[]);
        let ss = format!(
            "ESTAB 0 0 10.0.0.2:800 10.0.0.1:2049\n\
             \t mss:{mss} retrans:0/{retransmitted} segs_out:1000\n"
        );
        files(&[
            ("proc/self/mountstats", &mount),
            ("ss.txt", &ss),
            ("sys/class/net/eth0/mtu", mtu),
            ("sys/class/net/lo/mtu", "65536\n"),
        ])
    }

    #[test]
    fn jumbo_frames_on_one_side_are_found_and_matter_where_segments_are_lost() {
        assert_eq!(found(&RULE, &evidence("9000\n", 1448, 0)).severity, Severity::Low);
        assert_eq!(found(&RULE, &evidence("9000\n", 8948, 50)).severity, Severity::Medium);
    }

    #[test]
    fn the_same_on_both_is_fine() {
        is_fine(&RULE, &evidence("9000\n", 8948, 0));
        is_fine(&RULE, &evidence("1500\n", 1448, 50));
        is_quiet(&RULE, &files(&[]));
    }
}
