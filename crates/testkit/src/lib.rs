//! Worlds for tests: the production client and server in one thread, in virtual time.
//!
//! A [`Site`] is one server engine on a memory store, reached over links. Everything between the
//! client's session and the store is production code; only the bottom differs: messages go through
//! memory instead of sockets, and time is a world's.

pub mod lies;
pub mod outage;
pub mod plan;
pub mod reference;
pub mod seeds;
pub mod sim;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use bytes::Bytes;
use client::error::Error;
use client::session::{Credential, Session};
use load::study::Subject;
use net::call::{self, Rpc};
use net::clock::Clock;
use net::clock::world::World;
use net::error::ConnectError;
use net::processor::Processor;
use net::serve::{self, Host, Limits};
use net::shape::profile::Profile;
use net::shape::{LinkPair, Shape, Shaped};
use net::transport::lossy::{self, SharedImpairments};
use net::transport::memory::{self, Memory};
use perf::model::transaction::Server;
use perf::units::Nanos;
use server::Replies;
use server::store::Store;
use server::store::mem::{MemOptions, MemStore};
use server::{
    CommitMode, Engine, EngineConfig, Export, Exported, Exports, Peer, Rule, ServiceCost, Squash,
    Transport,
};
use wire::nfs3;
use wire::record::Message;
use wire::rpc::CallHeader;
use wire::xdr::{Decode, Reader};
use world::machine::{time_of_day, times};
use world::server::{everyone_is_root, service};

use crate::lies::{Liar, Lie};
use crate::outage::Outage;

/// How long a call waits for its reply in a world.
pub const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

/// Replies that a site remembers, as `serve` does.
const REPLIES_MAX: usize = 4096;

