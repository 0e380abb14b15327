//! The verdict on a capture: which one is chosen by the rules of `trace::verdict`.

mod sentences;

use std::fmt::Write;

use perf::units::Nanos;
use serde_json::{Value, json};
use trace::Analyzer;
use trace::verdict::{Certainty, Diagnosis, Evidence, Finding, Suspect, judge};

use self::sentences::{advice, doubt, grounds, sentence, undecided};

/// A verdict with what it rests on.
struct Judged {
    evidence: Evidence,
    diagnosis: Diagnosis,
}

/// What a capture says, for who has other evidence besides.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Client and server, the busiest of the capture.
    pub of: String,
    /// From the first packet to the last.
    pub seconds: Option<f64>,
    /// Or why there is none.
    pub verdict: Result<Answer, String>,
}

/// A verdict in sentences.
#[derive(Clone, Debug)]
pub struct Answer {
    pub suspect: Suspect,
    /// Of the time.
    pub share: f64,
    pub certainty: Certainty,
    pub sentence: String,
    pub evidence: Vec<String>,
    pub against: Vec<String>,
    pub advice: &'static str,
}

pub(super) fn answer(analyzer: &Analyzer) -> Verdict {
    let (begin_ns, end_ns) = analyzer.span_ns();
    let span_ns = end_ns.saturating_sub(begin_ns);
    let seconds = (span_ns > 0).then(|| Nanos::from_nanos(span_ns).as_secs_f64());
    let Some(evidence) = Evidence::busiest(analyzer.flows()) else {
        let verdict = Err("it has no NFS call that was answered".to_owned());
        return Verdict { of: String::new(), seconds, verdict };
    };
    let diagnosis = judge(&evidence);
    let of = evidence.hosts.map(|hosts| format!("{} -> {}", hosts.client(), hosts.server));
    let against = diagnosis.doubts.iter().map(|one| doubt(&evidence, *one)).collect();
    let verdict = diagnosis.verdict.map(|(found, certainty)| Answer {
        suspect: found.suspect,
        share: found.share,
        certainty,
        sentence: sentence(&evidence, &found),
        evidence: grounds(&evidence, &found),
        against,
        advice: advice(found.suspect),
    });
    let verdict = verdict.ok_or_else(|| undecided(&evidence, &diagnosis));
    Verdict { of: of.unwrap_or_default(), seconds, verdict }
}

/// None without a call that was answered.
fn judged(seen: &super::Seen) -> Option<Judged> {
    let evidence = Evidence::busiest(seen.analyzer.flows())?;
    let diagnosis = judge(&evidence);
    Some(Judged { evidence, diagnosis })
}

/// As lines: the verdict, the evidence, what speaks against it, what to try.
pub(super) fn lines(seen: &super::Seen) -> String {
    let Some(Judged { evidence, diagnosis }) = judged(seen) else { return String::new() };
    let mut out = String::new();
    let mut say = |head: &str, lines: &[String]| {
        for (at, line) in lines.iter().enumerate() {
            writeln!(out, "{:<12}{line}", if at == 0 { head } else { "" }).ok();
        }
    };
    match diagnosis.verdict {
        Some((found, certainty)) => {
            let verdict = format!("{} ({})", sentence(&evidence, &found), certainty.name());
            say("verdict", &[verdict]);
            say("evidence", &grounds(&evidence, &found));
        }
        None => say("verdict", &[undecided(&evidence, &diagnosis)]),
    }
    let doubts: Vec<String> = diagnosis.doubts.iter().map(|one| doubt(&evidence, *one)).collect();
    if diagnosis.verdict.is_some() {
        say("against", &doubts);
    }
    let also: Vec<String> = diagnosis.also.iter().map(|one| sentence(&evidence, one)).collect();
    say("besides", &also);
    if let Some((found, _)) = diagnosis.verdict {
        say("to try", &[advice(found.suspect).to_owned()]);
    }
    out.push('\n');
    out
}

pub(super) fn value(seen: &super::Seen) -> Value {
    let Some(Judged { evidence, diagnosis }) = judged(seen) else { return Value::Null };
    let one = |found: &Finding| {
        json!({
            "suspect": found.suspect.name(),
            "share": found.share,
            "events": found.events,
            "sentence": sentence(&evidence, found),
        })
    };
    let doubts: Vec<String> = diagnosis.doubts.iter().map(|one| doubt(&evidence, *one)).collect();
    json!({
        "of": evidence.hosts.map(|hosts| format!("{} -> {}", hosts.client(), hosts.server)),
        "verdict": diagnosis.verdict.as_ref().map(|(found, _)| one(found)),
        "certainty": diagnosis.verdict.map(|(_, certainty)| certainty.name()),
        "undecided": diagnosis.verdict.is_none().then(|| undecided(&evidence, &diagnosis)),
        "evidence": diagnosis.verdict.map(|(found, _)| grounds(&evidence, &found)),
        "against": doubts,
        "also": diagnosis.also.iter().map(one).collect::<Vec<Value>>(),
        "round_trip_us": evidence.round_trip_ns().map(|ns| Nanos::from_nanos(ns).as_micros_f64()),
        "loss": [evidence.loss(0), evidence.loss(1)],
    })
}
