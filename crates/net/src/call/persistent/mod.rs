//! Drives calls over connections that are made again when they break.
//!
//! A call lives in a table until it is answered, with its message: the head stays as it was
//! encoded, the payload is shared with its caller. Whenever a connection ends, the calls that it
//! carried are queued to be retransmitted, in their order and with their XIDs. New calls go where
//! the fewest are under way.
//!
//! Calls with much data (WRITEs) are given to a connection when it is about to need more, so that
//! others overtake them: whoever reads or looks at a file waits for one of them and not for all
//! that a writer has outstanding. No caller relies on the order of calls under way.
//!
//! A server's reply cache may know a call by the port that it came from, too (Linux's does). So the
//! next connection of a lane is made from the port of the one before, and what changes something is
//! retransmitted on its own lane; what may be done twice goes over whichever connection is up
//! first. A lane that does not come up within a major timeout keeps no call to itself.
//!
//! A server that has never answered is not waited for: until the first reply, whatever ends a
//! connection fails the calls on it, so that who asks for the wrong port hears of it. After that a
//! hard client waits for ever.
//!
//! Bounds: [`Options::in_flight_max`] calls in the table, more wait in their callers; connections
//! are made again at once only if they had carried a reply, else after growing pauses; and only
//! while there is a call to carry, so that a server may close idle ones.

mod backoff;
mod fate;
mod lane;

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use tokio::sync::{mpsc, oneshot};
use wire::record::Message;
use wire::rpc::{self, MessageType};

pub(super) use self::lane::Connecting;
use self::lane::{Connect, Lane, State};
use super::counters::Times;
use super::options::{Event, NCONNECT_MAX, Options};
use super::retransmit::{Retransmit, Rules};
use super::submission::{Answer, BATCH_MAX, CallState, Submission, UNSOLICITED_MAX, answer_of};
use super::timer::Timer;
use super::xids::Xids;
use crate::error::CallError;
use crate::transport::Transport;

/// From so many bytes on what a call carries is much (guess): half a millisecond at a gigabit.
const BULK_BYTES: usize = 64 << 10;

/// How long before an emulated link has sent all it was given it gets more of that (guess): longer
/// than a timer may be late. What a socket takes is bounded by itself.
const BULK_AHEAD: Nanos = Nanos::from_millis(20);

/// See the module's head.
pub(super) struct Driver<T> {
    connect: Connect<T>,
    submissions: mpsc::Receiver<Submission>,
    shared: Arc<CallState>,
    options: Options,
    lanes: Vec<Lane<T>>,
    calls: Xids<Call>,
    retransmit: Retransmit,
    /// Calls to be sent, the earliest first; some of them may be gone.
    unsent: VecDeque<u32>,
    /// The same of calls with much data, and when there is room for them on an emulated link.
    bulk: VecDeque<u32>,
    bulk_at: Option<Instant>,
    /// Numbers calls.
    order: u64,
    timer: Timer,
    /// Which lane to look at first, so that equals take turns.
    turn: usize,
    reaped: Instant,
    /// The server has answered once.
    is_proven: bool,
    /// It was reported as not responding.
    is_silent: bool,
}

struct Call {
    order: u64,
    answer: oneshot::Sender<Result<Answer, CallError>>,
    procedure: u32,
    message: Message,
    times: Times,
    handed: Option<oneshot::Sender<Instant>>,
    /// What carries it; none while it is to be sent.
    lane: Option<usize>,
    /// What carried it last, if it is retransmitted there only.
    bound: Option<usize>,
}

impl Call {
    /// It is to be retransmitted on this lane and no other.
    fn waits_for(&self, lane: usize) -> bool {
        self.lane.is_none() && self.bound == Some(lane)
    }
}

impl<T: Transport> Driver<T> {
    pub(super) fn new(
        first: Option<T>,
        connect: Connect<T>,
        submissions: mpsc::Receiver<Submission>,
        shared: Arc<CallState>,
        options: Options,
    ) -> Self {
        let now = shared.clock.now();
        shared.counters.lock().transport.connects = u64::from(first.is_some());
        let others = (1..options.nconnect.min(NCONNECT_MAX)).map(|_| Lane::new(None, now));
        Self {
            connect,
            submissions,
            lanes: [Lane::new(first, now)].into_iter().chain(others).collect(),
            calls: Xids::default(),
            retransmit: Retransmit::new(Rules::stream(&options)),
            unsent: VecDeque::new(),
            bulk: VecDeque::new(),
            bulk_at: None,
            order: 0,
            timer: Timer::new(&shared.clock),
            turn: 0,
            reaped: now,
            is_proven: options.insist,
            is_silent: false,
            shared,
            options,
        }
    }

