//! Sequential transfers with many calls outstanding.
//!
//! Writing: [`plan`] decides what comes next, [`write()`] keeps as many calls outstanding as it
//! was told and reports every reply. Reading: [`read()`] likewise.

pub mod plan;

use bytes::Bytes;
use futures_util::future::Either;
use futures_util::stream::{FuturesUnordered, StreamExt};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, StableHow};

use crate::error::Error;
use crate::session::Session;
use plan::{Action, Plan, Span};

/// When to stop handing out new calls, besides the end of the data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit {
    /// No new call after this long.
    pub time: Option<Nanos>,
}

/// One call that was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    pub kind: Kind,
    pub sent: Instant,
    pub received: Instant,
    /// Bytes acknowledged or read.
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Read,
    Write,
    Commit,
}

/// What a transfer did.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub started: Instant,
    /// The last reply, that of the last COMMIT when there was one.
    pub ended: Instant,
    /// Bytes that are durable (written) or arrived (read).
    pub bytes: u64,
    /// Bytes that had to be written again.
    pub resent_bytes: u64,
}

/// Writes `data`, over and over, as `options` say, with `outstanding` calls at a time; COMMITs
/// count as calls. Ends when everything is durable. `observe` sees every reply.
///
/// # Errors
/// The first error of any call; the other calls are abandoned.
pub async fn write(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    data: &Bytes,
    options: plan::Options,
    outstanding: usize,
    limit: Limit,
    mut observe: impl FnMut(Event),
) -> Result<Outcome, Error> {
    let mut plan = Plan::new(options);
    let mut calls = FuturesUnordered::new();
    let started = clock.now();
    let mut ended = started;
    let mut acknowledged = 0;
    loop {
        if limit
            .time
            .is_some_and(|time| clock.now().since(started) >= time)
        {
            plan.finish();
        }
        while calls.len() < outstanding.max(1) {
            match plan.next_action() {
                Action::Write(span) => {
                    let data = data.slice(..(span.bytes as usize).min(data.len()));
                    calls.push(Either::Left(write_span(
                        session,
                        file,
                        span,
                        data,
                        options.stable,
                    )));
                }
                Action::Commit => calls.push(Either::Right(commit(session, file))),
                Action::Wait | Action::Done => break,
            }
        }
        let Some(reply) = calls.next().await else {
            break;
        };
        let event = match reply? {
            Reply::Written {
                span,
                event,
                committed,
                verifier,
            } => {
                acknowledged += u64::from(event.bytes);
                plan.on_written(span, event.bytes, committed, verifier);
                event
            }
            Reply::Committed { event, verifier } => {
                plan.on_committed(verifier);
                event
            }
        };
        ended = event.received;
        observe(event);
    }
    let resent_bytes = plan.resent_bytes();
    let bytes = acknowledged.saturating_sub(plan.lost_bytes());
    Ok(Outcome {
        started,
        ended,
        bytes,
        resent_bytes,
    })
}

enum Reply {
    Written {
        span: Span,
        event: Event,
        committed: StableHow,
        verifier: [u8; 8],
    },
    Committed {
        event: Event,
        verifier: [u8; 8],
    },
}

async fn write_span(
    session: &Session,
    file: FileHandle,
    span: Span,
    data: Bytes,
    stable: StableHow,
) -> Result<Reply, Error> {
    let timed = session.write(file, span.offset, data, stable).await?;
    let event = Event {
        kind: Kind::Write,
        sent: timed.answer.sent,
        received: timed.answer.received,
        bytes: timed.reply.count,
    };
    let (committed, verifier) = (timed.reply.committed, timed.reply.verf);
    Ok(Reply::Written {
        span,
        event,
        committed,
        verifier,
    })
}

async fn commit(session: &Session, file: FileHandle) -> Result<Reply, Error> {
    let timed = session.commit(file, 0, 0).await?;
    let event = Event {
        kind: Kind::Commit,
        sent: timed.answer.sent,
        received: timed.answer.received,
        bytes: 0,
    };
    Ok(Reply::Committed {
        event,
        verifier: timed.reply.verf,
    })
}

/// Reads a file from its beginning to `file_bytes` with `outstanding` calls of `call_bytes`.
/// `observe` sees every reply with its offset and data, in order of arrival.
///
/// # Errors
/// The first error of any call; the other calls are abandoned.
pub async fn read(
    clock: &Clock,
    session: &Session,
    file: FileHandle,
    file_bytes: u64,
    call_bytes: u32,
    outstanding: usize,
    mut observe: impl FnMut(Event, u64, &Bytes),
) -> Result<Outcome, Error> {
    let call = |offset: u64, count: u32| async move {
        let timed = session.read_timed(file, offset, count).await?;
        Ok::<_, Error>((offset, count, timed))
    };
    let mut calls = FuturesUnordered::new();
    let started = clock.now();
    let (mut ended, mut bytes, mut next) = (started, 0, 0);
    loop {
        while calls.len() < outstanding.max(1) && next < file_bytes {
            let left = u32::try_from(file_bytes - next).unwrap_or(u32::MAX);
            let count = call_bytes.max(1).min(left);
            calls.push(call(next, count));
            next += u64::from(count);
        }
        let Some(reply) = calls.next().await else {
            break;
        };
        let (offset, count, timed) = reply?;
        let got = u32::try_from(timed.reply.data.len()).unwrap_or(u32::MAX);
        // A short read in the middle of the file is legal: ask for the rest.
        if got < count && got > 0 && !timed.reply.eof {
            calls.push(call(offset + u64::from(got), count - got));
        }
        ended = timed.answer.received;
        bytes += u64::from(got);
        let (sent, received) = (timed.answer.sent, timed.answer.received);
        observe(
            Event {
                kind: Kind::Read,
                sent,
                received,
                bytes: got,
            },
            offset,
            &timed.reply.data,
        );
    }
    Ok(Outcome {
        started,
        ended,
        bytes,
        resent_bytes: 0,
    })
}
