//! Servers in this process: what `serve` runs until a signal ends it, and what a study embeds.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use client::mount;
use client::url::Target;
use net::clock::Clock;
use net::processor::Processor;
use net::runtime::Background;
use net::serve::{Carrier, Host, Limits, Reply, Service};
use net::shape::Shape;
use net::shape::conditions::Overhead;
use net::shape::profile::Profile;
use net::transport::private::{self, Dialer};
use net::transport::{RECORD_BYTES_MAX, is_everybodys_port};
use perf::model::disk::Profile as Disk;
use perf::units::{Instant, Nanos};
use server::metrics::Metrics;
use server::store::dir::write_log::Latencies;
use server::store::dir::{DirOptions, DirStore, Identity};
use server::store::mem::{MemOptions, MemStore};
use server::store::sim::{LogSpec, SimOptions, SimStore, WriteBack};
use server::store::{Medium, Store};
use server::types::Caller;
use server::{
    Engine, EngineConfig, Export, Exports, Peer, Replies, Rule, Squash, Transport, Versions,
};
use wire::record::Message;
use wire::rpc::Answer;
use world::machine::{Timed, time_of_day};

use crate::descriptors;
use crate::exit::Failure;
use crate::output;
use crate::sockets::Sockets;
use crate::target;
use crate::unservable::Unservable;

/// Most bytes of a READ or WRITE.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// How long an emulated log may be: as long as one in a file.
pub const LOG_BYTES: RangeInclusive<u64> = LogSpec::BYTES;

/// How often stores are tended, which counts what is idle in seconds.
const TEND_INTERVAL: Nanos = Nanos::from_secs(1);

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum CommitMode {
    /// Network and disk work side by side.
    Concurrent,
    /// Nothing else is served while data is committed: the server of the 2002 thesis.
    Stall,
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    pub commit_mode: CommitMode,
    pub threads: u32,
    pub links: Shape,
    pub versions: Versions,
    pub limits: Limits,
}

impl Options {
    /// As embedded servers have it.
    pub(crate) fn embedded(commit_mode: CommitMode, threads: u32) -> Self {
        Self {
            commit_mode,
            threads,
            links: Shape::default(),
            versions: Versions::default(),
            limits: Limits::default(),
        }
    }
}

/// How a directory is served. A server that stalls for its disk is one of 2002: it does not begin
/// to write before a COMMIT comes.
pub fn dir_options(commit_mode: CommitMode) -> DirOptions {
    DirOptions {
        identity: Identity::Best,
        early_writeback: commit_mode == CommitMode::Concurrent,
        ..DirOptions::default()
    }
}

/// Opens a directory as a store.
pub fn open(dir: &Path, options: &DirOptions) -> Result<DirStore, Unservable> {
    descriptors::raise_limit();
    DirStore::open(dir, options).map_err(|cause| Unservable::Store { dir: dir.to_owned(), cause })
}

/// No link, and an end that spends so much on each message.
pub fn busy(overhead: Nanos) -> Profile {
    Profile { overhead: Overhead { send: overhead, receive: overhead }, ..Profile::none() }
}

/// An engine on an empty store in memory, for a world.
pub fn engine_in_memory(clock: &Clock, bytes_max: u64) -> Engine<MemStore> {
    let options = Options::embedded(CommitMode::Concurrent, 1);
    Engine::new(for_this_user(memory(clock, bytes_max)), config(&options))
}

/// An engine, as a connection wants it.
pub fn service<S: Store>(engine: &Arc<Engine<S>>) -> impl Service + use<S> {
    Served::new(engine)
}

/// An empty store in memory that belongs to this user.
pub fn memory(clock: &Clock, bytes_max: u64) -> MemStore {
    MemStore::new(mem_options(clock, bytes_max), time_of_day(clock))
}

fn mem_options(clock: &Clock, bytes_max: u64) -> MemOptions {
    let user = this_user();
    let started = clock.since_1970();
    MemOptions {
        bytes_max,
        instance: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
        root_uid: user.uid,
        root_gid: user.gid,
        ..MemOptions::default()
    }
}

