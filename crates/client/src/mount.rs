//! From a target to a session.
//!
//! The ports come from the target or from the portmapper of the host. Which part of the path is
//! the export only the server knows: the whole path is tried first, then ever shorter ones, and
//! what is left is looked up, as RFC 2224 would have it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use net::call::{self, Rpc};
use net::clock::Clock;
use net::error::{CallError, ConnectError};
use net::shape::{LinkPair, Shaped};
use net::transport::RECORD_BYTES_MAX;
use net::transport::buffer::Pool;
use net::transport::tcp;
use net::transport::udp::Udp;
use perf::units::Nanos;
use wire::mount::{DirPath, MntOk, MntReply, MountStat3};
use wire::nfs3::FileHandle;
use wire::portmap::{Mapping, PROTOCOL_TCP, PROTOCOL_UDP, Port};
use wire::rpc::OpaqueAuth;
use wire::xdr::{Decode, Encode, from_bytes};
use wire::{mount, nfs3, portmap};

use crate::error::{Error, Service};
use crate::session::{Credential, Session};
use crate::url::{Protocol, Target};

/// How to reach a target.
#[derive(Clone, Debug)]
pub struct Options {
    pub credential: Credential,
    /// How long to wait for a connection.
    pub connect_limit: Nanos,
    /// How long to wait for a reply.
    pub reply_limit: Nanos,
    /// The link to emulate between here and the server.
    pub links: LinkPair,
}

impl Options {
    pub const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);
}

/// Where the server's two services are; enough to connect again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ports {
    pub nfs: SocketAddr,
    pub mount: SocketAddr,
    pub protocol: Protocol,
}

/// A mounted target.
#[derive(Clone, Debug)]
pub struct Mounted {
    pub session: Session,
    pub ports: Ports,
    /// The part of the path that is the export.
    pub export: String,
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
    let probe = Session::new(rpc.clone(), ports.nfs, &options.credential);
    for name in components(&target.path[export.len()..]) {
        root = probe.lookup(root, name).await?.object;
    }
    let session = Session::open(rpc, ports.nfs, &options.credential, root).await?;
    let export = String::from_utf8_lossy(export).into_owned();
    Ok(Mounted { session, ports, export })
}

/// Connects to an NFS service, through the emulated link if there is one.
///
/// # Errors
/// [`Error::Connect`].
pub async fn connect(clock: &Clock, ports: &Ports, options: &Options) -> Result<Rpc, Error> {
    let nfs = ports.nfs;
    if ports.protocol == Protocol::Udp {
        return match options.links == LinkPair::default() {
            true => datagrams(clock, nfs, options, Service::Nfs),
            false => Err(Error::Connect { service: Service::Nfs, cause: ConnectError::NoLink }),
        };
    }
    let pool = Pool::new(RECORD_BYTES_MAX);
    let failed = |cause| Error::Connect { service: Service::Nfs, cause };
    let tcp = tcp::connect(clock, nfs, options.connect_limit, &pool, RECORD_BYTES_MAX)
        .await
        .map_err(failed)?;
    if options.links == LinkPair::default() {
        return Ok(Rpc::start(tcp, clock, options.reply_limit, first_xid(clock)));
    }
    let shaped = Shaped::new(tcp, options.links, clock).map_err(|cause| {
        let cause = Arc::new(cause);
        failed(ConnectError::Unreachable { address: nfs, cause })
    })?;
    Ok(Rpc::start(shaped, clock, options.reply_limit, first_xid(clock)))
}

/// Calls over UDP, which connects nothing: whether anybody is there, the first call tells.
fn datagrams(
    clock: &Clock,
    server: SocketAddr,
    options: &Options,
    service: Service,
) -> Result<Rpc, Error> {
    let socket = Udp::connect(server).map_err(|cause| {
        let cause = ConnectError::Unreachable { address: server, cause: Arc::new(cause) };
        Error::Connect { service, cause }
    })?;
    Ok(Rpc::start_datagrams(socket, server, clock, options.reply_limit, first_xid(clock)))
}

/// Differs from connection to connection, so that a server's reply cache keeps them apart.
#[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
fn first_xid(clock: &Clock) -> u32 {
    let nanos = clock.since_1970().as_nanos();
    (nanos ^ (nanos >> 32)) as u32
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
}

struct Mounter<'a> {
    clock: &'a Clock,
    options: &'a Options,
}

