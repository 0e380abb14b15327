//! Datagrams: one socket where clients send to, and one towards the server for each of them.
//!
//! The task of the front socket puts what comes onto the link and passes it to its client's
//! session, a task of its own that holds it until it is due. A session ends when nothing has
//! passed for a while; whoever retransmits gets another, from another port.
//!
//! Where there is no room, and where a socket does not take a datagram at once, it is dropped and
//! counted.

mod session;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::mpsc;

use self::session::Session;
use super::ledger::Loss;
use super::links::HostLink;
use super::state::{ENTRY_BYTES, Relay, RelayState, Side};
use super::tap::{Eye, Leg, Opened, Seen};
use crate::serve::Carrier;
use crate::serve::budget::{Budget, Lent};
use crate::serve::host::{Ending, Phase};
use crate::shape::{self, Damage};
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
    link: Arc<HostLink>,
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
        for (due, bytes) in arrivals(shared, &line.link, shape::Side::There, now, bytes) {
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
        let line = Line {
            queue: sender,
            held_bytes: Arc::default(),
            allowed_bytes: Arc::default(),
            link: shared.links.of(route.peer.ip().to_canonical(), &shared.shape),
            eye: Arc::new(Mutex::new(eye)),
        };
        let front = Arc::clone(&self.socket);
        let session = Session::new(self.relay, front, socket, self.server, route, queue, &line);
        self.sessions.insert(source, line);
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
    shared: &RelayState,
    link: &HostLink,
    side: shape::Side,
    now: Instant,
    bytes: Bytes,
) -> impl Iterator<Item = (Instant, Bytes)> {
    let len = bytes.len() as u64;
    let fate = link.one_way(side).lock().follower.lane(&shared.shape).datagram(now, len);
    shared.ledger(side).came(now, len, &fate);
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
    let (bytes, retained_bytes) = match len {
        // Copied by the socket.
        0..=COPIED_BYTES_MAX => (bytes, len),
        _ if len <= SMALL_BYTES / 2 => (Bytes::copy_from_slice(&bytes), len),
        _ => (bytes, SMALL_BYTES),
    };
    Some((bytes, budget.lease(retained_bytes + ENTRY_BYTES)?))
}