/// An empty store behind an emulated disk, with an emulated write log if one is given. As
/// [`dir_options`] has it, a server that stalls does not write before a COMMIT comes.
pub fn emulated(
    clock: &Clock,
    bytes_max: u64,
    disk: Disk,
    write_log: Option<LogSpec>,
    commit_mode: CommitMode,
) -> SimStore {
    let defaults = SimOptions::default();
    let write_back = match commit_mode {
        CommitMode::Concurrent => defaults.write_back,
        CommitMode::Stall => WriteBack::OnDemand,
    };
    let memory = mem_options(clock, bytes_max);
    // Nobody can ask for a crash of it, and so data need to be held once only.
    let options = SimOptions { disk, memory, write_back, write_log, crashes: false, ..defaults };
    SimStore::new(options, time_of_day(clock), Arc::new(Timed(clock.clone())))
}

/// An engine, as connections see it, and the user whose server it is.
struct Served<S>(Arc<Engine<S>>, u32);

impl<S> Served<S> {
    fn new(engine: &Arc<Engine<S>>) -> Self {
        Self(Arc::clone(engine), this_user().uid)
    }
}

impl<S> Clone for Served<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), self.1)
    }
}

impl<S> Served<S> {
    fn peer(&self, peer: &net::serve::Peer) -> Peer {
        let &net::serve::Peer { address, carrier, is_proven, local, owner } = peer;
        let transport = match carrier {
            Carrier::Datagram => Transport::Datagram,
            Carrier::Stream => Transport::Stream,
        };
        // A privileged port is what root of another host shows; of this host more is known.
        let is_trusted = match owner {
            Some(uid) => Some(uid == 0 || uid == self.1),
            None => is_everybodys_port(address).then_some(false),
        };
        Peer { address, transport, is_proven, local, is_trusted }
    }
}

/// What an engine keeps in mind beside its exports.
#[derive(Debug, Default)]
pub struct Memory {
    pub replies: Option<Replies>,
    pub metrics: Option<Metrics>,
}

