//! Drives calls over datagrams: sends them again until they are answered.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use tokio::sync::{mpsc, oneshot};
use wire::record::Message;
use wire::rpc::{self, MessageType};

use super::counters::Times;
use super::retransmit::{Due, Retransmit, Rules};
use super::submission::{Answer, BATCH_MAX, CallState, Submission, answer_of};
use super::timer::Timer;
use super::transfer_size::TransferSize;
use super::xids::Xids;
use super::{Bulk, Event, Events, Options, Traits};
use crate::error::CallError;
use crate::transport::datagram::{DATAGRAM_BYTES_MAX, Datagrams, Route};

pub(super) struct Driver<D> {
    socket: D,
    server: Route,
    submissions: mpsc::Receiver<Submission>,
    shared: Arc<CallState>,
    waiting: Xids<Waiting>,
    retransmit: Retransmit,
    /// Calls to be sent as soon as the socket takes them; each at most once.
    unsent: VecDeque<u32>,
    timer: Timer,
    traits: Traits,
    reads: TransferSize,
    writes: TransferSize,
    events: Events,
    /// Something has come from there.
    is_alive: bool,
    /// The end was reported.
    is_silent: bool,
}

struct Waiting {
    answer: oneshot::Sender<Result<Answer, CallError>>,
    procedure: u32,
    message: Message,
    times: Times,
    queued: bool,
    handed: Option<oneshot::Sender<Instant>>,
}

impl<D: Datagrams> Driver<D> {
    pub(super) fn new(
        socket: D,
        server: SocketAddr,
        submissions: mpsc::Receiver<Submission>,
        shared: Arc<CallState>,
        options: &Options,
        rules: Rules,
    ) -> Self {
        let size = TransferSize::new(options.transfer_bytes_max);
        shared.read_bytes.store(size.bytes(), Ordering::Relaxed);
        shared.write_bytes.store(size.bytes(), Ordering::Relaxed);
        Self {
            socket,
            server: Route { peer: server, local: None },
            submissions,
            waiting: Xids::default(),
            retransmit: Retransmit::new(rules),
            unsent: VecDeque::new(),
            timer: Timer::new(&shared.clock),
            traits: options.traits,
            reads: size,
            writes: size,
            events: options.events.clone(),
            is_alive: options.insist,
            is_silent: false,
            shared,
        }
    }

    pub(super) async fn run(mut self) {
        let failure = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.shared.end(&failure, self.waiting.drain().map(|(xid, call)| (xid, call.answer)));
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
        let (times, now) = (Times::new(called, encoded), self.shared.clock.now());
        if message.wire_len() > DATAGRAM_BYTES_MAX {
            let (got, max) = (message.wire_len(), DATAGRAM_BYTES_MAX);
            self.shared.counters.lock().failed(procedure, &times, now);
            answer.send(Err(CallError::TooLarge { got, max })).ok();
            return;
        }
        self.retransmit.sent(now, xid, procedure);
        let waiting = Waiting { answer, procedure, message, times, queued: true, handed };
        self.waiting.insert(xid, waiting);
        self.unsent.push_back(xid);
    }

