//! The server's machine: it boots, dies, and boots again with what its disk has.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};

use client::error::Error;
use client::session::{Credential, Session};
use net::call::{self, Rpc};
use net::clock::{Clock, Group, Task};
use net::error::ConnectError;
use net::serve::{Host, Limits};
use net::shape::{LinkPair, Shaped};
use net::transport::datagram::{Datagram, Datagrams, Route};
use net::transport::lossy::{self, Impairments, Lossy, SharedImpairments};
use net::transport::memory::{self, Memory};
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::store::mem::MemOptions;
use server::store::sim::{AfterFailedSync, SimOptions, SimStore, WriteBack};
use server::types::Time;
use server::{Engine, EngineConfig, Export, Exported, Exports, Replies};
use server::{TimeOfDay, Times, Transport};
use wire::nfs3::FileHandle;
use wire::record::Message;
use world::machine::{Timed, time_of_day, times};
use world::server::{everyone_is_root, service};

use super::failure::Failure;
use super::history::History;
use super::planted::Planted;
use crate::outage::Outage;
use crate::plan::{Fault, Plan};

/// Replies that the server remembers, as `serve` does.
const REPLIES_MAX: usize = 4096;

/// See the module's head; clones are the same machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine(Arc<Inner>);

struct Inner {
    clock: Clock,
    seed: u64,
    links: LinkPair,
    latency: Nanos,
    planted: Option<Planted>,
    history: Arc<History>,
    /// What the server's time of day is wrong by.
    jump_secs: Arc<AtomicI64>,
    root: FileHandle,
    state: Mutex<State>, // guards what runs, never held across a wait
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("seed", &self.seed).finish_non_exhaustive()
    }
}

struct State {
    store: Arc<SimStore>,
    running: Option<Running>,
    /// How long it will be down after its next end.
    down: Nanos,
    connections: u16,
    ports: Vec<Port>,
    /// Throw away what comes while nobody listens.
    drains: Vec<Task>,
    lives: u64,
}

struct Running {
    engine: Arc<Engine<SimStore>>,
    host: Host,
    clock: Clock,
    group: Group,
}

impl Machine {
    pub(crate) fn new(
        clock: &Clock,
        plan: &Plan,
        planted: Option<Planted>,
        history: &Arc<History>,
    ) -> Self {
        let jump_secs = Arc::new(AtomicI64::new(0));
        let time = jumping_time(clock, &jump_secs);
        let store = SimStore::new(options(plan), time, Arc::new(Timed(clock.clone())));
        store.faults().set(|faults| {
            faults.committing_early = planted == Some(Planted::CommitEarly);
            faults.lying = planted == Some(Planted::DriveLies);
            faults.keeping_verifier = planted == Some(Planted::VerifierStays);
        });
        let store = Arc::new(store);
        let link = Link { latency: plan.latency, ..Link::default() };
        let state = State {
            store: Arc::clone(&store),
            running: None,
            down: Nanos::from_secs(1),
            connections: 1,
            ports: Vec::new(),
            drains: Vec::new(),
            lives: 0,
        };
        let inner = Inner {
            clock: clock.clone(),
            seed: plan.seed,
            links: LinkPair::symmetric(link),
            latency: plan.latency,
            planted,
            history: Arc::clone(history),
            jump_secs,
            root: exported(store).root(),
            state: Mutex::new(state),
        };
        let machine = Self(Arc::new(inner));
        machine.boot();
        machine
    }

    fn boot(&self) {
        let inner = &*self.0;
        let (clock, group) = inner.clock.group();
        let mut state = inner.state.lock();
        state.drains.drain(..).for_each(|task| task.abort());
        let exports = Exports::new(vec![exported(Arc::clone(&state.store))]);
        let exports = exports.expect("one export has no name twice");
        let config = EngineConfig { threads: 256, ..EngineConfig::default() };
        let mut engine = Engine::new(exports, config);
        if inner.planted != Some(Planted::ReplyCacheOff) {
            let of_day = jumping_time(&inner.clock, &inner.jump_secs);
            let times = Times { of_day, ..times(&inner.clock) };
            engine = engine.remembering(Replies::in_memory(REPLIES_MAX, times));
        }
        let engine = Arc::new(engine);
        let host = Host::new(&clock, Limits::default());
        let running = Running { engine, host, clock, group: group.clone() };
        for port in &state.ports {
            running.listen(port);
        }
        state.running = Some(running);
        drop(state);
        let machine = self.clone();
        inner.clock.spawn(async move {
            group.killed().await;
            let down = machine.died();
            machine.0.clock.sleep(down).await;
            machine.boot();
        });
    }

