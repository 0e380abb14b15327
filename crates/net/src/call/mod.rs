//! The client half of RPC: many calls outstanding on one connection, answered in any order.
//!
//! One task drives the connection: it sends what callers submit, matches replies to calls by XID
//! and gives up on calls that have waited longer than the limit. Callers hold an [`Rpc`], whose
//! clones share the connection; it closes when the last is dropped.
//!
//! TCP retransmits for us, so a call is sent once; a call whose reply does not come in time fails
//! and its reply, should it come later, is counted and dropped. Over datagrams `datagrams.rs` sends
//! calls again, with the same XID, when `retransmit.rs` says so.

mod datagrams;
mod handed;
mod retransmit;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::{mpsc, oneshot};
use wire::record::Message;
use wire::rpc::{
    self, AcceptStatus, CallHeader, MessageType, OpaqueAuth, RejectStatus, ReplyBody, ReplyHeader,
};
use wire::xdr::{Decode, Encode, Reader};

use self::handed::Handed;
use crate::clock::Clock;
use crate::error::{CallError, Refusal};
use crate::transport::Transport;
use crate::transport::datagram::Datagrams;

/// Calls submitted and not yet taken by the driver; more wait in their callers.
const SUBMISSIONS_MAX: usize = 256;

/// Replies taken per wake-up before calls are sent and limits are looked at.
const BATCH_MAX: usize = 64;

/// Replies in a row to calls that were never made, or given up: more than calls can be late, and
/// the peer is no server.
const UNASKED_MAX: u32 = 4096;

/// Which procedure to call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Target {
    pub program: u32,
    pub version: u32,
    pub procedure: u32,
}

/// A reply that the server's RPC layer accepted.
#[derive(Clone, Debug)]
pub struct Answer {
    record: Bytes,
    results_at: usize,
    /// When the caller asked, before anything was encoded.
    pub called: Instant,
    /// When the message was encoded and left to the task that sends it.
    pub encoded: Instant,
    /// When the message was first given to the transport.
    pub sent: Instant,
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

/// A connection to an RPC server; clones share it.
#[derive(Clone, Debug)]
pub struct Rpc {
    submit: mpsc::Sender<Submission>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    next_xid: AtomicU32,
    /// Replies that no call waited for.
    bad_xids: AtomicU64,
    /// Calls that were sent again.
    retransmissions: AtomicU64,
    /// Why the connection ended.
    failure: Mutex<Option<CallError>>,
    reply_limit: Nanos,
}

impl Shared {
    fn new(clock: &Clock, reply_limit: Nanos, first_xid: u32) -> Self {
        Self {
            clock: clock.clone(),
            next_xid: AtomicU32::new(first_xid),
            bad_xids: AtomicU64::new(0),
            retransmissions: AtomicU64::new(0),
            failure: Mutex::new(None),
            reply_limit,
        }
    }
}

#[derive(Debug)]
struct Submission {
    xid: u32,
    procedure: u32,
    message: Message,
    called: Instant,
    encoded: Instant,
    answer: oneshot::Sender<Result<Answer, CallError>>,
    /// Wants to know when the message was handed over.
    handed: Option<oneshot::Sender<Instant>>,
}

impl Rpc {
    /// Drives `transport` in a task of its own. A call without reply fails after `reply_limit`.
    /// XIDs count up from `first_xid`, which should differ from connection to connection.
    pub fn start(
        transport: impl Transport + 'static,
        clock: &Clock,
        reply_limit: Nanos,
        first_xid: u32,
    ) -> Self {
        let (submit, submissions) = mpsc::channel(SUBMISSIONS_MAX);
        let shared = Arc::new(Shared::new(clock, reply_limit, first_xid));
        let driver = Driver {
            transport,
            clock: clock.clone(),
            submissions,
            shared: Arc::clone(&shared),
            waiting: HashMap::new(),
            deadlines: VecDeque::new(),
            timer: None,
            unasked: 0,
            handed: Handed::default(),
        };
        clock.spawn(driver.run());
        Self { submit, shared }
    }

