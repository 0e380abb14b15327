//! What can go wrong on the way to a file, and where.

use std::net::SocketAddr;

use net::error::{CallError, ConnectError};
use thiserror::Error;
use wire::mount::MountStat3;
use wire::nfs3::NfsStat3;

use crate::url::Protocol;

/// An operation did not succeed; says what was tried and by whose fault it failed.
#[derive(Clone, Debug, Error)]
pub enum Error {
    #[error("{service}: {cause}")]
    Connect { service: Service, cause: ConnectError },
    /// The call got no usable reply.
    #[error("{procedure} to {server}: {cause}")]
    Call { procedure: &'static str, server: SocketAddr, cause: CallError },
    /// The server answered that it would or could not.
    #[error("{procedure} to {server}: {status}")]
    Status { procedure: &'static str, server: SocketAddr, status: NfsStat3 },
    #[error("mounting {path:?} from {server}: {status}")]
    Mount { path: String, server: SocketAddr, status: MountStat3 },
    #[error("the portmapper of {host} knows no {service} over {}", protocol.name().to_uppercase())]
    NotRegistered { host: String, service: Service, protocol: Protocol },
    /// The reply makes no sense, though it could be decoded.
    #[error("{procedure} to {server}: {what}")]
    Nonsense { procedure: &'static str, server: SocketAddr, what: &'static str },
}

/// The three services of an NFS v3 server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    Portmapper,
    Mount,
    Nfs,
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Portmapper => "portmapper",
            Self::Mount => "MOUNT service",
            Self::Nfs => "NFS service",
        })
    }
}

impl Error {
    /// The status, when the server gave one.
    pub fn status(&self) -> Option<NfsStat3> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}
