//! A sequential write by each client, in place of a mix.

use client::session::Session;
use client::transfer::{Event, Kind, Limit};
use load::mix::outcome::Batch;
use load::mix::{self, Operation};
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::clock::Clock;
use tokio::sync::mpsc;
use wire::nfs3::{FileHandle, StableHow};

use super::SimulateError;
use super::topology::{self, Topology};

/// The files, one of each session.
pub(super) async fn files(sessions: &[Session]) -> Result<Vec<FileHandle>, SimulateError> {
    let mut files = Vec::with_capacity(sessions.len());
    let scratch = Scratch::create(&sessions[0], "stream").await?;
    for (number, session) in sessions.iter().enumerate() {
        files.push(scratch.file(session, &format!("f{number}")).await?);
    }
    Ok(files)
}

/// Writes until the end of the time that counts, and what came in that time.
pub(super) async fn run(
    clock: &Clock,
    sessions: &[Session],
    files: &[FileHandle],
    topology: &Topology,
) -> Result<mix::Outcome, SimulateError> {
    let topology::Workload { warm_up, time, outstanding, commit, write, .. } = topology.workload;
    let (warm_up, span) = (warm_up.nanos(), time.nanos());
    let call_bytes = write.map_or(0, |write| u32::try_from(write.0).unwrap_or(u32::MAX));
    let file_bytes = topology.workload.files.0 / sessions.len() as u64;
    let begin = clock.now() + warm_up;
    let end = begin + span;
    let (done, mut runs) = mpsc::unbounded_channel();
    for (at, (session, file)) in sessions.iter().zip(files).enumerate() {
        let (own, session, file, done) = (clock.clone(), session.clone(), *file, done.clone());
        let call_bytes = call_bytes.min(session.sizes().write_bytes_max);
        let workload = Workload {
            call_bytes,
            outstanding,
            file_bytes: file_bytes.max(u64::from(call_bytes)),
            total_bytes: u64::MAX,
            commit_bytes: commit.0.max(1),
            stable: StableHow::Unstable,
            limit: Limit { time: Some(warm_up + span), drain: None },
        };
        clock.spawn(async move {
            let data = seqwrite::pattern(call_bytes as usize);
            let run = seqwrite::run(&own, &session, file, &data, workload).await;
            done.send((at, run)).ok();
        });
    }
    drop(done);
    let of_session = vec![Batch::default(); sessions.len()];
    let mut outcome = mix::Outcome { span, of_session, ..mix::Outcome::default() };
    while let Some((at, run)) = runs.recv().await {
        let events = run?.events.into_iter();
        events
            .filter(|event| begin < event.received && event.received <= end)
            .for_each(|event| count(&mut outcome, at, &event));
    }
    Ok(outcome)
}

fn count(outcome: &mut mix::Outcome, session: usize, event: &Event) {
    let operation = match event.kind {
        Kind::Read => Operation::Read,
        Kind::Write => Operation::Write,
        Kind::Commit => Operation::Commit,
    };
    // From when it was made, as of a mix: what waits at the client waits, too.
    let took = event.received.since(event.made);
    let tally = outcome.operations.entry(operation).or_default();
    tally.response_time.record(took);
    tally.total += took;
    let session = &mut outcome.of_session[session];
    session.answered += 1;
    session.add_response(took);
    outcome.answered += 1;
    outcome.written_bytes += u64::from(event.bytes);
}