    /// Until nobody can call any more.
    pub(super) async fn run(mut self) {
        std::future::poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // What has come is taken before anything is sent: a server may answer and then go away.
        for lane in 0..self.lanes.len() {
            if let Err(cause) = self.receive(cx, lane) {
                self.fell(lane, &cause);
            }
        }
        self.look_at_times();
        self.connect(cx);
        if self.take(cx).is_ready() {
            return Poll::Ready(());
        }
        self.connect(cx);
        self.flush(cx);
        let lanes = self.lanes.iter().filter(|_| !self.calls.is_empty()).filter_map(Lane::due);
        let due = lanes.chain(self.retransmit.next_due()).chain(self.bulk_at).min();
        if self.timer.poll_at(cx, due).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Takes the replies that one connection has.
    fn receive(&mut self, cx: &mut Context<'_>, lane: usize) -> Result<(), CallError> {
        for _ in 0..BATCH_MAX {
            let State::Up(transport) = &mut self.lanes[lane].state else {
                return Ok(());
            };
            match transport.poll_receive(cx) {
                Poll::Ready(Ok(Some(record))) => self.deliver(lane, record)?,
                Poll::Ready(Ok(None)) => return Err(CallError::Closed),
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => return Ok(()),
            }
        }
        // A peer that never stops sending must not keep us from our own limits.
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn deliver(&mut self, lane: usize, record: Bytes) -> Result<(), CallError> {
        let (xid, direction) = rpc::peek(&record)?;
        if direction == MessageType::Call {
            return Err(CallError::Echo);
        }
        let received = self.shared.clock.now();
        let from = &mut self.lanes[lane];
        from.heard = received;
        let Some(call) = self.calls.remove(&xid) else {
            self.shared.counters.lock().transport.bad_xids += 1;
            from.unsolicited += 1;
            return match from.unsolicited > UNSOLICITED_MAX {
                true => Err(CallError::Unsolicited { count: from.unsolicited }),
                false => Ok(()),
            };
        };
        from.unsolicited = 0;
        from.backoff.answered();
        self.left(call.lane);
        self.retransmit.answered(received, xid);
        self.is_proven = true;
        self.retransmit.proven();
        if std::mem::take(&mut self.is_silent) {
            self.options.events.emit(Event::Responding);
        }
        let Call { answer, procedure, times, .. } = call;
        self.shared.counters.lock().answered(procedure, record.len(), &times, received);
        answer.send(answer_of(record, times, received)).ok();
        Ok(())
    }

    /// Starts what connections are wanted, and goes on with those that are being made.
    fn connect(&mut self, cx: &mut Context<'_>) {
        let now = self.shared.clock.now();
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if !self.calls.is_empty() && lane.due().is_some_and(|due| due <= now) {
                lane.state = State::Connecting((self.connect)(lane.local));
            }
            match lane.poll_connecting(cx, now) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => {
                    self.shared.counters.lock().transport.connects += 1;
                    if std::mem::take(&mut self.lanes[index].is_reported) {
                        self.options.events.emit(Event::Reconnected);
                    }
                    self.send_unsent(cx);
                    // It has not been polled yet for what has come.
                    cx.waker().wake_by_ref();
                }
                Poll::Ready(Err(cause)) => self.fell(index, &cause.into()),
            }
        }
    }

    /// Takes new calls, as many as there is room for; ready when there will be none.
    fn take(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.send_unsent(cx);
        loop {
            if self.calls.len() >= self.options.in_flight_max.max(1) {
                self.reap();
            }
            let is_full = self.calls.len() >= self.options.in_flight_max.max(1);
            // While nothing is connected calls are taken all the same: their time runs.
            let is_stuck = !self.unsent.is_empty() && self.lanes.iter().any(Lane::is_up);
            if is_full || is_stuck {
                return Poll::Pending;
            }
            let Some(submission) = std::task::ready!(self.submissions.poll_recv(cx)) else {
                return Poll::Ready(());
            };
            self.submit(submission);
            self.send_unsent(cx);
        }
    }

