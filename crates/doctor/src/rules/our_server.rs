//! Where the time of a call goes in our own server, by its metrics.

use super::{About, Rule};
use crate::finding::{Certainty, Found, Gain, Judged, Layer, Severity};
use crate::shares::{Shares, Where};

/// The finding is made of a page of metrics ([`found`]), not of the kernel's counters.
pub(super) static RULE: Rule = Rule {
    name: "our-server",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::Medium,
    needs: &["nfskit serve --metrics ADDRESS:PORT"],
    thresholds: &[],
    source: "docs/metrics.md, where the time of a call goes; the limits (half of the time, 1 ms, a \
             twentieth of the time with a call in service) are ours",
    explanation: "Our server tells for each call how long it waited for its turn, was worked on, \
                  waited for the store, and was sent. The phase that takes most is what to change.",
    remedy: "By phase: threads, processors, storage, or the client that does not take its replies.",
    gain: "The share of the time that the phase takes, where half to all of it goes away.",
    explained_by: &[],
    judge: |_| Judged::Quiet,
};

/// What a page of metrics says, or what came between two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OurServed {
    pub address: String,
    pub calls: f64,
    pub calls_per_s: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Of a mean call, by the names of docs/metrics.md.
    pub phases_ms: Vec<(String, f64)>,
    /// Retransmissions that were answered from the reply cache.
    pub replayed: f64,
    /// Calls in service at a time, on average.
    pub in_service: Option<f64>,
    pub processors: Option<f64>,
    pub syncs_per_s: Option<f64>,
}

pub(crate) fn rule() -> &'static Rule {
    &RULE
}

/// What each phase waits for, and what to do about it.
const PHASES: [(&str, Layer, &str, &str); 5] = [
    ("queue", Layer::Server, "waiting for a turn", "more --threads; --commit-mode concurrent"),
    ("decode", Layer::Server, "the engine's own work", "more processors; nfskit serve --slow-log"),
    ("store", Layer::Server, "work in the store", "faster processors, directories in memory"),
    ("sync_wait", Layer::Storage, "waiting for the store", "faster stable storage: a log, an SSD"),
    ("send", Layer::Network, "sending replies", "the clients' side: nfskit doctor there; the link"),
];

/// The phase that takes most, if calls take long and half of that is its.
pub(crate) fn found(served: &OurServed) -> Option<(Layer, Found)> {
    let all: f64 = served.phases_ms.iter().map(|(_, ms)| ms).sum();
    let (name, ms) = served.phases_ms.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (_, layer, what, remedy) = PHASES.iter().find(|(known, ..)| known == name)?;
    let share = ms / all;
    let is_idle = served.in_service.is_some_and(|busy| busy < 0.05);
    let retransmitted = served.replayed / served.calls.max(1.0);
    if is_idle || all < 1.0 || share < 0.5 {
        return None;
    }
    let mut found = Found::new(
        &RULE,
        format!("{what} takes {:.0} % of the {all:.1} ms of a call", share * 100.0),
        *remedy,
    )
    .severity(if all > 20.0 { Severity::High } else { Severity::Medium })
    .certainty(Certainty::Likely)
    .gain(Gain::faster(
        "work",
        (1.0 / (1.0 - share / 2.0), 1.0 / (1.0 - share).max(0.1)),
        "half of this phase to all of it goes away",
    ));
    for (name, ms) in &served.phases_ms {
        found = found.evidence(format!("{name} {ms:.2} ms"));
    }
    if retransmitted > 0.0005 {
        found = found.evidence(format!("{:.0} calls came a second time", served.replayed));
    }
    Some((*layer, found))
}

/// Where the time of a mean call goes.
pub(crate) fn shares(served: &OurServed) -> Option<Shares> {
    let all: f64 = served.phases_ms.iter().map(|(_, ms)| ms).sum();
    let of = |layer: Layer| {
        let phases = served.phases_ms.iter().filter(|(name, _)| {
            PHASES.iter().any(|(known, found, ..)| known == name && *found == layer)
        });
        (Where::Layer(layer), phases.map(|(_, ms)| ms / all).sum())
    };
    (all > 0.0).then(|| Shares {
        of_calls: [Layer::Network, Layer::Server, Layer::Storage].map(of).to_vec(),
        call_ms: all,
        application: None,
    })
}

/// The numbers of a server that is well.
pub(crate) fn well(served: &OurServed) -> String {
    let rate = served.calls_per_s.map_or(String::new(), |rate| format!(", {rate:.1}/s"));
    let p99 = served.p99_ms.map_or(String::new(), |ms| format!(", 99 % within {ms:.2} ms"));
    format!("{:.0} calls{rate}{p99}, {:.0} came a second time", served.calls, served.replayed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(sync_ms: f64, in_service: f64) -> OurServed {
        OurServed {
            calls: 1_000.0,
            in_service: Some(in_service),
            phases_ms: vec![("queue".to_owned(), 0.1), ("sync_wait".to_owned(), sync_ms)],
            ..OurServed::default()
        }
    }

    #[test]
    fn the_phase_that_takes_most_of_a_slow_call_is_found() {
        let (layer, all) = found(&served(30.0, 2.0)).unwrap();
        assert_eq!((layer, all.severity), (Layer::Storage, Severity::High));
        assert!(
            all.what.starts_with("waiting for the store takes 100 % of the 30.1 ms"),
            "{all:?}"
        );
    }

    #[test]
    fn fast_calls_and_few_of_them_are_well() {
        assert_eq!(found(&served(0.3, 2.0)), None);
        assert_eq!(found(&served(30.0, 0.01)), None);
        assert!(well(&served(1.0, 1.0)).starts_with("1000 calls"));
        let shares = shares(&served(0.3, 2.0)).unwrap();
        assert!((shares.of_calls[2].1 - 0.75).abs() < 1e-9, "{shares:?}");
    }
}
