//! Drives calls over datagrams: sends them again until they are answered.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;
use tokio::sync::{mpsc, oneshot};
use wire::record::Message;
use wire::rpc::{self, MessageType};

use super::retransmit::{Due, Retransmit};
use super::{Answer, BATCH_MAX, Shared, Submission, Times, answer_of};
use crate::clock::Clock;
use crate::error::CallError;
use crate::transport::datagram::{DATAGRAM_BYTES_MAX, Datagrams, Route};

pub(super) struct Driver<D> {
    pub(super) socket: D,
    pub(super) server: Route,
    pub(super) clock: Clock,
    pub(super) submissions: mpsc::Receiver<Submission>,
    pub(super) shared: Arc<Shared>,
    pub(super) waiting: HashMap<u32, Waiting>,
    pub(super) retransmit: Retransmit,
    /// Calls to be sent as soon as the socket takes them; each at most once.
    pub(super) unsent: VecDeque<u32>,
    pub(super) timer: Option<(Instant, Timer)>,
    /// Something has come from there.
    pub(super) is_alive: bool,
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Waiting {
    answer: oneshot::Sender<Result<Answer, CallError>>,
    message: Message,
    times: Times,
    queued: bool,
    handed: Option<oneshot::Sender<Instant>>,
}

impl<D: Datagrams> Driver<D> {
    pub(super) fn new(
        socket: D,
        server: SocketAddr,
        clock: &Clock,
        submissions: mpsc::Receiver<Submission>,
        shared: Arc<Shared>,
    ) -> Self {
        let retransmit = Retransmit::new(shared.reply_limit);
        Self {
            socket,
            server: Route { peer: server, local: None },
            clock: clock.clone(),
            submissions,
            shared,
            waiting: HashMap::new(),
            retransmit,
            unsent: VecDeque::new(),
            timer: None,
            is_alive: false,
        }
    }

    pub(super) async fn run(mut self) {
        let failure = std::future::poll_fn(|cx| self.poll(cx)).await;
        *self.shared.failure.lock() = Some(failure.clone());
        let mut waiting: Vec<(u32, Waiting)> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(xid, _)| *xid);
        for (_, waiting) in waiting {
            waiting.answer.send(Err(failure.clone())).ok();
        }
    }

    /// Ready with the reason when there is no use in going on.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CallError> {
        for taken in 0.. {
            if taken == BATCH_MAX {
                cx.waker().wake_by_ref();
                break;
            }
            match self.socket.poll_receive(cx) {
                Poll::Ready(Ok(datagram)) => self.deliver(datagram.bytes),
                Poll::Ready(Err(cause)) => {
                    if let Some(failure) = self.failed(&cause) {
                        return Poll::Ready(failure);
                    }
                }
                Poll::Pending => break,
            }
        }
        self.look_at_times(cx);
        loop {
            if let Poll::Ready(failure) = self.flush(cx) {
                return Poll::Ready(failure);
            }
            if !self.retransmit.has_room() || !self.unsent.is_empty() {
                break;
            }
            match self.submissions.poll_recv(cx) {
                Poll::Ready(Some(submission)) => self.submit(submission),
                Poll::Ready(None) => return Poll::Ready(CallError::Closed),
                Poll::Pending => break,
            }
        }
        // What has just been sent has its time, too.
        self.look_at_times(cx);
        Poll::Pending
    }

    fn submit(&mut self, submission: Submission) {
        let Submission { xid, procedure, message, called, encoded, answer, handed } = submission;
        if message.wire_len() > DATAGRAM_BYTES_MAX {
            let (got, max) = (message.wire_len(), DATAGRAM_BYTES_MAX);
            answer.send(Err(CallError::TooLarge { got, max })).ok();
            return;
        }
        let sent = self.clock.now();
        self.retransmit.sent(sent, xid, procedure);
        let times = Times { called, encoded, sent };
        self.waiting.insert(xid, Waiting { answer, message, times, queued: true, handed });
        self.unsent.push_back(xid);
    }

    /// Sends what is to be sent, as far as the socket takes it.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<CallError> {
        while let Some(xid) = self.unsent.front() {
            // It may have been answered while it was to be sent again.
            if let Some(waiting) = self.waiting.get_mut(xid) {
                match self.socket.poll_send(cx, &waiting.message, &self.server) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => {
                        waiting.queued = false;
                        if let Some(handed) = waiting.handed.take() {
                            handed.send(self.clock.now()).ok();
                        }
                    }
                    Poll::Ready(Err(cause)) => {
                        waiting.queued = false;
                        if let Some(failure) = self.failed(&cause) {
                            return Poll::Ready(failure);
                        }
                    }
                }
            }
            self.unsent.pop_front();
        }
        Poll::Pending
    }

    /// Whether an error of the socket ends everything. A server that restarts refuses for a while
    /// and a way may be gone for a moment, so that whoever has answered once is asked again.
    fn failed(&self, cause: &io::Error) -> Option<CallError> {
        let hopeless = cause.kind() == io::ErrorKind::ConnectionRefused && !self.is_alive;
        hopeless.then_some(CallError::NobodyListens)
    }

    /// Takes a reply. What is none is dropped: anybody may send us datagrams.
    fn deliver(&mut self, record: Bytes) {
        let Ok((xid, MessageType::Reply)) = rpc::peek(&record) else {
            return;
        };
        self.is_alive = true;
        let received = self.clock.now();
        self.retransmit.answered(received, xid);
        let Some(waiting) = self.waiting.remove(&xid) else {
            // The second reply to a call that was sent twice, mostly.
            self.shared.bad_xids.fetch_add(1, Ordering::Relaxed);
            return;
        };
        waiting.answer.send(answer_of(record, waiting.times, received)).ok();
    }

    /// Queues calls to be sent again, fails those whose time is up, and sets the timer.
    fn look_at_times(&mut self, cx: &mut Context<'_>) {
        loop {
            let now = self.clock.now();
            while let Some(due) = self.retransmit.due(now) {
                match due {
                    Due::Again(xid) => self.queue_again(xid),
                    Due::GivenUp(xid) => {
                        if let Some(waiting) = self.waiting.remove(&xid) {
                            let limit = self.shared.reply_limit;
                            waiting.answer.send(Err(CallError::TimedOut { limit })).ok();
                        }
                    }
                }
            }
            let Some(due) = self.retransmit.next_due() else {
                self.timer = None;
                return;
            };
            // A timer that rings early is set again; so each answer costs none.
            if self.timer.as_ref().is_none_or(|(rings, _)| *rings > due) {
                let (clock, span) = (self.clock.clone(), due.since(now));
                self.timer = Some((due, Box::pin(async move { clock.sleep(span).await })));
            }
            if let Some((_, timer)) = &mut self.timer
                && timer.as_mut().poll(cx).is_pending()
            {
                return;
            }
            self.timer = None;
        }
    }

    fn queue_again(&mut self, xid: u32) {
        let Some(waiting) = self.waiting.get_mut(&xid) else {
            return;
        };
        if !waiting.queued {
            waiting.queued = true;
            self.shared.retransmissions.fetch_add(1, Ordering::Relaxed);
            self.unsent.push_back(xid);
        }
    }
}
