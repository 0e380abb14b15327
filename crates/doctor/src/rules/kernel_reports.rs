//! Others have reported that this kernel's NFS is slower than an older one's.

use super::{About, Case, Certainty, Found, Judged, Layer, NoFinding, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    name: "kernel-reports",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Low,
    needs: &["/proc/sys/kernel/osrelease"],
    thresholds: &[],
    source: "axboe/liburing, issue 1499 (5.15 against 6.17: half the throughput on NFS)",
    explanation: "A newer kernel may be slower than an older one. Reports of others are a hint \
                  where nothing else explains a change that came with an update.",
    remedy: "Run the same workload under the older kernel on the same machine: `nfskit study \
             --dir` under both, then `nfskit bench compare` of their records.",
    gain: "Cannot be predicted: the numbers are another machine's.",
    explained_by: &[],
    judge,
};

/// Releases from the first on and before the second, and what was reported of them.
const REPORTS: [(Release, Release, &str); 1] =
    [((6, 17), (6, 18), "half of what 5.15 gave, through io_uring")];

type Release = (u64, u64);

/// `6.17` of `6.17.3-200.fc43.x86_64`.
fn release(text: &str) -> Option<Release> {
    let mut numbers = text.split(|one: char| !one.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn judge(case: &Case<'_>) -> Judged {
    let text = case.evidence.setting("proc/sys/kernel/osrelease").filter(|_| case.mount.is_some());
    let (text, release) =
        text.and_then(|text| Some((text, release(text)?))).ok_or(NoFinding::NotApplicable)?;
    let reported = REPORTS.iter().find(|(from, before, _)| *from <= release && release < *before);
    let (_, _, report) = reported.ok_or(NoFinding::NotApplicable)?;
    Found::new(
        &RULE,
        format!("others report of Linux {}.{}: {report}", release.0, release.1),
        "nfskit study --dir DIR under this kernel and under an older one",
    )
    .of_settings()
    .certainty(Certainty::Possible)
    .evidence(format!("this host runs {text}"))
    .against("one report, of another machine")
    .unpredicted("it is another machine's")
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_quiet, mount};

    fn evidence(release: &str) -> crate::Evidence {
        let mount = mount("rw", &[]);
        files(&[("proc/self/mountstats", &mount), ("proc/sys/kernel/osrelease", release)])
    }

    #[test]
    fn a_release_that_was_reported_is_a_hint() {
        let found = found(&RULE, &evidence("6.17.3-200.fc43.x86_64\n"));
        assert_eq!((found.severity, found.certainty), (Severity::Low, Certainty::Possible));
    }

    #[test]
    fn others_are_not() {
        for release in ["6.1.0-40-amd64\n", "6.18.0\n", "5.15.0\n", "other\n", "6.170\n"] {
            is_quiet(&RULE, &evidence(release));
        }
    }
}
