//! One connection, driven by one task.
//!
//! ```text
//!   socket --> budget --> call --+----> reply --> transport's queue --> socket
//!     |          |               '- waits, in the set -'                  |
//!     |          '- waits: the socket is not read                         '- tags are told
//!     '- not read either while too many calls or unsent replies are there
//! ```
//!
//! What a call may take of the bytes in flight is taken when its record is there and given back
//! with its reply; what of the replies the socket does not take at once is charged again. Where
//! that cannot be paid, no call is read until it can: one batch of replies, at most.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use perf::units::{Instant, Nanos};

use super::budget::Account;
use super::calls::{Calls, OWN_TASK_BYTES};
use super::host::{Counters, Ending, Host, Phase};
use super::patience::{Observed, Patience};
use super::{Carrier, Peer, REPLY_BYTES_MAX, Reply, Service};
use crate::error::TransportError;
use crate::transport::Transport;
use crate::transport::buffer::COPIED_BYTES_MAX;

/// Calls started per wake-up before replies are sent and other connections get their turn.
const BATCH_MAX: usize = 64;

/// Bytes of calls and their replies after which others get their turn, too: copying so much takes
/// about as long as answering 64 small calls.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// How long a connection that we end stays half open, so that the peer gets our last replies and
/// not a reset for what it is still sending.
const LINGER: Nanos = Nanos::from_secs(1);

