//! One direction of a connection: read, put onto the link, held, given to the other end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::{Instant, Nanos};

use super::Failed;
use crate::error::TransportError;
use crate::relay::ledger::{Ledger, Loss};
use crate::relay::links::HostLink;
use crate::relay::state::{ENTRY_BYTES, Limits, Relay, Side, message};
use crate::relay::tap::{Eye, Seen};
use crate::serve::budget::{Account, Budget};
use crate::shape::{self, Shape};
use crate::transport::Transport;

/// Records read per wake-up and direction before others get their turn, and their bytes.
const BATCH_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Bytes that the other end has been given and has not taken, over which it is given no more.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// Bytes unsent over which what else comes is copied if that saves memory: it has time.
const CONGESTED_BYTES: usize = 256 << 10;

/// Most that a record is copied of to let go of the slab that it came in.
const COPIED_BYTES_MAX: usize = 256 << 10;

/// What of a connection may wait for a link whose queue has no bound, by the time that it takes to
/// leave: what queues in networks are made for. Above it the sender waits, as for TCP's windows.
const BACKLOG_MAX: Nanos = Nanos::from_millis(100);

/// One direction.
pub(super) struct Way<'r> {
    ledger: &'r Ledger,
    shape: &'r Shape,
    link: Arc<HostLink>,
    direction: shape::Side,
    /// When the link has room again, where it is full.
    room_at: Option<Instant>,
    /// When the last record has left.
    departs: Instant,
    /// The source may have sent what was not read.
    leaves_unread: bool,
    pub(super) from: Side,
    limits: &'r Limits,
    budget: &'r Budget,
    account: Account,
    pub(super) held: VecDeque<InFlight>,
    held_bytes: usize,
    /// A record that is on its way, and waits for bytes that may be held.
    waiting: Option<InFlight>,
    /// When the bytes were read that are being cut into records.
    arrived: Instant,
    /// When the last record is due: none may pass it.
    last_due: Instant,
    pub(super) records: u64,
    /// Bytes that the other end was ever given.
    pub(super) given_bytes: u64,
    /// How its source has ended.
    end: Option<Result<(), TransportError>>,
    pub(super) passed_end: bool,
}

pub(super) struct InFlight {
    due: Instant,
    record: Bytes,
    permits: u32,
    /// It is due so late because some of it was lost.
    is_retransmitted: bool,
}

impl InFlight {
    /// Bytes on the wire, with the mark.
    fn bytes(&self) -> u64 {
        self.record.len() as u64 + 4
    }
}

/// Whether a direction has something to do at a moment to come.
pub(super) enum Next {
    Due(Instant),
    /// When somebody wakes us.
    Woken,
}

impl<'r> Way<'r> {
    /// The direction of what comes from `from`.
    pub(super) fn new(relay: &'r Relay, link: Arc<HostLink>, from: Side, now: Instant) -> Self {
        let shared = &*relay.0;
        let direction = match from {
            Side::Client => shape::Side::There,
            Side::Server => shape::Side::Back,
        };
        let last_due = link.one_way(direction).lock().reset_at.max(now);
        Self {
            ledger: shared.ledger(direction),
            shape: &shared.shape,
            link,
            direction,
            room_at: None,
            departs: now,
            leaves_unread: false,
            from,
            limits: &shared.limits,
            budget: &shared.budget,
            account: shared.budget.account(),
            held: VecDeque::new(),
            held_bytes: 0,
            waiting: None,
            arrived: now,
            last_due,
            records: 0,
            given_bytes: 0,
            end: None,
            passed_end: false,
        }
    }

