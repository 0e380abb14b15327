//! Most calls look at files, and read or write none.

use super::{About, Case, Found, Gain, Judged, LOOKS, Layer, Rule, Severity, Threshold, fine_if};
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
    explanation: "GETATTR, LOOKUP and ACCESS read the attributes and names of files. A workload of \
                  many small files, or a program that scans a tree again and again, is bound by \
                  the network round trip.",
    remedy: "`actimeo=` longer than 60; `nocto` for data that nobody else changes; fewer checks by \
             the program; delegations of version 4.",
    gain: "By the share of the time: 20 to 70 % of it go away, as the source measured.",
    explained_by: &["attribute-caching-off"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = case.counted(&RULE)?;
    let looks = mount.group(&LOOKS);
    let (share, time) = (looks.share_of(&total), means.map(|_| looks.time_share_of(&total)));
    let of_time = time.map(|time| format!(", {:.0} % of the calls' time", time * 100.0));
    let numbers = format!(
        "{:.0} % of the calls look at files (GETATTR, LOOKUP, ACCESS){}",
        share * 100.0,
        of_time.unwrap_or_default()
    );
    let is_little = time.is_some_and(|time| time <= case.limit(&RULE, "time_share"));
    fine_if(share <= case.limit(&RULE, "share") || is_little, &numbers)?;
    let mut found = Found::new(
        &RULE,
        numbers,
        "mount again with actimeo=600 (nocto besides, if \
                                               nobody else changes these files)",
    )
    .against("files that other clients change are seen later")
    .gain(match time {
        Some(time) => model::without_share(time, (0.2, 0.7)),
        None => Gain::unpredicted("the times of calls are not known"),
    });
    if let Some(opens) = mount.rates.caches.getattrs_per_open {
        found =
            found.evidence(format!("{opens:.1} GETATTRs for each open(2); consistency costs 1"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, mount, one};

    const LOOKS: &str = "LOOKUP: 9000 9000 0 0 0 90 9000 9200 0";

    #[test]
    fn a_mount_that_mostly_looks_is_found() {
        let found = found(&RULE, &one(&mount("rw", &[LOOKS, "READ: 100 100 0 0 0 1 800 900 0"])));
        assert!(found.what.starts_with("99 % of the calls"), "{found:?}");
    }

    #[test]
    fn calls_without_times_are_enough() {
        let of = |getattrs: u64, reads: u64| {
            let calls = format!("0 {getattrs} 0 0 0 0 {reads} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
            files(&[("proc/net/rpc/nfs", &format!("rpc 1000 0 0\nproc3 22 {calls}\n"))])
        };
        assert!(found(&RULE, &of(900, 100)).what.starts_with("90 % of the calls look at files"));
        is_fine(&RULE, &of(100, 900));
    }

    #[test]
    fn a_mount_whose_time_goes_to_reads_is_not() {
        is_fine(&RULE, &one(&mount("rw", &[LOOKS, "READ: 9000 9000 0 0 0 1 90000 90900 0"])));
    }
}