    /// Everything that ran is gone; gives how long it stays so.
    fn died(&self) -> Nanos {
        let inner = &*self.0;
        inner.history.crashed(inner.clock.now());
        let mut state = inner.state.lock();
        state.running = None;
        state.lives += 1;
        state.store = Arc::new(state.store.crash(inner.seed.wrapping_add(state.lives)));
        state.drains = state.ports.iter().map(|port| port.drain(&inner.clock)).collect();
        state.down
    }

    /// Dies when its tasks have been polled so often again, and boots after `down`.
    pub(crate) fn crash(&self, polls: u64, down: Nanos) {
        let mut state = self.0.state.lock();
        state.down = down;
        let group = state.running.as_ref().map(|running| running.group.clone());
        drop(state);
        if let Some(group) = group {
            group.kill_at_poll(group.polls() + polls);
        }
    }

    /// Dies now, and is up again when this returns.
    pub(crate) async fn lose_power(&self) {
        self.crash(0, Nanos::from_secs(1));
        self.0.clock.sleep(Nanos::from_secs(2)).await;
    }

    /// Nothing more goes wrong by itself.
    pub(crate) fn calm_down(&self) {
        let running = self.0.state.lock().running.as_ref().map(|running| running.group.clone());
        if let Some(group) = running {
            group.kill_at_poll(u64::MAX);
        }
    }

    /// A fault of the disk begins, or ends.
    pub(crate) fn disk(&self, fault: Fault, begins: bool) {
        let all = if begins { u32::MAX } else { 0 };
        let faults = self.0.state.lock().store.faults();
        faults.set(|faults| match fault {
            Fault::WriteErrors { .. } => faults.failing_writes = all,
            Fault::SyncErrors { .. } => faults.failing_syncs = all,
            Fault::Full { .. } => faults.full = begins,
            Fault::Slow { factor, .. } => {
                faults.slow_percent = if begins { u64::from(factor) * 100 } else { 0 };
            }
            _ => {}
        });
    }

    pub(crate) fn jump(&self, secs: i64) {
        self.0.jump_secs.fetch_add(secs, Ordering::Relaxed);
    }

    /// # Errors
    /// The store's books do not balance, or its two images differ.
    pub(crate) fn audit(&self) -> Result<(), Failure> {
        let store = Arc::clone(&self.0.state.lock().store);
        store.audit().map_err(|what| Failure::new("audit", what))?;
        match store.stats().divergences {
            0 => Ok(()),
            some => Err(Failure::new("audit", format!("{some} divergences of the stable image"))),
        }
    }

    /// Connection conditions that do nothing.
    pub(crate) fn calm(&self, client: usize) -> Impairments {
        Impairments {
            seed: self.0.seed ^ (client as u64) << 32,
            lost: 0,
            fragment_bytes: Some(1472),
            duplicated: 0,
            latency: self.0.latency,
            jitter: Nanos::ZERO,
        }
    }

    fn connect(&self) -> Result<Shaped<Memory>, ConnectError> {
        let inner = &*self.0;
        let mut state = inner.state.lock();
        state.connections = state.connections.wrapping_add(1);
        let (ours, theirs) = memory::pair(state.connections);
        let Some(running) = &state.running else {
            return Err(ConnectError::Refused { address: SERVER });
        };
        running.serve(theirs);
        drop(state);
        Ok(Shaped::new(ours, inner.links, &inner.clock).expect("a world never runs out of timers"))
    }

