//! Programs wait for a disk or a mount, while processors are idle.

use super::{About, Case, Certainty, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "blocked-processes",
    about: About::Host,
    layer: Layer::Storage,
    severity: Severity::Low,
    needs: &["/proc/loadavg", "/proc/stat"],
    thresholds: &[
        Threshold { name: "load", default: 4.0, of: "times the processors that are busy" },
        Threshold { name: "blocked_min", default: 4.0, of: "tasks beyond those" },
    ],
    source: "proc(5), loadavg (tasks that run, and those that wait uninterruptibly); the \
             thresholds are guesses",
    explanation: "The load average also counts tasks in uninterruptible sleep (state D), as they \
                  wait for disks and hard mounts. A load far above the number of busy processors \
                  comes from such tasks: each waits for something that does not come.",
    remedy: "`ps -eo state,wchan:30,comm | grep ^D` shows what they wait for.",
    gain: "Cannot be predicted: what they wait for is not counted.",
    explained_by: &["latency-bound", "low-memory", "no-replies", "server-disks", "slow-server"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let load = case.evidence.last.load.ok_or(NoFinding::NotApplicable)?;
    let all = case.processors()?;
    let idle = all.share(all.idle.saturating_add(all.io_wait)).ok_or(NoFinding::NotApplicable)?;
    let busy = (1.0 - idle) * all.count as f64;
    let blocked = (load.one - busy).max(0.0);
    let numbers = format!("a load of {:.1}, with {busy:.1} processors busy", load.one);
    // Without idle time, those that wait may wait for a processor.
    let is_high = idle >= 0.05
        && load.one > case.limit(&RULE, "load") * busy
        && blocked >= case.limit(&RULE, "blocked_min");
    match is_high {
        true => Found::new(
            &RULE,
            format!("{numbers}: some {blocked:.0} tasks wait for a disk or a mount"),
            "ps -eo state,wchan:30,comm | grep ^D",
        )
        .certainty(Certainty::Possible)
        .against("the load is a mean of a minute, the processors' time is of the samples")
        .unpredicted("what they wait for is not counted")
        .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, host_twice, is_fine};

    fn evidence(load: &str, now: &str) -> crate::Evidence {
        let before = "cpu 0 0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\n";
        let now = format!("{now}\ncpu0 1 1 1 1\ncpu1 1 1 1 1\n");
        host_twice("proc/stat", before, &now, &[("proc/loadavg", load)])
    }

    #[test]
    fn tasks_that_wait_beside_idle_processors_are_found() {
        let found = found(&RULE, &evidence("12.0 9.0 3.0 1/90 7\n", "cpu 100 0 100 1800 0"));
        assert!(found.what.contains("some 12 tasks wait"), "{found:?}");
    }

    #[test]
    fn those_that_run_are_fine() {
        is_fine(&RULE, &evidence("18.0 9.0 2.0 3/90 7\n", "cpu 1900 0 100 0 0"));
        is_fine(&RULE, &evidence("2.0 2.0 2.0 3/90 7\n", "cpu 1800 0 100 100 0"));
        is_fine(&RULE, &evidence("0.3 0.2 0.1 1/90 7\n", "cpu 10 0 10 1980 0"));
    }
}
