//! Single steps of mounting, each with its own limit, for who wants to know which one fails.

use std::net::SocketAddr;

use net::clock::Clock;
use wire::mount::{DirPath, ExportReply};
use wire::nfs3::FileHandle;
use wire::portmap::{Mapping, PROTOCOL_TCP, PROTOCOL_UDP, Port};
use wire::{mount, nfs3, portmap};

use super::services::{Mounter, Step, mount_version};
use super::{Options, Ports, connect};
use crate::error::{Error, Service};
use crate::session::Session;
use crate::url::{Protocol, Version};

/// How the steps are taken.
#[derive(Clone, Copy, Debug)]
pub struct Steps<'a> {
    pub clock: &'a Clock,
    pub options: &'a Options,
    pub protocol: Protocol,
}

/// One tree that a server exports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exported {
    pub path: String,
    /// To whom; to everybody, if to nobody in particular.
    pub groups: Vec<String>,
}

impl Steps<'_> {
    fn step(&self, service: Service, address: SocketAddr, call: (u32, u32, u32)) -> Step {
        let (program, version, procedure) = call;
        let protocol = self.protocol;
        Step { service, protocol, address, program, version, procedure, name: "NULL" }
    }

    fn mounter(&self) -> Mounter<'_> {
        Mounter { clock: self.clock, options: self.options }
    }

    /// NULL of NFS in any version, also those that nfskit does not speak.
    ///
    /// # Errors
    /// No connection, no reply, or not that version.
    pub async fn null_of_nfs(&self, address: SocketAddr, version: u32) -> Result<(), Error> {
        let step = self.step(Service::Nfs, address, (nfs3::PROGRAM, version, 0));
        self.mounter().call(&step, &()).await.map(drop)
    }

    /// NULL of MOUNT.
    ///
    /// # Errors
    /// The same.
    pub async fn null_of_mount(&self, address: SocketAddr, version: Version) -> Result<(), Error> {
        let call = (mount::PROGRAM, mount_version(version), 0);
        let step = self.step(Service::Mount, address, call);
        self.mounter().call(&step, &()).await.map(drop)
    }

    /// The port at which a service is registered with the portmapper at `address`; none if it is
    /// not.
    ///
    /// # Errors
    /// The portmapper does not answer.
    pub async fn registered(
        &self,
        address: SocketAddr,
        service: Service,
        version: Version,
    ) -> Result<Option<u16>, Error> {
        let procedure = portmap::Procedure::Getport.code();
        let call = (portmap::PROGRAM, portmap::VERSION, procedure);
        let step = Step { name: "GETPORT", ..self.step(Service::Portmapper, address, call) };
        let (program, version) = match service {
            Service::Mount => (mount::PROGRAM, mount_version(version)),
            _ => (nfs3::PROGRAM, version.number()),
        };
        let protocol = match self.protocol {
            Protocol::Tcp => PROTOCOL_TCP,
            Protocol::Udp => PROTOCOL_UDP,
        };
        let mapping = Mapping { program, version, protocol, port: 0 };
        let results = self.mounter().call(&step, &mapping).await?;
        let Port { port } = step.decode(&results)?;
        Ok(u16::try_from(port).ok().filter(|port| *port > 0))
    }

    /// A connection to NFS, on which nothing was called yet: it has no root.
    ///
    /// # Errors
    /// [`Error::Connect`].
    pub async fn session(&self, ports: &Ports) -> Result<Session, Error> {
        let rpc = connect(self.clock, ports, self.options).await?;
        Ok(Session::new(rpc, ports.nfs, &self.options.credential, ports.version))
    }

    /// What the server exports.
    ///
    /// # Errors
    /// MOUNT does not answer.
    pub async fn exports(
        &self,
        address: SocketAddr,
        version: Version,
    ) -> Result<Vec<Exported>, Error> {
        let call = (mount::PROGRAM, mount_version(version), mount::Procedure::Export.code());
        let step = Step { name: "EXPORT", ..self.step(Service::Mount, address, call) };
        let results = self.mounter().call(&step, &()).await?;
        let reply: ExportReply<'_> = step.decode(&results)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let each = reply.exports.0.iter().map(|export| Exported {
            path: text(export.dir),
            groups: export.groups.0.iter().map(|group| text(group.name)).collect(),
        });
        Ok(each.collect())
    }

    /// The handle of exactly this path.
    ///
    /// # Errors
    /// [`Error::Mount`] if it is refused; MOUNT does not answer.
    pub async fn mnt(
        &self,
        address: SocketAddr,
        version: Version,
        path: &[u8],
    ) -> Result<FileHandle, Error> {
        let call = (mount::PROGRAM, mount_version(version), mount::Procedure::Mnt.code());
        let step = Step { name: "MNT", ..self.step(Service::Mount, address, call) };
        let results = self.mounter().call(&step, &DirPath { dirpath: path }).await?;
        let path = String::from_utf8_lossy(path).into_owned();
        let refused = |status| Error::Mount { path, server: address, status };
        step.root(version, &results)?.map_err(refused)
    }
}
