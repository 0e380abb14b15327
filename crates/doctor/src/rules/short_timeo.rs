//! Calls are retransmitted after too short a time.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "short-timeo",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold { name: "tenths_of_s", default: 100.0, of: "`timeo` over TCP" }],
    source: "nfs(5) (600 by default over TCP); GitLab infrastructure issue 1828 (timeo=10)",
    explanation: "TCP itself retransmits what the network loses. A short `timeo` closes \
                  connections of a server that is only busy, and makes it busier.",
    remedy: "`timeo=600`, which is the default.",
    gain: "Cannot be predicted: it is the time of calls that are retransmitted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount.filter(|mount| mount.is_tcp()).ok_or(NoFinding::NotApplicable)?;
    let limit = case.limit(&RULE, "tenths_of_s");
    let timeo =
        mount.number("timeo").filter(|timeo| *timeo < limit).ok_or(NoFinding::NotApplicable)?;
    let again = mount.total().retransmissions;
    let what = format!("a call is retransmitted after {:.1} s (timeo={timeo:.0})", timeo / 10.0);
    Found::new(&RULE, what, "mount again with timeo=600")
        .of_settings()
        .severity(if again > 0 { Severity::Medium } else { Severity::Low })
        .evidence(format!("{again} retransmissions"))
        .unpredicted("it is in the time of calls that are retransmitted only")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    #[test]
    fn a_second_is_too_short() {
        assert!(found(&RULE, &one(&mount("rw,proto=tcp,timeo=10", &[]))).what.contains("1.0 s"));
    }

    #[test]
    fn a_minute_is_not_and_udp_is_another_matter() {
        is_quiet(&RULE, &one(&mount("rw,proto=tcp,timeo=600", &[])));
        let udp = mount("rw,proto=udp,timeo=11", &[]).replace("tcp 800 1 1 0 3", "udp 800 1");
        is_quiet(&RULE, &one(&udp));
    }
}
