//! The families that an engine has, in the order in which one reads them.

use super::phase::Phase;
use super::procedures::{Tally, tallies};
use super::text::{Kind, Page};
use super::{Metrics, Shard, outcome};

type Value = fn(&Tally) -> u64;

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
        let help = "Clients that are told apart.";
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
