//! What a relay has, for everything that it relays.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::Nanos;
use tokio::sync::watch;
use wire::record::Message;

use super::ledger::{Carried, Ledger};
use super::links::Links;
use super::tap::Tap;
use crate::clock::Clock;
use crate::error::{ConnectError, TransportError};
use crate::serve::budget::Budget;
use crate::serve::host::{Ending, Phase};
use crate::serve::seats::Seats;
use crate::shape::conditions::HELD_BYTES_MAX;
use crate::shape::{self, Shape};
use crate::slack::Slack;
use crate::transport::buffer::Pool;
use crate::transport::is_everybodys_port;
use crate::transport::tcp;

/// As a server has it (docs/semantics.md, 79).
const UNPROVEN_TIMES_MAX: usize = 3;

/// What a relay may hold, and how long it waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at once; one more takes the place of the idlest.
    pub connections_max: usize,
    /// Of these, from one address.
    pub connections_per_host_max: usize,
    /// A connection that has done something within this keeps its place. Relays in a circle make
    /// one connection of another without end: so they run out of places, and it ends.
    pub active_for: Nanos,
    /// Sources of datagrams distinguished at once; those of one more are dropped.
    pub sessions_max: usize,
    /// Bytes that a source of datagrams may get for each that came from it, unless it is an address
    /// of this host's loopback or has a connection here: it may be somebody else.
    pub unproven_times_max: usize,
    /// Bytes that one connection or session holds in one direction.
    pub held_bytes_max: usize,
    /// Bytes that all hold together.
    pub bytes_max: usize,
    /// How long a server may take to take a connection.
    pub connect_max: Nanos,
    /// A connection or session on which nothing passes for so long is ended.
    pub idle_max: Nanos,
    /// A peer that takes no byte for so long, or does not complete a record, is given up.
    pub stall_max: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            connections_per_host_max: 1024,
            active_for: Nanos::from_secs(5),
            sessions_max: 1024,
            unproven_times_max: UNPROVEN_TIMES_MAX,
            held_bytes_max: usize::try_from(HELD_BYTES_MAX).unwrap_or(usize::MAX),
            bytes_max: 1 << 30,
            connect_max: Nanos::from_secs(5),
            // Longer than clients and servers keep a connection on which nothing happens.
            idle_max: Nanos::from_secs(30 * 60),
            stall_max: Nanos::from_secs(60),
        }
    }
}

/// Which end of the relay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// What happens to connections, for a log.
#[derive(Clone, Debug)]
pub enum Event {
    /// The server was not there for a client, whose connection is closed.
    Unreachable { client: SocketAddr, cause: ConnectError },
    /// A connection was ended by other than its two ends in good order; `side` is whose fault it
    /// is.
    Broken { client: SocketAddr, side: Side, cause: TransportError },
    /// A connection found no place.
    NoPlace { client: SocketAddr },
    /// A connection from whom a server with `secure` exports would not take, while it would take
    /// ours.
    Stranger { client: SocketAddr },
    /// Nobody took a datagram of this client, as far as is known the first of several.
    NobodyListens { client: SocketAddr, server: SocketAddr },
}

/// Whose calls are carried. To the server they look like ours: they may come from a privileged
/// port, and on this host they are a program's of our user.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Callers {
    /// Everybody's, as if they were ours.
    Everybody,
    /// Nobody gets more by us: from a privileged port go those that come from one, or on this host
    /// from a program of root's or of our user's. The others go from another port, and not to a
    /// server on this host.
    Vouched,
}

impl Callers {
    /// Whether what comes from `client` may pass for ours; `owner` as the connection has it.
    pub fn vouch(self, client: SocketAddr, owner: Option<u32>) -> bool {
        let own = || rustix::process::geteuid().as_raw();
        let shows_root =
            || client.port() < tcp::PRIVILEGED_PORTS_END && !is_everybodys_port(client);
        let is_ours = owner.map(|uid| uid == 0 || uid == own());
        self == Self::Everybody || is_ours.unwrap_or_else(shows_root)
    }
}

/// Called for what happens; must not wait.
pub type Events = Arc<dyn Fn(Event) + Send + Sync>;

/// See the module's head; clones share everything.
#[derive(Clone)]
pub struct Relay(pub(super) Arc<RelayState>);

pub(super) struct RelayState {
    pub(super) clock: Clock,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) shape: Shape,
    pub(super) links: Links,
    pub(super) there: Ledger,
    pub(super) back: Ledger,
    pub(super) seats: Arc<Seats>,
    pub(super) phase: watch::Sender<Phase>,
    /// Connections and sockets that are being relayed.
    pub(super) relayed: watch::Sender<u64>,
    pub(super) counts: Counters,
    pub(super) events: Events,
    pub(super) tap: Option<Tap>,
    /// The slabs of its listeners. Guards a list that grows when one begins.
    pub(super) pools: Mutex<Vec<Pool>>,
}