    /// As [`Rpc::start`], over datagrams to one server. A call is sent again until its limit.
    pub fn start_datagrams(
        socket: impl Datagrams + 'static,
        server: SocketAddr,
        clock: &Clock,
        reply_limit: Nanos,
        first_xid: u32,
    ) -> Self {
        let (submit, submissions) = mpsc::channel(SUBMISSIONS_MAX);
        let shared = Arc::new(Shared::new(clock, reply_limit, first_xid));
        let own = Arc::clone(&shared);
        clock.spawn(datagrams::Driver::new(socket, server, clock, submissions, own).run());
        Self { submit, shared }
    }

    /// Calls a procedure: its arguments are what `encode` writes, followed by `payload`.
    ///
    /// # Errors
    /// [`CallError`]; an error status inside the procedure's results is not one.
    pub async fn call(
        &self,
        target: Target,
        credential: OpaqueAuth<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
    ) -> Result<Answer, CallError> {
        self.call_sent(target, credential, encode, payload, None).await
    }

    /// As [`Rpc::call`]; `handed` is told when the message was handed to the socket, or over an
    /// emulated link when its last byte left. It is dropped unused when that never happens.
    ///
    /// # Errors
    /// As [`Rpc::call`].
    pub async fn call_sent(
        &self,
        target: Target,
        credential: OpaqueAuth<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
        handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Answer, CallError> {
        let called = self.shared.clock.now();
        let xid = self.shared.next_xid.fetch_add(1, Ordering::Relaxed);
        let mut head = Vec::with_capacity(256);
        let Target { program, version, procedure } = target;
        let verifier = OpaqueAuth::NONE;
        CallHeader { xid, program, version, procedure, credential, verifier }.encode(&mut head);
        encode(&mut head);
        let (answer, answered) = oneshot::channel();
        let message = Message { head, payload };
        let encoded = self.shared.clock.now();
        let submission = Submission { xid, procedure, message, called, encoded, answer, handed };
        if self.submit.send(submission).await.is_err() {
            return Err(self.failure());
        }
        answered.await.unwrap_or_else(|_driver_gone| Err(self.failure()))
    }

    /// How long a call waits for its reply.
    pub fn reply_limit(&self) -> Nanos {
        self.shared.reply_limit
    }

    /// Replies that came too late or were never asked for.
    pub fn bad_xids(&self) -> u64 {
        self.shared.bad_xids.load(Ordering::Relaxed)
    }

    /// Calls that were sent again.
    pub fn retransmissions(&self) -> u64 {
        self.shared.retransmissions.load(Ordering::Relaxed)
    }

    fn failure(&self) -> CallError {
        self.shared.failure.lock().clone().unwrap_or(CallError::Closed)
    }
}

struct Driver<T> {
    transport: T,
    clock: Clock,
    submissions: mpsc::Receiver<Submission>,
    shared: Arc<Shared>,
    waiting: HashMap<u32, Waiting>,
    /// In order, because every call has the same limit.
    deadlines: VecDeque<(Instant, u32)>,
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Replies in a row that no call waited for.
    unasked: u32,
    handed: Handed,
}

struct Waiting {
    answer: oneshot::Sender<Result<Answer, CallError>>,
    times: Times,
}

/// What is known of a call's times while its reply is awaited.
#[derive(Clone, Copy, Debug)]
struct Times {
    called: Instant,
    encoded: Instant,
    sent: Instant,
}

impl<T: Transport> Driver<T> {
    async fn run(mut self) {
        let failure = std::future::poll_fn(|cx| self.poll(cx)).await;
        *self.shared.failure.lock() = Some(failure.clone());
        // In the order of the calls, so that a world repeats.
        let mut waiting: Vec<(u32, Waiting)> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(xid, _)| *xid);
        for (_, waiting) in waiting {
            waiting.answer.send(Err(failure.clone())).ok();
        }
    }

