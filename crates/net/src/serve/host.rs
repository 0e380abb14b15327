//! What all connections of a server share: limits, bytes in flight, counts, and the end.
//!
//! A server ends in two steps. From [`Host::drain`] on nobody is let in and no call is read;
//! what is in progress is answered and sent, then connections close. What is not done when the
//! grace period is over is abandoned, and counted.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::watch;
use wire::record::RecordError;

use super::accounts::Budgets;
use super::held::Held;
use super::seats::{NoSeat, Party, Seated, Seats};
use super::turns::Turns;
use super::{Limits, Service, connection, datagrams};
use crate::clock::Clock;
use crate::error::TransportError;
use crate::processor::Processor;
use crate::runtime::events;
use crate::shape::Shape;
use crate::transport::Transport;
use crate::transport::buffer::Pool;
use crate::transport::datagram::Datagrams;
use crate::transport::tcp::{Listener, is_shortage};

/// Connections accepted before calls of those that are there are looked for: so many take as long
/// as moving 1 MiB.
const ACCEPTED_IN_A_ROW_MAX: u32 = 16;

/// See the module's head; clones share everything.
#[derive(Clone, Debug)]
pub struct Host(Arc<HostState>);

#[derive(Debug)]
struct HostState {
    clock: Clock,
    limits: Limits,
    budgets: Budgets,
    turns: Turns,
    seats: Arc<Seats>,
    /// The slabs of its listeners. Guards a list that grows when one begins.
    pools: Mutex<Vec<Pool>>,
    phase: watch::Sender<Phase>,
    /// Connections and sockets of datagrams that are being served.
    served: watch::Sender<u64>,
    /// Connections that are not closed yet, and not served.
    held: Held,
    counts: Counters,
}

/// How a server's life goes on.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Phase {
    Serving,
    Draining,
    Abandoning,
}

/// Events since the start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) denied: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) short: AtomicU64,
    pub(super) too_long: AtomicU64,
    pub(super) idle: AtomicU64,
    pub(super) stalled: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) datagrams: AtomicU64,
    pub(super) datagrams_dropped: AtomicU64,
    pub(super) datagrams_denied: AtomicU64,
    pub(super) replies_dropped: AtomicU64,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// What a host has seen since it was made, and holds now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Connections let in.
    pub connections_accepted: u64,
    /// Connections that found no place.
    pub connections_refused: u64,
    /// Connections refused because the service has nothing for their address.
    pub connections_denied: u64,
    /// Connections closed, idle as they were, to make room for others.
    pub connections_evicted: u64,
    /// Times that a connection could not be accepted: descriptors or memory were short.
    pub connections_short: u64,
    /// Connections closed because of a record over the limit.
    pub records_too_long: u64,
    /// Connections closed because nothing was requested for too long.
    pub connections_idle: u64,
    /// Connections closed because the peer took no reply, or did not finish a record, in time.
    pub connections_stalled: u64,
    /// Calls whose threads are in system calls that have not returned for some milliseconds, now.
    pub calls_stalled: u64,
    /// Connections and sockets of datagrams being served now.
    pub served_now: u64,
    /// Bytes of calls in progress, and of replies not yet sent, now.
    pub bytes_in_flight: u64,
    /// Datagrams received.
    pub datagrams: u64,
    /// Of these, those dropped because too many calls or bytes were in progress.
    pub datagrams_dropped: u64,
    /// Of these, those from addresses that the service has nothing for.
    pub datagrams_denied: u64,
    /// Replies in datagrams that could not be sent.
    pub replies_dropped: u64,
}

/// How a drain has ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drained {
    /// Calls that had been read and were not answered. Of a connection whose call stays in the
    /// system that one is counted alone.
    pub calls_abandoned: u64,
    /// Connections that were still being served when all were to end.
    pub connections_abandoned: u64,
}

impl Host {
    pub fn new(clock: &Clock, limits: Limits) -> Self {
        Self(Arc::new(HostState {
            clock: clock.clone(),
            limits,
            budgets: Budgets::new(limits.bytes_in_flight_max),
            turns: Turns::new(clock.clone(), processors()),
            seats: Arc::new(Seats::new(
                limits.connections_max,
                limits.connections_per_host_max,
                Nanos::ZERO,
            )),
            pools: Mutex::default(),
            phase: watch::Sender::new(Phase::Serving),
            served: watch::Sender::new(0),
            held: Held::default(),
            counts: Counters::default(),
        }))
    }

