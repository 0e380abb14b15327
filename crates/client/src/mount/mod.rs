//! From a target to a session.
//!
//! The ports come from the target or from the portmapper of the host. Which part of the path is
//! the export only the server knows: the whole path is tried first, then ever shorter ones, and
//! what is left is looked up, as RFC 2224 would have it.

mod connect;
pub mod null;
mod services;
pub mod steps;
pub(crate) mod traits;

use std::fmt;
use std::net::SocketAddr;

use net::call::Events;
use net::clock::Clock;
use net::error::ConnectError;
use net::shape::Shape;
use net::transport::RECORD_BYTES_MAX;
use net::transport::buffer::Pool;
use net::transport::private::Dialer;
use net::transport::tcp::{self, Tcp};
use perf::units::Nanos;

pub use self::connect::connect;
pub use self::services::{MOUNT_PORT, NFS_PORT};
use self::services::{Mounter, components};
use crate::error::Error;
use crate::session::{Credential, Session};
use crate::url::{Protocol, Target, Version};

/// How to reach a target.
#[derive(Clone, Debug)]
pub struct Options {
    pub credential: Credential,
    /// How long to wait for a connection.
    pub connect_limit: Nanos,
    /// How long to wait for a reply: of the services beside NFS, and of NFS where calls are not
    /// persistent.
    pub reply_limit: Nanos,
    /// The link to emulate between here and the NFS service, and what our end spends on messages.
    pub links: Shape,
    /// Connections that are made again, and calls that are retransmitted. Without it there is one
    /// connection, and when it breaks its calls fail: measurements hide nothing.
    pub persistence: Option<Persistence>,
    /// The server is one of this process: it is reached by this, over TCP, whatever the target's
    /// host and ports are.
    pub private: Option<Dialer>,
    /// Where replies over TCP are received.
    pub pool: Pool,
}

impl Options {
    pub const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);
    pub const REPLY_LIMIT: Nanos = Nanos::from_secs(20);

    /// For this caller, with nfs(5)'s defaults, and hard.
    pub fn persistent(credential: Credential) -> Self {
        Self {
            credential,
            connect_limit: Self::CONNECT_LIMIT,
            reply_limit: Self::REPLY_LIMIT,
            links: Shape::default(),
            persistence: Some(Persistence::default()),
            private: None,
            pool: Pool::new(RECORD_BYTES_MAX),
        }
    }

    /// Connects within `connect_limit`.
    async fn dial(
        &self,
        clock: &Clock,
        address: SocketAddr,
        pool: &Pool,
    ) -> Result<Tcp, ConnectError> {
        dial(clock, address, self.private.as_ref(), self.connect_limit, pool).await
    }
}

/// To a server of this process by its own way, to others by their address.
async fn dial(
    clock: &Clock,
    address: SocketAddr,
    private: Option<&Dialer>,
    limit: Nanos,
    pool: &Pool,
) -> Result<Tcp, ConnectError> {
    match private {
        Some(dialer) => dialer.connect(clock, limit, pool, RECORD_BYTES_MAX).await,
        None => tcp::connect(clock, address, limit, pool, RECORD_BYTES_MAX).await,
    }
}

/// How stubborn a mount is, in the words of nfs(5).
#[derive(Clone, Debug)]
pub struct Persistence {
    /// Connections, 1 to [`net::call::NCONNECT_MAX`]; over UDP there is one socket.
    pub nconnect: u32,
    /// Calls fail after `timeo` x `retrans`; otherwise they are retransmitted for ever.
    pub soft: bool,
    /// Before a call is retransmitted; 60 s over TCP and 1.1 s over UDP if it is not given.
    pub timeo: Option<Nanos>,
    /// 2 over TCP and 3 over UDP if it is not given.
    pub retrans: Option<u32>,
    /// Wait also for a server that has never answered on the NFS port.
    pub insist: bool,
    /// Called when a server does not respond, and when it does again.
    pub events: Events,
}

impl Default for Persistence {
    fn default() -> Self {
        Self {
            nconnect: 1,
            soft: false,
            timeo: None,
            retrans: None,
            insist: false,
            events: Events::default(),
        }
    }
}

/// Where the server's two services are; enough to connect again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ports {
    pub nfs: SocketAddr,
    pub mount: SocketAddr,
    pub protocol: Protocol,
    pub version: Version,
}

/// A mounted target.
#[derive(Clone, Debug)]
pub struct Mounted {
    pub session: Session,
    pub ports: Ports,
    /// The part of the path that is the export.
    pub export: String,
}

/// Where a target's services are, as it says or as its host's portmapper does.
///
/// # Errors
/// As [`mount`].
pub async fn ports(clock: &Clock, target: &Target, options: &Options) -> Result<Ports, Error> {
    Mounter { clock, options }.ports(target).await
}

/// Mounts a target.
///
/// # Errors
/// [`Error`] names the step that failed and the address it failed at.
pub async fn mount(clock: &Clock, target: &Target, options: &Options) -> Result<Mounted, Error> {
    let mounter = Mounter { clock, options };
    let ports = mounter.ports(target).await?;
    let (export, mut root) = mounter.mnt(ports.mount, target).await?;
    let rpc = connect(clock, &ports, options).await?;
    let caller = &options.credential;
    let probe = Session::new(rpc.clone(), ports.nfs, caller, target.version);
    for name in components(&target.path[export.len()..]) {
        root = probe.lookup(root, name).await?.object;
    }
    let opened = Session::open_version(rpc, ports.nfs, caller, root, target.version);
    let session = opened.await?;
    let export = String::from_utf8_lossy(export).into_owned();
    Ok(Mounted { session, ports, export })
}

/// Where a target's NFS service is, without mounting anything.
///
/// # Errors
/// [`Error`], of the resolver or the portmapper.
pub async fn find_nfs(
    clock: &Clock,
    target: &Target,
    options: &Options,
) -> Result<SocketAddr, Error> {
    Mounter { clock, options }.nfs(target).await
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NFS at {}, MOUNT at {}", self.nfs, self.mount)
    }
}
