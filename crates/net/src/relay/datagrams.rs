//! Datagrams: one socket where clients send to, and one towards the server for each of them.
//!
//! The task of the front socket puts what comes onto the link and hands it to its client's
//! session, a task of its own that holds it until it is due. A session ends when nothing has
//! passed for a while; whoever retransmits gets another, from another port.
//!
//! Where there is no room, and where a socket does not take a datagram at once, it is dropped and
//! counted.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::mpsc;

use super::ledger::{Ledger, Loss};
use super::tap::{Eye, Leg, Opened, Seen};
use super::{ENTRY_BYTES, Event, Relay, Side, message};
use crate::clock::Alarm;
use crate::serve::Carrier;
use crate::serve::budget::{Budget, Lent};
use crate::serve::host::{Ending, Phase};
use crate::shape::{self, Damage, Follower, Shape};
use crate::transport::buffer::{COPIED_BYTES_MAX, SMALL_BYTES};
use crate::transport::datagram::{Datagram, Datagrams, Route};

/// Datagrams taken per wake-up before others get their turn.
const BATCH_MAX: usize = 64;

/// Datagrams on their way to one session's task.
const QUEUE_MAX: usize = 1024;

/// Errors of the front socket in a row after which it gets a rest.
const ERRORS_MAX: u32 = 64;
const REST: Nanos = Nanos::from_millis(10);

/// A client, and which of our addresses it sends to.
type Source = (SocketAddr, Option<IpAddr>);

/// A datagram that has been put onto the link.
struct Admitted {
    due: Instant,
    bytes: Bytes,
    lent: Lent,
}

/// How the front reaches a session.
struct Line {
    queue: mpsc::Sender<Admitted>,
    /// Bytes that the session holds in the direction of the server, with [`ENTRY_BYTES`] for each
    /// datagram.
    held_bytes: Arc<AtomicUsize>,
    /// Bytes that the client may get although it may be somebody else.
    allowed_bytes: Arc<AtomicUsize>,
    follower: Follower,
    eye: Arc<Mutex<Eye>>,
}

/// Relays; see [`Relay::listen_datagrams`].
pub(super) async fn relay<D: Datagrams + 'static>(
    relay: &Relay,
    front: impl Datagrams + 'static,
    server: SocketAddr,
    dial: impl Fn(SocketAddr) -> io::Result<D>,
) {
    let own = front.local_addr().unwrap_or(server);
    let mut driver = Front {
        relay,
        own,
        socket: Arc::new(Mutex::new(front)),
        server,
        dial,
        sessions: HashMap::new(),
        ending: relay.ending(),
        errors: 0,
    };
    while std::future::poll_fn(|cx| driver.poll(cx)).await == Next::Rest {
        relay.0.clock.sleep(REST).await;
        driver.ending.refresh();
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    End,
    Rest,
}

struct Front<'r, F, C> {
    relay: &'r Relay,
    /// The address that the socket is bound to.
    own: SocketAddr,
    /// Received from by one task; all send through it. Held for one call of the system.
    socket: Arc<Mutex<F>>,
    server: SocketAddr,
    dial: C,
    sessions: HashMap<Source, Line>,
    ending: Ending,
    /// Errors in a row.
    errors: u32,
}

