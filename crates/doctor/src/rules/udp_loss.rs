//! Datagrams are lost in this host.

use super::{About, Case, Found, Judged, Layer, Rule, Severity, Threshold, not_applicable_if};
use crate::subject::Served;

pub(super) static RULE: Rule = Rule {
    name: "udp-loss",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/net/snmp", "/proc/net/snmp6", "/proc/net/rpc/nfsd"],
    thresholds: &[Threshold {
        name: "share",
        default: 0.0005,
        of: "lost, of the datagrams that came",
    }],
    source: "Boumenot 2002, sections 2.6 and 8 (buffers that overflow, fragments that are missing)",
    explanation: "A datagram is dropped if the socket has no room for it (RcvbufErrors) or one of \
                  its fragments is missing (ReasmFails). Over UDP each one is a call that waits \
                  for a timeout.",
    remedy: "`proto=tcp`; a larger `net.core.rmem_max`.",
    gain: "Cannot be predicted: it is the wait before a retransmission.",
    explained_by: &["interface-errors"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (v4, v6) = (case.host.protocols.as_ref(), case.host.protocols_v6.as_ref());
    let of = |protocol: &str, name: &str| {
        let of_v4 = v4.and_then(|all| all.of(protocol, name)).unwrap_or(0);
        let of_v6 = v6.and_then(|all| all.of(&format!("{protocol}6{name}"))).unwrap_or(0);
        of_v4.saturating_add(of_v6)
    };
    let came = of("Udp", "InDatagrams");
    let (full, broken) = (of("Udp", "RcvbufErrors"), of("Ip", "ReasmFails"));
    let lost = full.saturating_add(broken);
    let comes_to_server = Served::of(case.evidence)
        .and_then(|server| server.rates.net)
        .is_some_and(|net| net.udp > 0);
    let is_mounted = case
        .evidence
        .last
        .mounts
        .iter()
        .any(|mount| mount.transports.iter().any(|transport| transport.kind == "udp"));
    let is_used = is_mounted || comes_to_server;
    not_applicable_if(
        lost == 0 || lost as f64 <= case.limit(&RULE, "share") * (came.max(lost) as f64),
    )?;
    let what = format!("{lost} datagrams lost in this host, of {came} that came");
    Found::new(&RULE, what, "mount with proto=tcp; else sysctl -w net.core.rmem_max=8388608")
        .severity(if is_used { Severity::High } else { Severity::Low })
        .evidence(format!("{full} for want of room, {broken} for want of fragments"))
        .against(match is_used {
            true => "other programs use UDP as well",
            false => "no mount and no server here uses UDP: it is other programs'",
        })
        .unpredicted("it is the wait before a retransmission")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_quiet, mount};

    const LOST: &str = "Ip: ReasmFails\nIp: 90\nUdp: InDatagrams RcvbufErrors\nUdp: 10000 10\n";

    #[test]
    fn lost_datagrams_matter_where_nfs_uses_them() {
        let others = found(&RULE, &files(&[("proc/net/snmp", LOST)]));
        assert_eq!(others.severity, Severity::Low);
        let udp = mount("rw,proto=udp", &[]).replace("tcp 800 1 1 0 3", "udp 800 1");
        let ours = files(&[("proc/net/snmp", LOST), ("proc/self/mountstats", &udp)]);
        assert_eq!(found(&RULE, &ours).severity, Severity::High);
        let server = |net| {
            let counters = format!("{net}\nrpc 500 0 0 0 0\nth 8 0\n");
            found(&RULE, &files(&[("proc/net/snmp", LOST), ("proc/net/rpc/nfsd", &counters)]))
        };
        assert_eq!(server("net 500 400 100 1").severity, Severity::High);
        assert_eq!(server("net 500 0 500 1").severity, Severity::Low);
    }

    #[test]
    fn those_of_version_6_count_too() {
        let v6 = "Ip6ReasmFails 90\nUdp6InDatagrams 10000\nUdp6RcvbufErrors 10\n";
        let found = found(&RULE, &files(&[("proc/net/snmp6", v6)]));
        assert!(found.what.starts_with("100 datagrams lost"), "{found:?}");
    }

    #[test]
    fn none_are_none() {
        let none = LOST.replace("90", "0").replace(" 10\n", " 0\n");
        is_quiet(&RULE, &files(&[("proc/net/snmp", &none)]));
    }
}
