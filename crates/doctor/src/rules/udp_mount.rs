//! NFS over UDP, or version 2.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    name: "udp-mount",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[],
    source: "nfs(5), \"Using NFS over UDP on high-speed links\"; Boumenot 2002, chapter 8 (losses)",
    explanation: "A READ or WRITE over UDP is a datagram of many fragments. If one fragment is \
                  lost, the datagram is lost, and the call is retransmitted after a timeout. On \
                  fast links the 16-bit identification of fragments repeats within seconds, and \
                  data can be mixed up.",
    remedy: "`proto=tcp` and `vers=3` or newer. Newer kernels have no NFS over UDP.",
    gain: "Cannot be predicted: it is the wait of the lost calls.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let is_old = mount.now.version() == Some(2);
    let what = match (mount.is_udp(), is_old) {
        (true, true) => "version 2 over UDP",
        (true, false) => "NFS over UDP",
        (false, true) => "version 2 (8 KiB a transfer, every WRITE stable)",
        (false, false) => return Err(NoFinding::NotApplicable),
    };
    let total = mount.total();
    let again = total.retransmissions;
    Found::new(
        &RULE,
        format!("{what}: {again} of {} calls retransmitted", total.calls),
        "mount \
        again with vers=3,proto=tcp",
    )
    .of_settings()
    .severity(match again > total.calls / 200 {
        true => Severity::High,
        false => Severity::Medium,
    })
    .unpredicted("the wait before a retransmission is in no call's time")
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    #[test]
    fn udp_and_version_2_are_reported() {
        let read = "READ: 1000 1020 0 0 0 1 2000 2010 0";
        let udp = mount("rw,proto=udp", &[read]).replace("tcp 800 1 1 0 3", "udp 800 1");
        assert_eq!(found(&RULE, &one(&udp)).severity, Severity::High);
        let old = mount("rw,vers=2", &[]).replace("100003/3", "100003/2");
        assert!(found(&RULE, &one(&old)).what.starts_with("version 2 (8 KiB"));
    }

    #[test]
    fn version_3_over_tcp_is_not() {
        is_quiet(&RULE, &one(&mount("rw,proto=tcp", &[])));
    }
}
