//! Options that send a call for every look at a file.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;
use crate::subject::Means;

pub(super) static RULE: Rule = Rule {
    name: "attribute-caching-off",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold {
        name: "share",
        default: 0.1,
        of: "share of the time in GETATTR, LOOKUP and ACCESS, below which it is of low severity",
    }],
    source: "nfs(5); e2b-dev/infra pull request 2871 (actimeo=1,lookupcache=positive in their \
             place)",
    explanation: "With `noac`, `actimeo=0` or `lookupcache=none` every look at a file's attributes \
                  or name is a round trip, and `noac` makes every write(2) synchronous besides.",
    remedy: "Without these options; where other clients change files, `actimeo=1` and \
             `lookupcache=positive`.",
    gain: "At most all time that these calls take now; at least half of it, since some must be \
           sent with any caching (the half is a guess).",
    explained_by: &[],
    judge,
};

/// What reads attributes and names.
pub(super) const LOOKS: [&str; 3] = ["GETATTR", "LOOKUP", "ACCESS"];

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
    let Some(mount) = case.mount else { return Judged::Quiet };
    let options = offending(case);
    if options.is_empty() {
        return Judged::Quiet;
    }
    let (looks, total) = (mount.of_names(&LOOKS), mount.total());
    let share = match (Means::of(&looks), Means::of(&total)) {
        (Some(_), Some(_)) => looks.execute_ms as f64 / (total.execute_ms as f64).max(1.0),
        _ => 0.0,
    };
    let matters = share > case.limit(&RULE, "share");
    let what = format!(
        "{} sends a call for every look at a file: {:.0} % of the time of all calls",
        options.join(" and "),
        share * 100.0
    );
    let gain = match matters {
        true => Gain::faster(
            "work",
            (1.0 / (1.0 - share * 0.5), 1.0 / (1.0 - share).max(0.01)),
            "shares of time",
        ),
        false => Gain::unpredicted("these calls take little of the time now"),
    };
    Found::new(&RULE, what, "mount again with actimeo=1,lookupcache=positive instead")
        .of_settings()
        .severity(if matters { Severity::High } else { Severity::Low })
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
    use crate::testing::{found, judged, mount, one};

    const LOOKING: [&str; 2] =
        ["GETATTR: 9000 9000 0 0 0 90 9000 9200 0", "READ: 100 100 0 0 0 1 800 900 0"];

    #[test]
    fn options_that_forbid_caching_are_found_and_matter_by_what_they_cost() {
        for options in ["rw,sync,noac", "rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0"] {
            let found = found(&RULE, &one(&mount(options, &LOOKING)));
            assert_eq!(found.severity, Severity::High);
            assert!(found.what.contains("91 %"), "{found:?}");
            let Gain::Faster { least, most, .. } = found.gain else { panic!("{found:?}") };
            assert!((1.8..1.9).contains(&least) && (10.0..12.0).contains(&most));
        }
        let idle = found(&RULE, &one(&mount("rw,lookupcache=none", &[LOOKING[1]])));
        assert_eq!(idle.severity, Severity::Low);
    }

    #[test]
    fn a_mount_with_caches_is_not() {
        assert_eq!(
            judged(&RULE, &one(&mount("rw,acregmin=3,acregmax=60", &LOOKING))),
            Judged::Quiet
        );
    }
}
