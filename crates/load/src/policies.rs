//! One sequential write through a write-behind policy, straight through the library: section 2.4
//! of Lever & Honeyman 2002 without a kernel in between.
//!
//! The caller's thread is the writer, as a program would be; flusher, replies and connection run
//! on the runtime's other threads.

use client::session::Session;
use client::write_behind::{Counters, Options, PolicyName, Stages, WriteBehind};
use net::clock::Clock;
use perf::units::Nanos;
use wire::nfs3::FileHandle;

use crate::error::Error;

/// What to write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Workload {
    pub policy: PolicyName,
    pub file_bytes: u64,
    /// Above zero, and at most the length of the source.
    pub call_bytes: u32,
    pub wsize: u32,
    /// Bound of the bytes in memory; larger than the file, or it takes part in the measurement.
    pub dirty_bytes_max: u64,
    pub timing: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Run {
    /// Time of each call, in their order.
    pub calls: Vec<Nanos>,
    /// From the first call until the last has returned.
    pub written: Nanos,
    /// And until everything is committed.
    pub flushed: Nanos,
    pub stages: Stages,
    pub counters: Counters,
}

impl Run {
    pub fn mean(&self) -> Nanos {
        let sum: f64 = self.calls.iter().map(|call| call.as_secs_f64()).sum();
        Nanos::from_secs_f64(sum / self.calls.len().max(1) as f64)
    }
}

/// Writes a fresh file in calls cut from the beginning of `source`, then commits it.
///
/// # Errors
/// As the server says.
pub async fn run(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    workload: &Workload,
    source: &[u8],
) -> Result<Run, Error> {
    let options = Options {
        policy: workload.policy,
        wsize: workload.wsize,
        dirty_bytes_max: workload.dirty_bytes_max,
        timing: workload.timing,
        put_off_max: Some(client::mount::Options::REPLY_LIMIT),
        ..Options::default()
    };
    let behind = WriteBehind::new(clock, options, std::sync::Arc::new(()));
    let heard = behind.opened(file);
    let call_bytes = u64::from(workload.call_bytes);
    let count = usize::try_from(workload.file_bytes.div_ceil(call_bytes)).unwrap_or(0);
    let mut calls = Vec::with_capacity(count);
    let begun = clock.now();
    let mut before = begun;
    for offset in (0..workload.file_bytes).step_by(workload.call_bytes as usize) {
        let len = call_bytes.min(workload.file_bytes - offset);
        let data = &source[..usize::try_from(len).unwrap_or(source.len())];
        behind.tell(file, &heard)?;
        behind.take(session, file, offset, data).await?;
        // One reading of the clock a call: the loop's own time is the next call's, some ns.
        let now = clock.now();
        calls.push(now.since(before));
        before = now;
    }
    let written = before.since(begun);
    behind.commit(file).await?;
    let flushed = clock.now().since(begun);
    Ok(Run { calls, written, flushed, stages: behind.stages(), counters: behind.counters() })
}
