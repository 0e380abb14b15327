//! The server's processors are busy.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "server-processors",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/stat"],
    thresholds: &[Threshold { name: "idle", default: 0.05, of: "share of idle time" }],
    source: "Sun 1990, chapter 5; Martin and Culler 1999 (saturation at one over the demand)",
    explanation: "Where processors have no idle time, they are the bottleneck: every call waits \
                  for them, and the rate is one over the processor time of a call.",
    remedy: "Find who uses them (`top`, `perf top`); fewer and larger calls; more processors.",
    gain: "In proportion to the processors, until another resource limits.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    not_applicable_if(case.server.is_none())?;
    let all = case.processors()?;
    let idle = all.share(all.idle + all.io_wait).ok_or(NoFinding::NotApplicable)?;
    let numbers = format!("the processors are busy {:.0} %", (1.0 - idle) * 100.0);
    fine_if(idle >= case.limit(&RULE, "idle"), &numbers)?;
    let part = |part: u64| all.share(part).unwrap_or(0.0) * 100.0;
    // nfsd works in the kernel: what programs use is not the server's.
    let is_others = all.user > all.system.saturating_add(all.interrupts);
    let mut found = Found::new(&RULE, numbers, "top -H; perf top: nfsd, or somebody else?")
        .evidence(format!(
            "programs {:.0} %, system {:.0} %, interrupts {:.0} %, other guests {:.0} %",
            part(all.user),
            part(all.system),
            part(all.interrupts),
            part(all.stolen)
        ))
        .gain(Gain::faster("calls", (1.0, 2.0), "twice the processors, until another limits"));
    if is_others {
        found = found.against("most of it are programs, and the server works in the kernel");
        found.severity = Severity::Medium;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server_twice};

    #[test]
    fn busy_processors_are_found() {
        let busy = server_twice("proc/stat", "cpu 0 0 0 0 0\n", "cpu 100 0 880 20 0\n");
        let ours = found(&RULE, &busy);
        assert!(ours.what.contains("busy 98 %") && ours.severity == Severity::High);
        let others = server_twice("proc/stat", "cpu 0 0 0 0 0\n", "cpu 880 0 100 20 0\n");
        assert_eq!(found(&RULE, &others).severity, Severity::Medium);
    }

    #[test]
    fn idle_ones_are_fine() {
        is_fine(&RULE, &server_twice("proc/stat", "cpu 0 0 0 0 0\n", "cpu 100 0 80 820 0\n"));
    }
}
