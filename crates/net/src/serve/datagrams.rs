//! A socket of datagrams, driven by one task.
//!
//! A datagram is a call; its reply goes back along the same way, from the address that it was sent
//! to. Over a limit datagrams are dropped, and counted: the client sends them again later, which is
//! all the back-pressure that UDP has. Replies that the socket does not take at once wait in a
//! queue of at most [`QUEUE_BYTES_MAX`]; over that they are dropped and counted, too.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::record::Message;

use super::accounts::{Accounts, Taken};
use super::calls::Calls;
use super::held::Answered;
use super::host::{Counters, Ending, Host, Phase};
use super::{Carrier, Peer, Reply, Service};
use crate::runtime::wake_after_events;
use crate::transport::buffer::{COPIED_BYTES_MAX, SMALL_BYTES};
use crate::transport::datagram::{DATAGRAM_BYTES_MAX, Datagram, Datagrams, Route};

/// Datagrams taken per wake-up before others get their turn.
const BATCH_MAX: usize = 64;

/// Bytes of replies that wait for the socket: 32 of the largest.
const QUEUE_BYTES_MAX: usize = 2 << 20;

/// Errors of the socket in a row after which it gets a rest.
const ERRORS_MAX: u32 = 64;
const REST: Nanos = Nanos::from_millis(10);

/// Serves a socket until the host drains; see [`Host::listen_datagrams`].
pub(super) async fn serve(host: &Host, mut socket: impl Datagrams, service: impl Service) {
    let begin = service.clone();
    let local_port = socket.local_addr().map_or(0, |address| address.port());
    let mut served = Served {
        host,
        local_port,
        timed: service.is_timed(),
        service,
        begin: move |peer, record, arrived| begin.call(peer, record, arrived),
        ending: host.ending(),
        accounts: host.budgets().accounts(None),
        strangers: Answered::default(),
        calls: Calls::new(),
        queue: VecDeque::new(),
        queue_bytes: 0,
        errors: 0,
    };
    while std::future::poll_fn(|cx| served.poll(&mut socket, cx)).await == Next::Rest {
        host.clock().sleep(REST).await;
        served.ending.refresh();
    }
}

struct Served<'h, S, B, F> {
    host: &'h Host,
    local_port: u16,
    timed: bool,
    service: S,
    begin: B,
    ending: Ending,
    accounts: Accounts,
    strangers: Answered,
    calls: Calls<F, Note>,
    queue: VecDeque<Queued>,
    queue_bytes: usize,
    /// Errors in a row.
    errors: u32,
}

struct Note {
    taken: Taken,
    route: Route,
}

struct Queued {
    message: Message,
    route: Route,
    tag: u32,
    /// When the reply was there, if it has a tag.
    at: Instant,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    End,
    Rest,
}

