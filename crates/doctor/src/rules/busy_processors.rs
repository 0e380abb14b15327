//! The client's processors are busy.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "busy-processors",
    about: About::Host,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/stat"],
    thresholds: &[
        Threshold { name: "idle", default: 0.05, of: "share of idle time" },
        Threshold { name: "stolen", default: 0.1, of: "share of time that other guests took" },
    ],
    source: "the thresholds are ours",
    explanation: "Where a host has no idle processor, replies wait for one, and the client's times \
                  include that wait. The hypervisor gave stolen time, which was due to this guest, \
                  to another guest.",
    remedy: "Find what uses them (`top`); for stolen time, move the guest to another host.",
    gain: "Cannot be predicted: how long replies waited for a processor is not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    // Of a server there is another rule.
    not_applicable_if(case.evidence.last.server.is_some())?;
    let host = case.host;
    let all = host.processors.filter(|_| !host.is_lifetime).ok_or(NoFinding::NotApplicable)?;
    let (idle, stolen) = (all.share(all.idle + all.io_wait), all.share(all.stolen));
    let (idle, stolen) = idle.zip(stolen).ok_or(NoFinding::NotApplicable)?;
    let numbers =
        format!("processors busy {:.0} %, stolen {:.0} %", (1.0 - idle) * 100.0, stolen * 100.0);
    match idle < case.limit(&RULE, "idle") || stolen > case.limit(&RULE, "stolen") {
        true => Found::new(&RULE, numbers, "top; perf top")
            .evidence(format!("{} processors", all.count))
            .against("the times of calls have the wait for a processor in them")
            .unpredicted("how long replies waited for a processor is not counted")
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, host_twice, is_fine};

    fn evidence(now: &str) -> crate::Evidence {
        host_twice("proc/stat", "cpu 0 0 0 0 0\ncpu0 0 0 0 0\n", now, &[])
    }

    #[test]
    fn busy_processors_are_found() {
        assert!(found(&RULE, &evidence("cpu 900 0 90 10 0\n")).what.contains("busy 99 %"));
    }

    #[test]
    fn idle_ones_are_fine() {
        is_fine(&RULE, &evidence("cpu 100 0 90 810 0\n"));
    }
}
