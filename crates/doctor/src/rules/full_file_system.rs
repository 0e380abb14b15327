//! A file system is nearly full.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold, fine_if};

pub(super) static RULE: Rule = Rule {
    name: "full-file-system",
    about: About::Host,
    layer: Layer::Storage,
    severity: Severity::Medium,
    needs: &["df -k", "df -i"],
    thresholds: &[
        Threshold { name: "used", default: 0.9, of: "of its room, or of its inodes" },
        Threshold { name: "full", default: 0.99, of: "likewise: writes fail, or will soon" },
    ],
    source: "Sun 1990, section 5.3 (an allocator that looks for room is slow from 90 % on)",
    explanation: "The last free blocks of a file system are far apart, and finding them takes \
                  time. Where there are none, writes fail with ENOSPC.",
    remedy: "Make room, or a larger file system.",
    gain: "Cannot be predicted: it depends on how the free blocks lie.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let spaces = case.evidence.last.spaces.iter();
    // What can never be written has no room to lose.
    let wanted = spaces.filter(|one| !one.device.contains("loop") && one.device != "/dev/sr0");
    let fullest = wanted.max_by(|a, b| a.used.total_cmp(&b.used));
    let fullest = fullest.ok_or(NoFinding::NotApplicable)?;
    let of = if fullest.is_of_inodes { "of its inodes" } else { "of its room" };
    let numbers =
        format!("{} ({}) uses {:.0} % {of}", fullest.point, fullest.device, fullest.used * 100.0);
    fine_if(fullest.used < case.limit(&RULE, "used"), &numbers)?;
    let is_full = fullest.used >= case.limit(&RULE, "full");
    Found::new(&RULE, numbers, format!("make room below {}, or more of it", fullest.point))
        .of_settings()
        .severity(if is_full { Severity::High } else { Severity::Medium })
        .against("what lies there may be no export")
        .unpredicted("it depends on how the free blocks lie")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet};

    fn df(percent: u32) -> crate::Evidence {
        let text = format!(
            "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
             /dev/sda1 100 {percent} 1 {percent}% /srv\n/dev/loop0 1 1 0 100% /snap\n"
        );
        files(&[("outputs", &text)])
    }

    #[test]
    fn a_file_system_that_is_nearly_full_is_found() {
        assert_eq!(found(&RULE, &df(93)).severity, Severity::Medium);
        let found = found(&RULE, &df(100));
        assert_eq!(found.severity, Severity::High);
        assert!(found.what.starts_with("/srv (/dev/sda1) uses 100 % of its room"), "{found:?}");
    }

    #[test]
    fn one_with_room_is_fine() {
        is_fine(&RULE, &df(89));
        is_quiet(&RULE, &files(&[]));
    }
}
