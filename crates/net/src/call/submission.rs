//! A call on its way to a driver, and its answer.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::oneshot;
use wire::record::Message;
use wire::rpc::{AcceptStatus, RejectStatus, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Reader};

use super::counters::{Counters, Times};
use crate::clock::Clock;
use crate::error::{CallError, Refusal};

/// Replies taken per wake-up before calls are sent and limits are looked at.
pub(super) const BATCH_MAX: usize = 64;

/// Replies in a row to calls that were never made, or given up: more than calls can be late, and
/// the peer is no server.
pub(super) const UNSOLICITED_MAX: u32 = 4096;

/// A reply that the server's RPC layer accepted.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) record: Bytes,
    pub(super) results_at: usize,
    /// When the caller called, before anything was encoded.
    pub called: Instant,
    /// When the message was encoded and left to the task that sends it.
    pub encoded: Instant,
    /// When the message was first given to the transport.
    pub sent: Instant,
    /// How often it was. With more than one, nobody knows which one the reply answers.
    pub transmissions: u32,
    /// When the reply had come.
    pub received: Instant,
}

impl Answer {
    /// The procedure's results, encoded. Slices of it share the receive buffer.
    pub fn results(&self) -> Bytes {
        self.record.slice(self.results_at..)
    }

    /// Time from call to reply.
    pub fn response_time(&self) -> Nanos {
        self.received.since(self.sent)
    }
}

#[derive(Debug)]
pub(super) struct CallState {
    pub(super) clock: Clock,
    pub(super) next_xid: AtomicU32,
    /// Guards what is counted; held for a few additions.
    pub(super) counters: Mutex<Counters>,
    /// Why the connection ended.
    pub(super) failure: Mutex<Option<CallError>>,
    pub(super) reply_limit: Nanos,
    /// What to ask for in one READ and to send in one WRITE.
    pub(super) read_bytes: AtomicU32,
    pub(super) write_bytes: AtomicU32,
}

impl CallState {
    pub(super) fn new(clock: &Clock, reply_limit: Nanos, first_xid: u32) -> Arc<Self> {
        Arc::new(Self {
            clock: clock.clone(),
            next_xid: AtomicU32::new(first_xid),
            counters: Mutex::default(),
            failure: Mutex::new(None),
            reply_limit,
            read_bytes: AtomicU32::new(u32::MAX),
            write_bytes: AtomicU32::new(u32::MAX),
        })
    }

    /// There is no use in going on: all who wait get the error, and those who come.
    pub(super) fn end(
        &self,
        failure: &CallError,
        waiting: impl Iterator<Item = (u32, oneshot::Sender<Result<Answer, CallError>>)>,
    ) {
        *self.failure.lock() = Some(failure.clone());
        // In the order of the calls, so that a world repeats.
        let mut waiting: Vec<_> = waiting.collect();
        waiting.sort_unstable_by_key(|(xid, _)| *xid);
        for (_, answer) in waiting {
            answer.send(Err(failure.clone())).ok();
        }
    }
}

#[derive(Debug)]
pub(super) struct Submission {
    pub(super) xid: u32,
    pub(super) procedure: u32,
    pub(super) message: Message,
    pub(super) called: Instant,
    pub(super) encoded: Instant,
    pub(super) answer: oneshot::Sender<Result<Answer, CallError>>,
    /// Wants to know when the message was handed over.
    pub(super) handed: Option<oneshot::Sender<Instant>>,
}

/// What a reply says, sent and received then.
pub(super) fn answer_of(
    record: Bytes,
    times: Times,
    received: Instant,
) -> Result<Answer, CallError> {
    let results_at = results_at(&record)?;
    let Times { called, encoded, sent, transmissions, .. } = times;
    Ok(Answer { record, results_at, called, encoded, sent, transmissions, received })
}

/// Where the results begin in an accepted reply.
pub(crate) fn results_at(record: &[u8]) -> Result<usize, CallError> {
    let mut reader = Reader::new(record);
    let header = ReplyHeader::decode(&mut reader)?;
    let refusal = match header.body {
        ReplyBody::Accepted { status, .. } => match status {
            AcceptStatus::Success => return Ok(reader.at()),
            AcceptStatus::ProgUnavail => Refusal::ProgramUnavailable,
            AcceptStatus::ProgMismatch { low, high } => Refusal::ProgramMismatch { low, high },
            AcceptStatus::ProcUnavail => Refusal::ProcedureUnavailable,
            AcceptStatus::GarbageArgs => Refusal::GarbageArguments,
            AcceptStatus::SystemErr => Refusal::System,
        },
        ReplyBody::Denied(RejectStatus::RpcMismatch { low, high }) => {
            Refusal::RpcMismatch { low, high }
        }
        ReplyBody::Denied(RejectStatus::AuthError(status)) => Refusal::Authentication { status },
    };
    Err(CallError::Refused(refusal))
}
