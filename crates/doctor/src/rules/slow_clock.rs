//! The clock that times are taken from is slow.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    name: "slow-clock",
    about: About::Host,
    layer: Layer::Client,
    severity: Severity::Low,
    needs: &["/sys/devices/system/clocksource/clocksource0/current_clocksource"],
    thresholds: &[],
    source: "Linux, Documentation/timers/timekeeping.rst",
    explanation: "With `hpet`, `acpi_pm` or `jiffies`, reading the clock takes a microsecond or \
                  more, or is as coarse as a tick, and every call reads the clock several times. \
                  (A clock that differs from the server's does not show in counters: nfskit doctor \
                  URL compares them.)",
    remedy: "`clocksource=tsc`, or the clock of the hypervisor, if the kernel did not give it up \
             for a reason (`dmesg | grep clocksource`).",
    gain: "Cannot be predicted: readings of the clock are not counted.",
    explained_by: &[],
    judge,
};

const SLOW: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];

fn judge(case: &Case<'_>) -> Judged {
    match case.evidence.setting(RULE.needs[0].trim_start_matches('/')) {
        Some(clock) if SLOW.contains(&clock) => Found::new(
            &RULE,
            format!("times are taken from {clock}, which is slow or coarse"),
            "dmesg | grep -i clocksource says why",
        )
        .of_settings()
        .unpredicted("looks at the clock are not counted")
        .into(),
        Some(clock) => Err(NoFinding::Fine(format!("clock {clock}"))),
        None => Err(NoFinding::NotApplicable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    #[test]
    fn a_slow_clock_is_reported() {
        let path = RULE.needs[0].trim_start_matches('/');
        let at = |clock: &str| files(&[(path, clock), ("proc/uptime", "1 1\n")]);
        assert!(found(&RULE, &at("hpet\n")).what.contains("hpet"));
        is_fine(&RULE, &at("tsc\n"));
    }
}
