//! The findings as a report in HTML.

use report::doctor::{DoctorReport, Subject};
use report::{Cycle, Numbers, Term};

use crate::finding::Finding;
use crate::screen::{floor, missing, nothing_of_nfs, shares, title, verdict};
use crate::{Evidence, Report};

pub fn text(evidence: &Evidence, reports: &[Report], command: String) -> String {
    let first = nothing_of_nfs(reports)
        .or_else(|| reports.first().map(|report| report.verdict.as_str()))
        .unwrap_or("nothing to look at");
    report::doctor::html(&DoctorReport {
        title: "nfskit doctor".to_owned(),
        facts: vec![("First finding".to_owned(), first.to_owned())],
        subjects: reports.iter().map(subject).collect(),
        times: reports.iter().filter_map(time).collect(),
        ignored: evidence.notes.iter().map(|note| format!("{}: {}", note.path, note.why)).collect(),
        command,
    })
}

fn subject(report: &Report) -> Subject {
    Subject {
        title: title(report),
        verdict: verdict(report),
        facts: facts(report),
        findings: findings(report),
        contradictions: report.contradictions.clone(),
        fine: report.fine.clone(),
        missing: missing(report).collect(),
    }
}

/// What it is, where its time goes, and the first finding.
fn facts(report: &Report) -> Vec<(String, String)> {
    let times = vec![("time", shares(report)), ("floor", floor(report))];
    let first = report.findings.first().map_or_else(Vec::new, |Finding { found, .. }| {
        vec![
            ("evidence", found.evidence.join("; ")),
            ("against", found.against.join("; ")),
            ("try first", found.remedy.clone()),
            ("gain", found.gain.to_string()),
        ]
    });
    let named = times.into_iter().chain(first).map(|(name, value)| (name.to_owned(), value));
    report.facts.iter().cloned().chain(named).collect()
}

fn findings(report: &Report) -> Numbers {
    let columns = ["rule", "layer", "severity", "finding", "to try", "gain", "source"];
    let mut rows = Vec::new();
    for finding in &report.findings {
        row(&mut rows, finding, "");
    }
    Numbers {
        title: "Findings".to_owned(),
        caption: "A finding after \u{21b3} follows from the one above it.".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn row(rows: &mut Vec<Vec<String>>, finding: &Finding, indent: &str) {
    let found = &finding.found;
    rows.push(vec![
        format!("{indent}{}", finding.rule.name),
        finding.layer.name().to_owned(),
        found.severity.name().to_owned(),
        found.what.clone(),
        found.remedy.clone(),
        found.gain.to_string(),
        finding.rule.source.to_owned(),
    ]);
    for below in &finding.below {
        row(rows, below, "\u{21b3} ");
    }
}

/// A bar of a mean call.
fn time(report: &Report) -> Option<Cycle> {
    let shares = report.shares.as_ref()?;
    let terms = shares.of_calls.iter().map(|(place, share)| Term {
        name: place.name().to_owned(),
        us: share * shares.call_ms * 1e3,
    });
    Some(Cycle { name: report.name.clone(), terms: terms.collect(), measured_us: None })
}
