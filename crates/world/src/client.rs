//! A client: a host with a processor and a link, on which production clients run.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use client::error::{Error, Service};
use client::session::{Credential, Session};
use net::call::{self, Rpc};
use net::clock::Clock;
use net::error::ConnectError;
use net::processor::{self, Processor};
use net::shape::Shape;
use net::shape::profile::Profile;
use net::transport::Transport;
use perf::units::Nanos;

use crate::server::{Server, out_of_timers};
use crate::trace::{Trace, Traced};

/// How long a call waits for its reply where nobody says.
pub const REPLY_LIMIT: Nanos = Nanos::from_secs(60);

/// What a client is like.
#[derive(Clone, Debug)]
pub struct ClientSpec {
    pub cores: usize,
    /// The way to the servers, with what each message costs the client's processor.
    pub link: Profile,
}

impl ClientSpec {
    /// One core behind this link.
    pub fn behind(link: Profile) -> Self {
        Self { cores: 1, link }
    }
}

/// XIDs between the first ones of two connections: more than one makes calls, odd.
const XIDS_OF_CONNECTION: u32 = 0x0100_0001;

/// A client in a world; clones are the same.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    trace: Trace,
    address: SocketAddr,
    /// Different clients begin at different XIDs.
    first_xid: u32,
    /// Connections of calls that were made: each begins at other XIDs, or a server that keeps
    /// replies would answer its calls with those of the one before.
    connections: AtomicU32,
    processor: Processor,
    shape: Shape,
    /// As it was requested.
    link: Profile,
}

impl Client {
    pub(crate) fn new(
        number: u32,
        seed: u64,
        spec: ClientSpec,
        clock: &Clock,
        trace: &Trace,
    ) -> Self {
        let link = Profile { seed, ..spec.link };
        // 10.128.0.0/9, as many hosts as there are numbers for.
        let address = Ipv4Addr::from(0x0a80_0000 | (number & 0x007f_ffff));
        Self(Arc::new(Shared {
            clock: clock.clone(),
            trace: trace.clone(),
            address: SocketAddr::from((address, 1023)),
            // Odd, so that no two numbers give the same.
            first_xid: number.wrapping_mul(0x9e37_79b1),
            connections: AtomicU32::new(0),
            processor: Processor::of_world(clock, spec.cores),
            shape: Shape::new(link.clone(), clock.now()),
            link,
        }))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The link as it is; it can be changed while it runs.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// The link begins anew: its schedule counts from now.
    pub fn begin_link(&self) {
        self.0.shape.replace(self.0.link.clone(), self.0.clock.now());
    }

    pub fn load(&self) -> processor::Load {
        self.0.processor.load()
    }

    /// The client's end of a new connection, behind its link.
    ///
    /// # Errors
    /// The server is down.
    pub fn connection(&self, server: &Server) -> Result<Box<dyn Transport>, ConnectError> {
        let Shared { clock, trace, address, processor, shape, .. } = &*self.0;
        let bare = server.connect(*address)?;
        let shaped =
            shape.around(bare, processor, clock).map_err(out_of_timers(server.address()))?;
        Ok(Box::new(Traced::new(shaped, trace, clock, *address)))
    }

    /// Calls over one connection; when it breaks they fail.
    ///
    /// # Errors
    /// The server is down.
    pub fn rpc(&self, server: &Server) -> Result<Rpc, ConnectError> {
        let connection = self.connection(server)?;
        let before = self.0.connections.fetch_add(1, Ordering::Relaxed);
        let first_xid = self.0.first_xid.wrapping_add(before.wrapping_mul(XIDS_OF_CONNECTION));
        Ok(Rpc::start(connection, &self.0.clock, REPLY_LIMIT, first_xid))
    }

    /// Calls over connections that are made again when they break.
    ///
    /// # Errors
    /// The server is down, and [`call::Options::insist`] does not say to wait for it.
    pub async fn persistent(
        &self,
        server: &Server,
        options: call::Options,
    ) -> Result<Rpc, ConnectError> {
        let options = call::Options { first_xid: self.0.first_xid, ..options };
        let (own, server) = (self.clone(), server.clone());
        let connect = move |_| std::future::ready(own.connection(&server));
        Rpc::persistent(connect, &self.0.clock, options).await
    }

    /// Calls over datagrams.
    ///
    /// # Errors
    /// The server is down.
    pub fn datagrams(&self, server: &Server, options: &call::Options) -> Result<Rpc, ConnectError> {
        let Shared { clock, trace, address, shape, first_xid, .. } = &*self.0;
        let options = call::Options { first_xid: *first_xid, ..options.clone() };
        let socket = Traced::new(server.datagrams(shape)?, trace, clock, *address);
        Ok(Rpc::persistent_datagrams(socket, server.address(), clock, &options))
    }

    /// A session over these calls, as root.
    ///
    /// # Errors
    /// FSINFO failed.
    pub async fn session(&self, rpc: Rpc, server: &Server) -> Result<Session, Error> {
        let machine_name = "world".to_owned();
        let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
        Session::open(rpc, server.address(), &credential, server.root()).await
    }

    /// A session over one connection.
    ///
    /// # Errors
    /// The server is down, or FSINFO failed.
    pub async fn mount(&self, server: &Server) -> Result<Session, Error> {
        let rpc =
            self.rpc(server).map_err(|cause| Error::Connect { service: Service::Nfs, cause })?;
        self.session(rpc, server).await
    }
}
