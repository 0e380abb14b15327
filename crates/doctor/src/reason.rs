//! Puts findings in order, and says what they come to.

use super::case::Case;
use super::evidence::Evidence;
use super::finding::{Basis, Certainty, Finding, Judged, Missing, Severity};
use super::limits::Limits;
use super::rules::{ALL, About};
use super::subject::Mounted;

/// What is said of one mount, server or host.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub about: About,
    /// `/mnt`, `server`, `this host`.
    pub name: String,
    /// What it is, as name and value.
    pub facts: Vec<(String, String)>,
    /// Counters of a short time, or of all the time since it began.
    pub is_lifetime: bool,
    /// The first is to be tried first.
    pub findings: Vec<Finding>,
    /// What was looked at and is well, with its number.
    pub fine: Vec<String>,
    pub missing: Vec<Missing>,
}

impl Report {
    /// The highest severity of its findings.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.found.severity).max()
    }
}

/// Reports of every mount, by its mount point.
pub fn diagnose(evidence: &Evidence, limits: &Limits) -> Vec<Report> {
    let mounts = Mounted::all(evidence);
    mounts.iter().map(|mount| of_mount(evidence, limits, mount)).collect()
}

fn of_mount(evidence: &Evidence, limits: &Limits, mount: &Mounted) -> Report {
    let case = Case { evidence, limits, mount: Some(mount) };
    let now = &mount.now;
    let version = now.option("vers").map(str::to_owned);
    let version = version.or_else(|| now.version().map(|version| version.to_string()));
    let facts = vec![
        ("server".to_owned(), now.device.clone()),
        ("version".to_owned(), version.unwrap_or_else(|| "?".to_owned())),
        ("options".to_owned(), now.options.join(",")),
    ];
    report(&case, About::Mount, now.point.clone(), facts, mount.is_lifetime())
}

fn report(
    case: &Case<'_>,
    about: About,
    name: String,
    facts: Vec<(String, String)>,
    is_lifetime: bool,
) -> Report {
    let mut findings = Vec::new();
    let (mut fine, mut missing) = (Vec::new(), Vec::new());
    for rule in ALL.iter().copied().filter(|rule| rule.about == about) {
        match (rule.judge)(case) {
            Judged::Quiet => {}
            Judged::Fine(number) => fine.push(number),
            Judged::Missing(what) => missing.push(what),
            Judged::Found(mut found) => {
                if is_lifetime && found.basis == Basis::Counters {
                    found.severity = found.severity.weaker();
                    found.certainty = less(found.certainty);
                }
                findings.push(Finding { rule, found: *found, below: Vec::new() });
            }
        }
    }
    missing.sort();
    missing.dedup();
    Report { about, name, facts, is_lifetime, findings: ordered(findings), fine, missing }
}

/// An average since the beginning is less sure than what was seen just now.
fn less(certainty: Certainty) -> Certainty {
    match certainty {
        Certainty::Sure => Certainty::Likely,
        Certainty::Likely | Certainty::Possible => Certainty::Possible,
    }
}

/// What is explained by another goes below it; the rest by severity, then by what it may gain.
fn ordered(findings: Vec<Finding>) -> Vec<Finding> {
    let names: Vec<&str> = findings.iter().map(|finding| finding.rule.name).collect();
    let is_explained =
        |finding: &Finding| finding.rule.explained_by.iter().any(|name| names.contains(name));
    let (below, mut above): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(is_explained);
    // Two that explain each other stay where they are.
    let mut left = Vec::new();
    for finding in below {
        let by = finding.rule.explained_by;
        match above.iter_mut().find(|other| by.contains(&other.rule.name)) {
            Some(other) => other.below.push(finding),
            None => left.push(finding),
        }
    }
    above.append(&mut left);
    above.sort_by(|a, b| {
        let key = |one: &Finding| (one.found.severity, one.found.certainty);
        key(b)
            .0
            .cmp(&key(a).0)
            .then(b.found.gain.middle().total_cmp(&a.found.gain.middle()))
            .then(key(b).1.cmp(&key(a).1))
    });
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn reports(evidence: &Evidence) -> Vec<Report> {
        diagnose(evidence, &Limits::default())
    }

    #[test]
    fn what_is_found_since_the_mount_is_weaker_than_what_is_found_now() {
        let before = testing::mount("rw", &["WRITE: 0 0 0 0 0 0 0 0 0"]);
        let now = testing::mount("rw", &["WRITE: 1000 1000 0 0 0 60000 20000 81000 0"]);
        let lifetime = reports(&testing::one(&now));
        let rates = reports(&testing::two(10.0, &before, &now));
        assert_eq!(lifetime[0].severity(), Some(Severity::Medium));
        assert_eq!(rates[0].severity(), Some(Severity::High));
        assert!(lifetime[0].is_lifetime && !rates[0].is_lifetime);
    }

    #[test]
    fn the_largest_gain_comes_first_among_what_is_as_severe() {
        let text = testing::mount(
            "rw,noac",
            &["GETATTR: 9000 9000 0 0 0 90 9000 9200 0", "WRITE: 10 10 0 0 0 1 1 1 0"],
        );
        let reports = reports(&testing::one(&text));
        assert_eq!(reports[0].findings[0].rule.name, "attribute-caching-off");
        assert_eq!(reports[0].fine.len(), 2);
    }

    #[test]
    fn no_mounts_are_no_reports() {
        assert!(reports(&Evidence::default()).is_empty());
    }
}
