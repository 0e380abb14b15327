//! Puts findings in order, and says what they come to.

mod reports;

use std::cmp::Ordering;

use counters::rates::Span;
use counters::rates::mounts::mean_at_a_send;

pub(crate) use self::reports::INTERVAL;
use self::reports::{UNCOUNTED, of_listener, of_mount, of_server, of_the_host, uncounted};
pub use self::reports::{of_capture, of_our_mount, of_our_server, of_record};
use super::case::Case;
use super::evidence::Evidence;
use super::finding::{Basis, Certainty, Finding, Found, Layer, Missing, NoFinding, Severity};
use super::floor::Floor;
use super::rule::{About, Limits, Rule};
use super::rules::ALL;
use super::shares::Shares;
use super::subject::{Hosted, Mounted, Served};

/// The findings of one mount, server or host.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub about: About,
    /// `/mnt`, `server`, `this host`.
    pub name: String,
    /// What it is, as name and value.
    pub facts: Vec<(String, String)>,
    /// What the counters are of.
    pub span: Span,
    /// Counters of all the time since it began.
    pub is_lifetime: bool,
    /// In one sentence; of the first finding, or that all is well.
    pub verdict: String,
    pub certainty: Certainty,
    pub shares: Option<Shares>,
    pub floor: Option<Floor>,
    /// The first is to be tried first.
    pub findings: Vec<Finding>,
    /// What does not go together.
    pub contradictions: Vec<String>,
    /// What was looked at and is well, with its number.
    pub fine: Vec<String>,
    pub missing: Vec<Missing>,
}

impl Report {
    /// What it is, by name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.facts.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// It is about a mount of ours that gives no metrics, as far as counters tell.
    pub fn is_uncounted(&self) -> bool {
        self.about == About::Mount && self.shares.is_none() && self.verdict == UNCOUNTED
    }

    /// The highest severity of its findings.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.found.severity).max()
    }
}

/// What the rules found of one subject.
#[derive(Clone, Debug, Default)]
struct Judgements {
    findings: Vec<Finding>,
    fine: Vec<String>,
    missing: Vec<Missing>,
}

/// Reports of every mount, of the server, and of the host; what is found of the host belongs to the
/// only mount or server, if there is one only.
pub fn diagnose(evidence: &Evidence, limits: &Limits) -> Vec<Report> {
    let (mounts, server) = (Mounted::all(evidence), Served::of(evidence));
    let host = Hosted::of(evidence);
    let case = Case { evidence, limits, host: &host, mount: None, server: None };
    let mut of_host = judgements(&case, About::Host, host.is_lifetime);
    // The kernel's server listens, too, and has counters.
    let has_threads = server.as_ref().is_some_and(|server| server.rates.threads != Some(0));
    let listener = evidence.last.listener.as_deref().filter(|_| !has_threads);
    let count = mounts.len() + usize::from(server.is_some()) + usize::from(listener.is_some());
    let is_alone = count == 1;
    let mut with = || if is_alone { std::mem::take(&mut of_host) } else { Judgements::default() };
    let mut reports: Vec<Report> = Vec::new();
    for mount in &mounts {
        reports.push(of_mount(&Case { mount: Some(mount), ..case }, mount, with()));
    }
    if let Some(server) = &server {
        reports.push(of_server(&Case { server: Some(server), ..case }, server, with()));
    }
    reports.extend(listener.map(|program| of_listener(&case, program, with())));
    reports.extend(uncounted(evidence));
    let has_host = !of_host.findings.is_empty() || !of_host.fine.is_empty();
    if !is_alone && has_host {
        let report = of_the_host(&case, of_host);
        // What is wrong with the host may be behind what is wrong with its mounts.
        let at = if report.findings.is_empty() { reports.len() } else { 0 };
        reports.insert(at, report);
    }
    reports
}

