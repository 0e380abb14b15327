//! NULL of a target's NFS service, over one connection and without mounting anything.

use std::net::SocketAddr;

use bytes::Bytes;
use net::call::{Answer, Rpc, Target as Procedure};
use net::clock::Clock;
use wire::nfs3;
use wire::rpc::OpaqueAuth;

use super::{Options, Ports, connect, find_nfs};
use crate::error::Error;
use crate::url::Target;

/// A connection to the service.
#[derive(Clone, Debug)]
pub struct Null {
    rpc: Rpc,
    server: SocketAddr,
    procedure: Procedure,
}

impl Null {
    /// # Errors
    /// [`Error`], of the resolver, the portmapper or the connection.
    pub async fn connect(clock: &Clock, target: &Target, options: &Options) -> Result<Self, Error> {
        let server = find_nfs(clock, target, options).await?;
        let Target { protocol, version, .. } = *target;
        let ports = Ports { nfs: server, mount: server, protocol, version };
        let rpc = connect(clock, &ports, options).await?;
        // The program is the same in both versions.
        let procedure =
            Procedure { program: nfs3::PROGRAM, version: version.number(), procedure: 0 };
        Ok(Self { rpc, server, procedure })
    }

    /// # Errors
    /// No reply.
    pub async fn call(&self) -> Result<Answer, Error> {
        let called = self.rpc.call(self.procedure, OpaqueAuth::NONE, |_| {}, Bytes::new()).await;
        called.map_err(|cause| Error::Call { procedure: "NULL", server: self.server, cause })
    }
}