/// Runs in a world of its own.
///
/// # Panics
/// It would never end.
pub fn in_world<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    work: impl FnOnce(Clock) -> F,
) -> T {
    let world = World::new();
    world.run(work(world.clock())).unwrap_or_else(|stuck| panic!("{stuck}"))
}

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
    /// A server that spends time on calls.
    ///
    /// # Panics
    /// It has been connected to.
    #[must_use]
    pub fn with_cost(self, cost: Arc<dyn ServiceCost>) -> Self {
        let engine = Arc::try_unwrap(self.engine).ok().expect("nobody is connected yet");
        Self { engine: Arc::new(engine.with_cost(cost)), ..self }
    }

    pub fn new(store: S, clock: &Clock, links: LinkPair, commit_mode: CommitMode) -> Self {
        let threads = match commit_mode {
            CommitMode::Stall => 1,
            CommitMode::Concurrent => 256,
        };
        let exports = Exports::one(Export::ruled(everyone_is_root()), store);
        let replies = Replies::in_memory(REPLIES_MAX, times(clock));
        let config = EngineConfig { commit_mode, threads, ..EngineConfig::default() };
        Self {
            clock: clock.clone(),
            engine: Arc::new(Engine::new(exports, config).remembering(replies)),
            links,
            commit_mode,
            host: Host::new(clock, Limits::default()),
            connections: AtomicU16::new(1),
        }
    }

    /// From now on changes are refused.
    pub fn become_read_only(&self) {
        self.rule(Rule { read_only: true, ..everyone_is_root() });
    }

    /// From now on callers are who they say.
    pub fn believe_callers(&self) {
        self.rule(Rule { squash: Squash::None, ..everyone_is_root() });
    }

    /// From now on this is what clients may do.
    pub fn rule(&self, rule: Rule) {
        let exported = Exported { export: Export::ruled(rule), store: self.engine.store() };
        self.engine.export(Exports::new(vec![exported]).expect("it is one"));
    }

    /// Its store.
    pub fn store(&self) -> Arc<S> {
        self.engine.store()
    }

    /// A new connection, over the link, served by the engine: the client's end, and its number.
    pub fn connection(&self) -> (Shaped<Memory>, u16) {
        self.connection_over(self.links)
    }

    /// The same over another link.
    pub fn connection_over(&self, links: LinkPair) -> (Shaped<Memory>, u16) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = memory::pair(number);
        self.serve(theirs);
        let shaped =
            Shaped::new(ours, links, &self.clock).expect("a world never runs out of timers");
        (shaped, number)
    }

    /// Calls over a new connection to a server that lies.
    pub fn rpc_lying(&self, lie: Lie) -> Rpc {
        let liar = Liar::new(lie);
        self.rpc_through(move |call, reply| (liar.retell(call, reply), Nanos::ZERO))
    }

    /// Calls over a new connection on which replies come so much later than they were made.
    pub fn rpc_late(
        &self,
        late: impl Fn(nfs3::Procedure) -> Nanos + Clone + Send + 'static,
    ) -> Rpc {
        self.rpc_through(move |call, reply| {
            let header = CallHeader::decode(&mut Reader::new(call));
            let procedure = header.ok().and_then(|call| nfs3::Procedure::from_code(call.procedure));
            (reply, procedure.map_or(Nanos::ZERO, &late))
        })
    }

    /// Calls over a new connection on which each reply is what `treat` makes of it, and as late.
    pub fn rpc_through(
        &self,
        treat: impl Fn(&[u8], Vec<u8>) -> (Vec<u8>, Nanos) + Clone + Send + 'static,
    ) -> Rpc {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = memory::pair(number);
        let (engine, clock) = (Arc::clone(&self.engine), self.clock.clone());
        let service = move |peer: serve::Peer, record: Bytes| {
            let (engine, clock, treat) = (Arc::clone(&engine), clock.clone(), treat.clone());
            let peer = Peer::at(peer.address, Transport::Stream);
            async move {
                let reply = engine.call(peer, record.clone()).await.reply()?;
                let (reply, late) = treat(&record, whole(&reply));
                if late > Nanos::ZERO {
                    clock.sleep(late).await;
                }
                Some(Message::new(reply))
            }
        };
        let host = self.host.clone();
        self.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
        let shaped =
            Shaped::new(ours, self.links, &self.clock).expect("a world never runs out of timers");
        Rpc::start(shaped, &self.clock, REPLY_LIMIT, u32::from(number) << 16)
    }

    /// Serves the other end of a connection.
    fn serve(&self, theirs: impl net::transport::Transport + 'static) {
        let service = service(&self.engine, Transport::Stream);
        let host = self.host.clone();
        self.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
    }

    /// Calls over a new connection behind this, whose o both ends spend, each on a processor of its
    /// own.
    pub fn rpc_busy(&self, profile: &Profile) -> Rpc {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = memory::pair(number);
        let idle = Profile { overhead: profile.overhead, ..Profile::none() };
        let around = |end, profile: &Profile| {
            let (shape, processor) =
                (Shape::from(profile.clone()), Processor::of_world(&self.clock, 1));
            let around = shape.around(end, &processor, &self.clock);
            around.expect("a world never runs out of timers")
        };
        self.serve(around(theirs, &idle));
        Rpc::start(around(ours, profile), &self.clock, REPLY_LIMIT, u32::from(number) << 16)
    }

    /// Calls over datagrams, under conditions that may change.
    pub fn datagrams(&self, shared: &SharedImpairments, options: &call::Options) -> Rpc {
        let (ours, theirs) =
            lossy::pair_under(&self.clock, shared).expect("a world never runs out of timers");
        let service = service(&self.engine, Transport::Datagram);
        let host = self.host.clone();
        self.clock.spawn(async move { host.listen_datagrams(theirs, service).await });
        let server = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1), 2049));
        Rpc::persistent_datagrams(ours, server, &self.clock, options)
    }

    /// Calls over a new connection.
    pub fn rpc(&self) -> Rpc {
        self.rpc_over(self.links)
    }

    /// The same over another link.
    pub fn rpc_over(&self, links: LinkPair) -> Rpc {
        let (shaped, number) = self.connection_over(links);
        Rpc::start(shaped, &self.clock, REPLY_LIMIT, u32::from(number) << 16)
    }

    /// Calls over connections that are made again when `outage` breaks them.
    ///
    /// # Errors
    /// There is an outage from the beginning.
    pub async fn persistent(
        self: &Arc<Self>,
        outage: &Outage,
        options: call::Options,
    ) -> Result<Rpc, ConnectError> {
        // Clients of one host must not use the same XIDs.
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let options = call::Options { first_xid: u32::from(number) << 16, ..options };
        let (site, outage) = (Arc::clone(self), outage.clone());
        let connect = move |_| std::future::ready(outage.connect(|| site.connection().0));
        Rpc::persistent(connect, &self.clock, options).await
    }

    /// A session over `rpc`, as root.
    ///
    /// # Errors
    /// FSINFO failed.
    pub async fn session(&self, rpc: Rpc) -> Result<Session, Error> {
        let machine_name = "world".to_owned();
        let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
        let server = SocketAddr::from((Ipv4Addr::new(127, 1, 0, 1), 2049));
        Session::open(rpc, server, &credential, self.engine.root()).await
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
        self.session(self.rpc()).await
    }
}

/// An empty memory store with the world's time.
pub fn memory_store(clock: &Clock) -> MemStore {
    memory_store_of(MemOptions::default(), clock)
}

/// The same, of another size.
pub fn memory_store_of(options: MemOptions, clock: &Clock) -> MemStore {
    MemStore::new(options, time_of_day(clock))
}

/// The bytes of a message, with its padding.
fn whole(message: &Message) -> Vec<u8> {
    let mut whole = [&message.head[..], &message.payload[..]].concat();
    whole.resize(message.wire_len(), 0);
    whole
}
