//! What becomes of calls when their connection ends, their time comes, or their caller leaves.

use std::collections::VecDeque;

use perf::units::{Instant, Nanos};

use super::lane::State;
use super::{Call, Driver};
use crate::call::options::Event;
use crate::call::retransmit::Due;
use crate::error::CallError;
use crate::transport::Transport;

/// Sorts calls, and forgets those that have no order any more.
fn in_order(queue: &mut VecDeque<u32>, order: impl Fn(u32) -> Option<u64>) {
    let mut calls: Vec<_> = queue.iter().filter_map(|&xid| Some((order(xid)?, xid))).collect();
    calls.sort_unstable();
    *queue = calls.into_iter().map(|(_, xid)| xid).collect();
}

/// How often a full table is searched for calls that their callers have given up.
const REAP_INTERVAL: Nanos = Nanos::from_secs(1);

impl<T: Transport> Driver<T> {
    /// A connection has ended, or could not be made.
    pub(super) fn fell(&mut self, lane: usize, cause: &CallError) {
        let now = self.shared.clock.now();
        let is_break = self.lanes[lane].is_up();
        self.lanes[lane].end(now);
        let mut counters = self.shared.counters.lock();
        match is_break {
            true => counters.transport.disconnects += 1,
            false => counters.transport.connect_failures += 1,
        }
        drop(counters);
        let is_last = self.lanes.iter().all(|lane| matches!(lane.state, State::Down { .. }));
        let mut carried: Vec<(u64, u32)> = self
            .calls
            .iter()
            .filter(|(_, call)| call.lane == Some(lane) || (call.lane.is_none() && is_last))
            .map(|(&xid, call)| (call.order, xid))
            .collect();
        carried.sort_unstable();
        if !self.is_proven {
            carried.iter().for_each(|&(_, xid)| self.fail(xid, cause.clone()));
            return;
        }
        if is_break && !carried.is_empty() {
            self.lanes[lane].is_reported = true;
            self.options.events.emit(Event::Disconnected { cause: cause.clone() });
        }
        for (_, xid) in carried {
            if let Some(call) = self.calls.get_mut(&xid)
                && call.lane.take().is_some()
            {
                match call.bound {
                    Some(lane) => self.lanes[lane].again.push_back(xid),
                    None => self.unsent.push_back(xid),
                }
            }
        }
        let calls = &self.calls;
        in_order(&mut self.lanes[lane].again, |xid| {
            calls.get(&xid).filter(|call| call.waits_for(lane)).map(|call| call.order)
        });
        in_order(&mut self.unsent, |xid| calls.get(&xid).map(|call| call.order));
    }

    pub(super) fn look_at_times(&mut self) {
        let now = self.shared.clock.now();
        while let Some(due) = self.retransmit.due(now) {
            match due {
                Due::Again { xid, .. } => self.queue_again(xid),
                Due::Major { xid, sent } => {
                    self.count_major(xid);
                    if !std::mem::replace(&mut self.is_silent, true) {
                        self.options.events.emit(Event::NotResponding);
                    }
                    self.doubt(xid, sent);
                    self.queue_again(xid);
                    self.let_go_elsewhere(now, xid);
                }
                Due::GivenUp { xid, limit } => {
                    self.count_major(xid);
                    let sent = self.calls.get(&xid).map(|call| call.times.sent_last);
                    let lane = self.calls.get(&xid).and_then(|call| call.lane);
                    self.fail(xid, CallError::TimedOut { limit });
                    self.doubt_lane(lane, sent.unwrap_or(now));
                }
            }
        }
    }

    fn count_major(&mut self, xid: u32) {
        if let Some(call) = self.calls.get(&xid) {
            self.shared.counters.lock().procedure(call.procedure).major_timeouts += 1;
        }
    }

    fn doubt(&mut self, xid: u32, sent: Instant) {
        let lane = self.calls.get(&xid).and_then(|call| call.lane);
        self.doubt_lane(lane, sent);
    }

    /// A connection on which nothing has come since a call was last sent may lead nowhere: the
    /// server may have started anew where no reset reaches us. Another one will tell.
    fn doubt_lane(&mut self, lane: Option<usize>, sent: Instant) {
        if let Some(lane) = lane.filter(|&lane| self.lanes[lane].is_up())
            && self.lanes[lane].heard <= sent
        {
            self.fell(lane, &CallError::TimedOut { limit: self.shared.reply_limit });
        }
    }

    /// A call is retransmitted, if anybody still waits for it.
    fn queue_again(&mut self, xid: u32) {
        let Some(call) = self.calls.get_mut(&xid) else {
            return;
        };
        if call.answer.is_closed() {
            self.abandon(xid);
        } else if let Some(lane) = call.lane.take() {
            match call.bound {
                Some(lane) => self.lanes[lane].again.push_back(xid),
                None => self.unsent.push_back(xid),
            }
            self.left(Some(lane));
        }
    }

    /// A call whose lane has not come up for a major timeout is retransmitted over any other: it
    /// may be done twice, but its caller does not wait for ever.
    fn let_go_elsewhere(&mut self, now: Instant, xid: u32) {
        let Some(call) = self.calls.get_mut(&xid).filter(|call| call.lane.is_none()) else {
            return;
        };
        if let Some(lane) = call.bound
            && self.lanes[lane].down_for(now).is_some_and(|down| down >= self.shared.reply_limit)
        {
            call.bound = None;
            self.unsent.push_back(xid);
        }
    }

    fn fail(&mut self, xid: u32, cause: CallError) {
        let Some(Call { answer, procedure, times, lane, .. }) = self.calls.remove(&xid) else {
            return;
        };
        self.left(lane);
        self.retransmit.abandoned(xid);
        self.shared.counters.lock().failed(procedure, &times, self.shared.clock.now());
        answer.send(Err(cause)).ok();
    }

    fn abandon(&mut self, xid: u32) {
        if let Some(call) = self.calls.remove(&xid) {
            self.left(call.lane);
            self.retransmit.abandoned(xid);
            let now = self.shared.clock.now();
            self.shared.counters.lock().failed(call.procedure, &call.times, now);
        }
    }

    /// A call is no longer under way on a connection.
    pub(super) fn left(&mut self, lane: Option<usize>) {
        if let Some(lane) = lane.and_then(|lane| self.lanes.get_mut(lane)) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
        }
    }

    /// Makes room among calls that nobody waits for.
    pub(super) fn reap(&mut self) {
        let now = self.shared.clock.now();
        if now.since(self.reaped) < REAP_INTERVAL {
            return;
        }
        self.reaped = now;
        let given_up = |(&xid, call): (&u32, &Call)| call.answer.is_closed().then_some(xid);
        let mut gone: Vec<u32> = self.calls.iter().filter_map(given_up).collect();
        gone.sort_unstable();
        gone.into_iter().for_each(|xid| self.abandon(xid));
    }
}
