//! `--metrics` of a relay: what it counts, for Prometheus.

use std::net::SocketAddr;

use net::clock::Clock;
use net::http::Listener;
use net::relay::{Carried, Counts, Relay};
use perf::histogram::Histogram;
use server::metrics::Reading;

use crate::exit::Failure;
use crate::{hints, metrics};

/// Answers /metrics and /healthz in a task of its own; gives the address that it listens on.
pub fn serve(listen: SocketAddr, relay: &Relay, clock: &Clock) -> Result<SocketAddr, Failure> {
    let bound = Listener::bind(listen).and_then(|bound| Ok((bound.local_addr()?, bound)));
    let (address, listener) = bound.map_err(|cause| hints::metrics(listen, &cause))?;
    let relay = relay.clone();
    metrics::serve_page(listener, clock, move |page| page.readings(&readings(&relay.counts())));
    Ok(address)
}

fn readings(counts: &Counts) -> Vec<Reading> {
    let mut all = Vec::new();
    for (direction, carried) in [("there", &counts.there), ("back", &counts.back)] {
        all.extend(way(carried).into_iter().map(|reading| reading.of("direction", direction)));
        all.extend(carried.lost.iter().map(|(loss, count)| {
            Reading::new("nfskit_link_lost_total", "Messages lost, by cause.", *count as f64)
                .of("direction", direction)
                .of("cause", loss.name())
        }));
    }
    let rows = [
        ("nfskit_link_connections", "Connections relayed now.", counts.connections),
        ("nfskit_link_sessions", "Sources of datagrams relayed now.", counts.sessions),
        ("nfskit_link_held_allowance_bytes", "Memory set aside for messages.", counts.bytes_held),
        ("nfskit_link_accepted_total", "Connections let in.", counts.accepted),
        ("nfskit_link_refused_total", "Connections without a place.", counts.refused),
        ("nfskit_link_strangers_total", "Connections of other users.", counts.strangers),
        ("nfskit_link_evicted_total", "Connections that left for others.", counts.evicted),
        ("nfskit_link_unreachable_total", "Connections without server.", counts.unreachable),
        ("nfskit_link_broken_total", "Connections that broke.", counts.broken),
        ("nfskit_link_garbled_total", "Connections with malformed records.", counts.garbled),
        ("nfskit_link_given_up_total", "Connections of peers that did nothing.", counts.given_up),
    ];
    all.extend(rows.map(|(name, help, count)| Reading::new(name, help, count as f64)));
    all
}

fn way(carried: &Carried) -> Vec<Reading> {
    let rows = [
        ("nfskit_link_messages_total", "Messages that came.", carried.messages),
        ("nfskit_link_bytes_total", "Their bytes, with marks.", carried.bytes),
        ("nfskit_link_passed_total", "Messages handed on.", carried.passed),
        ("nfskit_link_passed_bytes_total", "Their bytes, with marks.", carried.passed_bytes),
        ("nfskit_link_duplicated_total", "Datagrams that came twice.", carried.duplicated),
        ("nfskit_link_reordered_total", "Messages held back.", carried.reordered),
        ("nfskit_link_corrupted_total", "Datagrams with a wrong bit.", carried.corrupted),
        (
            "nfskit_link_retransmitted_total",
            "Packets of streams retransmitted.",
            carried.retransmitted,
        ),
        ("nfskit_link_held", "Messages on their way.", carried.held),
        ("nfskit_link_held_bytes", "Their bytes, with marks.", carried.held_bytes),
    ];
    let counts = rows.map(|(name, help, count)| Reading::new(name, help, count as f64));
    let wait = ("nfskit_link_wait_seconds", "Wait for the link to be free.");
    let late = ("nfskit_link_late_seconds", "How late messages were handed on.");
    counts
        .into_iter()
        .chain(shares(wait, &carried.queued))
        .chain(shares(late, &carried.late))
        .collect()
}

/// Those that so many messages show. Not as `quantile`, which only summaries may have.
fn shares(
    (name, help): (&'static str, &'static str),
    spans: &Histogram,
) -> impl Iterator<Item = Reading> {
    let shares = [("0.5", 0.5), ("0.99", 0.99), ("1", 1.0)].into_iter();
    shares.filter_map(move |(share, q)| {
        let span = spans.quantile_if_known(q)?;
        Some(Reading::new(name, help, span.as_secs_f64()).of("share", share))
    })
}

#[cfg(test)]
mod tests {
    use net::relay::Loss;
    use perf::units::Nanos;
    use server::metrics::Page;

    use super::*;

    /// Those of a relay that so many messages have passed in each direction.
    fn counts(messages: u64) -> Counts {
        let mut counts = Counts::default();
        for carried in [&mut counts.there, &mut counts.back] {
            carried.queued.record_n(Nanos::from_micros(1), messages);
            carried.late.record_n(Nanos::from_micros(1), messages);
        }
        counts
    }

    fn page(counts: &Counts) -> String {
        let mut page = Page::default();
        page.readings(&readings(counts));
        page.into_string()
    }

    #[test]
    fn shares_that_too_few_messages_show_have_no_sample() {
        let [none, one, some] = [0, 1, 99].map(|messages| page(&counts(messages)));
        assert!(!none.contains("share="), "{none}");
        assert!(one.contains("share=\"1\"") && !one.contains("share=\"0.5\""), "{one}");
        assert!(some.contains("share=\"0.5\"") && !some.contains("share=\"0.99\""), "{some}");
    }

    /// promtool refuses labels that belong to summaries and histograms.
    #[test]
    fn no_label_is_prometheus_own() {
        let page = page(&counts(100));
        assert!(page.contains("share=\"0.99\""), "{page}");
        assert!(!page.contains("quantile=") && !page.contains("le=\""), "{page}");
    }

    #[test]
    fn every_number_is_in_the_manual() {
        let mut counts = counts(100);
        counts.there.lost.insert(Loss::Chance, 1);
        let manual = include_str!("../../../../docs/link-relay.md");
        for reading in readings(&counts) {
            assert!(manual.contains(&format!("`{}`", reading.name)), "{}", reading.name);
        }
    }
}
