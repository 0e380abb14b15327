//! The findings as JSON.

use serde_json::{Value, json};

use crate::finding::{Finding, Gain};
use crate::shares::Shares;
use crate::{Evidence, Report};

pub fn text(evidence: &Evidence, reports: &[Report]) -> String {
    let notes = evidence.notes.iter().map(|note| json!({"path": note.path, "why": note.why}));
    let value = json!({
        "schema": "nfskit.doctor/1",
        "seconds": evidence.between_s(),
        "reports": reports.iter().map(report).collect::<Vec<Value>>(),
        "ignored": notes.collect::<Vec<Value>>(),
    });
    format!("{value:#}\n")
}

fn report(report: &Report) -> Value {
    let facts = report.facts.iter().map(|(name, value)| (name.clone(), json!(value)));
    let missing = report.missing.iter().map(|one| json!({"what": one.what, "run": one.run}));
    json!({
        "name": report.name,
        "facts": facts.collect::<serde_json::Map<String, Value>>(),
        "about": format!("{:?}", report.about).to_lowercase(),
        "since_beginning": report.is_lifetime,
        "seconds": report.span.seconds,
        "verdict": report.verdict,
        "certainty": report.certainty.name(),
        "time": report.shares.as_ref().map(time),
        "floor_ms": report.floor.map(|floor| floor.ms),
        "network_ms_max": report.floor.map(|floor| floor.most_ms),
        "contradictions": report.contradictions,
        "severity": report.severity().map(crate::Severity::name),
        "findings": report.findings.iter().map(finding).collect::<Vec<Value>>(),
        "fine": report.fine,
        "missing": missing.collect::<Vec<Value>>(),
    })
}

fn time(shares: &Shares) -> Value {
    let of_calls =
        shares.of_calls.iter().map(|(place, share)| (place.name().replace(' ', "_"), json!(share)));
    json!({
        "of_calls": of_calls.collect::<serde_json::Map<String, Value>>(),
        "application_at_least": shares.application,
    })
}

fn finding(finding: &Finding) -> Value {
    let found = &finding.found;
    let gain = match &found.gain {
        Gain::Faster { of, least, most, model } => {
            json!({"of": of, "least": least, "most": most, "model": model})
        }
        Gain::Unpredicted(why) => json!({"unpredicted": why}),
    };
    json!({
        "rule": finding.rule.name,
        "layer": finding.layer.name(),
        "severity": found.severity.name(),
        "certainty": found.certainty.name(),
        "what": found.what,
        "evidence": found.evidence,
        "against": found.against,
        "remedy": found.remedy,
        "gain": gain,
        "source": finding.rule.source,
        "explains": finding.below.iter().map(self::finding).collect::<Vec<Value>>(),
    })
}