    fn submit(&mut self, submission: Submission) {
        let Submission { xid, procedure, message, called, encoded, answer, handed } = submission;
        let (times, order) = (Times::new(called, encoded), self.order);
        self.order += 1;
        self.retransmit.sent(self.shared.clock.now(), xid, procedure);
        let call =
            Call { order, answer, procedure, message, times, handed, lane: None, bound: None };
        let is_bulk = call.message.payload.len() >= BULK_BYTES;
        self.calls.insert(xid, call);
        let queue = if is_bulk { &mut self.bulk } else { &mut self.unsent };
        queue.push_back(xid);
    }

    fn send_unsent(&mut self, cx: &mut Context<'_>) {
        (0..self.lanes.len()).for_each(|lane| self.send_bound(cx, lane));
        self.bulk_at = None;
        while let Some(&xid) = self.unsent.front().or_else(|| self.bulk.front()) {
            let is_bulk = self.unsent.is_empty();
            if self.calls.contains_key(&xid) {
                let Some(lane) = self.pick(cx, is_bulk) else {
                    return;
                };
                self.send(xid, lane);
            }
            let queue = if is_bulk { &mut self.bulk } else { &mut self.unsent };
            queue.pop_front();
        }
    }

    /// Retransmits what this lane has to itself, for as long as it takes more.
    fn send_bound(&mut self, cx: &mut Context<'_>, index: usize) {
        while let Some(&xid) = self.lanes[index].again.front() {
            let State::Up(transport) = &mut self.lanes[index].state else {
                return;
            };
            if !matches!(transport.poll_ready(cx), Poll::Ready(Ok(()))) {
                return;
            }
            self.lanes[index].again.pop_front();
            if self.calls.get(&xid).is_some_and(|call| call.waits_for(index)) {
                self.send(xid, index);
            }
        }
    }

    /// The connection with the fewest calls under way, of those that take one more.
    fn pick(&mut self, cx: &mut Context<'_>, is_bulk: bool) -> Option<usize> {
        let mut best: Option<usize> = None;
        let near = self.shared.clock.now() + BULK_AHEAD;
        for step in 0..self.lanes.len() {
            let index = (self.turn + step) % self.lanes.len();
            let lane = &mut self.lanes[index];
            let State::Up(transport) = &mut lane.state else {
                continue;
            };
            if let Some(departs) = transport.departs().filter(|at| is_bulk && *at > near) {
                let room_at = departs - BULK_AHEAD;
                self.bulk_at = Some(self.bulk_at.map_or(room_at, |at| at.min(room_at)));
                continue;
            }
            // An error will be met when it is next flushed or polled for replies.
            let is_ready = matches!(transport.poll_ready(cx), Poll::Ready(Ok(())));
            let in_flight = lane.in_flight;
            if is_ready && best.is_none_or(|best| in_flight < self.lanes[best].in_flight) {
                best = Some(index);
            }
        }
        self.turn = best.map_or(self.turn, |best| best + 1);
        best
    }

    fn send(&mut self, xid: u32, index: usize) {
        let (now, in_flight) = (self.shared.clock.now(), self.calls.len());
        let lane = &mut self.lanes[index];
        let (Some(call), State::Up(transport)) = (self.calls.get_mut(&xid), &mut lane.state) else {
            return;
        };
        let wire_bytes = call.message.wire_len();
        transport.send(call.message.clone());
        lane.handed.given(transport, wire_bytes, call.handed.take());
        lane.in_flight += 1;
        call.lane = Some(index);
        call.bound = (!(self.options.traits.is_idempotent)(call.procedure)).then_some(index);
        call.times.transmitted(now);
        if call.times.transmissions > 1 {
            self.retransmit.sent_again(now, xid);
        }
        let mut counters = self.shared.counters.lock();
        counters.sent(call.procedure, wire_bytes, &call.times);
        counters.crowd(in_flight, self.submissions.len());
    }

    fn flush(&mut self, cx: &mut Context<'_>) {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let State::Up(transport) = &mut lane.state else {
                continue;
            };
            if let Poll::Ready(Err(cause)) = transport.poll_flush(cx) {
                // Replies may have come before it broke, and are looked for once more.
                let ended = self.receive(cx, index).err().unwrap_or_else(|| cause.into());
                self.fell(index, &ended);
                cx.waker().wake_by_ref();
                continue;
            }
            lane.handed.poll(cx, &self.shared.clock, transport);
        }
    }
}
