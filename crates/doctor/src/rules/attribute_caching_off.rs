//! Options that send a call for every look at a file.

use super::{About, Case, LOOKS, Rule, Threshold};
use crate::finding::{Found, Gain, Judged, Layer, Severity, not_applicable_if};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "attribute-caching-off",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold {
            name: "low_share",
            default: 0.05,
            of: "share of the time, below which it is low",
        },
        Threshold { name: "high_share", default: 0.25, of: "share of the time that is high" },
    ],
    source: "nfs(5); e2b-dev/infra pull request 2871 (actimeo=1,lookupcache=positive in their \
             place)",
    explanation: "With `noac`, `actimeo=0` or `lookupcache=none`, every check of a file's \
                  attributes or name costs a network round trip. `noac` also makes every write(2) \
                  synchronous. The shares are those of GETATTR, LOOKUP and ACCESS.",
    remedy: "Mount without these options; where other clients change files, with `actimeo=1` and \
             `lookupcache=positive`.",
    gain: "By the share of the time: half to nine tenths of it go away, since some checks are sent \
           with any caching (both are guesses).",
    explained_by: &[],
    judge,
};

/// Options in force. The kernel prints `actimeo=0` as its four parts.
fn offending(case: &Case<'_>) -> Vec<&'static str> {
    let Some(mount) = case.mount else { return Vec::new() };
    let option = |name| mount.now.option(name);
    let is_zero = |name| option(name) == Some("0");
    let mut found = Vec::new();
    if option("noac").is_some() {
        found.push("noac");
    } else if is_zero("actimeo") || is_zero("acregmax") && is_zero("acdirmax") {
        found.push("actimeo=0");
    }
    if option("lookupcache") == Some("none") {
        found.push("lookupcache=none");
    }
    found
}

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let options = offending(case);
    not_applicable_if(options.is_empty())?;
    let (looks, total) = (mount.group(&LOOKS), mount.total());
    let share = looks.time_share_of(&total);
    let severity = match share {
        share if share > case.limit(&RULE, "high_share") => Severity::High,
        share if share > case.limit(&RULE, "low_share") => Severity::Medium,
        _ => Severity::Low,
    };
    let what = format!(
        "{} sends a call for every look at a file{}",
        options.join(" and "),
        mount.of_time(share)
    );
    let gain = match severity {
        Severity::Low => Gain::unpredicted("these calls take little of the time now"),
        _ => model::without_share(share, (0.5, 0.9)),
    };
    Found::new(&RULE, what, "mount again with actimeo=1,lookupcache=positive instead")
        .of_settings()
        .severity(severity)
        .evidence(format!(
            "{} of {} calls are GETATTR, LOOKUP and ACCESS",
            looks.calls, total.calls
        ))
        .against("needed where programs on several hosts share files without locks")
        .gain(gain)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    const LOOKING: [&str; 2] =
        ["GETATTR: 9000 9000 0 0 0 90 9000 9200 0", "READ: 100 100 0 0 0 1 800 900 0"];

    #[test]
    fn options_that_forbid_caching_are_found_and_matter_by_what_they_cost() {
        for options in ["rw,sync,noac", "rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0"] {
            let found = found(&RULE, &one(&mount(options, &LOOKING)));
            assert_eq!(found.severity, Severity::High);
            assert!(found.what.contains("91 %"), "{found:?}");
            let Gain::Faster { least, most, .. } = found.gain else { panic!("{found:?}") };
            assert!((1.8..1.9).contains(&least) && (5.0..6.0).contains(&most));
        }
        let idle = found(&RULE, &one(&mount("rw,lookupcache=none", &[LOOKING[1]])));
        assert_eq!(idle.severity, Severity::Low);
    }

    #[test]
    fn a_mount_with_caches_is_not() {
        is_quiet(&RULE, &one(&mount("rw,acregmin=3,acregmax=60", &LOOKING)));
    }
}
