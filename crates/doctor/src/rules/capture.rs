//! What a capture of the network shows: the verdict of `nfskit trace` as a finding.

use trace::verdict::Suspect;

use super::{About, Certainty, Found, Layer, NoFinding, Rule, Severity};

/// The finding is made of a verdict ([`found`]), not of counters.
pub(super) static RULE: Rule = Rule {
    name: "capture",
    about: About::Capture,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["a pcap or pcapng file"],
    thresholds: &[],
    source: "docs/trace.md, which has the rules of the verdict with their sources",
    explanation: "The time from the first call of a capture to its last reply is divided among \
                  what the client waited for. The largest share is the verdict, which also decides \
                  the layer.",
    remedy: "As the verdict says.",
    gain: "Cannot be predicted here: `nfskit trace FILE --explain` fits a model.",
    explained_by: &[],
    judge: |_| Err(NoFinding::NotApplicable),
};

/// A verdict with its sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// Client and server, the busiest of the capture.
    pub of: String,
    pub suspect: Suspect,
    /// Of the time.
    pub share: f64,
    pub certainty: Certainty,
    pub what: String,
    pub evidence: Vec<String>,
    pub against: Vec<String>,
    pub remedy: String,
}

pub(crate) fn rule() -> &'static Rule {
    &RULE
}

/// Where what is suspected lies.
pub(crate) const fn layer(suspect: Suspect) -> Layer {
    match suspect {
        Suspect::SlowCommit | Suspect::SlowStableWrite => Layer::Storage,
        Suspect::SmallSyncs | Suspect::AttributeStorm | Suspect::IdleClient => Layer::Application,
        Suspect::Latency
        | Suspect::Rate
        | Suspect::Relay
        | Suspect::Loss
        | Suspect::Retransmission => Layer::Network,
        Suspect::OneOutstanding => Layer::Client,
        Suspect::NoReply
        | Suspect::HangingCalls
        | Suspect::Postponed
        | Suspect::Stalls
        | Suspect::ZeroWindow
        | Suspect::SlowServer => Layer::Server,
    }
}

/// The verdict as a finding: of high severity where it is sure and most of the time.
pub(crate) fn found(captured: &Captured) -> Found {
    let is_most = captured.share > 0.5 && captured.certainty == Certainty::Sure;
    let severity = match captured.suspect {
        Suspect::IdleClient => Severity::Low,
        _ if is_most => Severity::High,
        _ => Severity::Medium,
    };
    let mut found = Found::new(&RULE, &*captured.what, &*captured.remedy)
        .severity(severity)
        .certainty(captured.certainty)
        .unpredicted("nfskit trace FILE --explain fits a model to it");
    (found.evidence, found.against) = (captured.evidence.clone(), captured.against.clone());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(suspect: Suspect, certainty: Certainty) -> Captured {
        Captured {
            of: "a -> b".to_owned(),
            suspect,
            share: 0.8,
            certainty,
            what: "x".to_owned(),
            evidence: Vec::new(),
            against: Vec::new(),
            remedy: "y".to_owned(),
        }
    }

    #[test]
    fn a_sure_verdict_weighs_more_than_a_possible_one_and_an_idle_client_little() {
        let severity = |suspect, certainty| found(&captured(suspect, certainty)).severity;
        assert_eq!(severity(Suspect::SlowCommit, Certainty::Sure), Severity::High);
        assert_eq!(severity(Suspect::SlowCommit, Certainty::Possible), Severity::Medium);
        assert_eq!(severity(Suspect::IdleClient, Certainty::Sure), Severity::Low);
        assert_eq!(layer(Suspect::Loss), Layer::Network);
    }
}