    /// Accepts connections and serves them, until the host drains, each behind a link of its own
    /// if there is one when this begins.
    ///
    /// # Errors
    /// None while it runs: what goes wrong with one connection ends that connection.
    pub async fn listen(
        &self,
        listener: Listener,
        links: impl Into<Shape>,
        service: impl Service + Sync,
    ) -> io::Result<()> {
        let shape = links.into();
        let is_bare = !shape.has_link() && shape.overhead().is_none();
        let processor = Processor::real(&self.0.clock);
        let mut ending = self.ending();
        self.0.pools.lock().push(listener.pool().clone());
        let mut came: u32 = 0;
        loop {
            came = came.wrapping_add(1);
            if came.is_multiple_of(ACCEPTED_IN_A_ROW_MAX) {
                events().await;
            }
            let accept = std::pin::pin!(listener.accept_of(|host| service.is_for(host)));
            let Some(accepted) = ending.or(accept).await else {
                return Ok(());
            };
            let tcp = match accepted {
                Ok(Ok(tcp)) => tcp,
                Ok(Err(refused)) => {
                    Counters::add(&self.0.counts.denied, 1);
                    self.0.held.hold(refused, &self.0.clock, service.clone());
                    continue;
                }
                Err(cause) => {
                    if is_shortage(&cause) {
                        self.make_room();
                        self.0.clock.sleep(Nanos::from_millis(10)).await;
                    }
                    continue;
                }
            };
            if is_bare {
                self.admit(tcp, service.clone());
            } else if let Ok(shaped) = shape.around(tcp, &processor, &self.0.clock) {
                self.admit(shaped, service.clone());
            } else {
                // Out of descriptors for timers: that ends this connection alone.
                self.make_room();
            }
        }
    }

    /// Something is short that a connection needs: the idlest gives its own back.
    fn make_room(&self) {
        let counts = &self.0.counts;
        Counters::add(&counts.short, 1);
        let has_evicted = self.0.seats.make_room(self.0.clock.now());
        Counters::add(&counts.evicted, u64::from(has_evicted));
    }

    /// Serves a new connection in a task of its own, if there is a seat for it.
    fn admit(&self, transport: impl Transport + 'static, service: impl Service) {
        let counts = &self.0.counts;
        let party = Party::of(&transport);
        let seated = match self.0.seats.enter(party, self.0.clock.now()) {
            Ok(seated) => seated,
            Err(NoSeat) => {
                Counters::add(&counts.refused, 1);
                return;
            }
        };
        Counters::add(&counts.evicted, u64::from(seated.has_evicted));
        Counters::add(&counts.accepted, 1);
        let host = self.clone();
        self.0.clock.spawn(async move {
            host.connection_at(seated, transport, service).await.ok();
        });
    }

    /// Serves one connection until it ends. When it breaks, the calls in progress run to their end
    /// all the same, in its place.
    ///
    /// # Errors
    /// The connection broke, carried what is no record, or was given up.
    pub async fn connection(
        &self,
        transport: impl Transport,
        service: impl Service,
    ) -> Result<(), TransportError> {
        let seated = self.0.seats.enter_anyway(Party::of(&transport));
        self.connection_at(seated, transport, service).await
    }

    async fn connection_at(
        &self,
        seated: Seated,
        transport: impl Transport,
        service: impl Service,
    ) -> Result<(), TransportError> {
        let _present = Present::enter(self);
        let ended = connection::serve(self, &seated, transport, service).await;
        let counts = &self.0.counts;
        match &ended {
            Err(TransportError::Idle { .. }) => Counters::add(&counts.idle, 1),
            Err(TransportError::TakesNothing { .. } | TransportError::Unfinished { .. }) => {
                Counters::add(&counts.stalled, 1);
            }
            Err(TransportError::Record(RecordError::TooLong { .. })) => {
                Counters::add(&counts.too_long, 1);
            }
            _ => {}
        }
        ended
    }

    /// Closes the connections of hosts that `service` has nothing for any more; gives how many.
    pub fn deny(&self, service: &impl Service) -> usize {
        let denied = self.0.seats.keep(|host| service.is_for(host));
        Counters::add(&self.0.counts.denied, denied as u64);
        denied
    }

    /// Most bytes that were in flight since it was last read; 0 if they were few.
    pub fn take_peak_bytes(&self) -> u64 {
        self.0.budgets.take_peak_bytes() as u64
    }

    /// Gives memory that waits to be used again back to the allocator.
    pub fn release(&self) {
        self.0.pools.lock().iter().for_each(Pool::release);
    }

    /// Serves the calls that come as datagrams, until the host drains.
    pub async fn listen_datagrams(&self, socket: impl Datagrams, service: impl Service) {
        let _present = Present::enter(self);
        datagrams::serve(self, socket, service).await;
    }