impl<F, C, D> Front<'_, F, C>
where
    F: Datagrams + 'static,
    C: Fn(SocketAddr) -> io::Result<D>,
    D: Datagrams + 'static,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if self.ending.phase(cx) > Phase::Serving {
            return Poll::Ready(Next::End);
        }
        for _ in 0..BATCH_MAX {
            let received = self.socket.lock().poll_receive(cx);
            match received {
                Poll::Ready(Ok(datagram)) => {
                    self.errors = 0;
                    self.take(datagram);
                }
                Poll::Ready(Err(_)) if self.errors < ERRORS_MAX => self.errors += 1,
                Poll::Ready(Err(_)) => return Poll::Ready(Next::Rest),
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn take(&mut self, datagram: Datagram) {
        let Datagram { bytes, route } = datagram;
        let shared = &*self.relay.0;
        let now = shared.clock.now();
        let ledger = &shared.there;
        let len = bytes.len() as u64;
        let source = (route.peer, route.local);
        if self.sessions.get(&source).is_none_or(|line| line.queue.is_closed())
            && !self.begin(source, route)
        {
            ledger.refuse(len, Loss::NoSession);
            return;
        }
        let Some(line) = self.sessions.get_mut(&source) else {
            return;
        };
        line.eye.lock().see(now, Seen::Came(Side::Client, &bytes));
        let allowed = bytes.len().saturating_mul(shared.limits.unproven_times_max);
        let add = |before: usize| Some(before.saturating_add(allowed));
        line.allowed_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok();
        for (due, bytes) in arrivals(ledger, &mut line.follower, &shared.shape, now, bytes) {
            let held = line.held_bytes.load(Ordering::Relaxed);
            let place = line.queue.try_reserve();
            let fits = held < shared.limits.held_bytes_max;
            match (place, lease(&shared.budget, bytes).filter(|_| fits)) {
                (Ok(place), Some((bytes, lent))) => {
                    ledger.hold(len);
                    line.held_bytes.fetch_add(bytes.len() + ENTRY_BYTES, Ordering::Relaxed);
                    place.send(Admitted { due, bytes, lent });
                }
                _ => ledger.drop_one(Loss::NoRoom),
            }
        }
    }

    /// Begins a session, if there is a place for one.
    fn begin(&mut self, source: Source, route: Route) -> bool {
        let shared = &*self.relay.0;
        if self.sessions.len() >= shared.limits.sessions_max {
            self.sessions.retain(|_, line| !line.queue.is_closed());
            if self.sessions.len() >= shared.limits.sessions_max {
                return false;
            }
        }
        // Out of descriptors or ports.
        let Ok(socket) = (self.dial)(route.peer) else {
            return false;
        };
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let (held_bytes, allowed_bytes) = (Arc::default(), Arc::default());
        let opened = || {
            let own = route.local.unwrap_or_else(|| self.own.ip());
            let towards = socket.local_addr().unwrap_or(self.own);
            Opened {
                carrier: Carrier::Datagram,
                client: Leg { peer: route.peer, own: SocketAddr::new(own, self.own.port()) },
                server: Leg { peer: self.server, own: towards },
            }
        };
        let eye = Eye::open(shared.tap.as_ref(), shared.clock.now(), opened);
        let eye = Arc::new(Mutex::new(eye));
        let line = Line {
            queue: sender,
            held_bytes: Arc::clone(&held_bytes),
            allowed_bytes: Arc::clone(&allowed_bytes),
            follower: shared.shape.follower(shape::Side::There),
            eye: Arc::clone(&eye),
        };
        self.sessions.insert(source, line);
        let session = Session {
            relay: self.relay.clone(),
            front: Arc::clone(&self.socket),
            socket,
            server: Route { peer: self.server, local: None },
            client: route,
            queue,
            there: Holding::default(),
            there_bytes: held_bytes,
            allowed_bytes,
            back: Holding::default(),
            follower: shared.shape.follower(shape::Side::Back),
            alarm: None,
            ending: self.relay.ending(),
            idle: None,
            active: false,
            is_unreachable: false,
            eye,
        };
        let present = self.relay.enter(|counts| &counts.sessions);
        shared.clock.spawn(async move {
            let mut session = session;
            std::future::poll_fn(|cx| session.poll(cx)).await;
            session.finish().await;
            drop(present);
        });
        true
    }
}

/// Puts a datagram onto the link: when it arrives, once, twice or never, and as what.
fn arrivals(
    ledger: &Ledger,
    follower: &mut Follower,
    shape: &Shape,
    now: Instant,
    bytes: Bytes,
) -> impl Iterator<Item = (Instant, Bytes)> {
    let len = bytes.len() as u64;
    let fate = follower.lane(shape).datagram(now, len);
    ledger.came(now, len, &fate);
    let arrival = fate.arrival.ok();
    let again = fate.again.filter(|_| arrival.is_some()).map(|again| (again, bytes.clone()));
    let first = arrival.map(|due| {
        let mut bytes = bytes;
        if let Some(bit) = fate.flipped_bit {
            bytes.flip(bit);
        }
        (due, bytes)
    });
    first.into_iter().chain(again)
}

/// A datagram with the memory that it takes, without the slab that it came in if that is much
/// larger; none if there is no such memory.
fn lease(budget: &Budget, bytes: Bytes) -> Option<(Bytes, Lent)> {
    let len = bytes.len();
    let (bytes, kept_bytes) = match len {
        // Copied by the socket.
        0..=COPIED_BYTES_MAX => (bytes, len),
        _ if len <= SMALL_BYTES / 2 => (Bytes::copy_from_slice(&bytes), len),
        _ => (bytes, SMALL_BYTES),
    };
    Some((bytes, budget.lease(kept_bytes + ENTRY_BYTES)?))
}

/// What is on its way in one direction, by when it is due.
#[derive(Default)]
struct Holding {
    held: BTreeMap<(Instant, u64), (Bytes, Lent)>,
    bytes: usize,
    sequence: u64,
}

impl Holding {
    fn hold(&mut self, admitted: Admitted) {
        let Admitted { due, bytes, lent } = admitted;
        self.bytes += bytes.len();
        self.sequence += 1;
        self.held.insert((due, self.sequence), (bytes, lent));
    }

    /// Takes what comes until nothing can come any more. Who has a place in the queue has counted
    /// a datagram as held, and may be about to send it: that is waited for.
    async fn rest_of(&mut self, queue: &mut mpsc::Receiver<Admitted>) {
        queue.close();
        while let Some(admitted) = queue.recv().await {
            self.hold(admitted);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.first_key_value().map(|(&(due, _), _)| due)
    }

    /// What counts as held: with what each costs beside its bytes.
    fn kept_bytes(&self) -> usize {
        self.bytes + self.held.len() * ENTRY_BYTES
    }

    /// What is due at `now`.
    fn pop(&mut self, now: Instant) -> Option<(Instant, Bytes)> {
        if self.due()? > now {
            return None;
        }
        let ((due, _), (bytes, _)) = self.held.pop_first()?;
        self.bytes -= bytes.len();
        Some((due, bytes))
    }
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One client's datagrams.
struct Session<F, D> {
    relay: Relay,
    front: Arc<Mutex<F>>,
    /// Towards the server.
    socket: D,
    server: Route,
    client: Route,
    queue: mpsc::Receiver<Admitted>,
    there: Holding,
    there_bytes: Arc<AtomicUsize>,
    /// As in [`Line`].
    allowed_bytes: Arc<AtomicUsize>,
    back: Holding,
    /// The link from the server.
    follower: Follower,
    alarm: Option<Alarm>,
    ending: Ending,
    /// Until it is looked whether anything has passed.
    idle: Option<Timer>,
    active: bool,
    /// The server's host has said that nobody listens, and nothing has come since.
    is_unreachable: bool,
    /// Held to tell of one datagram.
    eye: Arc<Mutex<Eye>>,
}

impl<F: Datagrams, D: Datagrams> Session<F, D> {
    /// Ready when it is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let phase = self.ending.phase(cx);
        if phase == Phase::Abandoning || self.is_idle(cx) {
            return Poll::Ready(());
        }
        let mut front_is_gone = false;
        loop {
            match self.queue.poll_recv(cx) {
                Poll::Ready(Some(admitted)) => {
                    self.active = true;
                    self.there.hold(admitted);
                }
                Poll::Ready(None) => {
                    front_is_gone = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if phase == Phase::Serving {
            self.receive(cx);
        }
        loop {
            self.hand_on(cx);
            let next = self.there.due().into_iter().chain(self.back.due()).min();
            let Some(due) = next else {
                let over = front_is_gone || phase > Phase::Serving;
                return if over { Poll::Ready(()) } else { Poll::Pending };
            };
            if self.alarm.is_none() {
                self.alarm = self.relay.0.clock.alarm().ok();
            }
            let Some(alarm) = &mut self.alarm else {
                // Out of descriptors: without a timer there is no session.
                return Poll::Ready(());
            };
            if alarm.poll_at(cx, due).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether nothing has passed for as long as may be.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let clock = &self.relay.0.clock;
            let idle_max = self.relay.0.limits.idle_max;
            let timer = self.idle.get_or_insert_with(|| {
                let clock = clock.clone();
                Box::pin(async move { clock.sleep(idle_max).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.idle = None;
            if !std::mem::take(&mut self.active) {
                return true;
            }
        }
    }

    /// Puts what the server has sent onto the link.
    fn receive(&mut self, cx: &mut Context<'_>) {
        let relay = self.relay.clone();
        let shared = &*relay.0;
        for _ in 0..BATCH_MAX {
            let bytes = match self.socket.poll_receive(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(datagram)) => datagram.bytes,
                Poll::Ready(Err(cause)) => {
                    // An answer to what was sent before: nobody took it.
                    self.refused(&cause);
                    continue;
                }
            };
            (self.active, self.is_unreachable) = (true, false);
            let now = shared.clock.now();
            self.eye.lock().see(now, Seen::Came(Side::Server, &bytes));
            let ledger = &shared.back;
            for (due, bytes) in arrivals(ledger, &mut self.follower, &shared.shape, now, bytes) {
                let fits = self.back.kept_bytes() < shared.limits.held_bytes_max;
                match lease(&shared.budget, bytes).filter(|_| fits) {
                    Some((bytes, lent)) => {
                        ledger.hold(bytes.len() as u64);
                        self.back.hold(Admitted { due, bytes, lent });
                    }
                    None => ledger.drop_one(Loss::NoRoom),
                }
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Tells, once, that the server's host refuses what is sent to it.
    fn refused(&mut self, cause: &io::Error) {
        if cause.kind() == io::ErrorKind::ConnectionRefused && !self.is_unreachable {
            self.is_unreachable = true;
            let (client, server) = (self.client.peer, self.server.peer);
            (self.relay.0.events)(Event::NobodyListens { client, server });
        }
    }

    /// Sends what is due.
    fn hand_on(&mut self, cx: &mut Context<'_>) {
        let relay = self.relay.clone();
        let shared = &*relay.0;
        let now = shared.clock.now();
        while let Some((due, bytes)) = self.there.pop(now) {
            let len = bytes.len();
            self.there_bytes.fetch_sub(len + ENTRY_BYTES, Ordering::Relaxed);
            let mut sent = self.socket.poll_send(cx, &message(bytes.clone()), &self.server);
            if let Poll::Ready(Err(cause)) = &sent
                && cause.kind() == io::ErrorKind::ConnectionRefused
            {
                // That was the answer to an earlier one; this one has not been sent yet.
                self.refused(cause);
                sent = self.socket.poll_send(cx, &message(bytes.clone()), &self.server);
            }
            if settle(&shared.there, due, now, len, &sent) {
                self.eye.lock().see(now, Seen::Left(Side::Server, &bytes));
            }
        }
        while let Some((due, bytes)) = self.back.pop(now) {
            let len = bytes.len();
            if !self.may_get(len) {
                shared.back.lose(1, len as u64, Loss::Unproven);
                continue;
            }
            // Whoever waits for the socket would take its waker from those who share it.
            let mut nobody = Context::from_waker(Waker::noop());
            let sent =
                self.front.lock().poll_send(&mut nobody, &message(bytes.clone()), &self.client);
            if settle(&shared.back, due, now, len, &sent) {
                self.eye.lock().see(now, Seen::Left(Side::Client, &bytes));
            }
        }
    }

    /// Whether so many bytes may go to the client. The server cannot tell: to it all datagrams come
    /// from this host, which it may trust.
    fn may_get(&self, len: usize) -> bool {
        let host = self.client.peer.ip().to_canonical();
        if host.is_loopback() || self.relay.0.seats.holds(host) {
            return true;
        }
        let take = |allowed: usize| allowed.checked_sub(len);
        self.allowed_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Counts what was not handed on.
    async fn finish(&mut self) {
        self.there.rest_of(&mut self.queue).await;
        let ledgers = [&self.relay.0.there, &self.relay.0.back];
        for (ledger, holding) in ledgers.into_iter().zip([&self.there, &self.back]) {
            ledger.lose(holding.held.len() as u64, holding.bytes as u64, Loss::Ended);
        }
    }
}

/// Counts what has become of a datagram; true if it was sent.
fn settle(
    ledger: &Ledger,
    due: Instant,
    now: Instant,
    len: usize,
    sent: &Poll<io::Result<()>>,
) -> bool {
    match sent {
        Poll::Ready(Ok(())) => ledger.pass(due, now, len as u64),
        Poll::Ready(Err(cause)) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            ledger.lose(1, len as u64, Loss::Unreachable);
        }
        Poll::Ready(Err(_)) | Poll::Pending => ledger.lose(1, len as u64, Loss::Unsent),
    }
    matches!(sent, Poll::Ready(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_session_waits_for_a_datagram_that_has_its_place_already() {
        let (sender, mut queue) = mpsc::channel(4);
        let lease = || lease(&Budget::new(1 << 20), Bytes::from_static(b"call")).unwrap();
        let admitted = || {
            let (bytes, lent) = lease();
            Admitted { due: Instant::EPOCH, bytes, lent }
        };
        sender.try_send(admitted()).unwrap_or_else(|_| panic!("there is room"));
        let place = sender.try_reserve().unwrap_or_else(|_| panic!("there is room"));
        let mut holding = Holding::default();
        {
            let mut cx = Context::from_waker(Waker::noop());
            let mut rest = std::pin::pin!(holding.rest_of(&mut queue));
            assert!(rest.as_mut().poll(&mut cx).is_pending());
            place.send(admitted());
            assert!(rest.as_mut().poll(&mut cx).is_ready());
        }
        assert_eq!((holding.held.len(), holding.bytes), (2, 8));
        assert_eq!(holding.kept_bytes(), 8 + 2 * ENTRY_BYTES);
        assert!(sender.is_closed());
    }
}
