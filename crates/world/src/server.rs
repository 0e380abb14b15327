//! A server: a host with a processor, a disk and the production engine, that can crash and start
//! again.
//!
//! A crash drops every task of the host at an await point, the engine and its reply cache with
//! them. What the store holds as stable comes back with the next life, under the same handles and
//! with another write verifier. Connections end with the host; clients that outlive theirs connect
//! again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use net::clock::{Clock, Group};
use net::error::ConnectError;
use net::processor::{self, Processor};
use net::serve::{self, Host, Limits};
use net::shape::Shape;
use net::transport::Transport;
use net::transport::lossy;
use net::transport::memory;
use parking_lot::Mutex;
use perf::model::disk::Counts;
use perf::units::Nanos;
use server::store::Store;
use server::store::sim::{Faults, SimOptions, SimStore, Stats};
use server::types::Caller;
use server::{
    CommitMode, Engine, EngineConfig, Export, Exported, Exports, Peer, Replies, Rule, Squash,
    Transport as Carrier,
};
use wire::nfs3::FileHandle;

use crate::cost::{Costs, Spent};
use crate::machine::{Timed, time_of_day, times};

/// Replies that a server remembers, as `serve` does.
const REPLIES_MAX: usize = 4096;

/// The port of every server.
const PORT: u16 = 2049;

/// What a server is like.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    pub cores: usize,
    pub costs: Costs,
    pub store: SimOptions,
    pub commit_mode: CommitMode,
    /// Calls in service at once.
    pub threads: usize,
    pub replies_max: usize,
    pub limits: Limits,
}

impl Default for ServerSpec {
    /// Four cores that cost nothing, the disk of [`SimOptions`], and the limits of `serve`, but
    /// for as many connections as a world has clients.
    fn default() -> Self {
        Self {
            cores: 4,
            costs: Costs::default(),
            store: SimOptions::default(),
            commit_mode: CommitMode::Concurrent,
            threads: 256,
            replies_max: REPLIES_MAX,
            limits: Limits { connections_max: 1 << 20, ..Limits::default() },
        }
    }
}

impl ServerSpec {
    /// The server of 2002: it does one thing at a time.
    #[must_use]
    pub fn stalling(self) -> Self {
        Self { commit_mode: CommitMode::Stall, threads: 1, ..self }
    }
}

/// A server in a world; clones are the same.
#[derive(Clone, Debug)]
pub struct Server(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    spec: ServerSpec,
    clock: Clock,
    address: SocketAddr,
    /// The same in all lives.
    root: FileHandle,
    processor: Processor,
    faults: Faults,
    /// Guards what begins and ends with a life of the host.
    life: Mutex<Life>,
    lives: AtomicU64,
}

#[derive(Debug)]
struct Life {
    /// What the stores of earlier lives did.
    before: Option<Stats>,
    /// What a crash left to begin with, while the host is down.
    resting: Option<Arc<SimStore>>,
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    clock: Clock,
    group: Group,
    engine: Arc<Engine<SimStore>>,
    host: Host,
}

