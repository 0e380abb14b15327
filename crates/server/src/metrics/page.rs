//! The families that an engine has, in the order in which one reads them.

use super::phase::Phase;
use super::procedures::{Tally, tallies};
use super::text::{Kind, Page};
use super::{Metrics, Shard, outcome};

type Value = fn(&Tally) -> u64;

/// Most series of a page, whatever is called by whom: procedures and statuses are those that are
/// known, and one for all others; clients are at most [`CLIENTS_MAX`](super::CLIENTS_MAX) and one.
#[cfg(test)]
const SERIES_MAX: usize = 30_000;

impl Metrics {
    /// Writes what was counted until now.
    pub fn write(&self, page: &mut Page) {
        self.write_procedures(page);
        self.write_clients(page);
        let readings = [
            ("nfskit_calls_in_progress", "Calls begun and not ended.", self.in_progress()),
            (
                "nfskit_calls_abandoned_total",
                "Calls given up before their end, because their connection ended.",
                self.sum(|shard| &shard.abandoned),
            ),
            (
                "nfskit_records_garbled_total",
                "Records that were no call.",
                self.sum(|shard| &shard.garbled),
            ),
        ];
        for (name, help, value) in readings {
            let kind = if name.ends_with("_total") { Kind::Counter } else { Kind::Gauge };
            page.family(name, kind, help).sample(&[], value);
        }
        if let Some((seen, suppressed)) = self.slow_counts() {
            let help = "Calls over the threshold of the log of slow operations.";
            page.family("nfskit_slow_calls_total", Kind::Counter, help).sample(&[], seen);
            let help = "Of these, those that were not logged because there were too many.";
            let name = "nfskit_slow_calls_suppressed_total";
            page.family(name, Kind::Counter, help).sample(&[], suppressed);
        }
    }

    fn write_procedures(&self, page: &mut Page) {
        let shards = self.shards().map(|shard: &Shard| &shard.procedures);
        let tallies = tallies(shards);
        let counters: [(_, _, Value); 3] = [
            ("nfskit_calls_total", "Calls answered, successfully or not.", |tally| tally.calls),
            (
                "nfskit_received_bytes_total",
                "Bytes of calls, headers included, record marks not.",
                |tally| tally.received_bytes,
            ),
            (
                "nfskit_sent_bytes_total",
                "Bytes of replies, headers included, record marks not.",
                |tally| tally.sent_bytes,
            ),
        ];
        for (name, help, value) in counters {
            let mut family = page.family(name, Kind::Counter, help);
            for tally in &tallies {
                let (program, version, procedure) = tally.slot.names();
                let labels =
                    [("program", program), ("version", &version), ("procedure", &procedure)];
                family.sample(&labels, value(tally));
            }
        }
        write_errors(page, &tallies);
        write_spans(page, &tallies);
    }

    fn write_clients(&self, page: &mut Page) {
        let shards = self.shards().map(|shard: &Shard| &shard.clients);
        let (clients, others) = self.clients().tallies(shards, self.now());
        let help = "Clients with counts of their own.";
        page.family("nfskit_clients", Kind::Gauge, help).sample(&[], clients.len());
        let named = clients.iter().map(|(client, totals)| (client.to_string(), *totals));
        let rows: Vec<_> = named.chain([("other".to_owned(), others)]).collect();
        macro_rules! family {
            ($name:literal, $help:literal, $value:expr) => {
                let mut family = page.family($name, Kind::Counter, $help);
                for (client, totals) in &rows {
                    family.sample(&[("client", client)], $value(totals));
                }
            };
        }
        use super::clients::Totals;
        family!("nfskit_client_calls_total", "Calls by client.", |t: &Totals| t.calls);
        family!("nfskit_client_errors_total", "Calls that failed.", |t: &Totals| t.failures);
        family!("nfskit_client_received_bytes_total", "Bytes of calls by client.", |t: &Totals| t
            .received_bytes);
        family!("nfskit_client_sent_bytes_total", "Bytes of replies by client.", |t: &Totals| t
            .sent_bytes);
        family!(
            "nfskit_client_store_seconds_total",
            "Time that procedures worked for a client (phase store).",
            |t: &Totals| t.store.as_secs_f64()
        );
    }
}

