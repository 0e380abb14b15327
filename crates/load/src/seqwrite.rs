//! One sequential write over NFS (Boumenot 2002, chapters 8 to 11): a number of WRITEs
//! outstanding, a COMMIT after every so many bytes and at the end.
//!
//! It stresses the way to the server and the server's ability to receive while it commits. The
//! clock runs from the first call until the reply to the last COMMIT, so the bytes that are counted
//! are durable. Every call's times are recorded.
//!
//! Differs from the thesis: TCP instead of UDP; the calls are made at the wire, so no client cache
//! is in the way; a file shorter than the transfer is overwritten in place, so that a run measures
//! the steady state and not the allocation of blocks (ask for a fresh file to measure that).

use bytes::Bytes;
use client::session::Session;
use client::transfer::{Event, Kind, Limit, Target, plan};
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::{FileHandle, StableHow};

use crate::cpu::Usage;
use crate::error::Error;

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    pub call_bytes: u32,
    pub outstanding: usize,
    pub file_bytes: u64,
    /// Bytes in all, at most.
    pub total_bytes: u64,
    pub commit_bytes: u64,
    pub stable: StableHow,
    /// When to stop, besides `total_bytes`.
    pub limit: Limit,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Run {
    pub workload: Workload,
    pub started: perf::units::Instant,
    pub elapsed: Nanos,
    /// Bytes that are durable at the end.
    pub bytes: u64,
    /// From the start to the reply that made the last of them durable: all of the time, unless the
    /// run was abandoned.
    pub durable_after: Nanos,
    pub resent_bytes: u64,
    /// Stopped with calls outstanding: what was written after the last COMMIT that was answered is
    /// not among `bytes`.
    pub abandoned: bool,
    /// In order of arrival.
    pub events: Vec<Event>,
    pub cpu: Usage,
}

impl Run {
    /// Durable bytes over the time that they took to become durable. `None` where they say nothing:
    /// where nothing became durable (how fast a server takes what it may lose is something else),
    /// and in a run that was abandoned while what had been written and was not covered, a window
    /// and what a COMMIT covers at most, may be more than half of what is durable.
    pub fn mib_per_s(&self) -> Option<f64> {
        let Workload { call_bytes, outstanding, commit_bytes, .. } = self.workload;
        let window = u64::from(call_bytes).saturating_mul(outstanding as u64);
        let uncovered = commit_bytes.saturating_add(window);
        let is_known = !self.abandoned || self.bytes >= uncovered.saturating_mul(2);
        self.durable_mib_per_s().filter(|_| is_known)
    }

    /// The same of any run: the least that the server can do. `None` where nothing became durable.
    pub fn durable_mib_per_s(&self) -> Option<f64> {
        let time_s = self.durable_after.as_secs_f64();
        (self.bytes > 0 && time_s > 0.0).then(|| self.bytes as f64 / (1 << 20) as f64 / time_s)
    }

    /// Every WRITE's response time, in microseconds.
    pub fn response_times_us(&self) -> impl Iterator<Item = f64> {
        let writes = self.events.iter().filter(|event| event.kind == Kind::Write);
        writes.map(|event| event.received.since(event.sent).as_micros_f64())
    }
}

/// The bytes of every WRITE: pseudo-random, so that no storage can compress or deduplicate them
/// within a call, and the same in every run.
pub fn pattern(bytes: usize) -> Bytes {
    net::floor::pattern(bytes).into()
}

/// Runs the workload on a file that the caller has made.
///
/// # Errors
/// Any call's.
pub async fn run(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    data: &Bytes,
    workload: Workload,
) -> Result<Run, Error> {
    let mut events = Vec::new();
    let options = plan::Options {
        call_bytes: workload.call_bytes,
        file_bytes: workload.file_bytes,
        total_bytes: workload.total_bytes,
        stable: workload.stable,
        commit_bytes: workload.commit_bytes,
    };
    let before = Usage::now();
    let observe = |event| events.push(event);
    let outcome = Target { clock, session, file }
        .write(data, options, workload.outstanding, workload.limit, observe)
        .await?;
    Ok(Run {
        workload,
        started: outcome.started,
        elapsed: outcome.ended.since(outcome.started),
        bytes: outcome.bytes,
        durable_after: outcome.bytes_at.since(outcome.started),
        resent_bytes: outcome.resent_bytes,
        abandoned: outcome.abandoned,
        events,
        cpu: Usage::now().since(before),
    })
}