    /// Sends what is to be sent, as far as the socket takes it.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<CallError> {
        while let Some(&xid) = self.unsent.front() {
            // It may have been answered while it was to be sent again.
            if let Some(waiting) = self.waiting.get_mut(&xid) {
                // Before it: other threads may run between the two.
                let now = self.shared.clock.now();
                match self.socket.poll_send(cx, &waiting.message, &self.server) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(())) => self.sent(xid, now),
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

    /// The socket has taken a call.
    fn sent(&mut self, xid: u32, now: Instant) {
        let in_flight = self.waiting.len();
        let Some(waiting) = self.waiting.get_mut(&xid) else {
            return;
        };
        waiting.queued = false;
        waiting.times.transmitted(now);
        if let Some(handed) = waiting.handed.take() {
            handed.send(now).ok();
        }
        let mut counters = self.shared.counters.lock();
        counters.sent(waiting.procedure, waiting.message.wire_len(), &waiting.times);
        counters.crowd(in_flight, self.submissions.len());
    }

    /// Whether an error of the socket ends everything. A server that restarts refuses for a while
    /// and a way may be gone for a moment, so that whoever has answered once is tried again.
    fn failed(&self, cause: &io::Error) -> Option<CallError> {
        let hopeless = cause.kind() == io::ErrorKind::ConnectionRefused && !self.is_alive;
        hopeless.then_some(CallError::NobodyListens)
    }

    /// Takes a reply. What is none is dropped: anybody may send us datagrams.
    fn deliver(&mut self, record: Bytes) {
        let Ok((xid, MessageType::Reply)) = rpc::peek(&record) else {
            return;
        };
        let received = self.shared.clock.now();
        let sent_once = self.retransmit.answered(received, xid);
        let Some(Waiting { answer, procedure, message, times, .. }) = self.waiting.remove(&xid)
        else {
            // The second reply to a call that was sent twice, mostly.
            self.shared.counters.lock().transport.bad_xids += 1;
            return;
        };
        self.is_alive = true;
        self.retransmit.proven();
        if std::mem::take(&mut self.is_silent) {
            self.events.emit(Event::Responding);
        }
        if let Some((sent, bulk)) = sent_once.zip((self.traits.bulk)(procedure)) {
            match bulk {
                Bulk::Read => self.reads.answered(sent, received, record.len()),
                Bulk::Write => self.writes.answered(sent, received, message.wire_len()),
            }
            self.show_sizes();
        }
        self.shared.counters.lock().answered(procedure, record.len(), &times, received);
        answer.send(answer_of(record, times, received)).ok();
    }

    /// Queues calls to be retransmitted, fails those whose time is up, and sets the timer.
    fn look_at_times(&mut self, cx: &mut Context<'_>) {
        while self.timer.poll_at(cx, self.retransmit.next_due()).is_ready() {
            let now = self.shared.clock.now();
            while let Some(due) = self.retransmit.due(now) {
                match due {
                    Due::Again { xid, sent } => self.queue_again(xid, sent, now),
                    Due::Major { xid, sent } => {
                        if let Some(waiting) = self.waiting.get(&xid) {
                            let mut counters = self.shared.counters.lock();
                            counters.procedure(waiting.procedure).major_timeouts += 1;
                        }
                        if !std::mem::replace(&mut self.is_silent, true) {
                            self.events.emit(Event::NotResponding);
                        }
                        self.queue_again(xid, sent, now);
                    }
                    Due::GivenUp { xid, limit } => self.give_up(xid, limit, now),
                }
            }
        }
    }

    fn give_up(&mut self, xid: u32, limit: Nanos, now: Instant) {
        if let Some(Waiting { answer, procedure, times, .. }) = self.waiting.remove(&xid) {
            let mut counters = self.shared.counters.lock();
            counters.procedure(procedure).major_timeouts += 1;
            counters.failed(procedure, &times, now);
            drop(counters);
            answer.send(Err(CallError::TimedOut { limit })).ok();
        }
    }

    /// A call last sent at `sent` is retransmitted, if anybody still waits for it.
    fn queue_again(&mut self, xid: u32, sent: Instant, now: Instant) {
        let Some(waiting) = self.waiting.get_mut(&xid) else {
            return;
        };
        if waiting.answer.is_closed() {
            self.retransmit.abandoned(xid);
            self.waiting.remove(&xid);
            return;
        }
        if waiting.queued {
            return;
        }
        waiting.queued = true;
        self.unsent.push_back(xid);
        match (self.traits.bulk)(waiting.procedure) {
            // How large the reply would have been nobody knows; as large as was requested, mostly.
            Some(Bulk::Read) => self.reads.lost(sent, now, self.reads.bytes() as usize),
            Some(Bulk::Write) => self.writes.lost(sent, now, waiting.message.wire_len()),
            None => return,
        }
        self.show_sizes();
    }

    fn show_sizes(&self) {
        self.shared.read_bytes.store(self.reads.bytes(), Ordering::Relaxed);
        self.shared.write_bytes.store(self.writes.bytes(), Ordering::Relaxed);
    }
}