impl Server {
    pub(crate) fn new(number: u16, spec: ServerSpec, clock: &Clock) -> Self {
        let machine = Arc::new(Timed(clock.clone()));
        let store = Arc::new(SimStore::new(spec.store, time_of_day(clock), machine));
        let server = Self(Arc::new(Shared {
            processor: Processor::of_world(clock, spec.cores),
            address: SocketAddr::from((Ipv4Addr::from(0x0a00_0000 | u32::from(number)), PORT)),
            clock: clock.clone(),
            faults: store.faults(),
            root: Engine::new(exports(&store), EngineConfig::default()).root(),
            life: Mutex::new(Life { before: None, resting: Some(store), running: None }),
            lives: AtomicU64::new(0),
            spec,
        }));
        server.start();
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub fn spec(&self) -> &ServerSpec {
        &self.0.spec
    }

    /// The switches of its disk.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// What its processor did, over all lives.
    pub fn load(&self) -> processor::Load {
        self.0.processor.load()
    }

    /// What its stores did over all lives, and what this one holds.
    pub fn stats(&self) -> Stats {
        let now = self.store().stats();
        self.0.life.lock().before.map_or(now, |before| together(&before, now))
    }

    /// The store, also of a host that is down.
    pub fn store(&self) -> Arc<SimStore> {
        let life = self.0.life.lock();
        match (&life.running, &life.resting) {
            (Some(running), _) => running.engine.store(),
            (None, Some(store)) => Arc::clone(store),
            (None, None) => unreachable!("a life has a store, running or resting"),
        }
    }

    /// The tasks of this life; none while it is down. With [`Group::kill_at_poll`] a crash can be
    /// put at any await point: call [`Self::crash`] when [`Group::killed`] says so.
    pub fn group(&self) -> Option<Group> {
        self.0.life.lock().running.as_ref().map(|running| running.group.clone())
    }

    pub fn is_up(&self) -> bool {
        self.0.life.lock().running.is_some()
    }

    /// How often it has started.
    pub fn lives(&self) -> u64 {
        self.0.lives.load(Ordering::Relaxed)
    }

    /// The root of its export.
    pub fn root(&self) -> FileHandle {
        self.0.root
    }

    /// It loses power: what is not stable is gone, but for what `seed` leaves of it.
    pub fn crash(&self, seed: u64) {
        let Some(running) = self.0.life.lock().running.take() else {
            return;
        };
        running.group.kill();
        let store = running.engine.store();
        let (did, left) = (store.stats(), store.crash(seed));
        let mut life = self.0.life.lock();
        life.before = Some(life.before.map_or(did, |before| together(&before, did)));
        life.resting = Some(Arc::new(left));
    }

    /// It starts, if it is down.
    pub fn start(&self) {
        let Some(store) = self.0.life.lock().resting.take() else {
            return;
        };
        self.0.lives.fetch_add(1, Ordering::Relaxed);
        let (clock, group) = self.0.clock.group();
        let spec = &self.0.spec;
        let config = EngineConfig {
            commit_mode: spec.commit_mode,
            threads: spec.threads,
            ..EngineConfig::default()
        };
        let spent = Spent { costs: spec.costs.clone(), processor: self.0.processor.clone() };
        let replies = Replies::in_memory(spec.replies_max, times(&clock));
        let engine =
            Engine::new(exports(&store), config).remembering(replies).with_cost(Arc::new(spent));
        let host = Host::new(&clock, spec.limits);
        let running = Running { clock, group, engine: Arc::new(engine), host };
        self.0.life.lock().running = Some(running);
    }

    /// A crash, and a start after `down`.
    pub async fn restart(&self, seed: u64, down: Nanos) {
        self.crash(seed);
        self.0.clock.sleep(down).await;
        self.start();
    }

    /// A connection from `client`: the client's end, without a link.
    ///
    /// # Errors
    /// The server is down.
    pub fn connect(&self, client: SocketAddr) -> Result<impl Transport + use<>, ConnectError> {
        let running = self.running()?;
        let (ours, theirs) = memory::pair_between(client, self.0.address);
        let service = service(&running.engine, Carrier::Stream);
        let host = running.host.clone();
        running.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
        Ok(ours)
    }

    /// A socket of datagrams to the server, through a link.
    ///
    /// # Errors
    /// The server is down, or there are no more timers.
    pub fn datagrams(&self, shape: &Shape) -> Result<lossy::Lossy, ConnectError> {
        let running = self.running()?;
        let (ours, theirs) =
            lossy::pair_through(&running.clock, shape).map_err(out_of_timers(self.0.address))?;
        let service = service(&running.engine, Carrier::Datagram);
        let host = running.host.clone();
        running.clock.spawn(async move { host.listen_datagrams(theirs, service).await });
        Ok(ours)
    }

    fn running(&self) -> Result<Running, ConnectError> {
        let refused = ConnectError::Refused { address: self.0.address };
        self.0.life.lock().running.clone().ok_or(refused)
    }
}

/// What two lives did; what is held is the second's.
fn together(first: &Stats, second: Stats) -> Stats {
    let counts = |a: &Counts, b: &Counts| Counts {
        reads: a.reads + b.reads,
        writes: a.writes + b.writes,
        syncs: a.syncs + b.syncs,
        bytes_read: a.bytes_read + b.bytes_read,
        bytes_written: a.bytes_written + b.bytes_written,
        seeks: a.seeks + b.seeks,
    };
    Stats {
        disk: counts(&first.disk, &second.disk),
        log_disk: counts(&first.log_disk, &second.log_disk),
        disk_busy: first.disk_busy + second.disk_busy,
        disk_transferred: first.disk_transferred + second.disk_transferred,
        cache_hits: first.cache_hits + second.cache_hits,
        cache_misses: first.cache_misses + second.cache_misses,
        failed_syncs: first.failed_syncs + second.failed_syncs,
        divergences: first.divergences + second.divergences,
        ..second
    }
}

fn exports(store: &Arc<SimStore>) -> Exports<SimStore> {
    let export = Export::ruled(everyone_is_root());
    let exported = Exported { export, store: Arc::clone(store) };
    Exports::new(vec![exported]).expect("one export has nothing in common with another")
}

/// The rule of an export on which every caller is root.
pub fn everyone_is_root() -> Rule {
    Rule {
        squash: Squash::All,
        anonymous: Arc::new(Caller { uid: 0, gid: 0, gids: Vec::new() }),
        ..Rule::default()
    }
}

/// An engine as a host serves it, to connections or to datagrams.
pub fn service<S: Store>(
    engine: &Arc<Engine<S>>,
    carrier: Carrier,
) -> impl serve::Service + Sync + use<S> {
    let engine = Arc::clone(engine);
    move |peer: serve::Peer, record: Bytes| {
        let engine = Arc::clone(&engine);
        let peer = Peer::at(peer.address, carrier);
        async move { engine.call(peer, record).await.reply() }
    }
}

/// No more timers: a world never runs out.
pub(crate) fn out_of_timers(address: SocketAddr) -> impl FnOnce(io::Error) -> ConnectError {
    move |cause| ConnectError::Unreachable { address, cause: Arc::new(cause) }
}