fn judgements(case: &Case<'_>, about: About, is_lifetime: bool) -> Judgements {
    let mut all = Judgements::default();
    for rule in ALL.iter().copied().filter(|rule| rule.about == about) {
        match (rule.judge)(case) {
            Err(NoFinding::NotApplicable) => {}
            Err(NoFinding::Fine(number)) => all.fine.push(number),
            Err(NoFinding::Missing(what)) => all.missing.push(what),
            Ok(found) => {
                let found = weighed(case, rule, found, is_lifetime);
                all.findings.push(finding(rule, rule.layer, found));
            }
        }
    }
    all
}

fn finding(rule: &'static Rule, layer: Layer, found: Found) -> Finding {
    Finding { rule, layer, found, below: Vec::new() }
}

/// As severe and sure as a finding is by how long and how its counters were seen.
fn weighed(case: &Case<'_>, rule: &Rule, mut found: Found, is_lifetime: bool) -> Found {
    let is_untimed = case.mount.is_some_and(|mount| !mount.has_times);
    if is_idle(case) && found.basis == Basis::Settings {
        found.severity = found.severity.weaker();
    }
    if is_lifetime && found.basis == Basis::Counters {
        // Of all mounts together there is no more to come: what is medium stays.
        if !(case.evidence.last.counts_only && found.severity == Severity::Medium) {
            found.severity = found.severity.weaker();
        }
        found.certainty = less(found.certainty);
    }
    if let Some(mount) = case.mount {
        found.gain = found.gain.of_all_time(mount.busy());
    }
    if is_untimed && found.basis == Basis::Settings {
        // How much it costs is not known, and so it may be much.
        found.severity = found.severity.max(rule.severity.weaker());
    }
    found
}

/// Nobody waited for the mount in the time between the samples: what is configured costs little
/// now.
fn is_idle(case: &Case<'_>) -> bool {
    const BUSY_MIN: f64 = 0.05;
    case.mount.and_then(Mounted::busy).is_some_and(|busy| busy < BUSY_MIN)
}

/// An average since the beginning is less sure than what was seen just now.
fn less(certainty: Certainty) -> Certainty {
    match certainty {
        Certainty::Sure => Certainty::Likely,
        Certainty::Likely | Certainty::Possible => Certainty::Possible,
    }
}

fn joined(mut judgements: Judgements, with: Judgements) -> Judgements {
    judgements.findings.extend(with.findings);
    judgements.fine.extend(with.fine);
    judgements.missing.extend(with.missing);
    judgements
}

fn finished(mut report: Report, judgements: Judgements, well: &str) -> Report {
    let Judgements { findings, fine, mut missing } = judgements;
    missing.sort();
    missing.dedup();
    report.findings = ordered(findings);
    (report.fine, report.missing) = (fine, missing);
    let weighs = |finding: &&Finding| finding.found.severity > Severity::Low;
    (report.verdict, report.certainty) = match report.findings.first().filter(weighs) {
        Some(first) => (first.found.what.clone(), first.found.certainty),
        None if report.missing.is_empty() => {
            (format!("nothing stands out: {well}"), Certainty::Likely)
        }
        None => (format!("nothing stands out in what can be seen: {well}"), Certainty::Possible),
    };
    report
}

/// What is explained by another goes below it; the rest by severity, then by what it may gain.
fn ordered(findings: Vec<Finding>) -> Vec<Finding> {
    let weighty: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.found.severity > Severity::Low)
        .map(|finding| finding.rule.name)
        .collect();
    let is_explained =
        |finding: &Finding| finding.rule.explained_by.iter().any(|name| weighty.contains(name));
    let (mut below, mut above): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(is_explained);
    // One round for each level; those that explain each other in a circle stay on top.
    for _ in 0..ALL.len() {
        below = below.into_iter().filter_map(|finding| placed(&mut above, finding)).collect();
    }
    above.append(&mut below);
    above.sort_by(|a, b| weightier(&a.found, &b.found));
    above
}

fn weightier(a: &Found, b: &Found) -> Ordering {
    let by_gain = b.gain.middle().total_cmp(&a.gain.middle());
    b.severity.cmp(&a.severity).then(by_gain).then(b.certainty.cmp(&a.certainty))
}

