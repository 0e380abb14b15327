//! Worlds for tests: the production client and server in one thread, in virtual time.
//!
//! A [`Site`] is one server engine on a memory store, reached over links. Everything between the
//! client's session and the store is production code; only the bottom differs: messages go through
//! memory instead of sockets, and time is a world's.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use client::error::Error;
use client::session::{Credential, Session};
use load::study::Subject;
use net::call::Rpc;
use net::clock::Clock;
use net::serve::{self, Host, Limits};
use net::shape::{LinkPair, Shaped};
use net::transport::memory;
use perf::model::transaction::Server;
use perf::units::Nanos;
use server::store::Store;
use server::store::mem::{MemOptions, MemStore};
use server::types::{Caller, Time};
use server::{CommitMode, Engine, EngineConfig, Export, Exports, Peer, Rule, Squash, Transport};

/// How long a call waits for its reply in a world.
pub const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

/// A server in a world, and the link to it.
#[derive(Debug)]
pub struct Site<S> {
    clock: Clock,
    engine: Arc<Engine<S>>,
    links: LinkPair,
    commit_mode: CommitMode,
    host: Host,
    connections: AtomicU16,
}

impl Site<MemStore> {
    /// A server on an empty memory store.
    pub fn in_memory(clock: &Clock, links: LinkPair, commit_mode: CommitMode) -> Self {
        Self::new(memory_store(clock), clock, links, commit_mode)
    }
}

impl<S: Store> Site<S> {
    pub fn new(store: S, clock: &Clock, links: LinkPair, commit_mode: CommitMode) -> Self {
        let threads = match commit_mode {
            CommitMode::Stall => 1,
            CommitMode::Concurrent => 256,
        };
        let rule = Rule {
            squash: Squash::All,
            anonymous: Arc::new(Caller { uid: 0, gid: 0, gids: Vec::new() }),
            ..Rule::default()
        };
        let exports = Exports::one(Export::ruled(rule), store);
        let config = EngineConfig { commit_mode, threads, ..EngineConfig::default() };
        Self {
            clock: clock.clone(),
            engine: Arc::new(Engine::new(exports, config)),
            links,
            commit_mode,
            host: Host::new(clock, Limits::default()),
            connections: AtomicU16::new(1),
        }
    }

    /// A new connection, over the link, served by the engine.
    pub fn rpc(&self) -> Rpc {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = memory::pair(number);
        let engine = Arc::clone(&self.engine);
        let service = move |peer: serve::Peer, record: Bytes| {
            let engine = Arc::clone(&engine);
            let peer = Peer::at(peer.address, Transport::Stream);
            async move { engine.call(peer, record).await.reply() }
        };
        let host = self.host.clone();
        self.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
        let shaped =
            Shaped::new(ours, self.links, &self.clock).expect("a world never runs out of timers");
        Rpc::start(shaped, &self.clock, REPLY_LIMIT, u32::from(number) << 16)
    }
}

impl<S: Store> Subject for Site<S> {
    fn server(&self) -> Option<Server> {
        Some(match self.commit_mode {
            CommitMode::Stall => Server::Stall,
            CommitMode::Concurrent => Server::Concurrent,
        })
    }

    async fn connect(&self) -> Result<Session, Error> {
        let credential =
            Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() };
        let server = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1), 2049));
        Session::open(self.rpc(), server, &credential, self.engine.root()).await
    }
}

/// An empty memory store that tells the world's time.
pub fn memory_store(clock: &Clock) -> MemStore {
    let clock = clock.clone();
    let time = move || {
        let now = clock.since_1970();
        let secs = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        Time { secs, nanos: now.subsec_nanos() }
    };
    MemStore::new(MemOptions::default(), Arc::new(time))
}
