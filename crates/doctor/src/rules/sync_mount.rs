//! Every write(2) waits for the server's disk.

use super::{
    About, Case, Found, Gain, Judged, Layer, Rule, Severity, Threshold, not_applicable_if,
};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "sync-mount",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold { name: "time_share", default: 0.1, of: "share of the time in WRITE" }],
    source: "nfs(5) (`sync`); Lever and Honeyman 2002 (what writing behind gives)",
    explanation: "With `sync` there is no write-behind: each write(2) is a WRITE that must be on \
                  the server's stable storage before the program continues, one at a time.",
    remedy: "`async` on the client, which is the default: fsync(2) and close(2) still wait.",
    gain: "One WRITE of wsize in place of many small ones: by one time for each call and one for \
           each byte.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    not_applicable_if(mount.now.option("sync").is_none() || mount.now.option("noac").is_some())?;
    let (writes, total) = (mount.group(&["WRITE"]), mount.total());
    let share = writes.time_share_of(&total);
    let what =
        format!("every write(2) waits for the server's storage (sync){}", mount.of_time(share));
    let sizes = writes.means().zip(case.cheapest_ms());
    let gain = match sizes.zip(mount.number("wsize")) {
        Some(((means, cheap), wsize)) if writes.calls > 0 => {
            let bytes = writes.sent_bytes as f64 / writes.calls as f64;
            // The disk is waited for once for each WRITE, whatever it carries.
            let fixed = (cheap.min(means.rtt_ms), means.rtt_ms * 0.9);
            model::larger_transfers(means.rtt_ms, bytes, wsize.min(8.0 * bytes), fixed)
        }
        _ => Gain::unpredicted("no WRITE, or no small call to compare it with, was seen"),
    };
    Found::new(&RULE, what, "mount again with async (the client's; the export keeps sync)")
        .of_settings()
        .severity(match share > case.limit(&RULE, "time_share") {
            true => Severity::High,
            false => Severity::Low,
        })
        .evidence(format!("{} WRITEs", writes.calls))
        .against("a program that relies on it loses what it has not synced when the client crashes")
        .gain(gain)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    const CALLS: [&str; 2] =
        ["WRITE: 1000 1000 0 4200000 0 1 5000 5100 0", "GETATTR: 100 100 0 0 0 1 40 45 0"];

    #[test]
    fn synchronous_writes_are_found() {
        let found = found(&RULE, &one(&mount("rw,sync,wsize=1048576", &CALLS)));
        assert!(found.what.contains("99 % of the time"), "{found:?}");
        assert_eq!(found.severity, Severity::High);
    }

    #[test]
    fn others_are_not_and_noac_has_its_own_rule() {
        is_quiet(&RULE, &one(&mount("rw", &CALLS)));
        is_quiet(&RULE, &one(&mount("rw,sync,noac", &CALLS)));
    }
}
