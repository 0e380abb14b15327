//! Most calls look at files, and read or write none.

use super::{About, LOOKS, Rule};
use crate::case::Case;
use crate::finding::{Found, Judged, Layer, Severity};
use crate::limits::Threshold;
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "attribute-storm",
    about: About::Mount,
    layer: Layer::Application,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.6, of: "share of the calls" },
        Threshold { name: "time_share", default: 0.3, of: "share of the time" },
    ],
    source: "Azure NetApp Files, performance-linux-mount-options (`nocto` spared 65 to 70 % of \
             GETATTR and ACCESS, `actimeo` another 20 to 25 %); Sun 1990, section 5.5",
    explanation: "GETATTR, LOOKUP and ACCESS ask about files. A workload of many small files, or a \
                  program that looks at a tree again and again, is bound by the round trip.",
    remedy: "`actimeo=` longer than 60; `nocto` for data that nobody else changes; fewer looks in \
             the program; delegations of version 4.",
    gain: "By the share of the time: 20 to 70 % of it go away, which is what was measured there.",
    explained_by: &["attribute-caching-off"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, _) = match case.used(&RULE) {
        Ok(used) => used,
        Err(judged) => return judged,
    };
    let looks = mount.group(&LOOKS);
    let (share, time) = (looks.share_of(&total), looks.time_share_of(&total));
    let numbers = format!(
        "{:.0} % of the calls look at files (GETATTR, LOOKUP, ACCESS), {:.0} % of the time",
        share * 100.0,
        time * 100.0
    );
    if share <= case.limit(&RULE, "share") || time <= case.limit(&RULE, "time_share") {
        return Judged::Fine(numbers);
    }
    let mut found = Found::new(
        &RULE,
        numbers,
        "mount again with actimeo=600 (nocto besides, if \
                                               nobody else changes these files)",
    )
    .against("files that other clients change are seen later")
    .gain(model::without_share(time, (0.2, 0.7)));
    if let Some(opens) = mount.rates.caches.getattrs_per_open {
        found =
            found.evidence(format!("{opens:.1} GETATTRs for each open(2); consistency costs 1"));
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    const LOOKS: &str = "LOOKUP: 9000 9000 0 0 0 90 9000 9200 0";

    #[test]
    fn a_mount_that_mostly_looks_is_found() {
        let found = found(&RULE, &one(&mount("rw", &[LOOKS, "READ: 100 100 0 0 0 1 800 900 0"])));
        assert!(found.what.starts_with("99 % of the calls"), "{found:?}");
    }

    #[test]
    fn a_mount_whose_time_goes_to_reads_is_not() {
        is_fine(&RULE, &one(&mount("rw", &[LOOKS, "READ: 9000 9000 0 0 0 1 90000 90900 0"])));
    }
}
