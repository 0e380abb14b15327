//! One connection, driven by one task.
//!
//! ```text
//!   socket --> budget --> call --+----> reply --> transport's queue --> socket
//!     |          |               '- waits, in the set -'                  |
//!     |          '- waits: the socket is not read                         '- tags are sent
//!     '- not read either while too many calls or unsent replies are there
//! ```
//!
//! What a call may take of the bytes in flight is taken when its record is there, or, of a large
//! one, before its body is read ([`Bodies`]). It is given back when the socket has taken the reply.
//! A reply that is larger than was known before is charged when it is there. Where that cannot be
//! paid, no call is read until it can: one batch of small replies, at most.
//!
//! Moving data takes as long as hundreds of small calls. Beyond [`LIGHT_BYTES`] a connection does
//! it only when it has a turn, of which there is one for each processor: so who asks for little
//! waits for one batch of others, and not for one of each of them. A first call takes a turn, too,
//! however small it is.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::record::FRAGMENT_HEADER_LEN;

use super::accounts::{Accounts, Charged, Taken};
use super::calls::{Calls, OWN_TASK_BYTES};
use super::host::{Counters, Ending, Host, Phase};
use super::patience::{Observed, Patience};
use super::seats::Seated;
use super::turns::{Lately, Turn};
use super::{Carrier, Peer, REPLY_BYTES_MAX, Reply, Service};
use crate::error::TransportError;
use crate::runtime::wake_after_events;
use crate::transport::Transport;
use crate::transport::buffer::{COPIED_BYTES_MAX, SMALL_BYTES};

/// Calls started per wake-up before replies are sent and other connections get their turn.
const BATCH_MAX: usize = 64;

/// Bytes of calls and their replies after which others get their turn, too: copying so much takes
/// about as long as answering 64 small calls.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// A call that waits for something has tried first to do without: it counts as so many.
const PENDING_CALL_WORK: usize = 8;

/// Bytes that a connection moves in one go without having a turn at it.
const LIGHT_BYTES: usize = 64 << 10;

/// How long a connection that we end stays half open, so that the peer gets our last replies and
/// not a reset for what it is still sending.
const LINGER: Nanos = Nanos::from_secs(1);

/// Serves a connection; see [`Host::connection`].
pub(super) async fn serve(
    host: &Host,
    seated: &Seated,
    mut transport: impl Transport,
    service: impl Service,
) -> Result<(), TransportError> {
    let clock = host.clock();
    let address = transport.peer();
    let peer = Peer {
        address: (address.ip().to_canonical(), address.port()).into(),
        carrier: Carrier::Stream,
        is_proven: true,
        local: transport.local(),
        owner: transport.owner(),
    };
    let (timed, begin) = (service.is_timed(), service.clone());
    transport.ask_for_room();
    let lately = Lately::of_newcomer(clock.now());
    let mut connection = Connection {
        host,
        seated,
        peer,
        service,
        begin: move |record, arrived| begin.call(peer, record, arrived),
        timed,
        arrived: None,
        ending: host.ending(),
        patience: Patience::new(host.limits(), clock.now()),
        timer: None,
        looks_soon: false,
        accounts: host.budgets().accounts(Some(seated.share())),
        turn: host.turns().of(seated.share(), lately.clone()),
        lately,
        waits_for_turn: false,
        calls: Calls::new(),
        reply_bytes: 0,
        bodies: Bodies::default(),
        waiting: None,
        admitted: None,
        records: 0,
        queued_bytes: 0,
        overdrawn: false,
        queue_is_full: false,
        leaves_unread: false,
        tagged: VecDeque::new(),
        end: None,
    };
    let ended = std::future::poll_fn(|cx| connection.poll(&mut transport, cx)).await;
    if ended.is_ok() && connection.ending.reached() < Phase::Abandoning {
        let close = std::future::poll_fn(|cx| transport.poll_close(cx));
        clock.within(LINGER, close).await.ok();
    }
    drop(transport);
    std::future::poll_fn(|cx| connection.finish(cx)).await;
    ended
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Connection<'h, S, B, F> {
    host: &'h Host,
    seated: &'h Seated,
    peer: Peer,
    service: S,
    begin: B,
    timed: bool,
    /// When the bytes were read that are being cut into records.
    arrived: Option<Instant>,
    ending: Ending,
    patience: Patience,
    /// Until the next look at `patience`.
    timer: Option<Timer>,
    /// The timer is for [`Patience::interval_soon`].
    looks_soon: bool,
    accounts: Accounts,
    turn: Turn,
    lately: Lately,
    /// A turn was requested in this poll, and was not to be had.
    waits_for_turn: bool,
    calls: Calls<F, Note>,
    /// What is reserved for the replies to `calls`.
    reply_bytes: usize,
    bodies: Bodies,
    /// A call that has been read and waits for bytes in flight, and for how many.
    waiting: Option<(Bytes, usize)>,
    /// A call that waits for nothing but a turn.
    admitted: Option<(Bytes, Note)>,
    /// Records received.
    records: u64,
    /// Bytes of replies that the transport was ever given.
    queued_bytes: u64,
    /// There are unsent replies that are not charged.
    overdrawn: bool,
    /// The transport had no room for replies when a call was to be read.
    queue_is_full: bool,
    /// There may be calls that have come and were not read.
    leaves_unread: bool,
    /// Replies with tags, by where their last byte is in all that was queued.
    tagged: VecDeque<Tagged>,
    /// No more calls are read: the client has ended, what came was no call, or the host ends.
    end: Option<Result<(), TransportError>>,
}

