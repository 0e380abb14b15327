//! One connection of a client and one to the server, driven by one task.
//!
//! In each direction a record is read, put onto the link, held until it is due, and given to the
//! other end, in the order in which it came. Reading stops where a direction holds as much as it
//! may, or as long as the bytes that all may hold together are used up. The end of a direction is
//! passed on behind its last record; the other goes on until it ends, too.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;

use super::ledger::{Ledger, Loss};
use super::tap::{Eye, Leg, Opened, Seen};
use super::{ENTRY_BYTES, Limits, Relay, Side, message};
use crate::clock::Alarm;
use crate::error::TransportError;
use crate::serve::Carrier;
use crate::serve::budget::{Account, Budget};
use crate::serve::host::{Ending, Phase};
use crate::serve::patience::{Observed, Patience};
use crate::serve::seats::Seated;
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

/// Relays; see [`Relay::connection`].
pub(super) async fn relay(
    relay: &Relay,
    seated: &Seated,
    mut client: impl Transport,
    mut server: impl Transport,
) -> Result<(), (Side, TransportError)> {
    let shared = &*relay.0;
    let now = shared.clock.now();
    let limits = crate::serve::Limits {
        idle_max: shared.limits.idle_max,
        stall_max: shared.limits.stall_max,
        ..crate::serve::Limits::default()
    };
    let way = |ledger, from, direction| Way {
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
    };
    let mut pair = Pair {
        relay,
        seated,
        records: 0,
        there: way(&shared.there, Side::Client, shape::Side::There),
        back: way(&shared.back, Side::Server, shape::Side::Back),
        alarm: None,
        ending: relay.ending(),
        client_patience: Patience::new(&limits, now),
        server_patience: Patience::new(&limits, now),
        timer: None,
        eye: Eye::open(shared.tap.as_ref(), now, || Opened {
            carrier: Carrier::Stream,
            client: leg(&client),
            server: leg(&server),
        }),
        failed: None,
    };
    let ended = std::future::poll_fn(|cx| pair.poll(&mut client, &mut server, cx)).await;
    pair.close();
    ended
}

fn leg(transport: &impl Transport) -> Leg {
    let peer = transport.peer();
    Leg { peer, own: transport.local().unwrap_or(peer) }
}

type Failed = (Side, TransportError);
type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Pair<'r> {
    relay: &'r Relay,
    seated: &'r Seated,
    /// Those that had come when it was last looked.
    records: u64,
    there: Way<'r>,
    back: Way<'r>,
    /// For the next message that is due; made when there is one.
    alarm: Option<Alarm>,
    ending: Ending,
    client_patience: Patience,
    server_patience: Patience,
    /// Until the next look at the two.
    timer: Option<Timer>,
    eye: Eye,
    /// One end has broken; what the other direction still holds is handed on.
    failed: Option<Failed>,
}

/// One direction.
struct Way<'r> {
    ledger: &'r Ledger,
    shape: &'r Shape,
    follower: Follower,
    /// When the link's queue has room again, where it is full.
    room_at: Option<Instant>,
    from: Side,
    limits: &'r Limits,
    budget: &'r Budget,
    account: Account,
    held: VecDeque<Held>,
    held_bytes: usize,
    /// A record that is on its way, and waits for bytes that may be held.
    waiting: Option<Held>,
    /// When the bytes were read that are being cut into records.
    arrived: Instant,
    /// When the last record is due: none may pass it.
    last_due: Instant,
    records: u64,
    /// Bytes that the other end was ever given.
    given_bytes: u64,
    /// How its source has ended.
    end: Option<Result<(), TransportError>>,
    passed_end: bool,
}

struct Held {
    due: Instant,
    record: Bytes,
    permits: u32,
}

impl Held {
    /// Bytes on the wire, with the mark.
    fn bytes(&self) -> u64 {
        self.record.len() as u64 + 4
    }
}

/// Whether a direction has something to do at a moment to come.
enum Next {
    Due(Instant),
    /// When somebody wakes us.
    Woken,
}

