//! What is counted, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use client::url::Version;
use net::call::{Counters, ProcedureCounters};
use server::metrics::Reading;
use wire::{nfs2, nfs3};

use crate::disk::Disk;
use crate::remote::Remote;

/// What is counted beside the calls.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    reads_ahead: AtomicU64,
    bytes_ahead: AtomicU64,
    pub(crate) away: AtomicU64,
    pub(crate) offline: AtomicU64,
    pub(crate) nonsense: AtomicU64,
}

impl Counts {
    pub(crate) fn read_ahead(&self, bytes: usize) {
        self.reads_ahead.fetch_add(1, Ordering::Relaxed);
        self.bytes_ahead.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Remote {
    pub(crate) fn all_readings(&self) -> Vec<Reading> {
        let mut readings = self.counter_readings();
        let Counts { reads_ahead, bytes_ahead, away, offline, nonsense } = &self.counts;
        let counted = |of: &AtomicU64| of.load(Ordering::Relaxed) as f64;
        readings.extend([
            Reading::new(
                "nfskit_readahead_hits_total",
                "READs answered from what was read ahead, without a call of their own.",
                counted(reads_ahead),
            ),
            Reading::new(
                "nfskit_readahead_hit_bytes_total",
                "Bytes of these READs.",
                counted(bytes_ahead),
            ),
            Reading::new(
                "nfskit_readahead_bytes",
                "Bytes held, or being fetched, ahead of readers.",
                self.ahead.held_bytes() as f64,
            ),
            Reading::new(
                "nfskit_proxy_handles",
                "Handles of the origin that are in the table, because they do not fit into ours.",
                self.handles.rows() as f64,
            ),
            Reading::new(
                "nfskit_proxy_away_total",
                "Calls of clients that failed because the origin did not answer in time.",
                counted(away),
            ),
            Reading::new(
                "nfskit_proxy_offline_total",
                "Calls answered by what was known while the origin was away (--offline-reads).",
                counted(offline),
            ),
            Reading::new(
                "nfskit_proxy_nonsense_total",
                "Calls of clients that failed because the origin's reply made no sense.",
                counted(nonsense),
            ),
        ]);
        readings.extend(self.disk.iter().flat_map(Disk::readings));
        readings
    }

    fn counter_readings(&self) -> Vec<Reading> {
        let Counters { procedures, transport, .. } = self.session().rpc().counters();
        let called = procedures.iter().enumerate().filter(|(_, counted)| counted.ops > 0);
        let calls = called.flat_map(|(number, counted)| calls(self.procedure(number), counted));
        let connects = Reading::new(
            "nfskit_origin_connects_total",
            "Connections to the origin that were made.",
            transport.connects as f64,
        );
        calls.chain([connects]).collect()
    }

    fn procedure(&self, number: usize) -> &'static str {
        let code = u32::try_from(number).unwrap_or(u32::MAX);
        let name = match self.session().version() {
            Version::Two => nfs2::Procedure::from_code(code).map(nfs2::Procedure::name),
            Version::Three => nfs3::Procedure::from_code(code).map(nfs3::Procedure::name),
        };
        name.unwrap_or("other")
    }
}

/// What is counted of a procedure of the origin's.
fn calls(procedure: &'static str, counted: &ProcedureCounters) -> [Reading; 4] {
    let rows = [
        (
            "nfskit_origin_calls_total",
            "Calls to the origin that have ended, well or not.",
            counted.ops as f64,
        ),
        (
            "nfskit_origin_retransmissions_total",
            "Retransmissions of calls to the origin.",
            counted.retransmissions as f64,
        ),
        (
            "nfskit_origin_major_timeouts_total",
            "Times that a call to the origin had no reply for timeo x retrans.",
            counted.major_timeouts as f64,
        ),
        (
            "nfskit_origin_seconds_total",
            "Seconds that calls to the origin took, from asking to the reply.",
            counted.execute.as_secs_f64(),
        ),
    ];
    rows.map(|(name, help, value)| Reading::new(name, help, value).of("procedure", procedure))
}
