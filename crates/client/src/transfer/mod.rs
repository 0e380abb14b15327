//! Sequential transfers with many calls outstanding.
//!
//! Writing: [`plan`] decides what comes next, [`Target::write`] keeps as many calls outstanding as
//! the plan says and reports every reply. Reading: [`Target::read`] likewise.

pub mod plan;

use std::pin::pin;

use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use net::call::Answer;
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, StableHow};

use crate::error::Error;
use crate::session::Session;
use plan::{Action, Plan, Span};

/// When to stop handing out new calls, besides the end of the data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Limit {
    /// No new call after this long.
    pub time: Option<Nanos>,
    /// After `time`, calls that are outstanding get this much longer; then they are abandoned.
    /// Their connection should be, too: they still wait in it.
    pub drain: Option<Nanos>,
}

/// One call that was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    pub kind: Kind,
    /// When the call was made: before it waited to be sent, on a link that was busy.
    pub made: Instant,
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
    /// The reply that made the last of `bytes` durable, or that brought it; `started` without any.
    pub bytes_at: Instant,
    /// Bytes that had to be written again.
    pub resent_bytes: u64,
    /// Calls were left behind at the limit: what was written after the last COMMIT that was
    /// answered is not among `bytes`.
    pub abandoned: bool,
}

/// A file to transfer to or from.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub clock: &'a Clock,
    pub session: &'a Session,
    pub file: FileHandle,
}

impl Target<'_> {
    /// Writes `data`, over and over, as `options` say, with `outstanding` calls at a time; COMMITs
    /// count as calls. Ends when everything is durable. `observe` sees every reply.
    ///
    /// # Errors
    /// The first error of any call; the other calls are abandoned.
    pub async fn write(
        &self,
        data: &Bytes,
        options: plan::Options,
        outstanding: usize,
        limit: Limit,
        mut observe: impl FnMut(Event),
    ) -> Result<Outcome, Error> {
        let mut plan = Plan::new(options);
        let mut calls = FuturesUnordered::new();
        let started = self.clock.now();
        let mut outcome = Outcome::at(started);
        // One timer for the whole transfer, and none for what has no end.
        let end = limit.time.zip(limit.drain).map(|(time, drain)| time + drain);
        let mut end = pin!(async {
            match end {
                Some(span) => self.clock.sleep(span).await,
                None => std::future::pending().await,
            }
        });
        loop {
            if limit.time.is_some_and(|time| self.clock.now() >= started + time) {
                plan.finish();
            }
            while calls.len() < outstanding.max(1) {
                match plan.next_action() {
                    Action::Write(span) => {
                        let data = data.slice(..(span.bytes as usize).min(data.len()));
                        calls.push(Either::Left(self.write_span(span, data, options.stable)));
                    }
                    Action::Commit => calls.push(Either::Right(self.commit())),
                    Action::GiveUp => {
                        let what = "the write verifier is another one each time: the server loses \
                                    all that it is given";
                        return Err(self.session.nonsense("COMMIT", what));
                    }
                    Action::Wait | Action::Done => break,
                }
            }
            let reply = match select(calls.next(), &mut end).await {
                Either::Left((Some(reply), _)) => reply,
                Either::Left((None, _)) => break,
                Either::Right(_) => {
                    outcome.abandoned = true;
                    break;
                }
            };
            let event = match reply? {
                Reply::Written { span, event, committed, verifier } => {
                    plan.on_written(span, event.bytes, committed, verifier);
                    event
                }
                Reply::Committed { event, verifier } => {
                    plan.on_committed(verifier);
                    event
                }
            };
            outcome.ended = event.received;
            if plan.durable_bytes() > outcome.bytes {
                (outcome.bytes, outcome.bytes_at) = (plan.durable_bytes(), event.received);
            }
            observe(event);
        }
        outcome.resent_bytes = plan.resent_bytes();
        Ok(outcome)
    }

    /// Reads the file from its beginning to `file_bytes` with `outstanding` calls of `call_bytes`.
    /// `observe` sees every reply with its offset and data, in order of arrival.
    ///
    /// # Errors
    /// The first error of any call; the other calls are abandoned.
    pub async fn read(
        &self,
        file_bytes: u64,
        call_bytes: u32,
        outstanding: usize,
        mut observe: impl FnMut(Event, u64, &Bytes),
    ) -> Result<Outcome, Error> {
        let call = |offset: u64, count: u32| async move {
            let made = self.clock.now();
            let timed = self.session.read_timed(self.file, offset, count).await?;
            Ok::<_, Error>((offset, count, made, timed))
        };
        let mut calls = FuturesUnordered::new();
        let mut outcome = Outcome::at(self.clock.now());
        let mut next = 0;
        loop {
            while calls.len() < outstanding.max(1) && next < file_bytes {
                let left = u32::try_from(file_bytes - next).unwrap_or(u32::MAX);
                let count = call_bytes.max(1).min(left);
                calls.push(call(next, count));
                next += u64::from(count);
            }
            let Some(reply) = calls.next().await else { break };
            let (offset, count, made, timed) = reply?;
            let got = u32::try_from(timed.reply.data.len()).unwrap_or(u32::MAX);
            // A short read in the middle of the file is legal: ask for the rest.
            if got < count && got > 0 && !timed.reply.eof {
                calls.push(call(offset + u64::from(got), count - got));
            }
            let event = Event::new(Kind::Read, made, &timed.answer, got);
            outcome.ended = event.received;
            outcome.bytes += u64::from(got);
            outcome.bytes_at = event.received;
            observe(event, offset, &timed.reply.data);
        }
        Ok(outcome)
    }

    async fn write_span(&self, span: Span, data: Bytes, stable: StableHow) -> Result<Reply, Error> {
        let made = self.clock.now();
        let timed = self.session.write(self.file, span.offset, data, stable).await?;
        let event = Event::new(Kind::Write, made, &timed.answer, timed.reply.count);
        let (committed, verifier) = (timed.reply.committed, timed.reply.verf);
        Ok(Reply::Written { span, event, committed, verifier })
    }

    async fn commit(&self) -> Result<Reply, Error> {
        let made = self.clock.now();
        let timed = self.session.commit(self.file, 0, 0).await?;
        let event = Event::new(Kind::Commit, made, &timed.answer, 0);
        Ok(Reply::Committed { event, verifier: timed.reply.verf })
    }
}

impl Outcome {
    fn at(started: Instant) -> Self {
        let (ended, bytes_at) = (started, started);
        Self { started, ended, bytes: 0, bytes_at, resent_bytes: 0, abandoned: false }
    }
}

impl Event {
    fn new(kind: Kind, made: Instant, answer: &Answer, bytes: u32) -> Self {
        Self { kind, made, sent: answer.sent, received: answer.received, bytes }
    }
}

enum Reply {
    Written { span: Span, event: Event, committed: StableHow, verifier: [u8; 8] },
    Committed { event: Event, verifier: [u8; 8] },
}
