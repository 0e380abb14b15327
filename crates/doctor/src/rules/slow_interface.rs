//! A network interface has negotiated less than its kind can, or is full.

use super::{About, Case, Found, Gain, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "slow-interface",
    about: About::Host,
    layer: Layer::Network,
    severity: Severity::High,
    needs: &["/proc/net/dev", "/sys/class/net/*/speed"],
    thresholds: &[
        Threshold { name: "busy", default: 0.8, of: "share of its rate, one way" },
        Threshold { name: "mbit", default: 100.0, of: "Mbit/s that are slow today" },
    ],
    source: "the rate of the link and the bytes that passed; the thresholds are ours",
    explanation: "Every call waits for a link whose rate is used up. A link that has come up with \
                  100 Mbit/s between ends that can do more has a bad cable.",
    remedy: "A faster link, a second one (`nconnect` with bonding), another cable.",
    gain: "At most in proportion to the rates, until another resource limits.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let host = case.host;
    let seconds = host
        .seconds
        .filter(|seconds| !host.is_lifetime && *seconds > 0.0)
        .ok_or(NoFinding::NotApplicable)?;
    let mut fullest: Option<(f64, f64, &str)> = None;
    for device in &host.devices {
        let path = format!("sys/class/net/{}/speed", device.name);
        let Some(mbit) = case.evidence.number(&path).filter(|mbit| *mbit > 0.0) else { continue };
        let bytes = device.received.bytes.max(device.sent.bytes);
        let share = bytes as f64 * 8.0 / seconds / (mbit * 1e6);
        if fullest.is_none_or(|(other, _, _)| share > other) {
            fullest = Some((share, mbit, &device.name));
        }
    }
    let (share, mbit, name) = fullest.ok_or(NoFinding::NotApplicable)?;
    let numbers = format!("{name} uses {:.0} % of {mbit:.0} Mbit/s", share.min(1.0) * 100.0);
    let is_slow = mbit <= case.limit(&RULE, "mbit") && share > 0.3;
    match share > case.limit(&RULE, "busy") || is_slow {
        true => Found::new(&RULE, numbers, format!("ethtool {name}; a faster link between"))
            .gain(Gain::faster("bytes", (1.0, 2.0), "a link twice as fast, until another limits"))
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, host_twice, is_fine};

    fn dev(bytes: u64) -> String {
        format!("Inter-| x\n face | y\n  eth0: {bytes} 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n")
    }

    fn evidence(bytes: u64) -> crate::Evidence {
        host_twice("proc/net/dev", &dev(0), &dev(bytes), &[("sys/class/net/eth0/speed", "1000\n")])
    }

    #[test]
    fn a_full_link_is_found() {
        let found = found(&RULE, &evidence(1_150_000_000));
        assert!(found.what.starts_with("eth0 uses 92 % of 1000 Mbit/s"), "{found:?}");
    }

    #[test]
    fn a_free_one_is_fine() {
        is_fine(&RULE, &evidence(10_000_000));
    }
}
