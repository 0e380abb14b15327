//! Sequential reads are not read ahead by more than a piece.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "read-ahead",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "/proc/self/mountinfo", "/sys/class/bdi/*/read_ahead_kb"],
    thresholds: &[
        Threshold { name: "reads_min", default: 100.0, of: "fewest READs for a finding" },
        Threshold { name: "kib", default: 128.0, of: "KiB of read-ahead that are too few" },
        Threshold { name: "rsize", default: 262_144.0, of: "rsize from which they are, bytes" },
        Threshold { name: "time_share", default: 0.2, of: "share of the time in READ" },
    ],
    source: "Azure NetApp Files, performance-linux-nfs-read-ahead (128 KiB by default since RHEL \
             8.3 and Ubuntu 18.04, 15 x rsize before)",
    explanation: "With less read-ahead than rsize, no READ is as large as it could be, and two are \
                  rarely outstanding: a sequential reader gets one small piece for each round \
                  trip.",
    remedy: "`echo 15360 > /sys/class/bdi/M:m/read_ahead_kb`, by a udev rule or nfs.conf's \
             `nfsrahead` for the next mount.",
    gain: "By one time for each call and one for each byte, fitted to GETATTR and READ.",
    explained_by: &[],
    judge,
};

/// `0:45`, which the file of the read-ahead is named by.
fn device(case: &Case<'_>) -> Option<String> {
    let line = case.evidence.mountinfo(&case.mount?.now.point)?;
    line.split_whitespace().nth(2).map(str::to_owned)
}

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let (reads, total) = (mount.group(&["READ"]), mount.total());
    let (Some(rsize), Some(means)) = (mount.number("rsize"), reads.means()) else {
        return Err(NoFinding::NotApplicable);
    };
    let is_used = reads.calls as f64 >= case.limit(&RULE, "reads_min")
        && reads.time_share_of(&total) > case.limit(&RULE, "time_share");
    not_applicable_if(!is_used || rsize < case.limit(&RULE, "rsize"))?;
    let known = device(case).and_then(|device| {
        let path = format!("sys/class/bdi/{device}/read_ahead_kb");
        Some((case.evidence.number(&path)?, path))
    });
    let Some((kib, path)) = known else {
        let what = format!("how far {} reads ahead", mount.now.point);
        return Err(NoFinding::missing(what, "cat /sys/class/bdi/*/read_ahead_kb"));
    };
    let numbers = format!("{kib:.0} KiB are read ahead, rsize is {:.0} KiB", rsize / 1024.0);
    let bytes = reads.received_bytes as f64 / reads.calls as f64;
    // Programs that read here and there, in small pieces, do not use what there is.
    let is_filled = bytes >= 0.4 * kib * 1024.0;
    fine_if(kib > case.limit(&RULE, "kib") || kib * 1024.0 >= 2.0 * rsize || !is_filled, &numbers)?;
    let fixed =
        case.cheapest_ms().map(|most| (case.floor().map_or(most / 2.0, |floor| floor.ms), most));
    let gain = match fixed {
        Some(fixed) => model::larger_transfers(means.rtt_ms, bytes, rsize, fixed),
        None => Gain::unpredicted("no small calls to fit the part that does not depend on bytes"),
    };
    Found::new(&RULE, numbers, format!("echo {:.0} > /{path}", 15.0 * rsize / 1024.0))
        .evidence(format!("a READ brings {:.0} KiB", bytes / 1024.0))
        .against("for random reads more read-ahead is of no use")
        .gain(gain)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, mount, one, wants_more};

    const READ: &str = "READ: 1000 1000 0 0 131200000 0 2000 2100 0";
    const GETATTR: &str = "GETATTR: 100 100 0 0 0 1 50 55 0";

    fn evidence(kib: &str) -> crate::Evidence {
        files(&[
            ("proc/self/mountstats", &mount("rw,rsize=1048576", &[READ, GETATTR])),
            ("proc/self/mountinfo", "99 30 0:45 / /mnt rw - nfs server:/export rw\n"),
            ("sys/class/bdi/0:45/read_ahead_kb", kib),
        ])
    }

    #[test]
    fn too_little_read_ahead_is_found() {
        let found = found(&RULE, &evidence("128\n"));
        assert!(found.remedy.contains("15360 > /sys/class/bdi/0:45"), "{found:?}");
        assert!(matches!(found.gain, Gain::Faster { .. }), "{found:?}");
    }

    #[test]
    fn small_reads_here_and_there_do_not_want_more() {
        let stats = mount("rw,rsize=1048576", &["READ: 1000 1000 0 0 8300000 0 2000 2100 0"]);
        is_fine(
            &RULE,
            &files(&[
                ("proc/self/mountstats", &stats),
                ("proc/self/mountinfo", "99 30 0:45 / /mnt rw - nfs server:/export rw\n"),
                ("sys/class/bdi/0:45/read_ahead_kb", "128\n"),
            ]),
        );
    }

    #[test]
    fn enough_is_fine_and_an_unknown_one_is_requested() {
        is_fine(&RULE, &evidence("15360\n"));
        wants_more(&RULE, &one(&mount("rw,rsize=1048576", &[READ])));
    }
}
