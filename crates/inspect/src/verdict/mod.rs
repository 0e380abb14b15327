//! The verdict on a capture: which one is chosen by the rules of `trace::verdict`.

mod advice;
mod sentences;

use perf::units::Nanos;
use serde_json::{Value, json};
use trace::Analyzer;
use trace::verdict::{Certainty, Chosen, Diagnosis, Evidence, Finding, Suspect, hangs, judge};

use self::advice::advice;
pub(super) use self::sentences::one_way;
use self::sentences::{doubt, grounds, sentence, undecided, unseen};

/// A verdict with what it rests on.
struct Judged {
    evidence: Evidence,
    diagnosis: Diagnosis,
    others: Vec<Other>,
    /// Pairs of which calls hang, too, without a word.
    more: usize,
}

/// Another pair of the capture, and what it mostly waits for.
struct Other {
    evidence: Evidence,
    found: Finding,
}

/// What a capture says, for who has other evidence besides.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Client and server: the busiest of the capture, or one that waits in vain.
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

impl Judged {
    /// None without a call that was answered.
    fn of(analyzer: &Analyzer) -> Option<Self> {
        let resolution_ns = analyzer.resolution_ns();
        let set_back = analyzer.set_back().times;
        let Chosen { evidence, busiest, hanging, more } = Chosen::of(analyzer.flows())?;
        let whole = |evidence| Evidence { resolution_ns, set_back, ..evidence };
        let evidence = whole(evidence);
        let hanging = hanging.into_iter().map(whole).map(|one| (hangs(&one), one));
        let busiest =
            busiest.map(whole).map(|one| (judge(&one).verdict.map(|(found, _)| found), one));
        let others = hanging.chain(busiest);
        let others = others.filter_map(|(found, evidence)| Some(Other { found: found?, evidence }));
        Some(Self { diagnosis: judge(&evidence), evidence, others: others.collect(), more })
    }

    /// What else there is: of others, and of this pair.
    fn besides(&self) -> Vec<String> {
        let others = self.others.iter().map(|other| sentence(&other.evidence, &other.found));
        let own = self.diagnosis.also.iter().map(|one| sentence(&self.evidence, one));
        let more = match self.more {
            0 => None,
            1 => Some("calls of 1 more client hang".to_owned()),
            more => Some(format!("calls of {more} more clients hang")),
        };
        others.chain(more).chain(own).collect()
    }

    /// What speaks against it.
    fn against(&self) -> Vec<String> {
        self.diagnosis.doubts.iter().map(|one| doubt(&self.evidence, *one)).collect()
    }

    fn verdict(&self) -> Result<Answer, String> {
        let Self { evidence, diagnosis, .. } = self;
        let answer = |(found, certainty): (Finding, Certainty)| Answer {
            suspect: found.suspect,
            share: found.share,
            certainty,
            sentence: sentence(evidence, &found),
            evidence: grounds(evidence, &found),
            against: self.against(),
            advice: advice(evidence, found.suspect, &diagnosis.doubts),
        };
        diagnosis.verdict.map(answer).ok_or_else(|| undecided(evidence, diagnosis))
    }
}

pub(super) fn answer(analyzer: &Analyzer) -> Verdict {
    let (begin_ns, end_ns) = analyzer.span_ns();
    let span_ns = end_ns.saturating_sub(begin_ns);
    let seconds = (span_ns > 0).then(|| Nanos::from_nanos(span_ns).as_secs_f64());
    match Judged::of(analyzer) {
        Some(judged) => {
            let of = hosts(&judged.evidence).unwrap_or_default();
            Verdict { of, seconds, verdict: judged.verdict() }
        }
        None => {
            let verdict = Err(unanswered(analyzer));
            Verdict { of: String::new(), seconds, verdict }
        }
    }
}

/// Why a capture without a call that was answered says nothing.
fn unanswered(analyzer: &Analyzer) -> String {
    match one_way(analyzer.one_way()).or_else(|| fragmented(analyzer)) {
        Some(why) => format!("cannot be decided: {why}"),
        None => "it has no NFS call that was answered".to_owned(),
    }
}