fn write_errors(page: &mut Page, tallies: &[Tally]) {
    let help = "Calls that failed: by an NFS or MOUNT status, or refused by RPC.";
    let mut family = page.family("nfskit_errors_total", Kind::Counter, help);
    for tally in tallies {
        let (program, version, procedure) = tally.slot.names();
        for &(kind, count) in &tally.failures {
            let layer = match kind.layer() {
                outcome::Layer::Nfs => "nfs",
                outcome::Layer::Rpc => "rpc",
            };
            let labels = [
                ("program", program),
                ("version", &version),
                ("procedure", &procedure),
                ("layer", layer),
                ("status", &kind.name()),
            ];
            family.sample(&labels, count);
        }
    }
}

fn write_spans(page: &mut Page, tallies: &[Tally]) {
    let help = "From a call's record being read to its reply being there.";
    let mut family = page.family("nfskit_call_seconds", Kind::Histogram, help);
    for tally in tallies {
        let (program, version, procedure) = tally.slot.names();
        let labels = [("program", program), ("version", &version), ("procedure", &procedure)];
        family.distribution(&labels, &tally.response);
    }
    let help = "What the time of calls is spent on; send comes after the reply is there.";
    let mut family = page.family("nfskit_phase_seconds", Kind::Histogram, help);
    for tally in tallies {
        let (program, version, procedure) = tally.slot.names();
        for phase in Phase::ALL {
            let labels = [
                ("program", program),
                ("version", version.as_str()),
                ("procedure", procedure.as_str()),
                ("phase", phase.name()),
            ];
            family.distribution(&labels, &tally.phases[phase as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use perf::units::Instant;
    use wire::record::Message;
    use wire::rpc::Answer;
    use wire::{mount, nfs3, portmap};

    use super::*;
    use crate::metrics::clients::CLIENTS_MAX;
    use crate::metrics::phase::Phases;
    use crate::peer::{Peer, Transport};

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// Replies with every status of NFS that is distinguished and some that are not, and every
    /// reason why RPC refuses.
    fn replies() -> Vec<Vec<u8>> {
        let statuses = (0..130).chain(10_001..10_030).chain([u32::MAX]);
        let accepted = statuses.map(|status| words(&[1, 1, 0, 0, 0, 0, status]));
        let refused = (1..9).map(|why| words(&[1, 1, 0, 0, 0, why]));
        let denied =
            (0..2).flat_map(|kind| (0..12).map(move |why| words(&[1, 1, 1, kind, why, 0])));
        accepted.chain(refused).chain(denied).collect()
    }

    #[test]
    fn whatever_strangers_send_the_page_has_at_most_so_many_series() {
        let metrics = Metrics::new(Arc::new(|| Instant::EPOCH));
        let replies = replies();
        let mut client = 0_u32;
        for program in [nfs3::PROGRAM, mount::PROGRAM, portmap::PROGRAM, 100_099] {
            for version in 0..7 {
                for procedure in 0..40 {
                    let call = words(&[1, 0, 2, program, version, procedure]);
                    // Those that no RFC names share a slot.
                    let is_known = metrics.0.slots.of(&call).names().0 != "other";
                    for reply in replies.iter().take(if is_known { replies.len() } else { 3 }) {
                        client = (client + 1) % (3 * u32::try_from(CLIENTS_MAX).unwrap());
                        let address = IpAddr::V4(Ipv4Addr::from_bits((10 << 24) + client));
                        let peer = Peer::at(SocketAddr::new(address, 700), Transport::Stream);
                        let answer = Answer::Reply(Message::new(reply.clone()));
                        metrics.ended(peer, &call, &answer, Phases::default(), Instant::EPOCH);
                    }
                }
            }
        }
        let mut page = Page::default();
        metrics.write(&mut page);
        let samples: Vec<&str> =
            page.as_str().lines().filter(|line| !line.starts_with('#')).collect();
        let clients = samples.iter().filter(|line| line.starts_with("nfskit_client_calls_total"));
        assert_eq!(clients.count(), CLIENTS_MAX + 1);
        assert!(samples.iter().any(|line| line.contains("status=\"OTHER\"")));
        let series = samples.len();
        assert!((SERIES_MAX / 2..=SERIES_MAX).contains(&series), "{series}");
    }
}
