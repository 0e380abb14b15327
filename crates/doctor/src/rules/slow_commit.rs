//! The server's storage takes the time of writing.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::floor;
use crate::limits::Threshold;
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "slow-commit",
    about: About::Mount,
    layer: Layer::Storage,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 20.0, of: "calls that must be stable" },
        Threshold { name: "times", default: 4.0, of: "times what the cheapest call takes" },
        Threshold { name: "ms", default: 2.0, of: "mean time of such a call, ms" },
        Threshold { name: "share", default: 0.2, of: "share of the time of all calls" },
    ],
    source: "Sun 1990, chapter 3 (a write log where 5 to 15 % of the mix are writes); Boumenot \
             2002; the thresholds are ours",
    explanation: "COMMIT, and what changes names and attributes, is answered when it is on stable \
                  storage. Where that takes several times as long as a GETATTR over the same way, \
                  the disk of the server is waited for.",
    remedy: "Storage that is stable without a disk (a battery, an SSD with power-loss protection) \
             for the log of the server's file system. Not `async`, which loses data silently.",
    gain: "By the share of the time, when such a call takes as long as the cheapest one.",
    explained_by: &[],
    judge,
};

/// Answered when it is stable, in every version. (WRITE, where it is asked to be.)
const STABLE: [&str; 10] = [
    "COMMIT", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "SETATTR",
];

fn judge(case: &Case<'_>) -> Judged {
    let Some(mount) = case.mount else { return Judged::Quiet };
    let is_sync = mount.now.option("sync").is_some() || mount.now.option("noac").is_some();
    let names: Vec<&str> = STABLE.into_iter().chain(is_sync.then_some("WRITE")).collect();
    let (stable, total) = (mount.group(&names), mount.total());
    let (Some(means), Some(cheap)) = (stable.means(), floor::cheapest_call_ms(mount)) else {
        return Judged::Quiet;
    };
    if (stable.calls as f64) < case.limit(&RULE, "calls_min") {
        return Judged::Quiet;
    }
    let share = stable.time_share_of(&total);
    let numbers = format!(
        "what must be stable takes {:.1} ms a call ({:.0} % of all time), the least {cheap:.2} ms",
        means.rtt_ms,
        share * 100.0
    );
    let is_slow =
        means.rtt_ms > case.limit(&RULE, "ms") && means.rtt_ms > case.limit(&RULE, "times") * cheap;
    if !is_slow {
        return Judged::Fine(numbers);
    }
    // Of a call that must be stable, what is beyond the cheapest one may go away.
    let gone = (1.0 - cheap / means.rtt_ms).clamp(0.0, 1.0);
    let gain = match share > 0.02 {
        true => model::without_share(share, (gone * 0.7, gone)),
        false => Gain::unpredicted("it takes little of the time now"),
    };
    let is_much = share > case.limit(&RULE, "share");
    Found::new(
        &RULE,
        numbers,
        "on the server: its file system's log on storage with a battery or \
                               power-loss protection",
    )
    .severity(if is_much { Severity::High } else { Severity::Low })
    .evidence(format!("{} calls that must be stable of {}", stable.calls, total.calls))
    .against("WRITEs that wait for the disk under memory pressure look the same")
    .gain(gain)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    fn evidence(ms: u64) -> crate::Evidence {
        let commit = format!("COMMIT: 100 100 0 0 0 0 {ms} {ms} 0");
        one(&mount("rw", &["GETATTR: 1000 1000 0 0 0 0 300 310 0", &commit]))
    }

    #[test]
    fn commits_that_wait_for_a_disk_are_found() {
        let found = found(&RULE, &evidence(1_500));
        assert!(found.what.contains("15.0 ms a call (83 %"), "{found:?}");
        let Gain::Faster { least, most, .. } = found.gain else { panic!("{found:?}") };
        assert!(least > 2.0 && (5.0..6.0).contains(&most), "{least} {most}");
    }

    #[test]
    fn quick_ones_are_fine() {
        is_fine(&RULE, &evidence(80));
    }
}