impl Mounter<'_> {
    async fn ports(&self, target: &Target) -> Result<Ports, Error> {
        let nfs = match target.nfs_port {
            Some(port) => self.resolve(target, port, Service::Nfs).await?,
            None => self.ask_portmapper(target, Service::Nfs).await?,
        };
        let mount = match target.mount_port {
            Some(port) => self.resolve(target, port, Service::Mount).await?,
            None => self.ask_portmapper(target, Service::Mount).await?,
        };
        Ok(Ports { nfs, mount, protocol: target.protocol })
    }

    /// The first address of the host at which something listens on `port`.
    async fn resolve(
        &self,
        target: &Target,
        port: u16,
        service: Service,
    ) -> Result<SocketAddr, Error> {
        let limit = self.options.connect_limit;
        let addresses = tcp::resolve(self.clock, &target.host, port, limit)
            .await
            .map_err(|cause| Error::Connect { service, cause })?;
        // IPv4 first: a server that listens on one family only is nearly always one of those.
        let ipv4 = addresses.iter().find(|address| address.is_ipv4());
        ipv4.or_else(|| addresses.first()).copied().ok_or_else(|| Error::Connect {
            service,
            cause: ConnectError::Resolve {
                host: target.host.clone(),
                cause: "it has no address".to_owned(),
            },
        })
    }

    async fn ask_portmapper(&self, target: &Target, service: Service) -> Result<SocketAddr, Error> {
        let address = self.resolve(target, portmap::PORT, Service::Portmapper).await?;
        let (program, version) = match service {
            Service::Mount => (mount::PROGRAM, mount::VERSION),
            _ => (nfs3::PROGRAM, nfs3::VERSION),
        };
        let protocol = match target.protocol {
            Protocol::Tcp => PROTOCOL_TCP,
            Protocol::Udp => PROTOCOL_UDP,
        };
        let asked = Mapping { program, version, protocol, port: 0 };
        let step = Step {
            service: Service::Portmapper,
            protocol: target.protocol,
            address,
            program: portmap::PROGRAM,
            version: portmap::VERSION,
            procedure: portmap::Procedure::Getport.code(),
            name: "GETPORT",
        };
        let results = self.call(&step, &asked).await?;
        let Port { port } = step.decode(&results)?;
        match u16::try_from(port) {
            Ok(port) if port > 0 => Ok(SocketAddr::new(address.ip(), port)),
            _ => Err(Error::NotRegistered {
                host: target.host.clone(),
                service,
                protocol: target.protocol,
            }),
        }
    }

    /// MNT of the path or the longest part of it that is an export.
    async fn mnt<'t>(
        &self,
        server: SocketAddr,
        target: &'t Target,
    ) -> Result<(&'t [u8], FileHandle), Error> {
        let step = Step {
            service: Service::Mount,
            protocol: target.protocol,
            address: server,
            program: mount::PROGRAM,
            version: mount::VERSION,
            procedure: mount::Procedure::Mnt.code(),
            name: "MNT",
        };
        let mut path = target.path.as_slice();
        let mut first_refusal = None;
        loop {
            let results = self.call(&step, &DirPath { dirpath: path }).await?;
            let status = match step.decode::<MntReply>(&results)? {
                Ok(MntOk { fhandle, .. }) => return Ok((path, fhandle)),
                Err(status) => status,
            };
            let refusal = Error::Mount { path: target.path_text(), server, status };
            let refusal = first_refusal.get_or_insert(refusal);
            let inside = matches!(
                status,
                MountStat3::NoEnt | MountStat3::Acces | MountStat3::NotDir | MountStat3::Inval
            );
            match parent(path) {
                Some(shorter) if inside => path = shorter,
                _ => return Err(refusal.clone()),
            }
        }
    }

    async fn connection(&self, step: &Step) -> Result<Rpc, Error> {
        let pool = Pool::new(RECORD_BYTES_MAX);
        let limit = self.options.connect_limit;
        let tcp = tcp::connect(self.clock, step.address, limit, &pool, RECORD_BYTES_MAX)
            .await
            .map_err(|cause| Error::Connect { service: step.service, cause })?;
        Ok(Rpc::start(tcp, self.clock, self.options.reply_limit, first_xid(self.clock)))
    }

    /// One call over a connection of its own.
    async fn call(&self, step: &Step, args: &impl Encode) -> Result<Bytes, Error> {
        let rpc = match step.protocol {
            Protocol::Udp => datagrams(self.clock, step.address, self.options, step.service)?,
            Protocol::Tcp => self.connection(step).await?,
        };
        let target = call::Target {
            program: step.program,
            version: step.version,
            procedure: step.procedure,
        };
        let body = self.options.credential.encoded();
        let credential = OpaqueAuth::sys(&body);
        rpc.call(target, credential, |out| args.encode(out), Bytes::new())
            .await
            .map(|answer| answer.results())
            .map_err(|cause| step.failed(cause))
    }
}

/// A call to one of the helper services.
struct Step {
    service: Service,
    protocol: Protocol,
    address: SocketAddr,
    program: u32,
    version: u32,
    procedure: u32,
    name: &'static str,
}

impl Step {
    fn failed(&self, cause: CallError) -> Error {
        Error::Call { procedure: self.name, server: self.address, cause }
    }

    fn decode<'a, T: Decode<'a>>(&self, results: &'a [u8]) -> Result<T, Error> {
        from_bytes(results).map_err(|cause| self.failed(cause.into()))
    }
}

/// The path without its last component; `None` at the root.
fn parent(path: &[u8]) -> Option<&[u8]> {
    if path == b"/" {
        return None;
    }
    let slash = path.iter().rposition(|&byte| byte == b'/')?;
    Some(if slash == 0 { b"/" } else { &path[..slash] })
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NFS at {}, MOUNT at {}", self.nfs, self.mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shortened_until_the_root_is_left() {
        let mut path: &[u8] = b"/export/a/b";
        let mut tried = vec![path];
        while let Some(shorter) = parent(path) {
            tried.push(shorter);
            path = shorter;
        }
        assert_eq!(tried, [&b"/export/a/b"[..], b"/export/a", b"/export", b"/"]);
        assert_eq!(components(b"/a//b/").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