/// Puts a finding below the one that explains it; gives it back where there is none yet.
fn placed(above: &mut [Finding], finding: Finding) -> Option<Finding> {
    let by = finding.rule.explained_by;
    if let Some(other) = above.iter_mut().find(|other| by.contains(&other.rule.name)) {
        other.below.push(finding);
        return None;
    }
    above.iter_mut().try_fold(finding, |left, other| placed(&mut other.below, left))
}

/// What the findings say, and other counters speak against.
fn contradictions(case: &Case<'_>, findings: &[Finding]) -> Vec<String> {
    let Some(mount) = case.mount else { return Vec::new() };
    let has = |name: &str| findings.iter().any(|finding| finding.rule.name == name);
    let lossless = lossless(case, mount).filter(|_| has("retransmissions"));
    let slots = slots_are_free(mount).filter(|_| has("client-queue"));
    lossless.into_iter().chain(slots).collect()
}

/// TCP has not lost what calls were retransmitted for.
fn lossless(case: &Case<'_>, mount: &Mounted<'_>) -> Option<String> {
    let tcp = case.host.protocols.as_ref().filter(|_| mount.is_tcp())?;
    let (again, sent) = tcp.of("Tcp", "RetransSegs").zip(tcp.of("Tcp", "OutSegs"))?;
    let why = "connections broke or the server was silent, the network did not lose";
    let contradiction =
        format!("calls were retransmitted, but TCP lost {again} of {sent} segments: {why}");
    (again.saturating_mul(10_000) < sent).then_some(contradiction)
}

