//! The mount waits for the program, not the program for the mount.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, NoFinding, Severity, not_applicable_if};
use crate::model::SHARES;

pub(super) static RULE: Rule = Rule {
    name: "idle-application",
    about: About::Mount,
    layer: Layer::Application,
    severity: Severity::Low,
    needs: &["/proc/self/mountstats, twice"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "busy", default: 0.25, of: "calls in the system on average" },
    ],
    source: "Little's law; the threshold is ours",
    explanation: "The mean number of calls in the system (their rate times their mean time) is far \
                  below one, so most of the time no call is outstanding: the slow program \
                  computes, waits for something else, or was not running.",
    remedy: "Profile the program (`strace -c -f`, `perf`), or run doctor while it is slow.",
    gain: "At most the share of the time in which calls are outstanding.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount_now()?;
    let total = &mount.rates.total;
    let busy = total.in_system_mean.ok_or(NoFinding::NotApplicable)?;
    not_applicable_if(
        (total.calls as f64) < case.limit(&RULE, "calls_min") || busy >= case.limit(&RULE, "busy"),
    )?;
    let what = format!(
        "in at least {:.0} % of the time no call was under way: nobody waited for this mount",
        (1.0 - busy) * 100.0
    );
    // Of the time that calls take: at most all of it.
    let gain = match busy {
        busy if busy < 0.02 => Gain::unpredicted("a faster mount would change next to nothing"),
        _ => Gain::Faster { of: "work", least: 1.0, most: f64::INFINITY, model: SHARES },
    };
    Found::new(&RULE, what, "strace -c -f -p PID of the program shows what it waits for")
        .gain(gain)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, two};

    fn evidence(ms: u64) -> crate::Evidence {
        let first = mount("rw", &["READ: 0 0 0 0 0 0 0 0 0"]);
        let read = format!("READ: 1000 1000 0 0 0 0 {ms} {ms} 0");
        let last = mount("rw", &[&read]).replace("age:\t1234", "age:\t1244");
        two(10.0, &first, &last)
    }

    #[test]
    fn a_mount_that_waits_for_its_program_is_reported() {
        let found = found(&RULE, &evidence(500));
        assert!(found.what.contains("at least 95 %"));
        let reports = crate::diagnose(&evidence(500), &crate::Limits::default());
        let first = reports[0].findings.iter().find(|one| one.rule.name == RULE.name).unwrap();
        let gain = first.found.gain.to_string();
        assert!(gain.starts_with("1.0 to 1.1 times the work, by shares"), "{gain}");
    }

    #[test]
    fn a_busy_mount_is_not() {
        is_quiet(&RULE, &evidence(9_000));
    }
}