    /// Ends the server; see the module's head. The listeners' and connections' futures end by
    /// themselves. A second call waits with the first.
    pub async fn drain(&self, grace: Nanos) -> Drained {
        /// How long connections may take to notice that they are given up: as long as one of
        /// their calls computes without waiting.
        const NOTICE: Nanos = Nanos::from_secs(1);
        let enter = |phase: Phase| {
            self.0.phase.send_if_modified(|now| phase > std::mem::replace(now, phase.max(*now)))
        };
        enter(Phase::Draining);
        let mut served = self.0.served.subscribe();
        let mut drained = Drained::default();
        let clock = &self.0.clock;
        if clock.within(grace, served.wait_for(|&served| served == 0)).await.is_err() {
            drained.connections_abandoned = *served.borrow();
            enter(Phase::Abandoning);
            clock.within(NOTICE, served.wait_for(|&served| served == 0)).await.ok();
        }
        let counted = self.0.counts.abandoned.load(Ordering::Relaxed);
        drained.calls_abandoned = counted + self.stuck();
        drained
    }

    /// Connections and sockets of datagrams that have not noticed that they are given up: each is
    /// in a call that stays in the system. Who has none waits for its peer to close.
    fn stuck(&self) -> u64 {
        let served = *self.0.served.borrow();
        served.saturating_sub(self.0.seats.idle() as u64)
    }

    pub fn counts(&self) -> Counts {
        let counts = &self.0.counts;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections_accepted: load(&counts.accepted),
            connections_refused: load(&counts.refused),
            connections_denied: load(&counts.denied),
            connections_evicted: load(&counts.evicted),
            connections_short: load(&counts.short),
            records_too_long: load(&counts.too_long),
            connections_idle: load(&counts.idle),
            connections_stalled: load(&counts.stalled),
            calls_stalled: self.0.turns.stalled(),
            served_now: *self.0.served.borrow(),
            bytes_in_flight: self.0.budgets.bytes_used() as u64,
            datagrams: load(&counts.datagrams),
            datagrams_dropped: load(&counts.datagrams_dropped),
            datagrams_denied: load(&counts.datagrams_denied),
            replies_dropped: load(&counts.replies_dropped),
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(super) fn budgets(&self) -> &Budgets {
        &self.0.budgets
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    pub(super) fn seats(&self) -> &Seats {
        &self.0.seats
    }

    /// Whether others wait for what a connection that does nothing holds.
    pub(super) fn is_short(&self, now: Instant) -> bool {
        self.0.budgets.is_short() || self.0.seats.is_full(now)
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.0.counts
    }

    /// What tells a task of the host that its end begins.
    pub(super) fn ending(&self) -> Ending {
        Ending::new(self.0.phase.subscribe())
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One that is being served, for as long as this lives.
struct Present<'h>(&'h Host);

impl<'h> Present<'h> {
    fn enter(host: &'h Host) -> Self {
        host.0.served.send_modify(|served| *served += 1);
        Self(host)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.0.served.send_modify(|served| *served -= 1);
    }
}

/// Watches the host's phase for one task.
pub(crate) struct Ending {
    phase: watch::Receiver<Phase>,
    now: Phase,
    /// Wakes the task, whose waker it has, when the phase is another than `now`.
    changed: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Ending {
    pub(crate) fn new(phase: watch::Receiver<Phase>) -> Self {
        Self { phase, now: Phase::Serving, changed: None }
    }

    /// The phase; the task is woken when it changes. Costs next to nothing when nothing has.
    pub(crate) fn phase(&mut self, cx: &mut Context<'_>) -> Phase {
        while self.changed.is_none() || self.phase.has_changed().unwrap_or(false) {
            let now = *self.phase.borrow_and_update();
            let mut phase = self.phase.clone();
            let mut changed = Box::pin(async move {
                phase.wait_for(|&phase| phase != now).await.ok();
            });
            self.now = now;
            self.changed = changed.as_mut().poll(cx).is_pending().then_some(changed as _);
        }
        self.now
    }

    /// The phase when it was last requested.
    pub(crate) fn reached(&self) -> Phase {
        self.now
    }

    /// The task may have another waker since it last got the phase.
    pub(crate) fn refresh(&mut self) {
        self.changed = None;
    }

    /// What `work` gives, or nothing when the end begins first.
    pub(crate) async fn or<T>(&mut self, mut work: impl Future<Output = T> + Unpin) -> Option<T> {
        self.refresh();
        std::future::poll_fn(|cx| {
            if self.phase(cx) > Phase::Serving {
                return Poll::Ready(None);
            }
            Pin::new(&mut work).poll(cx).map(Some)
        })
        .await
    }
}