/// That calls and replies may be in fragments that were not captured.
pub(super) fn fragmented(analyzer: &Analyzer) -> Option<String> {
    Some(analyzer.first_fragments()).filter(|datagrams| *datagrams > 0).map(unseen)
}

/// As lines: the verdict, the evidence, what speaks against it, what to try.
pub(super) fn lines(seen: &crate::seen::Seen) -> String {
    let Some(judged) = Judged::of(&seen.analyzer) else {
        let is_known = seen.analyzer.one_way() != [0; 2] || fragmented(&seen.analyzer).is_some();
        let why = [unanswered(&seen.analyzer)];
        return if is_known { named("verdict", &why) + "\n" } else { String::new() };
    };
    let also = named("besides", &judged.besides());
    match judged.verdict() {
        Ok(Answer { sentence, certainty, evidence, against, advice, .. }) => {
            let verdict = named("verdict", &[format!("{sentence} ({})", certainty.name())]);
            let why = named("evidence", &evidence) + &named("against", &against);
            let advice = named("to try", &[advice.to_owned()]);
            format!("{verdict}{why}{also}{advice}\n")
        }
        Err(why) => format!("{}{also}\n", named("verdict", &[why])),
    }
}

/// Lines, of which the first has a name.
fn named(name: &str, lines: &[String]) -> String {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names.zip(lines).map(|(name, line)| format!("{name:<12}{line}\n")).collect()
}

fn hosts(evidence: &Evidence) -> Option<String> {
    evidence.hosts.map(|hosts| format!("{} -> {}", hosts.client(), hosts.server))
}

fn finding(evidence: &Evidence, found: &Finding) -> Value {
    json!({
        "suspect": found.suspect.name(),
        "share": found.share,
        "events": found.events,
        "sentence": sentence(evidence, found),
    })
}

pub(super) fn value(seen: &crate::seen::Seen) -> Value {
    let Some(judged) = Judged::of(&seen.analyzer) else { return Value::Null };
    let Judged { evidence, diagnosis, others, .. } = &judged;
    let one = |found: &Finding| finding(evidence, found);
    let other = |other: &Other| {
        let mut value = finding(&other.evidence, &other.found);
        value["of"] = hosts(&other.evidence).into();
        value
    };
    json!({
        "of": hosts(evidence),
        "verdict": diagnosis.verdict.as_ref().map(|(found, _)| one(found)),
        "certainty": diagnosis.verdict.map(|(_, certainty)| certainty.name()),
        "undecided": diagnosis.verdict.is_none().then(|| undecided(evidence, diagnosis)),
        "evidence": diagnosis.verdict.map(|(found, _)| grounds(evidence, &found)),
        "against": judged.against(),
        "also": diagnosis.also.iter().map(one).collect::<Vec<Value>>(),
        "others": others.iter().map(other).collect::<Vec<Value>>(),
        "round_trip_us": evidence.round_trip_ns().map(|ns| Nanos::from_nanos(ns).as_micros_f64()),
        "loss": [evidence.loss(0), evidence.loss(1)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_that_hang_are_named_before_what_else_the_busiest_waits_for() {
        let found = |suspect| Finding { suspect, share: 0.5, events: 4 };
        let mut evidence = Evidence { unanswered: 4, ..Evidence::default() };
        evidence.waited.unanswered = 13_000_000_000;
        let other = Other { evidence, found: found(Suspect::NoReply) };
        let also = vec![found(Suspect::SlowServer)];
        let diagnosis = Diagnosis { verdict: None, doubts: Vec::new(), also };
        let judged =
            Judged { evidence: Evidence::default(), diagnosis, others: vec![other], more: 2 };
        let besides = judged.besides();
        let begins =
            ["the server answers no more: 4 calls have", "calls of 2 more", "the server is slow"];
        assert_eq!(besides.len(), begins.len());
        for (line, begin) in besides.iter().zip(begins) {
            assert!(line.starts_with(begin), "{line}");
        }
    }
}