    /// Does what can be done now.
    pub(super) fn pump(
        &mut self,
        source: &mut impl Transport,
        target: &mut impl Transport,
        reads: bool,
        now: &impl Fn() -> Instant,
        eye: &mut Eye,
        cx: &mut Context<'_>,
    ) -> Result<Next, Failed> {
        if reads {
            self.read(source, target, now, eye, cx);
        } else {
            self.wait_no_more();
        }
        let to = self.from.other();
        let waits = !self.has_room();
        let held = self.held.len();
        let next = self.hand_on(target, now, eye, cx).map_err(|cause| (to, cause))?;
        self.account.settle();
        let next = match (next, self.room_at.filter(|_| reads)) {
            (Next::Due(due), Some(room)) => Next::Due(due.min(room)),
            (Next::Woken, Some(room)) => Next::Due(room),
            (next, None) => next,
        };
        if waits && self.held.len() < held {
            // What held up reading has gone only now.
            cx.waker().wake_by_ref();
        }
        let Some(end) = &self.end else {
            return Ok(next);
        };
        if self.held.is_empty() && self.waiting.is_none() && target.unsent_bytes() == 0 {
            match end {
                Ok(()) if !self.passed_end => {
                    target.end_sending();
                    self.passed_end = true;
                    eye.see(now(), Seen::LeftEnd(to));
                }
                Ok(()) => {}
                Err(cause) => return Err((self.from, cause.clone())),
            }
        }
        Ok(next)
    }

    /// Forwards nothing more: its target takes nothing, or its source has broken.
    pub(super) fn give_up(&mut self, failed: &mut Option<Failed>, cause: Failed) -> Next {
        failed.get_or_insert(cause);
        self.lose();
        (self.end, self.passed_end) = (Some(Ok(())), true);
        Next::Woken
    }

    /// Whether everything that it held has been taken.
    pub(super) fn is_over(&self, target: &impl Transport) -> bool {
        self.held.is_empty() && (self.passed_end || target.unsent_bytes() == 0)
    }

    /// Lets go of what it holds.
    fn lose(&mut self) {
        self.lose_from(0);
    }

    /// Lets go of what it holds from the record of this number on.
    fn lose_from(&mut self, first: usize) {
        self.wait_no_more();
        for lost in self.held.drain(first..) {
            self.ledger.lose(1, lost.bytes(), Loss::Ended);
            self.account.give_back(lost.permits);
            self.held_bytes -= lost.record.len() + ENTRY_BYTES;
        }
        self.account.settle();
    }

    /// Whether nothing is read of its source, for want of room here or on the link.
    pub(super) fn is_held_up(&self) -> bool {
        !self.has_room() || self.room_at.is_some()
    }

    fn has_room(&self) -> bool {
        self.waiting.is_none() && self.held_bytes < self.limits.held_bytes_max
    }

    /// Reads records and puts them onto the link, as far as there is room.
    fn read(
        &mut self,
        source: &mut impl Transport,
        target: &impl Transport,
        now: &impl Fn() -> Instant,
        eye: &mut Eye,
        cx: &mut Context<'_>,
    ) {
        if std::mem::replace(&mut self.leaves_unread, true)
            && self.end.is_none()
            && let Some(cause) = source.take_error()
        {
            self.break_off(cause, now(), eye);
        }
        let mut bytes = 0;
        self.room_at = None;
        for read in 0.. {
            if read == BATCH_MAX || bytes >= BATCH_BYTES_MAX {
                cx.waker().wake_by_ref();
                return;
            }
            if let Some(InFlight { permits, .. }) = self.waiting {
                if self.account.poll_take(cx, permits).is_pending() {
                    return;
                }
                self.held.extend(self.waiting.take());
            }
            if self.end.is_some() || !self.has_room() {
                return;
            }
            if !self.link_has_room(now) {
                return;
            }
            let record = match source.poll_receive(cx) {
                Poll::Pending => {
                    self.leaves_unread = false;
                    return;
                }
                Poll::Ready(Ok(Some(record))) => record,
                Poll::Ready(Ok(None)) => {
                    self.end = Some(Ok(()));
                    eye.see(now(), Seen::CameEnd(self.from));
                    return;
                }
                Poll::Ready(Err(cause)) => {
                    self.break_off(cause, now(), eye);
                    return;
                }
            };
            if source.is_fresh() || self.records == 0 {
                self.arrived = now();
            }
            eye.see(self.arrived, Seen::Came(self.from, &record));
            self.records += 1;
            bytes += record.len();
            let held = self.admit(record, source, target);
            match self.account.try_take(held.permits) {
                true => self.held.push_back(held),
                false => self.waiting = Some(held),
            }
        }
    }

    /// There will be no more: what was read may be held without being paid for.
    fn wait_no_more(&mut self) {
        self.account.leave_line();
        self.held.extend(self.waiting.take().map(|held| InFlight { permits: 0, ..held }));
    }

