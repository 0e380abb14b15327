//! What a run record of ours says: where the time of a call went when it was measured.

use super::{About, Certainty, Found, Gain, Layer, NoFinding, Rule, Severity};

/// The finding is made of a record ([`found`]), not of counters.
pub(super) static RULE: Rule = Rule {
    name: "run-record",
    about: About::Record,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["a run record (--json of study, probe, bench)"],
    thresholds: &[],
    source: "docs/models.md, section 6 (the transaction cycle), and the record's own measurement",
    explanation: "A study or a probe has measured the parts of a call's time: the network round \
                  trip, the bytes, the server's processing, making data stable. The largest part \
                  is the one to change first, and decides the layer.",
    remedy: "As the part says.",
    gain: "What the study of the record has predicted and measured, if it has.",
    explained_by: &[],
    judge: |_| Err(NoFinding::NotApplicable),
};

/// A part of a call's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub name: String,
    pub layer: Layer,
    pub us: f64,
}

/// What a record has in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// `study of nfs://server/export, 2026-01-02T03:04:05Z`.
    pub of: String,
    /// Of a call of 8 KiB that is made stable; empty where the record has no such.
    pub parts: Vec<Part>,
    /// What more calls outstanding were predicted to give, and gave.
    pub gain: Option<(f64, f64)>,
    pub warnings: Vec<String>,
}

pub(crate) fn rule() -> &'static Rule {
    &RULE
}

/// The largest part as a finding; none without parts.
pub(crate) fn found(recorded: &Recorded) -> Option<(Layer, Found)> {
    let all: f64 = recorded.parts.iter().map(|part| part.us).sum();
    let most = recorded.parts.iter().max_by(|a, b| a.us.total_cmp(&b.us))?;
    if all <= 0.0 {
        return None;
    }
    let share = most.us / all;
    let what = format!(
        "{} takes {:.0} % of the {:.2} ms of a small write that is made stable",
        most.name,
        share * 100.0,
        all / 1e3
    );
    let mut found = Found::new(&RULE, what, remedy(most.layer))
        .severity(if share > 0.5 { Severity::Medium } else { Severity::Low })
        .certainty(if recorded.warnings.is_empty() { Certainty::Sure } else { Certainty::Likely });
    found = match recorded.gain {
        Some((predicted, measured)) => found
            .evidence(format!(
                "more at once: {predicted:.1} times predicted, {measured:.1} measured"
            ))
            .gain(Gain::faster("bytes", (predicted, measured), "the record's own study")),
        None => found.unpredicted("the record has no study of a change"),
    };
    for part in &recorded.parts {
        found = found.evidence(format!("{} {:.0} us", part.name, part.us));
    }
    found.against.clone_from(&recorded.warnings);
    Some((most.layer, found))
}

fn remedy(layer: Layer) -> &'static str {
    match layer {
        Layer::Network | Layer::NetworkOrServer => {
            "more calls outstanding (nconnect, larger wsize), or a shorter path"
        }
        Layer::Server => "the server's processors and threads: nfskit doctor there",
        Layer::Storage => "a log on fast stable storage; fewer syncs, each of more data",
        Layer::Client | Layer::Application => "what this host does besides: top, perf top",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(us: [f64; 3], warnings: &[&str]) -> Recorded {
        let layers = [Layer::Network, Layer::Server, Layer::Storage];
        let part = |(layer, us): (Layer, f64)| Part { name: layer.name().to_owned(), layer, us };
        Recorded {
            parts: layers.into_iter().zip(us).map(part).collect(),
            warnings: warnings.iter().map(|one| (*one).to_owned()).collect(),
            ..Recorded::default()
        }
    }

    #[test]
    fn the_largest_part_is_the_finding_and_warnings_make_it_less_sure() {
        let (layer, sure) = found(&recorded([200.0, 100.0, 700.0], &[])).unwrap();
        assert_eq!((layer, sure.certainty), (Layer::Storage, Certainty::Sure));
        assert!(sure.what.starts_with("storage takes 70 % of the 1.00 ms"), "{sure:?}");
        let (_, likely) = found(&recorded([200.0, 300.0, 100.0], &["others worked"])).unwrap();
        assert_eq!(likely.certainty, Certainty::Likely);
        assert_eq!(likely.against, ["others worked"]);
    }

    #[test]
    fn a_record_without_parts_has_none() {
        assert_eq!(found(&Recorded::default()), None);
        assert_eq!(found(&recorded([0.0; 3], &[])), None);
    }
}
