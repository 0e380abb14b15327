//! Symbolic links are in the way.

use super::{About, Case, Found, Gain, Judged, Layer, NoFinding, Rule, Severity, Threshold};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "symbolic-links",
    about: About::Mount,
    layer: Layer::Application,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.1, of: "share of READLINK among the calls" },
    ],
    source: "Sun 1990, section 5.5 (more than 10 %; 30 % at one site)",
    explanation: "Each symbolic link in a path costs a READLINK, and the names after it are looked \
                  up again.",
    remedy: "Mount the target of the link, or give programs paths without links.",
    gain: "By the share of the time of READLINK, at most with one LOOKUP for each.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = case.counted(&RULE)?;
    let links = mount.group(&["READLINK"]);
    let (share, time) = (links.share_of(&total), links.time_share_of(&total));
    // The link's own name is looked up before it is read.
    let names = mount.group(&["LOOKUP"]);
    let of_names = (links.calls as f64 / (names.calls as f64).max(1.0)).min(1.0);
    let with_names = time + of_names * names.time_share_of(&total);
    let numbers = format!("{:.0} % of the calls are READLINK", share * 100.0);
    let of_time = means.map(|_| format!(", {:.0} % of the calls' time", time * 100.0));
    match share > case.limit(&RULE, "share") {
        true => Found::new(
            &RULE,
            format!("{numbers}{}: symbolic links are in the way", of_time.unwrap_or_default()),
            "namei -l PATH shows the links of a path; mount what they lead to",
        )
        .evidence(format!("{} of {} calls", links.calls, total.calls))
        .gain(match means {
            Some(_) => model::without_share(with_names, (time / with_names, 1.0)),
            None => Gain::unpredicted("the times of calls are not known"),
        })
        .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    #[test]
    fn many_links_are_found() {
        let text = mount(
            "rw",
            &["READLINK: 300 300 0 0 0 1 90 95 0", "LOOKUP: 700 700 0 0 0 1 210 220 0"],
        );
        assert!(found(&RULE, &one(&text)).what.starts_with("30 % of the calls are READLINK"));
    }

    #[test]
    fn a_few_are_fine() {
        is_fine(&RULE, &one(&mount("rw", &["LOOKUP: 700 700 0 0 0 1 210 220 0"])));
    }
}
