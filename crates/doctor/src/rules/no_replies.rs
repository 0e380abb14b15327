//! Calls are outstanding, and no reply comes.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;

pub(super) static RULE: Rule = Rule {
    name: "no-replies",
    about: About::Mount,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/self/mountstats, twice"],
    thresholds: &[Threshold { name: "seconds_min", default: 1.0, of: "seconds without a reply" }],
    source: "mountstats(8) (`xprt:`, sends and receives)",
    explanation: "More was sent than answered, and in the time between the samples nothing came: \
                  the server is down, hangs, or cannot be reached. Programs that use the mount \
                  hang with it. Calls that do not end are in no time and in no count of calls.",
    remedy: "Whether the server answers (`ping`, `rpcinfo -T tcp SERVER nfs`), then its log; \
             `dmesg` here.",
    gain: "Cannot be predicted: calls without a reply have no time.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let Some(mount) = case.mount.filter(|mount| !mount.is_lifetime()) else { return Judged::Quiet };
    let sum = |of: &dyn Fn(&counters::mountstats::Transport) -> Option<u64>| -> u64 {
        mount.now.transports.iter().filter_map(of).sum()
    };
    let outstanding = sum(&|one| one.sends).saturating_sub(sum(&|one| one.receives));
    let received: u64 = mount.rates.transports.iter().filter_map(|one| one.receives).sum();
    let begun: u64 = mount.now.operations.iter().map(|one| one.retransmissions()).sum();
    let seconds = mount.rates.span.seconds.unwrap_or(0.0);
    let is_waiting = outstanding > 0 && begun > 0 && received == 0;
    if !is_waiting || seconds < case.limit(&RULE, "seconds_min") {
        return Judged::Quiet;
    }
    let host = mount.host();
    let what = format!("no reply in {seconds:.0} s, and at least one call waits for one");
    Found::new(&RULE, what, format!("ping {host}; rpcinfo -T tcp {host} nfs; dmesg | tail"))
        .evidence(format!(
            "{outstanding} more sent than received, {} connections",
            mount.now.transports.len()
        ))
        .against("a call that takes this long (a lock, a tape) looks the same")
        .gain(Gain::unpredicted("calls without a reply have no time"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, two};

    fn evidence(receives: u64) -> crate::Evidence {
        let before =
            mount("rw", &["READ: 400 401 0 0 0 1 2 3 0"]).replace("400 400 0", "401 400 0");
        let now = before.replace("age:\t1234", "age:\t1244");
        two(10.0, &before, &now.replace("401 400 0", &format!("401 {receives} 0")))
    }

    #[test]
    fn a_server_that_hangs_is_found() {
        assert!(found(&RULE, &evidence(400)).what.starts_with("no reply in 10 s"));
    }

    #[test]
    fn one_that_answers_is_not() {
        is_quiet(&RULE, &evidence(401));
    }
}
