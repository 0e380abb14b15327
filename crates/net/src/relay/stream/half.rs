//! One direction of a connection: read, put onto the link, held, given to the other end.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;

use super::Failed;
use crate::error::TransportError;
use crate::relay::ledger::{Ledger, Loss};
use crate::relay::tap::{Eye, Seen};
use crate::relay::{ENTRY_BYTES, Limits, Relay, Side, message};
use crate::serve::budget::{Account, Budget};
use crate::shape::{self, Follower, Shape};
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

/// One direction.
pub(super) struct Way<'r> {
    ledger: &'r Ledger,
    shape: &'r Shape,
    follower: Follower,
    /// When the link's queue has room again, where it is full.
    room_at: Option<Instant>,
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
    pub(super) fn new(relay: &'r Relay, from: Side, now: Instant) -> Self {
        let shared = &*relay.0;
        let (ledger, direction) = match from {
            Side::Client => (&shared.there, shape::Side::There),
            Side::Server => (&shared.back, shape::Side::Back),
        };
        Self {
            ledger,
            shape: &shared.shape,
            follower: shared.shape.follower(direction),
            room_at: None,
            from,
            limits: &shared.limits,
            budget: &shared.budget,
            account: shared.budget.account(),
            held: VecDeque::new(),
            held_bytes: 0,
            waiting: None,
            arrived: now,
            last_due: now,
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
            // There will be no more: what was read may be held without being paid for.
            self.account.leave_line();
            self.held.extend(self.waiting.take().map(|held| InFlight { permits: 0, ..held }));
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
        self.account.leave_line();
        let held = || self.held.iter().chain(&self.waiting);
        let bytes = held().map(InFlight::bytes).sum();
        self.ledger.lose(held().count() as u64, bytes, Loss::Ended);
        self.account.give_back(self.held.iter().map(|held| held.permits).sum());
        self.account.settle();
        self.waiting = None;
        self.held.clear();
        self.held_bytes = 0;
    }

    pub(super) fn has_room(&self) -> bool {
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
                Poll::Pending => return,
                Poll::Ready(Ok(Some(record))) => record,
                Poll::Ready(end) => {
                    self.end = Some(end.map(|_| ()));
                    eye.see(now(), Seen::CameEnd(self.from));
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

    /// Whether the link's queue takes another record.
    fn link_has_room(&mut self, now: &impl Fn() -> Instant) -> bool {
        let lane = self.follower.lane(self.shape);
        if lane.conditions().queue_bytes_max.is_none() || lane.has_room(now()) {
            self.room_at = None;
            return true;
        }
        self.room_at = lane.room_at();
        false
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
        let lane = self.follower.lane(self.shape);
        let fate = lane.message(now, bytes);
        self.ledger.came(now, bytes, &fate);
        self.ledger.hold(bytes);
        // On a stream nothing is lost, and no record passes another.
        let due = fate.arrival.unwrap_or(fate.departs).max(self.last_due);
        self.last_due = due;
        self.held_bytes += record.len() + ENTRY_BYTES;
        let stays = due > now || !self.held.is_empty() || target.unsent_bytes() > CONGESTED_BYTES;
        let (record, retained_bytes) = own(record, source, stays);
        InFlight { due, record, permits: self.budget.permits_for(retained_bytes + ENTRY_BYTES) }
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
