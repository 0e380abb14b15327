//! So much is held back that writing it out takes seconds.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "dirty-limit",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "/proc/meminfo", "/proc/sys/vm/dirty_ratio"],
    thresholds: &[
        Threshold { name: "writes_min", default: 100.0, of: "fewest WRITEs for a finding" },
        Threshold { name: "write_ms", default: 1000.0, of: "mean time of a WRITE, ms" },
        Threshold { name: "limit_s", default: 1.0, of: "seconds of writing that may be held back" },
    ],
    source: "Azure NetApp Files, performance-linux-filesystem-cache (`vm.dirty_bytes` of 30 MiB in \
             tests with SAS, background a fifth)",
    explanation: "Linux holds dirty pages up to a share of the memory and then writes them all at \
                  once. WRITEs queue for seconds, and READs behind them. A limit equal to what the \
                  server takes in a second keeps bursts short.",
    remedy: "`sysctl -w vm.dirty_bytes=N vm.dirty_background_bytes=N/5`, with N the bytes that the \
             server takes in a second.",
    gain: "The rate of writing stays; the time of a WRITE falls to that of N bytes.",
    explained_by: &["full-path"],
    judge,
};

/// Bytes that may be held back, by the sysctls.
fn limit_bytes(case: &Case<'_>) -> Option<f64> {
    let number = |name: &str| case.evidence.number(&format!("proc/sys/vm/{name}"));
    if let Some(bytes) = number("dirty_bytes").filter(|bytes| *bytes > 0.0) {
        return Some(bytes);
    }
    let memory = case.evidence.last.memory.as_ref()?;
    let available = memory.bytes_of("MemAvailable").or_else(|| memory.bytes_of("MemTotal"))?;
    Some(number("dirty_ratio")? / 100.0 * available as f64)
}

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let writes = mount.group(&["WRITE"]);
    let means = writes.means().ok_or(NoFinding::NotApplicable)?;
    not_applicable_if(
        (writes.calls as f64) < case.limit(&RULE, "writes_min")
            || means.execute_ms < case.limit(&RULE, "write_ms"),
    )?;
    let Some(limit) = limit_bytes(case) else {
        let what = format!("a WRITE takes {:.0} ms, and what may be held back", means.execute_ms);
        return Err(NoFinding::missing(what, "sysctl vm.dirty_ratio vm.dirty_bytes; free"));
    };
    let rate = mount.rates.bytes.and_then(|bytes| bytes.server_write_bytes_per_s).unwrap_or(0.0);
    let seconds = limit / rate.max(1.0);
    not_applicable_if(rate > 0.0 && seconds < case.limit(&RULE, "limit_s"))?;
    let what = format!(
        "{:.0} MB may be held back, and a WRITE takes {:.1} s, {:.1} s of it before it is sent",
        limit / 1e6,
        means.execute_ms / 1e3,
        means.queue_ms / 1e3
    );
    let bytes = rate.clamp(30e6, 1e9);
    let remedy =
        format!("sysctl -w vm.dirty_bytes={bytes:.0} vm.dirty_background_bytes={:.0}", bytes / 5.0);
    let mut found = Found::new(&RULE, what, remedy)
        .unpredicted("the rate stays; a WRITE takes about a second instead");
    if rate > 0.0 {
        found = found.evidence(format!("at {:.1} MB/s that is {seconds:.0} s", rate / 1e6));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_quiet, mount, wants_more};

    const SLOW: &str = "WRITE: 1000 1000 0 1048576000 0 4000000 1000000 5001000 0";

    fn evidence(write: &str, ratio: &str) -> crate::Evidence {
        files(&[
            ("proc/self/mountstats", &mount("rw", &[write])),
            ("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n"),
            ("proc/sys/vm/dirty_ratio", ratio),
        ])
    }

    #[test]
    fn a_large_limit_and_slow_writes_are_found() {
        let found = found(&RULE, &evidence(SLOW, "20\n"));
        assert!(found.what.contains("3436 MB may be held back"), "{found:?}");
        assert!(found.what.contains("4.0 s of it before"), "{found:?}");
    }

    #[test]
    fn quick_writes_are_not_and_without_the_limit_it_is_requested() {
        is_quiet(&RULE, &evidence("WRITE: 1000 1000 0 1000 0 100 10000 10100 0", "20\n"));
        wants_more(&RULE, &files(&[("proc/self/mountstats", &mount("rw", &[SLOW]))]));
    }
}
