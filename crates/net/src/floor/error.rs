//! Why the floor could not be measured.

use std::io;
use std::net::SocketAddr;

use perf::units::Nanos;
use thiserror::Error;

use crate::error::{CallError, ConnectError};

/// See the module's head.
#[derive(Debug, Error)]
pub enum FloorError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Of a server that is called, and no far end of ours.
    #[error(transparent)]
    NoServer(ConnectError),
    #[error("what listens at {address} says nothing within {limit}: it is no far end of ours")]
    Silent { address: SocketAddr, limit: Nanos },
    #[error("what listens at {address} is no far end of ours: it begins with {greeting:?}")]
    NotOurs { address: SocketAddr, greeting: String },
    #[error("{address} speaks version {theirs} of our stream protocol, and this program {ours}")]
    Version { address: SocketAddr, theirs: u32, ours: u32 },
    #[error("{address} is busy with somebody else's measurement")]
    Busy { address: SocketAddr },
    #[error("{address} does not take messages or runs of that size")]
    Refused { address: SocketAddr },
    #[error("{address} has gone in the middle: {cause}")]
    Gone { address: SocketAddr, cause: io::Error },
    #[error("no answer from {address} to {count} messages in a row, each within {limit}")]
    NoAnswer { address: SocketAddr, count: u32, limit: Nanos },
    #[error("nothing listens at UDP port {} of {}", .address.port(), .address.ip())]
    NobodyListens { address: SocketAddr },
    #[error("{address} knows of no spray program over UDP")]
    NotRegistered { address: SocketAddr },
    #[error("the server at {address}: {cause}")]
    Call { address: SocketAddr, cause: CallError },
    #[error("the system gives no socket, thread or timer: {0}")]
    System(io::Error),
    /// The caller requested it.
    #[error("stopped")]
    Stopped,
}

impl FloorError {
    /// An error of a socket that was connected to `address`.
    pub(super) fn of_socket(address: SocketAddr, cause: io::Error) -> Self {
        match cause.kind() {
            io::ErrorKind::ConnectionRefused => Self::NobodyListens { address },
            _ => Self::Gone { address, cause },
        }
    }
}
