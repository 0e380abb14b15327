//! The proxy in worlds: clients, a server whose store is another server's export, and that server.

mod above;
mod ahead;
mod callers;
mod close_to_open;
mod disk;
mod exclusive;
mod handles;
mod hostile;
pub(crate) mod killed;
mod outages;
mod stable;
mod twin;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cache::medium::Memory;
use cache::{Cache, Geometry, Limits};
use client::session::{Credential, Session};
use client::url::Version;
use net::call::{self, Rpc, Target};
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use proxy::{Handles, Options, Remote};
use server::CommitMode;
use server::store::Store;
use server::store::mem::MemStore;
use testkit::Site;
use testkit::outage::Outage;
use wire::mount::{DirPath, MntReply1};
use wire::nfs3::FileHandle;
use wire::rpc::OpaqueAuth;
use wire::xdr::{Encode, from_bytes};

pub(crate) type Origin = Arc<Site<MemStore>>;
pub(crate) type Proxy = Arc<Site<Remote>>;

pub(crate) fn root() -> Credential {
    user(0)
}

fn user(uid: u32) -> Credential {
    Credential { machine_name: "world".to_owned(), uid, gid: uid, gids: Vec::new() }
}

fn away(latency: Nanos) -> LinkPair {
    LinkPair::symmetric(Link { latency, ..Link::default() })
}

/// Runs `test` in a world with an origin, and nothing on the way to it.
fn world<F: Future<Output = ()> + Send + 'static>(
    test: impl FnOnce(Clock, Origin) -> F + Send + 'static,
) {
    world_behind(LinkPair::default(), test);
}

fn world_behind<F: Future<Output = ()> + Send + 'static>(
    links: LinkPair,
    test: impl FnOnce(Clock, Origin) -> F + Send + 'static,
) {
    let world = World::new();
    let clock = world.clock();
    let origin = Arc::new(Site::in_memory(&clock, links, CommitMode::Concurrent));
    world.run(test(clock, origin)).unwrap();
}

/// A proxy of it beside its clients, with the defaults and nothing that outlives it.
pub(crate) async fn proxied<S: Store>(clock: &Clock, origin: &Arc<Site<S>>) -> Proxy {
    let remote = remote(clock, origin, &Outage::default(), None).await;
    proxy_on(clock, remote)
}

/// The same with a cache.
pub(crate) async fn cached<S: Store>(
    clock: &Clock,
    origin: &Arc<Site<S>>,
    memory: &Memory,
    outage: &Outage,
) -> Proxy {
    // What a server of this kind is read by.
    let geometry = Geometry::of_reads_of(1 << 20);
    let cache = Cache::in_memory(memory.clone(), geometry, Limits::default());
    caching(clock, origin, (cache, Handles::open("origin:/", None).unwrap()), outage).await
}

/// The same with a cache and handles that may outlive it.
async fn caching<S: Store>(
    clock: &Clock,
    origin: &Arc<Site<S>>,
    (cache, handles): (Cache, Handles),
    outage: &Outage,
) -> Proxy {
    let rpc = origin.persistent(outage, call::Options::stream()).await.unwrap();
    caching_over(clock, origin.session(rpc).await.unwrap(), (cache, handles)).await
}

async fn caching_over(
    clock: &Clock,
    session: Session,
    (cache, handles): (Cache, Handles),
) -> Proxy {
    let options = Options { cache: Some(cache), offline_reads: true, ..Options::default() };
    proxy_on(clock, Remote::open(clock, session, handles, options).await.unwrap())
}

/// One with a cache before an origin of version 2.
async fn cached_of_version_2<S: Store>(clock: &Clock, origin: &Arc<Site<S>>) -> Proxy {
    let session = session(origin, origin.rpc(), Version::Two).await;
    let cache =
        Cache::in_memory(Memory::default(), Geometry::of_reads_of(1 << 13), Limits::default());
    caching_over(clock, session, (cache, Handles::open("origin:/", None).unwrap())).await
}

fn proxy_on(clock: &Clock, remote: Remote) -> Proxy {
    Arc::new(Site::new(remote, clock, LinkPair::default(), CommitMode::Concurrent))
}

/// A store on the origin, whose connections `outage` breaks.
async fn remote<S: Store>(
    clock: &Clock,
    origin: &Arc<Site<S>>,
    outage: &Outage,
    state: Option<&Path>,
) -> Remote {
    let rpc = origin.persistent(outage, call::Options::stream()).await.unwrap();
    remote_over(clock, origin.session(rpc).await.unwrap(), state).await
}

async fn remote_over(clock: &Clock, session: Session, state: Option<&Path>) -> Remote {
    let handles = Handles::open("origin:/", state).unwrap();
    Remote::open(clock, session, handles, Options::default()).await.unwrap()
}

/// A session with a site in a version of the protocol.
async fn session<S: Store>(site: &Site<S>, rpc: Rpc, version: Version) -> Session {
    if version == Version::Three {
        return site.session(rpc).await.unwrap();
    }
    let mnt = Target { program: wire::mount::PROGRAM, version: 1, procedure: 1 };
    let encode = |out: &mut Vec<u8>| DirPath { dirpath: b"/" }.encode(out);
    let answer = rpc.call(mnt, OpaqueAuth::NONE, encode, Bytes::new()).await.unwrap();
    let directory = from_bytes::<MntReply1>(&answer.results()).unwrap().unwrap().directory;
    let directory = FileHandle::new(directory.as_bytes()).unwrap();
    let server = SocketAddr::from(([127, 1, 0, 1], 2049));
    Session::open_version(rpc, server, &root(), directory, version).await.unwrap()
}

/// What a metric of the store has.
fn reading(proxy: &Site<Remote>, name: &str) -> f64 {
    let readings = proxy.store().readings();
    readings.iter().filter(|reading| reading.name == name).map(|reading| reading.value).sum()
}