/// Serves a connection; see [`Host::connection`].
pub(super) async fn serve(
    host: &Host,
    mut transport: impl Transport,
    service: impl Service,
) -> Result<(), TransportError> {
    let clock = host.clock();
    let address = transport.peer();
    let peer = Peer {
        address: (address.ip().to_canonical(), address.port()).into(),
        carrier: Carrier::Stream,
        local: transport.local(),
        owner: transport.owner(),
    };
    let (timed, begin) = (service.is_timed(), service.clone());
    let mut connection = Connection {
        host,
        peer,
        service,
        begin: move |record, arrived| begin.call(peer, record, arrived),
        timed,
        arrived: None,
        ending: host.ending(),
        patience: Patience::new(host.limits(), clock.now()),
        timer: None,
        account: host.budget().account(),
        calls: Calls::new(),
        reply_bytes: 0,
        waiting: None,
        records: 0,
        queued_bytes: 0,
        unsent_permits: 0,
        overdrawn: false,
        tagged: VecDeque::new(),
        end: None,
    };
    let ended = std::future::poll_fn(|cx| connection.poll(&mut transport, cx)).await;
    if ended.is_ok() {
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
    account: Account,
    calls: Calls<F, Note>,
    /// What is kept free for the replies to `calls`.
    reply_bytes: usize,
    /// A call that has been read and waits for bytes in flight.
    waiting: Option<(Bytes, Note)>,
    /// Records received.
    records: u64,
    /// Bytes of replies that the transport was ever given.
    queued_bytes: u64,
    /// Charged for replies that the socket has not taken yet.
    unsent_permits: u32,
    /// There are unsent replies that are not charged.
    overdrawn: bool,
    /// Replies with tags, by where their last byte is in all that was queued.
    tagged: VecDeque<Tagged>,
    /// No more calls are read: the client has ended, what came was no call, or the host ends.
    end: Option<Result<(), TransportError>>,
}

/// What a call in progress holds.
#[derive(Clone, Copy)]
struct Note {
    permits: u32,
    reply_bytes: usize,
    /// The permits go back by themselves.
    lent: bool,
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
        self.look(transport, cx)?;
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
        self.read(transport, cx)?;
        let flushed = transport.poll_flush(cx)?;
        if self.settle(transport) && self.end.is_none() {
            // What held up reading has gone only now.
            cx.waker().wake_by_ref();
        }
        match &self.end {
            // What was asked before the end is still answered.
            Some(Ok(())) if !self.calls.is_empty() || flushed.is_pending() => Poll::Pending,
            Some(end) => Poll::Ready(end.clone()),
            None => Poll::Pending,
        }
    }

    /// Ends the calls in progress although nobody hears of it: one that changes names may have
    /// done so, and its client will come back to ask.
    fn finish(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.ending.refresh();
        self.waiting = None;
        self.account.give_back(std::mem::take(&mut self.unsent_permits));
        while !self.calls.is_empty() {
            if self.ending.phase(cx) == Phase::Abandoning {
                Counters::add(&self.host.counters().abandoned, self.calls.len() as u64);
                break;
            }
            let (_, note) = ready!(self.calls.poll_reply(cx));
            self.pay_back(note);
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
            let timer = self.timer.get_or_insert_with(|| {
                let (clock, interval) = (self.host.clock().clone(), self.patience.interval());
                Box::pin(async move { clock.sleep(interval).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.timer = None;
            self.ending.refresh();
            let unsent_bytes = transport.unsent_bytes();
            let observed = Observed {
                records: self.records,
                within_record: transport.is_within_record() && !self.is_full(),
                sent_bytes: self.queued_bytes - (unsent_bytes as u64).min(self.queued_bytes),
                unsent_bytes,
                calls: self.calls.len() + usize::from(self.waiting.is_some()),
            };
            self.patience.look(self.host.clock().now(), observed)?;
        }
    }

    /// Reads no more calls.
    fn stop(&mut self, end: Result<(), TransportError>) {
        self.waiting = None;
        self.account.leave_line();
        self.end.get_or_insert(end);
    }

    fn is_full(&self) -> bool {
        self.calls.len() >= self.host.limits().calls_per_connection_max
            || self.reply_bytes >= REPLY_BYTES_MAX
            || self.overdrawn
            || self.waiting.is_some()
    }

    /// Reads calls and starts them, as far as there is room.
    fn read(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), TransportError> {
        let mut bytes = 0;
        for started in 0.. {
            if started == BATCH_MAX || bytes >= BATCH_BYTES_MAX {
                cx.waker().wake_by_ref();
                break;
            }
            let full = self.is_full() && self.waiting.is_none();
            if self.end.is_some() || full || transport.poll_ready(cx)?.is_pending() {
                break;
            }
            match self.poll_next_call(transport, cx) {
                Poll::Ready(Ok(Some((record, note)))) => {
                    bytes += record.len() + note.reply_bytes;
                    self.start(transport, cx, record, note);
                }
                Poll::Ready(end) => {
                    self.stop(end.map(|_| ()));
                    break;
                }
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// The next call, with the bytes that it takes.
    fn poll_next_call(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(Bytes, Note)>, TransportError>> {
        if self.waiting.is_none() {
            let Some(record) = ready!(transport.poll_receive(cx))? else {
                return Poll::Ready(Ok(None));
            };
            self.records += 1;
            if self.timed && (self.arrived.is_none() || transport.is_fresh()) {
                self.arrived = Some(self.host.clock().now());
            }
            let budget = self.host.budget();
            let reply_bytes = self.service.reply_bytes_max(&record);
            let kept_bytes = transport.kept_bytes(record.len());
            let permits = budget.permits_for(kept_bytes + reply_bytes);
            let note = Note { permits, reply_bytes, lent: false };
            if self.account.try_take(permits) {
                return Poll::Ready(Ok(Some((record, note))));
            }
            self.waiting = Some((self.own(record), note));
        }
        if let Some((_, note)) = &self.waiting {
            ready!(self.account.poll_take(cx, note.permits));
        }
        Poll::Ready(Ok(self.waiting.take()))
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
    ) {
        let note = Note { lent: record.len() >= OWN_TASK_BYTES, ..note };
        // Where calls wait, this one may, too.
        let record = if self.calls.is_empty() { record } else { self.own(record) };
        let (begin, arrived) = (&self.begin, self.arrived);
        let started = if note.lent {
            let lent = self.account.lend(note.permits);
            self.calls.start_there(cx, self.host.clock(), begin(record, arrived), lent, note)
        } else {
            self.calls.start(cx, || begin(record, arrived), || note)
        };
        match started {
            Poll::Ready(reply) => {
                self.pay_back(note);
                self.answer(transport, reply);
            }
            Poll::Pending => self.reply_bytes += note.reply_bytes,
        }
    }

    fn pay_back(&mut self, note: Note) {
        match note.lent {
            true => self.account.returned(note.permits),
            false => self.account.give_back(note.permits),
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
        let permits = self.host.budget().permits_for(unsent);
        let mut has_more_room = std::mem::take(&mut self.overdrawn);
        if permits < self.unsent_permits {
            self.account.give_back(self.unsent_permits - permits);
            self.unsent_permits = permits;
            has_more_room = true;
        } else if permits > self.unsent_permits {
            match self.account.try_take_over_share(permits - self.unsent_permits) {
                true => self.unsent_permits = permits,
                false => (self.overdrawn, has_more_room) = (true, false),
            }
        }
        self.account.settle();
        has_more_room
    }
}