impl<S, B, F> Served<'_, S, B, F>
where
    S: Service,
    B: Fn(Peer, Bytes, Option<Instant>) -> F,
    F: Future<Output = Option<Reply>> + Send + 'static,
{
    fn poll(&mut self, socket: &mut impl Datagrams, cx: &mut Context<'_>) -> Poll<Next> {
        let phase = self.ending.phase(cx);
        if phase == Phase::Abandoning {
            let counters = self.host.counters();
            Counters::add(&counters.abandoned, self.calls.len() as u64);
            return Poll::Ready(Next::End);
        }
        while let Poll::Ready((reply, note)) = self.calls.poll_reply(cx) {
            self.accounts.give_back(note.taken);
            self.answer(socket, cx, reply, note.route);
        }
        self.flush(socket, cx);
        // What an emulated link still holds counts as unsent, too.
        let is_held = phase > Phase::Serving && socket.poll_flush(cx).is_pending();
        if phase == Phase::Serving {
            for taken in 0.. {
                if taken == BATCH_MAX {
                    wake_after_events(cx);
                    break;
                }
                match socket.poll_receive(cx) {
                    Poll::Ready(Ok(datagram)) => {
                        self.errors = 0;
                        self.take(socket, cx, datagram);
                    }
                    Poll::Ready(Err(_)) if self.errors < ERRORS_MAX => self.errors += 1,
                    Poll::Ready(Err(_)) => return Poll::Ready(Next::Rest),
                    Poll::Pending => break,
                }
            }
        }
        self.accounts.settle();
        let is_done = self.calls.is_empty() && self.queue.is_empty() && !is_held;
        match phase > Phase::Serving && is_done {
            true => Poll::Ready(Next::End),
            false => Poll::Pending,
        }
    }

    fn take(&mut self, socket: &mut impl Datagrams, cx: &mut Context<'_>, datagram: Datagram) {
        let Datagram { bytes, route } = datagram;
        let (host, counters) = (self.host, self.host.counters());
        Counters::add(&counters.datagrams, 1);
        if !self.service.is_for(route.peer.ip().to_canonical()) {
            Counters::add(&counters.datagrams_denied, 1);
            if self.strangers.one_more(host.clock().now()) {
                let refusal = self.service.refuse(&self.peer(&route), &bytes);
                self.answer(socket, cx, refusal.map(Reply::from), route);
            }
            return;
        }
        let reply_bytes = self.service.reply_bytes_max(&bytes).min(DATAGRAM_BYTES_MAX);
        let retained_bytes = if bytes.len() > COPIED_BYTES_MAX { SMALL_BYTES } else { bytes.len() };
        let is_full = self.calls.len() >= host.limits().calls_per_connection_max;
        let taken = match is_full {
            true => None,
            false => self.accounts.try_take(retained_bytes + reply_bytes),
        };
        let Some(taken) = taken else {
            Counters::add(&counters.datagrams_dropped, 1);
            return;
        };
        let arrived = self.timed.then(|| host.clock().now());
        let (begin, peer) = (&self.begin, self.peer(&route));
        let call = || begin(peer, bytes, arrived);
        if let Poll::Ready(reply) = self.calls.start(cx, call, || Note { taken, route }) {
            self.accounts.give_back(taken);
            self.answer(socket, cx, reply, route);
        }
    }

    fn peer(&self, route: &Route) -> Peer {
        let address = (route.peer.ip().to_canonical(), route.peer.port()).into();
        let local = route.local.map(|ip| SocketAddr::new(ip.to_canonical(), self.local_port));
        let is_proven = self.host.seats().holds(route.peer.ip().to_canonical());
        Peer { address, carrier: Carrier::Datagram, is_proven, local, owner: None }
    }

    /// Sends a reply, if the call deserves one, or lets it wait.
    fn answer(
        &mut self,
        socket: &mut impl Datagrams,
        cx: &mut Context<'_>,
        reply: Option<Reply>,
        route: Route,
    ) {
        let Some(Reply { message, tag }) = reply else {
            return;
        };
        if message.wire_len() == 0 {
            return;
        }
        let bytes = message.wire_len();
        if self.queue_bytes + bytes > QUEUE_BYTES_MAX || bytes > DATAGRAM_BYTES_MAX {
            Counters::add(&self.host.counters().replies_dropped, 1);
            return;
        }
        let at = if tag == 0 { Instant::EPOCH } else { self.host.clock().now() };
        self.queue_bytes += bytes;
        self.queue.push_back(Queued { message, route, tag, at });
        self.flush(socket, cx);
    }

    fn flush(&mut self, socket: &mut impl Datagrams, cx: &mut Context<'_>) {
        while let Some(Queued { message, route, tag, at }) = self.queue.front() {
            match socket.poll_send(cx, message, route) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) if *tag != 0 => {
                    let since = self.host.clock().now().since(*at);
                    self.service.sent(&self.peer(route), *tag, since);
                }
                Poll::Ready(Ok(())) => {}
                // Too large for the way, or the peer has gone: it will ask again, or not.
                Poll::Ready(Err(_)) => Counters::add(&self.host.counters().replies_dropped, 1),
            }
            self.queue_bytes -= message.wire_len();
            self.queue.pop_front();
        }
    }
}
