//! WRITEs carry little of what they could.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "small-calls",
    about: About::Mount,
    layer: Layer::Application,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 200.0, of: "fewest WRITEs for a finding" },
        Threshold { name: "bytes", default: 32_768.0, of: "bytes of a WRITE that are few" },
        Threshold { name: "time_share", default: 0.3, of: "share of the time in WRITE" },
    ],
    source: "nfsiostat(8) (kB/op); the thresholds are ours",
    explanation: "The client combines what programs write into WRITEs of wsize. Small WRITEs come \
                  from O_SYNC, O_DIRECT, `sync`, fsync after every line, or random writes.",
    remedy: "Larger writes in the program, fewer fsyncs; no `sync` and no O_DIRECT where they are \
             not needed.",
    gain: "By one time for each call and one for each byte.",
    explained_by: &["attribute-caching-off", "small-transfers", "sync-mount"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let (writes, total) = (mount.group(&["WRITE"]), mount.total());
    let (Some(means), Some(wsize)) = (writes.means(), mount.number("wsize")) else {
        return Err(NoFinding::NotApplicable);
    };
    let share = writes.time_share_of(&total);
    let bytes = writes.sent_bytes as f64 / writes.calls as f64;
    not_applicable_if(
        (writes.calls as f64) < case.limit(&RULE, "calls_min")
            || share < case.limit(&RULE, "time_share"),
    )?;
    let numbers = format!("a WRITE carries {:.1} KiB of {:.0}", bytes / 1024.0, wsize / 1024.0);
    fine_if(bytes >= case.limit(&RULE, "bytes") || bytes * 4.0 > wsize, &numbers)?;
    let gain = match case.cheapest_ms() {
        Some(cheap) => {
            model::larger_transfers(means.rtt_ms, bytes, wsize.min(262_144.0), (cheap * 0.7, cheap))
        }
        None => Gain::unpredicted("no small calls to fit the part that does not depend on bytes"),
    };
    let mut found =
        Found::new(&RULE, numbers, "strace -f -e trace=write,pwrite64,fsync,openat of the program")
            .evidence(format!("{:.0} % of the time goes to {} WRITEs", share * 100.0, writes.calls))
            .gain(gain);
    if let Some(direct) = mount.rates.bytes.map(|bytes| bytes.bytes.direct_write) {
        found = found.evidence(format!("{:.0} MB of them with O_DIRECT", direct as f64 / 1e6));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    fn evidence(bytes: u64) -> crate::Evidence {
        let write = format!("WRITE: 1000 1000 0 {} 0 1 3000 3100 0", bytes * 1_000);
        one(&mount("rw,wsize=1048576", &["GETATTR: 100 100 0 0 0 1 50 55 0", &write]))
    }

    #[test]
    fn small_writes_are_found() {
        assert!(found(&RULE, &evidence(4_200)).what.starts_with("a WRITE carries 4.1 KiB of 1024"));
    }

    #[test]
    fn large_ones_are_fine() {
        is_fine(&RULE, &evidence(900_000));
    }
}
