//! The host has too little memory for its caches.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "low-memory",
    about: About::Host,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/meminfo", "/proc/pressure/memory"],
    thresholds: &[
        Threshold { name: "available", default: 0.05, of: "share of the memory that is available" },
        Threshold {
            name: "stalled",
            default: 5.0,
            of: "percent of ten seconds stalled for memory",
        },
    ],
    source: "Linux, Documentation/accounting/psi.rst; the thresholds are ours",
    explanation: "With little memory the page cache is small: data that were read are fetched \
                  again, and writers wait until their data are on the server.",
    remedy: "Find what uses it (`ps --sort -rss`); more memory.",
    gain: "Cannot be predicted: the hits of a larger cache are not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let last = &case.evidence.last;
    let memory = last.memory.as_ref().ok_or(NoFinding::NotApplicable)?;
    let of = |name| memory.bytes_of(name);
    let (available, total) =
        of("MemAvailable").zip(of("MemTotal")).ok_or(NoFinding::NotApplicable)?;
    let share = available as f64 / (total as f64).max(1.0);
    let stalled = last.pressures.memory.map_or(0.0, |pressure| pressure.some_10s);
    let numbers =
        format!("{:.0} % of {:.1} GB of memory available", share * 100.0, total as f64 / 1e9);
    let is_low = share < case.limit(&RULE, "available") || stalled > case.limit(&RULE, "stalled");
    match is_low {
        true => Found::new(&RULE, numbers, "ps -eo rss,comm --sort -rss | head")
            .evidence(format!("programs stalled for memory {stalled:.1} % of the last 10 s"))
            .severity(if stalled > 20.0 { Severity::High } else { Severity::Medium })
            .unpredicted("what a larger cache would hit is not counted")
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine};

    #[test]
    fn little_memory_is_found() {
        let low = files(&[("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 20000 kB\n")]);
        assert!(found(&RULE, &low).what.starts_with("2 % of 1.0 GB"));
    }

    #[test]
    fn enough_is_fine() {
        is_fine(&RULE, &files(&[("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n")]));
    }
}
