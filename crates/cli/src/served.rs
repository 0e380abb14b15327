//! Servers in this process: what `serve` runs until it is told to stop, and what a study embeds.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use client::url::Target;
use net::clock::Clock;
use net::runtime::Background;
use net::serve::{Carrier, Host, Limits, Reply, Service};
use net::shape::LinkPair;
use net::transport::RECORD_BYTES_MAX;
use net::transport::tcp::Listener;
use perf::units::Instant;
use server::store::dir::{DirOptions, DirStore};
use server::store::mem::{MemOptions, MemStore};
use server::store::{Medium, Store};
use server::types::{Caller, Time};
use server::{Endpoint, Engine, EngineConfig, Export, Peer, Squash, Transport};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::CommitMode;
use crate::exit::Failure;

/// Most bytes of a READ or WRITE.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// How to serve.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) export: String,
    pub(crate) read_only: bool,
    pub(crate) commit_mode: CommitMode,
    pub(crate) threads: u32,
    pub(crate) links: LinkPair,
}

/// Opens a directory as a store. A server that stalls for its disk is one of 2002: it does not
/// begin to write before it is asked to commit.
pub(crate) fn open(dir: &Path, commit_mode: CommitMode) -> Result<DirStore, Failure> {
    raise_descriptor_limit();
    let options = DirOptions {
        early_writeback: commit_mode == CommitMode::Concurrent,
        ..DirOptions::default()
    };
    DirStore::open(dir, &options).map_err(|error| {
        Failure::environment(
            format!("cannot serve {}: {error}", dir.display()),
            "a directory that exists and that this user may read and search",
        )
    })
}

/// Takes as many descriptors as we may have: the store keeps files open in proportion.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Not allowed is no harm: then it stays as it is.
    setrlimit(Resource::Nofile, limit).ok();
}

/// An empty store in memory that belongs to this user.
pub(crate) fn memory(clock: &Clock, bytes_max: u64) -> MemStore {
    let user = this_user();
    let started = clock.since_1970();
    let options = MemOptions {
        bytes_max,
        instance: u64::try_from(started.as_nanos()).unwrap_or(u64::MAX),
        root_uid: user.uid,
        root_gid: user.gid,
        ..MemOptions::default()
    };
    let clock = clock.clone();
    let time = move || {
        let now = clock.since_1970();
        let secs = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        Time { secs, nanos: now.subsec_nanos() }
    };
    MemStore::new(options, Arc::new(time))
}

/// An engine, as connections see it.
#[derive(Debug)]
pub(crate) struct Served<S>(Arc<Engine<S>>);

impl<S> Clone for Served<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> Service for Served<S> {
    fn call(
        &self,
        peer: net::serve::Peer,
        record: Bytes,
        _arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<S> {
        let engine = Arc::clone(&self.0);
        let transport = match peer.carrier {
            Carrier::Datagram => Transport::Datagram,
            Carrier::Stream => Transport::Stream,
        };
        let peer = Peer { address: peer.address, transport };
        async move { engine.call(peer, record).await.map(Reply::from) }
    }

    fn reply_bytes_max(&self, record: &[u8]) -> usize {
        self.0.reply_bytes_max(record)
    }
}

/// Listens, and serves in a task of its own. Gives the address that it listens on.
pub(crate) fn start<S: Store>(
    store: S,
    options: &Options,
    clock: &Clock,
) -> io::Result<SocketAddr> {
    let listener = Listener::bind(options.listen, RECORD_BYTES_MAX)?;
    let address = listener.local_addr()?;
    let engine = Arc::new(Engine::new(store, config(options, address.port())));
    let service = Served(engine);
    let (host, links) = (Host::new(clock, Limits::default()), options.links);
    clock.spawn(async move {
        if let Err(cause) = host.listen(listener, links, service).await {
            eprintln!("nfskit: stopped listening on {address}: {cause}");
        }
    });
    Ok(address)
}

fn config(options: &Options, port: u16) -> EngineConfig {
    EngineConfig {
        export: Export {
            name: options.export.clone(),
            id: 1,
            read_only: options.read_only,
            squash: Squash::All,
            anonymous: this_user(),
            anonymous_allowed: true,
        },
        commit_mode: match options.commit_mode {
            CommitMode::Concurrent => server::CommitMode::Concurrent,
            CommitMode::Stall => server::CommitMode::Stall,
        },
        threads: options.threads as usize,
        transfer_bytes_max: TRANSFER_BYTES_MAX,
        endpoints: vec![Endpoint::Tcp(port)],
    }
}

/// The user that every caller acts as.
pub(crate) fn this_user() -> Caller {
    Caller {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        gids: Vec::new(),
    }
}

/// Threads that run a server: as many as there are processors.
pub(crate) fn worker_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A server on a directory, on threads of its own; it ends with this value.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// What synced data survives: a directory may lie in memory.
    pub(crate) medium: Medium,
    address: SocketAddr,
    _background: Background,
}

impl Embedded {
    pub(crate) fn start(
        dir: &Path,
        commit_mode: CommitMode,
        threads: u32,
    ) -> Result<Self, Failure> {
        let store = open(dir, commit_mode)?;
        let medium = store.medium();
        let options = Options {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            export: "/".to_owned(),
            read_only: false,
            commit_mode,
            threads,
            links: LinkPair::default(),
        };
        let workers = worker_threads().min(threads as usize);
        let begun =
            Background::start(
                workers,
                move || async move { start(store, &options, &Clock::real()) },
            );
        let failed = |cause: io::Error| {
            Failure::environment(
                format!("cannot start the embedded server: {cause}"),
                "raise the limits of open files and threads (ulimit -n, -u)",
            )
        };
        let (background, address) = begun.map_err(failed)?;
        Ok(Self { medium, address: address.map_err(failed)?, _background: background })
    }

    pub(crate) fn target(&self) -> Target {
        let port = self.address.port();
        Target {
            host: self.address.ip().to_string(),
            path: b"/".to_vec(),
            nfs_port: Some(port),
            mount_port: Some(port),
            protocol: client::url::Protocol::Tcp,
            uid: None,
            gid: None,
        }
    }
}

/// Ctrl-C, and the system's request to end. Both are caught from when this is made: make it before
/// there is anything to clean up, or to announce.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hangup: Signal,
}

impl Interrupts {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let caught = |kind| {
            signal(kind).map_err(|cause| {
                Failure::environment(
                    format!("cannot catch signals: {cause}"),
                    "raise the limit of open files (ulimit -n)",
                )
            })
        };
        let interrupt = caught(SignalKind::interrupt())?;
        let terminate = caught(SignalKind::terminate())?;
        let hangup = caught(SignalKind::hangup())?;
        Ok(Self { interrupt, terminate, hangup })
    }

    /// Done when one has come.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}
