//! The host does not keep up with packets.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "packet-backlog",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/net/softnet_stat"],
    thresholds: &[
        Threshold { name: "dropped", default: 0.0, of: "packets that the backlog had no room for" },
        Threshold {
            name: "squeezed",
            default: 0.001,
            of: "turns that ended too early, per packet",
        },
    ],
    source: "Linux, net/core/dev.c (`softnet_stat`); the thresholds are ours",
    explanation: "Each processor has a backlog in which packets wait. A full backlog drops \
                  packets. A turn that ends before all packets are handled (squeezed) delays the \
                  rest.",
    remedy: "`net.core.netdev_max_backlog` and `netdev_budget`; interrupts over more processors \
             (RSS, RPS).",
    gain: "Cannot be predicted: what a dropped packet costs depends on where it is dropped.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let softnet = case
        .host
        .softnet
        .filter(|softnet| softnet.processed > 0)
        .ok_or(NoFinding::NotApplicable)?;
    let (dropped, squeezed) = (softnet.dropped, softnet.squeezed);
    let numbers =
        format!("{dropped} packets dropped, {squeezed} turns squeezed of {}", softnet.processed);
    let drops = dropped as f64 > case.limit(&RULE, "dropped");
    let squeezes = squeezed as f64 / softnet.processed as f64 > case.limit(&RULE, "squeezed");
    match (drops, squeezes) {
        (false, false) => Err(NoFinding::Fine(numbers)),
        (drops, _) => Found::new(
            &RULE,
            format!("the host does not keep up with packets: {numbers}"),
            "sysctl -w net.core.netdev_max_backlog=10000 net.core.netdev_budget=600",
        )
        .severity(if drops { Severity::Medium } else { Severity::Low })
        .unpredicted("what a dropped packet costs depends on where it is dropped")
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    #[test]
    fn drops_are_found() {
        let evidence = files(&[("proc/net/softnet_stat", "00001000 00000003 00000000\n")]);
        assert!(found(&RULE, &evidence).what.contains("3 packets dropped"));
    }

    #[test]
    fn none_are_fine() {
        is_fine(&RULE, &files(&[("proc/net/softnet_stat", "00001000 00000000 00000000\n")]));
    }
}
