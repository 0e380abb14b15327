//! Drives calls over one connection, for as long as it lasts.
//!
//! TCP retransmits for us, so a call is sent once; a call whose reply does not come in time fails
//! and its reply, should it come later, is counted and dropped. When the connection ends, every
//! call fails, and so does every later one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;
use tokio::sync::{mpsc, oneshot};
use wire::rpc::{self, MessageType};

use super::counters::Times;
use super::handed::Handed;
use super::submission::{Answer, BATCH_MAX, CallState, Submission, UNSOLICITED_MAX, answer_of};
use super::timer::Timer;
use super::xids::Xids;
use crate::error::CallError;
use crate::transport::Transport;

pub(super) struct Driver<T> {
    transport: T,
    submissions: mpsc::Receiver<Submission>,
    shared: Arc<CallState>,
    waiting: Xids<Waiting>,
    /// In order, because every call has the same limit.
    deadlines: VecDeque<(Instant, u32)>,
    timer: Timer,
    /// Replies in a row that no call waited for.
    unsolicited: u32,
    handed: Handed,
}

struct Waiting {
    answer: oneshot::Sender<Result<Answer, CallError>>,
    procedure: u32,
    times: Times,
}

impl<T: Transport> Driver<T> {
    pub(super) fn new(
        transport: T,
        submissions: mpsc::Receiver<Submission>,
        shared: Arc<CallState>,
    ) -> Self {
        Self {
            transport,
            submissions,
            waiting: Xids::default(),
            deadlines: VecDeque::new(),
            timer: Timer::new(&shared.clock),
            unsolicited: 0,
            handed: Handed::default(),
            shared,
        }
    }

    pub(super) async fn run(mut self) {
        let failure = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.shared.end(&failure, self.waiting.drain().map(|(xid, call)| (xid, call.answer)));
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
        self.handed.poll(cx, &self.shared.clock, &self.transport);
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
        let Submission { xid, procedure, message, called, encoded, answer, handed } = submission;
        let mut times = Times::new(called, encoded);
        let now = self.shared.clock.now();
        times.transmitted(now);
        let wire_bytes = message.wire_len();
        self.transport.send(message);
        self.handed.given(&self.transport, wire_bytes, handed);
        self.deadlines.push_back((now + self.shared.reply_limit, xid));
        self.waiting.insert(xid, Waiting { answer, procedure, times });
        let mut counters = self.shared.counters.lock();
        counters.sent(procedure, wire_bytes, &times);
        counters.crowd(self.waiting.len(), self.submissions.len());
    }

    fn deliver(&mut self, record: Bytes) -> Result<(), CallError> {
        let (xid, direction) = rpc::peek(&record)?;
        if direction == MessageType::Call {
            return Err(CallError::Echo);
        }
        let Some(Waiting { answer, procedure, times }) = self.waiting.remove(&xid) else {
            self.shared.counters.lock().transport.bad_xids += 1;
            self.unsolicited += 1;
            return if self.unsolicited > UNSOLICITED_MAX {
                Err(CallError::Unsolicited { count: self.unsolicited })
            } else {
                Ok(())
            };
        };
        self.unsolicited = 0;
        let received = self.shared.clock.now();
        self.shared.counters.lock().answered(procedure, record.len(), &times, received);
        answer.send(answer_of(record, times, received)).ok();
        Ok(())
    }

    fn poll_deadlines(&mut self, cx: &mut Context<'_>) {
        loop {
            while let Some((_, xid)) = self.deadlines.front()
                && !self.waiting.contains_key(xid)
            {
                self.deadlines.pop_front();
            }
            let due = self.deadlines.front().map(|&(deadline, _)| deadline);
            if self.timer.poll_at(cx, due).is_pending() {
                return;
            }
            let Some((_, xid)) = self.deadlines.pop_front() else {
                return;
            };
            if let Some(Waiting { answer, procedure, times }) = self.waiting.remove(&xid) {
                let now = self.shared.clock.now();
                let mut counters = self.shared.counters.lock();
                counters.procedure(procedure).major_timeouts += 1;
                counters.failed(procedure, &times, now);
                drop(counters);
                let limit = self.shared.reply_limit;
                answer.send(Err(CallError::TimedOut { limit })).ok();
            }
        }
    }
}