impl<S: Store> Service for Served<S> {
    fn call(
        &self,
        peer: net::serve::Peer,
        record: Bytes,
        arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<S> {
        let engine = Arc::clone(&self.0);
        let peer = self.peer(&peer);
        async move {
            let (answer, tag) = pin!(engine.call_arrived(peer, record, arrived)).await;
            reply(answer, tag)
        }
    }

    fn reply_bytes_max(&self, record: &[u8]) -> usize {
        self.0.reply_bytes_max(record)
    }

    fn is_for(&self, host: IpAddr) -> bool {
        self.0.is_for(host)
    }

    fn refuse(&self, peer: &net::serve::Peer, record: &[u8]) -> Option<Message> {
        match self.0.refuse(&self.peer(peer), record) {
            Answer::Reply(message) => Some(message),
            Answer::Nothing | Answer::NotACall => None,
        }
    }

    fn is_timed(&self) -> bool {
        self.0.is_measured()
    }

    fn sent(&self, _: &net::serve::Peer, tag: u32, since_reply: Nanos) {
        self.0.sent(tag, since_reply);
    }
}

/// What of an answer goes to the connection.
fn reply(answer: Answer, tag: u32) -> Option<Reply> {
    match answer {
        Answer::Reply(message) => Some(Reply { message, tag }),
        Answer::Nothing => Some(Reply::NOTHING),
        Answer::NotACall => None,
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Running<S> {
    pub engine: Arc<Engine<S>>,
    pub host: Host,
}

/// Serves what comes to the sockets, in tasks of their own.
pub fn start<S: Store>(
    sockets: Sockets,
    exports: Exports<S>,
    memory: Memory,
    options: Options,
    clock: &Clock,
) -> Running<S> {
    let Sockets { listeners, datagrams, endpoints, portmap_endpoints, address } = sockets;
    let config = EngineConfig { endpoints, portmap_endpoints, ..config(&options) };
    let Memory { replies, metrics } = memory;
    let mut engine = Engine::new(exports, config);
    if let Some(replies) = replies {
        engine = engine.remembering(replies);
    }
    if let Some(metrics) = metrics {
        engine = engine.measured(metrics);
    }
    let engine = Arc::new(engine);
    let service = Served::new(&engine);
    let host = Host::new(clock, options.limits);
    for listener in listeners {
        let (host, service, links) = (host.clone(), service.clone(), options.links.clone());
        clock.spawn(async move {
            if let Err(cause) = host.listen(listener, links, service).await {
                output::say(format_args!("stopped listening on {address}: {cause}"));
            }
        });
    }
    let processor = Processor::real(clock);
    for socket in datagrams {
        let (host, service) = (host.clone(), service.clone());
        match options.links.around_datagrams(socket, &processor, clock) {
            Ok(socket) => {
                clock.spawn(async move { host.listen_datagrams(socket, service).await });
            }
            Err(cause) => output::say(format_args!("no timers for the link over UDP: {cause}")),
        }
    }
    tend(&engine, clock);
    Running { engine, host }
}

/// Lets the stores release what is idle, as long as there is the engine.
fn tend<S: Store>(engine: &Arc<Engine<S>>, clock: &Clock) {
    let (engine, own) = (Arc::downgrade(engine), clock.clone());
    clock.spawn(async move {
        loop {
            own.sleep(TEND_INTERVAL).await;
            let Some(engine) = engine.upgrade() else { return };
            engine.tend(own.now()).await;
        }
    });
}

/// A store as the one export `/`, on which everyone acts as this user.
fn for_this_user<S>(store: S) -> Exports<S> {
    let rule = Rule { squash: Squash::All, anonymous: Arc::new(this_user()), ..Rule::default() };
    Exports::one(Export { id: 1, ..Export::ruled(rule) }, store)
}

fn config(options: &Options) -> EngineConfig {
    EngineConfig {
        commit_mode: match options.commit_mode {
            CommitMode::Concurrent => server::CommitMode::Concurrent,
            CommitMode::Stall => server::CommitMode::Stall,
        },
        threads: options.threads as usize,
        transfer_bytes_max: TRANSFER_BYTES_MAX,
        versions: options.versions,
        ..EngineConfig::default()
    }
}

/// The user that every caller acts as.
pub fn this_user() -> Caller {
    Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        gids: Vec::new(),
    }
}

/// Threads that run a server: as many as there are processors.
pub fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A server on a directory, on threads of its own, for this process alone: it does not listen. It
/// ends with this value.
#[derive(Debug)]
pub struct Embedded {
    /// What synced data survives: a directory may lie in memory.
    pub medium: Medium,
    /// What a write log, if there is one, and the directory took at the start.
    pub log: Option<Box<Latencies>>,
    dialer: Dialer,
    _background: Background,
}

impl Embedded {
    pub fn start(dir: &Path, commit_mode: CommitMode, threads: u32) -> Result<Self, Failure> {
        Self::start_as(dir, &dir_options(commit_mode), commit_mode, threads)
    }

    /// The same, with the directory served as `options` say.
    pub fn start_as(
        dir: &Path,
        options: &DirOptions,
        commit_mode: CommitMode,
        threads: u32,
    ) -> Result<Self, Failure> {
        let store = open(dir, options)?;
        let log = store.log_latencies().first().copied().map(Box::new);
        let started = Self::start_on(store, Options::embedded(commit_mode, threads))?;
        Ok(Self { log, ..started })
    }

    /// On an empty store in memory, behind an emulated link.
    pub fn in_memory(links: impl Into<Shape>, bytes_max: u64) -> Result<Self, Failure> {
        let store = memory(&Clock::real(), bytes_max);
        let options =
            Options { links: links.into(), ..Options::embedded(CommitMode::Concurrent, 256) };
        Self::start_on(store, options)
    }

    /// On an empty store in memory, on one thread of its own: a server with one processor, which
    /// spends `overhead` on each message.
    pub fn single(bytes_max: u64, overhead: Nanos) -> Result<Self, Failure> {
        Self::one_processor(None, bytes_max, overhead, 1)
    }

    /// The same on a directory, or in memory, with so many calls in service at once.
    pub fn one_processor(
        dir: Option<&Path>,
        bytes_max: u64,
        overhead: Nanos,
        threads: u32,
    ) -> Result<Self, Failure> {
        let commit_mode = CommitMode::Concurrent;
        let links = busy(overhead).into();
        let options = Options { links, ..Options::embedded(commit_mode, threads) };
        match dir {
            Some(dir) => {
                let store = open(dir, &dir_options(commit_mode))?;
                Self::start_on_threads(store, options, 1)
            }
            None => Self::start_on_threads(memory(&Clock::real(), bytes_max), options, 1),
        }
    }

    fn start_on<S: Store>(store: S, options: Options) -> Result<Self, Failure> {
        let workers = worker_threads().min(options.threads as usize);
        Self::start_on_threads(store, options, workers)
    }

    fn start_on_threads<S: Store>(
        store: S,
        options: Options,
        workers: usize,
    ) -> Result<Self, Failure> {
        let medium = store.medium();
        let (dialer, listener) = private::listener(RECORD_BYTES_MAX);
        let begun = Background::start(workers, move || async move {
            let sockets = Sockets::private(listener);
            start(sockets, for_this_user(store), Memory::default(), options, &Clock::real());
        });
        let (background, ()) = begun.map_err(|cause| {
            Failure::resources(format!("cannot start the embedded server: {cause}"))
        })?;
        Ok(Self { medium, log: None, dialer, _background: background })
    }

    /// How a client of this process reaches it, behind this link. Nobody else can.
    pub fn reach(&self, reply_limit: Nanos, links: Shape) -> (Target, mount::Options) {
        let address = private::ADDRESS;
        let target = Target {
            host: address.ip().to_string(),
            path: b"/".to_vec(),
            nfs_port: Some(address.port()),
            mount_port: Some(address.port()),
            version: client::url::Version::Three,
            protocol: client::url::Protocol::Tcp,
            uid: None,
            gid: None,
        };
        let options = target::options(&target, reply_limit, links);
        (target, mount::Options { private: Some(self.dialer.clone()), ..options })
    }
}

#[cfg(test)]
mod tests {
    use load::scratch::Scratch;
    use net::runtime::block_on;
    use server::store::dir::HandleChoice;
    use wire::nfs3::{NfsStat3, StableHow};

    use super::*;

    /// A server as an ordinary user has it: without the kernel's handles.
    fn unprivileged(dir: &Path) -> Embedded {
        let options =
            DirOptions { handles: HandleChoice::Table, ..dir_options(CommitMode::Concurrent) };
        let store = open(dir, &options).unwrap();
        Embedded::start_on(store, Options::embedded(CommitMode::Concurrent, 2)).unwrap()
    }

    #[test]
    fn two_servers_on_one_directory_answer_each_for_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let servers = [unprivileged(dir.path()), unprivileged(dir.path())];
        block_on(async {
            let clock = Clock::real();
            let mut sessions = Vec::new();
            for server in &servers {
                let (target, options) = server.reach(Nanos::from_secs(20), Shape::default());
                sessions.push(mount::mount(&clock, &target, &options).await.unwrap().session);
            }
            let (first, last) = (&sessions[0], &sessions[1]);
            let scratch = Scratch::create(last, &Scratch::name_for("two")).await.unwrap();
            let file = scratch.file(last, "file").await.unwrap();
            let unknown = first.getattr(file).await.unwrap_err();
            assert_eq!(unknown.status(), Some(NfsStat3::Stale), "a handle is its server's own");
            let same = scratch.at(first).await.unwrap().find_file(first, "file").await.unwrap();
            let data = Bytes::from_static(b"through the first");
            first.write(same, 0, data, StableHow::FileSync).await.unwrap();
            assert_eq!(last.getattr(file).await.unwrap().size, 17);
            scratch.remove(last).await.unwrap();
        })
        .unwrap();
    }
}
