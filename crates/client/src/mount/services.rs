//! The services beside NFS: where things are, and what the root's handle is.

use std::net::SocketAddr;

use bytes::Bytes;
use net::call::{self, Rpc};
use net::clock::Clock;
use net::error::{CallError, ConnectError};
use net::transport::RECORD_BYTES_MAX;
use net::transport::buffer::Pool;
use net::transport::tcp;
use wire::mount::{DirPath, MntReply, MntReply1, MountStat3};
use wire::nfs3::FileHandle;
use wire::portmap::{Mapping, PROTOCOL_TCP, PROTOCOL_UDP, Port};
use wire::rpc::OpaqueAuth;
use wire::xdr::{Decode, Encode, from_bytes};
use wire::{mount, nfs3, portmap};

use super::connect::{datagrams, first_xid};
use super::{Options, Ports};
use crate::error::{Error, Service};
use crate::url::{Protocol, Target, Version};

pub(super) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
}

pub(super) struct Mounter<'a> {
    pub(super) clock: &'a Clock,
    pub(super) options: &'a Options,
}

impl Mounter<'_> {
    pub(super) async fn ports(&self, target: &Target) -> Result<Ports, Error> {
        let nfs = match target.nfs_port {
            Some(port) => self.resolve(target, port, Service::Nfs).await.map(Found::at)?,
            None => self.find(target, Service::Nfs, None, &[NFS_PORT]).await?,
        };
        let mount = match target.mount_port {
            Some(port) => self.resolve(target, port, Service::Mount).await.map(Found::at)?,
            None => {
                // What serves both programs on one port needs no portmapper.
                let usual = [nfs.address.port(), MOUNT_PORT];
                self.find(target, Service::Mount, nfs.no_portmapper, &usual).await?
            }
        };
        let (nfs, mount) = (nfs.address, mount.address);
        Ok(Ports { nfs, mount, protocol: target.protocol, version: target.version })
    }

    pub(super) async fn nfs(&self, target: &Target) -> Result<SocketAddr, Error> {
        match target.nfs_port {
            Some(port) => self.resolve(target, port, Service::Nfs).await,
            None => Ok(self.find(target, Service::Nfs, None, &[NFS_PORT]).await?.address),
        }
    }

    /// Asks the portmapper for a service, unless it is known why that is in vain; then the usual
    /// ports, one after the other, whether the service is there.
    async fn find(
        &self,
        target: &Target,
        service: Service,
        no_portmapper: Option<Error>,
        usual: &[u16],
    ) -> Result<Found, Error> {
        let result = match no_portmapper {
            Some(error) => Err(error),
            None => self.ask_portmapper(target, service).await,
        };
        let why = match result {
            Ok(address) => return Ok(Found::at(address)),
            // No port of this host can be called.
            Err(error @ Error::Connect { cause: ConnectError::Resolve { .. }, .. }) => {
                return Err(error);
            }
            Err(error) => error,
        };
        let mut tried = vec![why.clone()];
        for port in usual {
            let address = self.resolve(target, *port, service).await?;
            match self.null(target, service, address).await {
                Ok(()) => {
                    let is_gone = !matches!(why, Error::NotRegistered { .. });
                    return Ok(Found { address, no_portmapper: is_gone.then_some(why) });
                }
                Err(error) => tried.push(error),
            }
        }
        Err(Error::NotFound { host: target.host.clone(), service, tried })
    }

    /// Whether a service is at an address: its procedure that does nothing.
    async fn null(
        &self,
        target: &Target,
        service: Service,
        address: SocketAddr,
    ) -> Result<(), Error> {
        let (program, version) = program(target, service);
        let protocol = target.protocol;
        let step =
            Step { service, protocol, address, program, version, procedure: 0, name: "NULL" };
        self.call(&step, &()).await.map(|_| ())
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
        let (program, version) = program(target, service);
        let protocol = match target.protocol {
            Protocol::Tcp => PROTOCOL_TCP,
            Protocol::Udp => PROTOCOL_UDP,
        };
        let mapping = Mapping { program, version, protocol, port: 0 };
        let step = Step {
            service: Service::Portmapper,
            protocol: target.protocol,
            address,
            program: portmap::PROGRAM,
            version: portmap::VERSION,
            procedure: portmap::Procedure::Getport.code(),
            name: "GETPORT",
        };
        let results = self.call(&step, &mapping).await?;
        let Port { port } = step.decode(&results)?;
        match u16::try_from(port) {
            Ok(port) if port > 0 => Ok(SocketAddr::new(address.ip(), port)),
            _ => Err(Error::NotRegistered {
                host: target.host.clone(),
                service,
                version,
                protocol: target.protocol,
            }),
        }
    }

    /// MNT of the path or the longest part of it that is an export.
    pub(super) async fn mnt<'t>(
        &self,
        server: SocketAddr,
        target: &'t Target,
    ) -> Result<(&'t [u8], FileHandle), Error> {
        let step = Step {
            service: Service::Mount,
            protocol: target.protocol,
            address: server,
            program: mount::PROGRAM,
            version: mount_version(target.version),
            procedure: mount::Procedure::Mnt.code(),
            name: "MNT",
        };
        let mut path = target.path.as_slice();
        let mut first_refusal = None;
        loop {
            let results = self.call(&step, &DirPath { dirpath: path }).await?;
            let status = match step.root(target.version, &results)? {
                Ok(root) => return Ok((path, root)),
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
        let dialed = self.options.dial(self.clock, step.address, &pool).await;
        let tcp = dialed.map_err(|cause| Error::Connect { service: step.service, cause })?;
        Ok(Rpc::start(tcp, self.clock, self.options.reply_limit, first_xid(self.clock)))
    }

    /// One call over a connection of its own.
    pub(super) async fn call(&self, step: &Step, args: &impl Encode) -> Result<Bytes, Error> {
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

/// The port of NFS, where there is no portmapper to ask.
pub const NFS_PORT: u16 = 2049;

/// The port that IANA has registered for MOUNT.
pub const MOUNT_PORT: u16 = 20_048;

/// Where a service is.
struct Found {
    address: SocketAddr,
    /// Why the portmapper gave no answer: it need not be called a second time.
    no_portmapper: Option<Error>,
}

impl Found {
    fn at(address: SocketAddr) -> Self {
        Self { address, no_portmapper: None }
    }
}

/// The number and version by which a service of this target is called.
fn program(target: &Target, service: Service) -> (u32, u32) {
    match service {
        Service::Mount => (mount::PROGRAM, mount_version(target.version)),
        _ => (nfs3::PROGRAM, target.version.number()),
    }
}

/// The version of MOUNT whose handles are those of this version of NFS.
pub(super) fn mount_version(version: Version) -> u32 {
    match version {
        Version::Two => mount::VERSION_1,
        Version::Three => mount::VERSION,
    }
}

/// A call to one of the helper services.
pub(super) struct Step {
    pub(super) service: Service,
    pub(super) protocol: Protocol,
    pub(super) address: SocketAddr,
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) procedure: u32,
    pub(super) name: &'static str,
}

impl Step {
    fn failed(&self, cause: CallError) -> Error {
        Error::Call { procedure: self.name, server: self.address, cause }
    }

    pub(super) fn decode<'a, T: Decode<'a>>(&self, results: &'a [u8]) -> Result<T, Error> {
        from_bytes(results).map_err(|cause| self.failed(cause.into()))
    }

    /// What MNT says.
    pub(super) fn root(
        &self,
        version: Version,
        results: &[u8],
    ) -> Result<Result<FileHandle, MountStat3>, Error> {
        Ok(match version {
            Version::Three => self.decode::<MntReply>(results)?.map(|ok| ok.fhandle),
            Version::Two => self.decode::<MntReply1>(results)?.map(|ok| {
                let handle = FileHandle::new(ok.directory.as_bytes());
                handle.expect("32 bytes are fewer than 64")
            }),
        })
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