impl Pair<'_> {
    fn poll(
        &mut self,
        client: &mut impl Transport,
        server: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        self.look(client, server, cx)?;
        if self.seated.seat().is_revoked() {
            return Poll::Ready(Ok(()));
        }
        let ended = self.advance(client, server, cx);
        self.sit(client, server);
        ended
    }

    /// Keeps the seat while something is on its way: a message, or the reply to a call.
    fn sit(&mut self, client: &impl Transport, server: &impl Transport) {
        let records = self.there.records + self.back.records;
        if records != std::mem::replace(&mut self.records, records) {
            self.relay.0.seats.look_at(self.relay.0.clock.now());
            self.seated.is_active();
        }
        let is_held = !self.there.held.is_empty() || !self.back.held.is_empty();
        let is_behind = client.unsent_bytes() > 0 || server.unsent_bytes() > 0;
        let is_awaited = self.there.records > self.back.records;
        self.seated.seat().is_busy(is_held || is_behind || is_awaited);
    }

    fn advance(
        &mut self,
        client: &mut impl Transport,
        server: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        let phase = self.ending.phase(cx);
        if phase == Phase::Abandoning {
            return Poll::Ready(Ok(()));
        }
        loop {
            let reads = phase == Phase::Serving && self.failed.is_none();
            let clock = &self.relay.0.clock;
            let (eye, now) = (&mut self.eye, &|| clock.now());
            let there = self.there.pump(client, server, reads, now, eye, cx);
            let there = there.unwrap_or_else(|failed| self.there.give_up(&mut self.failed, failed));
            let back = self.back.pump(server, client, reads, now, eye, cx);
            let back = back.unwrap_or_else(|failed| self.back.give_up(&mut self.failed, failed));
            if let Some(failed) = &self.failed {
                if reads {
                    // Once more, to hand on and not to read.
                    continue;
                }
                if self.there.is_over(server) && self.back.is_over(client) {
                    return Poll::Ready(Err(failed.clone()));
                }
            }
            let ended = |way: &Way<'_>| match reads {
                true => way.passed_end,
                false => way.held.is_empty(),
            };
            if ended(&self.there) && ended(&self.back) {
                let unsent = client.unsent_bytes() + server.unsent_bytes();
                return if unsent == 0 { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            let due = match (there, back) {
                (Next::Due(there), Next::Due(back)) => there.min(back),
                (Next::Due(due), Next::Woken) | (Next::Woken, Next::Due(due)) => due,
                (Next::Woken, Next::Woken) => return Poll::Pending,
            };
            let alarm = match &mut self.alarm {
                Some(alarm) => alarm,
                None => {
                    let made = clock.alarm();
                    // Out of descriptors: that ends this connection alone.
                    self.alarm.insert(made.map_err(|cause| (Side::Client, cause.into()))?)
                }
            };
            if alarm.poll_at(cx, due).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Tells of the ends that nobody has seen.
    fn close(&mut self) {
        let now = self.relay.0.clock.now();
        for way in [&self.there, &self.back] {
            if !way.passed_end {
                self.eye.see(now, Seen::LeftEnd(way.from.other()));
            }
        }
    }

    /// Gives up the connection if it is time.
    fn look(
        &mut self,
        client: &impl Transport,
        server: &impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), Failed> {
        loop {
            let timer = self.timer.get_or_insert_with(|| {
                let clock = self.relay.0.clock.clone();
                let interval = self.client_patience.interval();
                self.seated.seat().watch(cx.waker());
                Box::pin(async move { clock.sleep(interval).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.timer = None;
            let now = self.relay.0.clock.now();
            let held = self.there.held.len() + self.back.held.len();
            let seen_at_client = observed(&self.there, client, &self.back, held);
            let seen_at_server = observed(&self.back, server, &self.there, held);
            self.relay.0.seats.look_at(now);
            let is_short = self.relay.0.seats.is_full(now);
            let client_is = self.client_patience.look(now, seen_at_client, is_short);
            let server_is = self.server_patience.look(now, seen_at_server, false);
            client_is.map_err(|cause| (Side::Client, cause))?;
            server_is.map_err(|cause| (Side::Server, cause))?;
        }
    }
}

/// What an end has done: `from` it and `to` it are the two directions.
fn observed(from: &Way<'_>, end: &impl Transport, to: &Way<'_>, held: usize) -> Observed {
    let unsent_bytes = end.unsent_bytes();
    Observed {
        records: from.records,
        within_record: end.is_within_record() && from.has_room(),
        sent_bytes: to.given_bytes - (unsent_bytes as u64).min(to.given_bytes),
        unsent_bytes,
        calls: held,
    }
}

impl Way<'_> {
    /// Does what can be done now.
    fn pump(
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
            self.held.extend(self.waiting.take().map(|held| Held { permits: 0, ..held }));
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

    /// Hands on nothing more: its target takes nothing, or its source has broken.
    fn give_up(&mut self, failed: &mut Option<Failed>, cause: Failed) -> Next {
        failed.get_or_insert(cause);
        self.lose();
        (self.end, self.passed_end) = (Some(Ok(())), true);
        Next::Woken
    }

    /// Whether everything that it held has been taken.
    fn is_over(&self, target: &impl Transport) -> bool {
        self.held.is_empty() && (self.passed_end || target.unsent_bytes() == 0)
    }

    /// Lets go of what it holds.
    fn lose(&mut self) {
        self.account.leave_line();
        let held = || self.held.iter().chain(&self.waiting);
        let bytes = held().map(Held::bytes).sum();
        self.ledger.lose(held().count() as u64, bytes, Loss::Ended);
        self.account.give_back(self.held.iter().map(|held| held.permits).sum());
        self.account.settle();
        self.waiting = None;
        self.held.clear();
        self.held_bytes = 0;
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
        let mut bytes = 0;
        self.room_at = None;
        for read in 0.. {
            if read == BATCH_MAX || bytes >= BATCH_BYTES_MAX {
                cx.waker().wake_by_ref();
                return;
            }
            if let Some(Held { permits, .. }) = self.waiting {
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
    fn admit(&mut self, record: Bytes, source: &impl Transport, target: &impl Transport) -> Held {
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
        let (record, kept_bytes) = own(record, source, stays);
        Held { due, record, permits: self.budget.permits_for(kept_bytes + ENTRY_BYTES) }
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
    let (len, kept_bytes) = (record.len(), source.kept_bytes(record.len()));
    if !stays {
        // What passes at once shares its slab with those read beside it.
        return (record, len);
    }
    if kept_bytes > 2 * len && len <= COPIED_BYTES_MAX {
        return (Bytes::copy_from_slice(&record), len);
    }
    (record, kept_bytes)
}

impl Drop for Way<'_> {
    fn drop(&mut self) {
        self.lose();
    }
}