impl RelayState {
    pub(super) fn ledger(&self, side: shape::Side) -> &Ledger {
        match side {
            shape::Side::There => &self.there,
            shape::Side::Back => &self.back,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) strangers: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) unreachable: AtomicU64,
    pub(super) broken: AtomicU64,
    pub(super) garbled: AtomicU64,
    pub(super) given_up: AtomicU64,
}

pub(super) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What a relay has seen, and holds now.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// From clients to the server.
    pub there: Carried,
    pub back: Carried,
    /// Connections being relayed now.
    pub connections: u64,
    /// Sources of datagrams distinguished now.
    pub sessions: u64,
    /// Connections let in.
    pub accepted: u64,
    /// Connections that found no place.
    pub refused: u64,
    /// Connections that were not carried for whose they are: see [`Event::Stranger`].
    pub strangers: u64,
    /// Connections that had to leave for others.
    pub evicted: u64,
    /// Connections whose server was not there.
    pub unreachable: u64,
    /// Connections that broke.
    pub broken: u64,
    /// Of these, those that carried what is no record.
    pub garbled: u64,
    /// Of these, those given up because a peer did nothing for too long.
    pub given_up: u64,
    /// Bytes set aside for what is held.
    pub bytes_held: u64,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}

impl Relay {
    /// `events` hears what happens; `tap` sees what passes.
    pub fn new(
        clock: &Clock,
        shape: Shape,
        limits: Limits,
        events: Events,
        tap: Option<Tap>,
    ) -> Self {
        Self(Arc::new(RelayState {
            clock: clock.clone(),
            limits,
            budget: Budget::new(limits.bytes_max),
            shape,
            links: Links::default(),
            there: Ledger::default(),
            back: Ledger::default(),
            seats: Arc::new(Seats::new(
                limits.connections_max,
                limits.connections_per_host_max,
                limits.active_for,
            )),
            phase: watch::Sender::new(Phase::Serving),
            relayed: watch::Sender::new(0),
            counts: Counters::default(),
            events,
            tap,
            pools: Mutex::default(),
        }))
    }

    /// The link; to replace its profile changes what comes from then on, and what is on its way
    /// keeps its times. The overhead of a profile is not spent here.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    pub fn counts(&self) -> Counts {
        let counts = &self.0.counts;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            there: self.0.there.carried(),
            back: self.0.back.carried(),
            connections: load(&counts.connections),
            sessions: load(&counts.sessions),
            accepted: load(&counts.accepted),
            refused: load(&counts.refused),
            strangers: load(&counts.strangers),
            evicted: load(&counts.evicted),
            unreachable: load(&counts.unreachable),
            broken: load(&counts.broken),
            garbled: load(&counts.garbled),
            given_up: load(&counts.given_up),
            bytes_held: self.0.budget.bytes_used() as u64,
        }
    }

    /// Gives memory back after load, for as long as it is polled.
    pub async fn give_memory_back(&self) {
        let look = || {
            let received: u64 = self.0.pools.lock().iter().map(Pool::take_peak_bytes).sum();
            let held = self.0.budget.bytes_used() as u64;
            (received.max(self.0.budget.take_peak_bytes() as u64), held)
        };
        let release = || self.0.pools.lock().iter().for_each(Pool::release);
        Slack::default().watch(self.0.clock.clone(), look, release).await;
    }

    pub(super) fn ending(&self) -> Ending {
        Ending::new(self.0.phase.subscribe())
    }

    /// Something that is being relayed, for as long as the answer lives.
    pub(super) fn enter(&self, count: fn(&Counters) -> &AtomicU64) -> Present {
        self.0.relayed.send_modify(|relayed| *relayed += 1);
        count(&self.0.counts).fetch_add(1, Ordering::Relaxed);
        Present { relay: self.clone(), count }
    }
}

/// Where what is counted is not reported.
pub(super) static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

pub(super) struct Present {
    pub(super) relay: Relay,
    count: fn(&Counters) -> &AtomicU64,
}

impl Drop for Present {
    fn drop(&mut self) {
        (self.count)(&self.relay.0.counts).fetch_sub(1, Ordering::Relaxed);
        self.relay.0.relayed.send_modify(|relayed| *relayed -= 1);
    }
}

/// What a message costs in memory beside its bytes, so that empty ones are bounded, too.
pub(super) const ENTRY_BYTES: usize = 256;

/// A server that has vanished is noticed by the system within two minutes, as a client is.
pub(super) const SERVER_PATIENCE: Nanos = Nanos::from_secs(20);

pub(super) const SERVER_RETRIES: u32 = 5;

/// What was received, to be sent as it came and without a copy: of a length that is no multiple of
/// four the odd bytes are the head, so that nothing is added behind.
pub(super) fn message(received: Bytes) -> Message {
    let mut payload = received;
    let head = payload.split_to(payload.len() % 4);
    Message { head: head.to_vec(), payload }
}