    /// The source sends nothing more, and retransmits nothing.
    fn break_off(&mut self, cause: TransportError, now: Instant, eye: &mut Eye) {
        if cause.is_reset() {
            self.wait_no_more();
            let lost = |held: &InFlight| held.is_retransmitted && held.due > now;
            let first = self.held.iter().position(lost).unwrap_or(self.held.len());
            self.lose_from(first);
            self.last_due = self.held.back().map_or(now, |last| last.due.max(now));
            let mut link = self.link.one_way(self.direction).lock();
            link.reset_at = link.reset_at.max(self.last_due);
        }
        self.end = Some(Err(cause));
        eye.see(now, Seen::CameEnd(self.from));
    }

    /// Whether the link takes another record: one of each connection at least.
    fn link_has_room(&mut self, now: &impl Fn() -> Instant) -> bool {
        let mut link = self.link.one_way(self.direction).lock();
        let lane = link.follower.lane(self.shape);
        let left = self.departs.since(now());
        self.room_at = if left == Nanos::ZERO {
            None
        } else if lane.conditions().queue_bytes_max.is_none() {
            (left > BACKLOG_MAX).then(|| now() + (left - BACKLOG_MAX))
        } else if lane.has_room(now()) {
            None
        } else {
            lane.room_at().map(|room| room.min(self.departs))
        };
        self.room_at.is_none()
    }

    /// Puts a record onto the link.
    fn admit(
        &mut self,
        record: Bytes,
        source: &impl Transport,
        target: &impl Transport,
    ) -> InFlight {
        let bytes = record.len() as u64 + 4;
        let now = self.arrived;
        let mut link = self.link.one_way(self.direction).lock();
        let fate = link.follower.lane(self.shape).message_of_many(now, bytes);
        drop(link);
        self.departs = fate.departs;
        self.ledger.came(now, bytes, &fate);
        self.ledger.hold(bytes);
        // On a stream nothing is lost, and no record passes another.
        let due = fate.arrival.unwrap_or(fate.departs).max(self.last_due);
        self.last_due = due;
        self.held_bytes += record.len() + ENTRY_BYTES;
        let stays = due > now || !self.held.is_empty() || target.unsent_bytes() > CONGESTED_BYTES;
        let (record, retained_bytes) = own(record, source, stays);
        InFlight {
            due,
            record,
            permits: self.budget.permits_for(retained_bytes + ENTRY_BYTES),
            is_retransmitted: fate.retransmissions > 0,
        }
    }

    /// Gives the other end what is due.
    fn hand_on(
        &mut self,
        target: &mut impl Transport,
        now: &impl Fn() -> Instant,
        eye: &mut Eye,
        cx: &mut Context<'_>,
    ) -> Result<Next, TransportError> {
        let mut next = Next::Woken;
        let mut at = self.arrived;
        while let Some(front) = self.held.front() {
            if front.due > at {
                at = now();
            }
            if front.due > at {
                next = Next::Due(front.due);
                break;
            }
            if target.unsent_bytes() >= UNSENT_BYTES_MAX && target.poll_flush(cx)?.is_pending() {
                return Ok(Next::Woken);
            }
            if target.poll_ready(cx)?.is_pending() {
                return Ok(Next::Woken);
            }
            let Some(held) = self.held.pop_front() else {
                break;
            };
            self.ledger.pass(held.due, at, held.bytes());
            self.held_bytes -= held.record.len() + ENTRY_BYTES;
            self.account.give_back(held.permits);
            self.given_bytes += held.bytes();
            eye.see(at, Seen::Left(self.from.other(), &held.record));
            target.send(message(held.record));
        }
        // If it is pending, we are woken when more can be taken.
        let _ = target.poll_flush(cx)?;
        Ok(next)
    }
}

/// A record without the slab that it came in, if that is much larger and the record stays for a
/// while; and the bytes that it keeps.
fn own(record: Bytes, source: &impl Transport, stays: bool) -> (Bytes, usize) {
    let (len, retained_bytes) = (record.len(), source.retained_bytes(record.len()));
    if !stays {
        // What passes at once shares its slab with those read beside it.
        return (record, len);
    }
    if retained_bytes > 2 * len && len <= COPIED_BYTES_MAX {
        return (Bytes::copy_from_slice(&record), len);
    }
    (record, retained_bytes)
}

impl Drop for Way<'_> {
    fn drop(&mut self) {
        self.lose();
    }
}