    /// Calls over connections that are made again when `outage` breaks them.
    ///
    /// # Errors
    /// The first connection failed.
    pub(crate) async fn over_stream(
        &self,
        clock: &Clock,
        outage: &Outage,
        options: call::Options,
    ) -> Result<Rpc, ConnectError> {
        let (machine, outage) = (self.clone(), outage.clone());
        let connect = move |_| std::future::ready(through(&outage, &machine));
        Rpc::persistent(connect, clock, options).await
    }

    /// Calls over datagrams under conditions that may change.
    pub(crate) fn over_datagrams(
        &self,
        clock: &Clock,
        shared: &SharedImpairments,
        options: &call::Options,
    ) -> Rpc {
        let ends = lossy::pair_under(&self.0.clock, shared);
        let (ours, theirs) = ends.expect("a world never runs out of timers");
        let port = Port(Arc::new(Mutex::new(theirs)));
        let mut state = self.0.state.lock();
        if let Some(running) = &state.running {
            running.listen(&port);
        }
        state.ports.push(port);
        drop(state);
        Rpc::persistent_datagrams(ours, SERVER, clock, options)
    }

    /// A session over `rpc`, as root.
    ///
    /// # Errors
    /// FSINFO failed.
    pub(crate) async fn session(&self, rpc: Rpc) -> Result<Session, Error> {
        Session::open(rpc, SERVER, &me(), self.0.root).await
    }
}

const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 1, 0, 1)), 2049);

/// Who acts: root, whom the export makes the anonymous caller.
pub(crate) fn me() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

type Cut = crate::outage::Cut<Shaped<Memory>>;

fn through(outage: &Outage, machine: &Machine) -> Result<Cut, ConnectError> {
    let transport = machine.connect()?;
    outage.connect(|| transport)
}

/// Small, so that everything that can be full is now and then.
fn options(plan: &Plan) -> SimOptions {
    let early = if plan.seed.is_multiple_of(2) { 64 << 10 } else { 2 << 20 };
    SimOptions {
        disk: plan.disk,
        memory: MemOptions { instance: plan.seed, ..MemOptions::default() },
        cache_bytes_max: 128 << 10,
        dirty_bytes_max: 512 << 10,
        write_back: WriteBack::Early { bytes: early },
        after_failed_sync: match plan.seed % 3 {
            0 => AfterFailedSync::KeepDirty,
            _ => AfterFailedSync::Lose,
        },
        ..SimOptions::default()
    }
}

fn exported(store: Arc<SimStore>) -> Exported<SimStore> {
    Exported { export: Export::ruled(everyone_is_root()), store }
}

/// The time, as far off as somebody has set it.
fn jumping_time(clock: &Clock, jump_secs: &Arc<AtomicI64>) -> TimeOfDay {
    let (time, jump_secs) = (time_of_day(clock), Arc::clone(jump_secs));
    Arc::new(move || {
        let Time { secs, nanos } = time();
        Time { secs: secs.saturating_add(jump_secs.load(Ordering::Relaxed)), nanos }
    })
}

impl Running {
    fn serve(&self, theirs: Memory) {
        let service = service(&self.engine, Transport::Stream);
        let host = self.host.clone();
        self.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
    }

    fn listen(&self, port: &Port) {
        let (service, port) = (service(&self.engine, Transport::Datagram), port.clone());
        let host = self.host.clone();
        self.clock.spawn(async move { host.listen_datagrams(port, service).await });
    }
}

/// The server's end of a client's datagrams, which outlives the server.
#[derive(Clone, Debug)]
struct Port(Arc<Mutex<Lossy>>);

impl Port {
    fn drain(&self, clock: &Clock) -> Task {
        let mut port = self.clone();
        clock.spawn(async move {
            loop {
                std::future::poll_fn(|cx| port.poll_receive(cx)).await.ok();
            }
        })
    }
}

impl Datagrams for Port {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<Datagram>> {
        self.0.lock().poll_receive(cx)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<std::io::Result<()>> {
        self.0.lock().poll_send(cx, message, route)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.0.lock().local_addr()
    }
}
