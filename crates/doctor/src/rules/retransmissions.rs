//! Calls that were retransmitted.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;

pub(super) static RULE: Rule = Rule {
    name: "retransmissions",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "tcp_share", default: 0.0, of: "share of the calls, over TCP" },
        Threshold { name: "udp_share", default: 0.0005, of: "share of the calls, over UDP" },
        Threshold { name: "high_share", default: 0.05, of: "share that is high" },
    ],
    source: "Sun 1990, section 4.1 (5 %: history; bad XIDs as many as timeouts: a slow server); \
             nfs(5): over TCP a call is retransmitted only after `timeo`, or a new connection",
    explanation: "A call whose reply does not come in time is sent a second time. Over UDP a lost \
                  fragment is enough; over TCP only a server that is silent for `timeo`, or a \
                  connection that broke. Replies that nobody waits for any more (bad XIDs), nearly \
                  as many as retransmissions, show a server that is slow; none of them, a network \
                  that loses.",
    remedy: "Over UDP `proto=tcp`; over TCP find out why connections break (`dmesg`, firewalls), \
             and leave `timeo` at 600.",
    gain: "Cannot be predicted: a wait of `timeo` is not in the times of a call that succeeds.",
    explained_by: &["connection-breaks", "major-timeouts", "short-timeo", "udp-mount"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let Some(mount) = case.mount else { return Judged::Quiet };
    let total = mount.total();
    if (total.calls as f64) < case.limit(&RULE, "calls_min") {
        return Judged::Quiet;
    }
    let (calls, again) = (total.calls, total.retransmissions);
    let share = again as f64 / calls as f64;
    let limit = if mount.is_udp() { "udp_share" } else { "tcp_share" };
    let numbers = format!("{again} of {calls} calls retransmitted ({:.2} %)", share * 100.0);
    // Calls under way when a sample was taken are sent, and not yet counted.
    let under_way = mount.rates.total.in_system_mean.unwrap_or(0.0).ceil();
    if share <= case.limit(&RULE, limit) || (again as f64) <= under_way {
        return Judged::Fine(numbers);
    }
    let bad_xids: u64 = mount.rates.transports.iter().filter_map(|one| one.bad_xids).sum();
    let cause = match bad_xids as f64 > 0.5 * again as f64 {
        true => "replies come too late: the server is slow, or timeo too short",
        false => "replies do not come: the network loses, or connections break",
    };
    let remedy = match mount.is_udp() {
        false => "dmesg | grep 'not responding'; then what lies between (firewall, bond, switch)",
        true => "mount again with proto=tcp",
    };
    let severity = match share > case.limit(&RULE, "high_share") {
        true => Severity::High,
        false => Severity::Medium,
    };
    Found::new(&RULE, format!("{numbers}; {cause}"), remedy)
        .severity(severity)
        .evidence(format!("{bad_xids} replies that nobody waited for any more"))
        .gain(Gain::unpredicted("the wait before a retransmission is in no time of a call"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    #[test]
    fn retransmitted_calls_are_found_and_late_replies_blame_the_server() {
        let text = mount("rw,proto=tcp", &["READ: 1000 1080 3 0 0 1 2000 2010 0"]);
        let lost = found(&RULE, &one(&text));
        assert_eq!(lost.severity, Severity::High);
        assert!(lost.what.contains("80 of 1000 calls") && lost.what.contains("network loses"));
        let late = found(&RULE, &one(&text.replace("400 400 0 450", "400 400 79 450")));
        assert!(late.what.contains("the server is slow"), "{late:?}");
    }

    #[test]
    fn calls_that_went_once_are_fine() {
        is_fine(&RULE, &one(&mount("rw", &["READ: 1000 1000 0 0 0 1 2000 2010 0"])));
    }
}
