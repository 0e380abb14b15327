//! A relay between any RPC client and server: what comes at one end leaves at the other when an
//! emulated link would have delivered it.
//!
//! It understands records and datagrams, not what is in them. A record is passed on when its last
//! byte would have arrived, in one fragment, whatever fragments it came in; what is no record ends
//! its connection. Each client host has a link of its own in each direction, as on a switch, which
//! its connections share. Connections are made without the link's delay.
//!
//! ```text
//!   client --- Tcp --> Way: held until due --> Tcp --- server        one task for each connection
//!              <------------ Way <-----------------
//!   client --- front socket --> Session: held until due --> socket of its own --- server
//! ```
//!
//! Nothing is held without bound: a connection holds at most [`Limits::held_bytes_max`] in each
//! direction, and all together [`Limits::bytes_max`]. Where that is reached, a connection is not
//! read, and a datagram is dropped. Nor is a connection read whose records wait for the link
//! already: what its sender's system would still have is there, and goes with a reset.

mod datagrams;
mod ledger;
mod links;
mod reach;
mod state;
mod stream;
mod tap;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use perf::units::Nanos;

pub use self::ledger::{Carried, Loss};
pub use self::reach::{Unfit, reach};
pub use self::state::{Callers, Counts, Event, Events, Limits, Relay, Side};
use self::state::{SERVER_PATIENCE, SERVER_RETRIES, UNCOUNTED, add};
pub use self::tap::{Leg, Opened, Seen, Tap, Watcher};
use crate::error::TransportError;
use crate::serve::host::Phase;
use crate::serve::seats::{Party, Seated};
use crate::transport::Transport;
use crate::transport::datagram::Datagrams;
use crate::transport::tcp::{self, Listener, Tcp};

impl Relay {
    /// Accepts connections and relays each to `server`, until the relay drains. What goes wrong
    /// with one connection ends that connection.
    pub async fn listen(&self, listener: Listener, server: SocketAddr, callers: Callers) {
        let mut ending = self.ending();
        self.0.pools.lock().push(listener.pool().clone());
        loop {
            let accept = std::pin::pin!(listener.accept());
            let Some(accepted) = ending.or(accept).await else {
                return;
            };
            let client = match accepted {
                Ok(client) => client,
                Err(cause) => {
                    // Out of descriptors, or the peer has gone already: the next may do better.
                    let has_evicted =
                        tcp::is_shortage(&cause) && self.0.seats.make_room(self.0.clock.now());
                    self.0.counts.evicted.fetch_add(u64::from(has_evicted), Ordering::Relaxed);
                    self.0.clock.sleep(Nanos::from_millis(10)).await;
                    continue;
                }
            };
            self.admit(client, server, callers, &listener);
        }
    }

    /// Relays a connection in a task of its own, if there is a place for it.
    fn admit(&self, client: Tcp, server: SocketAddr, callers: Callers, listener: &Listener) {
        let address = client.peer();
        let is_vouched = callers.vouch(address, client.owner());
        let Ok(seated) = self.0.seats.enter(Party::of(&client), self.0.clock.now()) else {
            add(&self.0.counts.refused);
            (self.0.events)(Event::NoPlace { client: address });
            return;
        };
        add(&self.0.counts.accepted);
        self.0.counts.evicted.fetch_add(u64::from(seated.has_evicted), Ordering::Relaxed);
        let (relay, pool) = (self.clone(), listener.pool().clone());
        let record_bytes_max = listener.record_bytes_max();
        self.0.clock.spawn(async move {
            let limit = relay.0.limits.connect_max;
            let clock = &relay.0.clock;
            let connected = match is_vouched {
                true => tcp::connect(clock, server, limit, &pool, record_bytes_max).await,
                false => {
                    tcp::connect_unprivileged(clock, server, limit, &pool, record_bytes_max).await
                }
            };
            match connected {
                Ok(server) if !is_vouched && server.is_to_this_host() => {
                    add(&relay.0.counts.strangers);
                    (relay.0.events)(Event::Stranger { client: address });
                }
                Ok(server) => {
                    server.watch_peer(SERVER_PATIENCE, SERVER_RETRIES);
                    relay.connection_at(&seated, client, server).await.ok();
                }
                Err(cause) => {
                    add(&relay.0.counts.unreachable);
                    (relay.0.events)(Event::Unreachable { client: address, cause });
                }
            }
        });
    }

    /// Relays between two transports until both directions have ended, or one end breaks.
    ///
    /// # Errors
    /// Which side broke the connection, and how.
    pub async fn connection(
        &self,
        client: impl Transport,
        server: impl Transport,
    ) -> Result<(), (Side, TransportError)> {
        let seated = self.0.seats.enter_anyway(Party::of(&client));
        self.connection_at(&seated, client, server).await
    }

    async fn connection_at(
        &self,
        seated: &Seated,
        client: impl Transport,
        server: impl Transport,
    ) -> Result<(), (Side, TransportError)> {
        let address = client.peer();
        let present = self.enter(|counts| &counts.connections);
        let ended = stream::relay(self, seated, client, server).await;
        drop(present);
        if let Err((side, cause)) = &ended {
            let counts = &self.0.counts;
            add(&counts.broken);
            match cause {
                TransportError::Record(_) | TransportError::TooManyFragments { .. } => {
                    add(&counts.garbled);
                }
                TransportError::Idle { .. }
                | TransportError::TakesNothing { .. }
                | TransportError::Unfinished { .. } => add(&counts.given_up),
                TransportError::Io(_) | TransportError::Truncated => {}
            }
            let (side, cause) = (*side, cause.clone());
            (self.0.events)(Event::Broken { client: address, side, cause });
        }
        ended
    }

    /// Relays datagrams to `server` until the relay drains. Each source gets a socket of its own
    /// towards the server, from `dial`, so that replies find their way back.
    pub async fn listen_datagrams<D: Datagrams + 'static>(
        &self,
        front: impl Datagrams + 'static,
        server: SocketAddr,
        dial: impl Fn(SocketAddr) -> io::Result<D>,
    ) {
        let _present = self.enter(|_| &UNCOUNTED);
        datagrams::relay(self, front, server, dial).await;
    }

    /// Lets nobody in, reads nothing more, passes on what is on its way, and closes. What is not
    /// passed on within `grace` is lost.
    pub async fn drain(&self, grace: Nanos) {
        /// How long tasks may take to notice that they are to end.
        const NOTICE: Nanos = Nanos::from_secs(1);
        let mut relayed = self.0.relayed.subscribe();
        for (phase, limit) in [(Phase::Draining, grace), (Phase::Abandoning, NOTICE)] {
            self.0.phase.send_replace(phase);
            let done = relayed.wait_for(|&relayed| relayed == 0);
            if self.0.clock.within(limit, done).await.is_ok() {
                return;
            }
        }
    }
}