/// What a call in progress holds.
#[derive(Clone, Copy)]
struct Note {
    taken: Taken,
    reply_bytes: usize,
    /// What was taken goes back by itself.
    lent: bool,
}

/// What large records have taken before their bodies were read, until they are complete.
#[derive(Default)]
struct Bodies {
    taken: VecDeque<Taken>,
    /// A record has begun, and waits for room.
    are_waiting: bool,
}

struct Tagged {
    end: u64,
    tag: u32,
    at: Instant,
}

impl<S, B, F> Connection<'_, S, B, F>
where
    S: Service,
    B: Fn(Bytes, Option<Instant>) -> F,
    F: Future<Output = Option<Reply>> + Send + 'static,
{
    fn poll(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        self.waits_for_turn = false;
        let polled = self.poll_in_turn(transport, cx);
        if !self.waits_for_turn {
            self.turn.end();
        }
        polled
    }

    fn has_turn(&mut self, cx: &mut Context<'_>) -> bool {
        self.waits_for_turn = self.turn.poll_take(cx).is_pending();
        !self.waits_for_turn
    }

    fn poll_in_turn(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        if let Err(given_up) = self.look(transport, cx) {
            self.end = None;
            self.stop(Err(given_up));
        }
        if self.seated.seat().is_revoked() {
            self.stop(Ok(()));
        }
        match self.ending.phase(cx) {
            Phase::Serving => {}
            Phase::Draining => self.stop(Ok(())),
            // `finish` counts what is left.
            Phase::Abandoning => return Poll::Ready(Ok(())),
        }
        // Replies first: they free what new calls need.
        while let Poll::Ready((reply, note)) = self.calls.poll_reply(cx) {
            self.reply_bytes -= note.reply_bytes;
            self.pay_back(note);
            self.answer(transport, reply);
        }
        let is_heavy = self.admitted.is_some()
            || !self.bodies.taken.is_empty()
            || transport.unsent_bytes() > LIGHT_BYTES;
        // Thousands that come at once would all be read before a call of one that was there.
        let has_begun = self.records > 0;
        if (is_heavy || !has_begun) && !self.has_turn(cx) {
            return Poll::Pending;
        }
        // A call may stay in the system, and this poll with it.
        self.seated.seat().is_busy(true);
        self.read(transport, cx)?;
        let flushed = transport.poll_flush(cx)?;
        if self.settle(transport) && self.end.is_none() {
            // What held up reading has gone only now.
            wake_after_events(cx);
        }
        let is_behind = flushed.is_pending();
        self.seated.seat().is_busy(is_behind || !self.calls.is_empty() || self.waits_here());
        if (is_behind || transport.is_within_record()) && !self.looks_soon {
            self.look_soon(transport, cx)?;
        }
        match &self.end {
            // What was requested before the end is still answered.
            Some(Ok(())) if !self.calls.is_empty() || flushed.is_pending() => Poll::Pending,
            Some(end) => Poll::Ready(end.clone()),
            None => Poll::Pending,
        }
    }

    /// Ends the calls in progress although nobody hears of it: one that changes names may have
    /// done so, and its client will come back to ask.
    fn finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.ending.refresh();
        (self.waiting, self.admitted) = (None, None);
        self.accounts.charge_unsent(0);
        self.accounts.settle();
        while !self.calls.is_empty() {
            if self.ending.phase(cx) == Phase::Abandoning {
                Counters::add(&self.host.counters().abandoned, self.calls.len() as u64);
                break;
            }
            let (_, note) = ready!(self.calls.poll_reply(cx));
            self.pay_back(note);
            self.accounts.settle();
        }
        Poll::Ready(())
    }

    /// Gives up the connection if it is time.
    fn look(
        &mut self,
        transport: &impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), TransportError> {
        loop {
            let looks_soon = self.looks_soon;
            let timer = self.timer.get_or_insert_with(|| {
                let clock = self.host.clock().clone();
                let interval = match looks_soon {
                    true => self.patience.interval_soon(),
                    false => self.patience.interval(),
                };
                self.seated.seat().watch(cx.waker());
                Box::pin(async move { clock.sleep(interval).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            (self.timer, self.looks_soon) = (None, false);
            // The task may have another waker than when it last looked.
            self.ending.refresh();
            let unsent_bytes = transport.unsent_bytes();
            let observed = Observed {
                records: self.records,
                within_record: transport.is_within_record()
                    && !self.is_full()
                    && !self.bodies.are_waiting,
                sent_bytes: self.queued_bytes - (unsent_bytes as u64).min(self.queued_bytes),
                unsent_bytes,
                calls: self.calls.len() + usize::from(self.waits_here()),
            };
            let now = self.host.clock().now();
            self.host.seats().look_at(now);
            self.patience.look(now, observed, self.host.is_short(now))?;
        }
    }

    /// Looks sooner than usual: the peer is behind with something.
    fn look_soon(
        &mut self,
        transport: &impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), TransportError> {
        (self.timer, self.looks_soon) = (None, true);
        self.look(transport, cx)
    }

    /// Reads no more calls.
    fn stop(&mut self, end: Result<(), TransportError>) {
        self.waiting = None;
        if let Some((_, note)) = self.admitted.take() {
            self.accounts.give_back(note.taken);
        }
        self.accounts.leave_line();
        self.end.get_or_insert(end);
    }

    fn is_full(&self) -> bool {
        self.calls.len() >= self.host.limits().calls_per_connection_max
            || self.reply_bytes >= REPLY_BYTES_MAX
            || self.overdrawn
            || self.waiting.is_some()
    }

    /// Whether a call that was read has not begun.
    fn waits_here(&self) -> bool {
        self.waiting.is_some() || self.admitted.is_some()
    }

    /// Reads calls and starts them, as far as there is room. Those of a client that has reset the
    /// connection are not begun: what it sends over its next one would be done before them.
    fn read(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), TransportError> {
        if std::mem::replace(&mut self.leaves_unread, true)
            && let Some(cause) = transport.take_error()
        {
            self.stop(Err(cause));
        }
        let (mut bytes, mut work) = (0, 0);
        loop {
            if work >= BATCH_MAX || bytes >= BATCH_BYTES_MAX {
                wake_after_events(cx);
                break;
            }
            let full = self.is_full() && self.waiting.is_none();
            if self.end.is_some() || full {
                break;
            }
            self.queue_is_full = transport.poll_ready(cx)?.is_pending();
            if self.queue_is_full {
                break;
            }
            match self.poll_next_call(transport, cx) {
                Poll::Ready(Ok(Some((record, note)))) => {
                    bytes += record.len() + note.reply_bytes;
                    if bytes > LIGHT_BYTES && !self.has_turn(cx) {
                        self.admitted = Some((record, note));
                        break;
                    }
                    work += match self.start(transport, cx, record, note) {
                        Poll::Ready(()) => 1,
                        Poll::Pending => PENDING_CALL_WORK,
                    };
                }
                Poll::Ready(end) => {
                    self.stop(end.map(|_| ()));
                    break;
                }
                Poll::Pending => {
                    self.leaves_unread = self.waits_for_turn || self.is_held_up();
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a call that has come waits for bytes in flight.
    fn is_held_up(&self) -> bool {
        self.waiting.is_some() || self.bodies.are_waiting
    }

    /// The next call, with the bytes that it takes.
    fn poll_next_call(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(Bytes, Note)>, TransportError>> {
        if self.admitted.is_some() {
            return Poll::Ready(Ok(self.admitted.take()));
        }
        if self.waiting.is_none() {
            let Some(record) = ready!(self.poll_record(transport, cx))? else {
                return Poll::Ready(Ok(None));
            };
            self.records += 1;
            self.seated.is_active();
            if self.timed && (self.arrived.is_none() || transport.is_fresh()) {
                self.arrived = Some(self.host.clock().now());
            }
            let reply_bytes = self.service.reply_bytes_max(&record);
            if let Some(taken) = self.bodies.of(&record) {
                return Poll::Ready(Ok(Some((record, Note { taken, reply_bytes, lent: false }))));
            }
            let bytes = transport.retained_bytes(record.len()) + reply_bytes;
            if let Some(taken) = self.accounts.try_take(bytes) {
                return Poll::Ready(Ok(Some((record, Note { taken, reply_bytes, lent: false }))));
            }
            self.waiting = Some((self.own(record), bytes));
        }
        let Some((_, bytes)) = self.waiting else { return Poll::Ready(Ok(None)) };
        let taken = ready!(self.accounts.poll_take(cx, bytes));
        Poll::Ready(Ok(self.waiting.take().map(|(record, _)| {
            let reply_bytes = self.service.reply_bytes_max(&record);
            (record, Note { taken, reply_bytes, lent: false })
        })))
    }

    /// The next record; of a large one the body is read when there is room for it.
    fn poll_record(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        loop {
            if let Poll::Ready(received) = transport.poll_receive(cx) {
                return Poll::Ready(received);
            }
            let Some(bytes) = transport.wanted_bytes() else {
                return Poll::Pending;
            };
            self.bodies.are_waiting = true;
            let taken = ready!(self.accounts.poll_take(cx, bytes));
            self.bodies.are_waiting = false;
            self.bodies.taken.push_back(taken);
            transport.allow();
            if !self.has_turn(cx) {
                return Poll::Pending;
            }
        }
    }

    /// A record that may have to wait, without the slab that it came in if that is much larger: of
    /// small calls that wait, only the first of a connection keeps one.
    fn own(&self, record: Bytes) -> Bytes {
        match record.len() <= COPIED_BYTES_MAX {
            true => Bytes::copy_from_slice(&record),
            false => record,
        }
    }

    fn start(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
        record: Bytes,
        note: Note,
    ) -> Poll<()> {
        let note = Note { lent: record.len() >= OWN_TASK_BYTES, ..note };
        // Where calls wait, this one may, too.
        let record = if self.calls.is_empty() { record } else { self.own(record) };
        let (begin, arrived) = (&self.begin, self.arrived);
        let started = if note.lent {
            let turn = self.host.turns().of(self.seated.share(), self.lately.clone());
            let lent = (self.accounts.lend(note.taken), turn);
            self.calls.start_there(cx, self.host.clock(), begin(record, arrived), lent, note)
        } else {
            self.calls.start(cx, || begin(record, arrived), || note)
        };
        match started {
            Poll::Ready(reply) => {
                self.pay_back(note);
                self.answer(transport, reply);
                Poll::Ready(())
            }
            Poll::Pending => {
                self.reply_bytes += note.reply_bytes;
                Poll::Pending
            }
        }
    }

    fn pay_back(&mut self, note: Note) {
        if note.lent {
            self.accounts.returned(note.taken);
        } else if note.reply_bytes > 0 {
            self.accounts.keep_for_reply(note.taken);
        } else {
            self.accounts.give_back(note.taken);
        }
    }

    /// Sends a reply. A record that deserves none was no call: what follows it on the stream is
    /// not to be trusted, so the connection ends when all earlier calls have been answered.
    fn answer(&mut self, transport: &mut impl Transport, reply: Option<Reply>) {
        let Some(Reply { message, tag }) = reply else {
            self.stop(Ok(()));
            return;
        };
        if message.wire_len() == 0 {
            return;
        }
        self.queued_bytes += 4 + message.wire_len() as u64;
        transport.send(message);
        if tag != 0 {
            let at = self.host.clock().now();
            self.tagged.push_back(Tagged { end: self.queued_bytes, tag, at });
        }
    }

    /// Tells the tags of what has been sent, and charges what has not. True if there is more room
    /// for calls than before.
    fn settle(&mut self, transport: &impl Transport) -> bool {
        let unsent = transport.unsent_bytes();
        if !self.tagged.is_empty() {
            let sent = self.queued_bytes - (unsent as u64).min(self.queued_bytes);
            let now = self.host.clock().now();
            while let Some(&Tagged { end, tag, at }) = self.tagged.front()
                && end <= sent
            {
                self.service.sent(&self.peer, tag, now.since(at));
                self.tagged.pop_front();
            }
        }
        let was_held_up = self.queue_is_full || self.is_held_up();
        let was_overdrawn = self.overdrawn;
        let charged = self.accounts.charge_unsent(unsent);
        self.overdrawn = charged == Charged::Overdrawn;
        self.accounts.settle();
        (was_held_up && charged == Charged::PaidBack) || (was_overdrawn && !self.overdrawn)
    }
}

impl Bodies {
    /// What a record that is complete has taken, if it is one of those that waited before.
    fn of(&mut self, record: &Bytes) -> Option<Taken> {
        match FRAGMENT_HEADER_LEN + record.len() > SMALL_BYTES {
            true => self.taken.pop_front(),
            false => None,
        }
    }
}