    /// Ready with the reason when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CallError> {
        // What has come is taken before anything is sent: a server may answer and then go away.
        for taken in 0.. {
            if taken == BATCH_MAX {
                // A peer that never stops sending must not keep us from our own limits.
                cx.waker().wake_by_ref();
                break;
            }
            match self.transport.poll_receive(cx) {
                Poll::Ready(Ok(Some(record))) => {
                    if let Err(error) = self.deliver(record) {
                        return Poll::Ready(error);
                    }
                }
                Poll::Ready(Ok(None)) => return Poll::Ready(CallError::Closed),
                Poll::Ready(Err(error)) => return Poll::Ready(error.into()),
                Poll::Pending => break,
            }
        }
        if let Poll::Ready(error) = self.poll_submissions(cx) {
            return Poll::Ready(error);
        }
        if let Poll::Ready(Err(error)) = self.transport.poll_flush(cx) {
            return Poll::Ready(error.into());
        }
        self.handed.poll(cx, &self.clock, &self.transport);
        self.poll_deadlines(cx);
        Poll::Pending
    }

    fn poll_submissions(&mut self, cx: &mut Context<'_>) -> Poll<CallError> {
        loop {
            match self.transport.poll_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error.into()),
                Poll::Pending => return Poll::Pending,
            }
            match self.submissions.poll_recv(cx) {
                Poll::Ready(Some(submission)) => self.send(submission),
                Poll::Ready(None) => return Poll::Ready(CallError::Closed),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn send(&mut self, submission: Submission) {
        let Submission { xid, message, called, encoded, answer, handed, .. } = submission;
        let sent = self.clock.now();
        let wire_bytes = message.wire_len();
        self.transport.send(message);
        self.handed.given(&self.transport, wire_bytes, handed);
        self.deadlines.push_back((sent + self.shared.reply_limit, xid));
        self.waiting.insert(xid, Waiting { answer, times: Times { called, encoded, sent } });
    }

    fn deliver(&mut self, record: Bytes) -> Result<(), CallError> {
        let (xid, direction) = rpc::peek(&record)?;
        if direction == MessageType::Call {
            return Err(CallError::Echo);
        }
        let Some(waiting) = self.waiting.remove(&xid) else {
            self.shared.bad_xids.fetch_add(1, Ordering::Relaxed);
            self.unasked += 1;
            return if self.unasked > UNASKED_MAX {
                Err(CallError::Unasked { count: self.unasked })
            } else {
                Ok(())
            };
        };
        self.unasked = 0;
        let received = self.clock.now();
        waiting.answer.send(answer_of(record, waiting.times, received)).ok();
        Ok(())
    }

    fn poll_deadlines(&mut self, cx: &mut Context<'_>) {
        loop {
            while let Some((_, xid)) = self.deadlines.front()
                && !self.waiting.contains_key(xid)
            {
                self.deadlines.pop_front();
            }
            let Some(&(deadline, xid)) = self.deadlines.front() else {
                self.timer = None;
                return;
            };
            let now = self.clock.now();
            if now >= deadline {
                self.deadlines.pop_front();
                if let Some(waiting) = self.waiting.remove(&xid) {
                    let limit = self.shared.reply_limit;
                    waiting.answer.send(Err(CallError::TimedOut { limit })).ok();
                }
                continue;
            }
            // The timer may ring for a deadline that has since been met; it is then set anew, so
            // a busy connection sets one timer per limit and not one per call.
            let clock = self.clock.clone();
            let timer = self.timer.get_or_insert_with(|| {
                let span = deadline.since(now);
                Box::pin(async move { clock.sleep(span).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.timer = None;
        }
    }
}

/// What a reply says, sent and received then.
fn answer_of(record: Bytes, times: Times, received: Instant) -> Result<Answer, CallError> {
    let results_at = results_at(&record)?;
    let Times { called, encoded, sent } = times;
    Ok(Answer { record, results_at, called, encoded, sent, received })
}

/// Where the results begin in an accepted reply.
fn results_at(record: &[u8]) -> Result<usize, CallError> {
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