/// No call waits for a slot.
fn slots_are_free(mount: &Mounted<'_>) -> Option<String> {
    const OTHER_WAITS: &str = "calls wait before they are sent, but not for a slot: for the \
                               socket, a session's slot or memory";
    let backlog = mean_at_a_send(&mount.rates.transports, |one| one.backlog_mean);
    backlog.filter(|backlog| *backlog < 0.5).map(|_| OTHER_WAITS.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Gain;
    use crate::testing;

    fn reports(evidence: &Evidence) -> Vec<Report> {
        diagnose(evidence, &Limits::default())
    }

    fn names(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.rule.name).collect()
    }

    const QUEUED: &str = "WRITE: 1000 1000 0 0 0 60000 20000 81000 0";

    #[test]
    fn what_is_found_since_the_mount_is_weaker_than_what_is_found_now() {
        let before = testing::mount("rw", &["WRITE: 0 0 0 0 0 0 0 0 0"]);
        let now = testing::mount("rw", &[QUEUED]);
        let lifetime = reports(&testing::one(&now));
        let now = now.replace("age:\t1234", "age:\t1244");
        let rates = reports(&testing::two(10.0, &before, &now));
        assert_eq!(lifetime[0].severity(), Some(Severity::Medium));
        assert_eq!(rates[0].severity(), Some(Severity::High));
        assert!(lifetime[0].is_lifetime && !rates[0].is_lifetime);
        assert!(rates[0].verdict.contains("60.0 of 81.0 ms"), "{}", rates[0].verdict);
    }

    #[test]
    fn a_program_that_works_by_itself_gains_no_more_than_its_calls_take() {
        // COMMITs of 10 ms, 3 of 10 s or all of them: a log takes away nearly all of that.
        let gain = |commits: u32| {
            let calls = |commits: u32, looks: u32| {
                let commit = format!("COMMIT: {commits} {commits} 0 0 0 0 {0} {0} 0", 10 * commits);
                let look = format!("GETATTR: {looks} {looks} 0 0 0 0 {0} {0} 0", looks / 5);
                testing::mount("rw", &[&commit, &look])
            };
            let last = calls(commits, 100).replace("age:\t1234", "age:\t1244");
            let reports = reports(&testing::two(10.0, &calls(0, 0), &last));
            let found = reports[0].findings.iter().find(|one| one.rule.name == "slow-commit");
            match found.unwrap().found.gain {
                Gain::Faster { least, most, .. } => (least, most),
                Gain::Unpredicted(ref why) => panic!("{why}"),
            }
        };
        let (least, most) = gain(300);
        assert!(least > 1.3 && most < 1.44, "{least} {most}");
        let (least, most) = gain(1_000);
        assert!(least > 10.0 && most < 60.0, "{least} {most}");
    }

    #[test]
    fn what_another_explains_stands_below_it() {
        let text = testing::mount(
            "rw,sync,wsize=1048576",
            &["WRITE: 1000 1000 0 4200000 0 1 5000 5100 0", "GETATTR: 100 100 0 0 0 1 40 45 0"],
        );
        let reports = reports(&testing::one(&text));
        let first = &reports[0].findings[0];
        assert_eq!(first.rule.name, "sync-mount");
        assert!(names(&first.below).contains(&"small-calls"), "{:?}", names(&first.below));
        assert!(!names(&reports[0].findings).contains(&"small-calls"));
    }

    #[test]
    fn a_healthy_mount_has_its_numbers_in_one_sentence() {
        let read = "READ: 1000 1000 0 120000 32000000 20 900 950 0";
        let reports = reports(&testing::one(&testing::mount("rw,proto=tcp", &[read])));
        assert!(reports[0].verdict.contains("1000 calls, 0.8/s, 0.95 ms each"), "{reports:?}");
        assert_eq!(reports[0].severity(), None);
    }

    #[test]
    fn what_does_not_go_together_is_reported() {
        let read = "READ: 1000 1080 0 0 0 1 2000 2010 0";
        let stats = testing::mount("rw,proto=tcp", &[read]);
        let snmp = "Tcp: OutSegs RetransSegs\nTcp: 100000 1\n";
        let files = [("proc/self/mountstats", &*stats), ("proc/net/snmp", snmp)];
        let reports = reports(&testing::files(&files));
        assert!(reports[0].contradictions[0].contains("TCP lost 1 of 100000"), "{reports:?}");
    }

    #[test]
    fn the_host_belongs_to_its_only_mount_and_stands_alone_beside_several() {
        let one = testing::mount("rw", &[]);
        let several = format!("{one}{}", one.replace("/mnt", "/other"));
        let snmp = "Tcp: OutSegs RetransSegs\nTcp: 100000 9000\n";
        let with = |stats: &str| {
            reports(&testing::files(&[("proc/self/mountstats", stats), ("proc/net/snmp", snmp)]))
        };
        assert_eq!(names(&with(&one)[0].findings), ["tcp-loss"]);
        let reports = with(&several);
        assert_eq!(reports.len(), 3);
        assert_eq!((reports[0].about, reports[0].findings.len()), (About::Host, 1));
        assert!(reports[1].findings.is_empty());
    }

    #[test]
    fn rates_of_an_interval_are_no_average_since_the_mount_and_no_counts() {
        let report = |ops: &str, again: &str| {
            format!(
                "s:/e mounted on /mnt:\n\n  ops/s  rpc bklog\n  {ops}  0.000\n\n\
                 read: ops/s kB/s kB/op retrans avg RTT (ms) avg exe (ms) avg queue (ms) errors\n\
                  {ops} 50000.0 100.0 {again} 50.0 250.0 200.0 0 (0.0%)\n\n"
            )
        };
        let busy = report("500.000", "50 (10.0%)");
        let sentence = |text: &str| {
            let reports = reports(&testing::files(&[("nfsiostat.txt", text)]));
            let again = reports[0].findings.iter().find(|one| one.rule.name == "retransmissions");
            (crate::screen::certainty(&reports[0]), again.unwrap().found.what.clone())
        };
        let (certainty, what) = sentence(&(report("0.1", "0 (0.0%)") + &busy));
        assert_eq!(certainty, "possible; an interval of nfsiostat");
        assert!(what.starts_with("10.00 % of the calls retransmitted;"), "{what}");
        assert_eq!(sentence(&busy).0, "possible; an average since the mount");
    }

    #[test]
    fn nothing_is_no_report() {
        assert!(reports(&Evidence::default()).is_empty());
    }
}
