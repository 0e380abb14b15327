//! What can go wrong between two hosts, by whose fault it is.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use perf::units::Nanos;
use thiserror::Error;
use wire::record::RecordError;
use wire::rpc::AuthStat;
use wire::xdr::DecodeError;

/// A connection could not be made.
#[derive(Clone, Debug, Error)]
pub enum ConnectError {
    #[error("cannot resolve host name {host:?}: {cause}")]
    Resolve { host: String, cause: String },
    #[error("{address} refused the connection: no server listens on that port")]
    Refused { address: SocketAddr },
    #[error("no answer from {address} within {limit}")]
    TimedOut { address: SocketAddr, limit: Nanos },
    #[error("cannot reach {address}: {cause}")]
    Unreachable { address: SocketAddr, cause: Arc<io::Error> },
}

/// A connection broke, or carried what is no record.
#[derive(Clone, Debug, Error)]
pub enum TransportError {
    #[error("connection lost: {0}")]
    Io(Arc<io::Error>),
    #[error("the peer sent what is no RPC record: {0}")]
    Record(#[from] RecordError),
    #[error("the peer sent a record of more than {max} fragments")]
    TooManyFragments { max: u32 },
    #[error("the peer closed the connection in the middle of a record")]
    Truncated,
    #[error("the peer has sent no request in {limit}")]
    Idle { limit: Nanos },
    #[error("the peer has taken none of its replies in {limit}")]
    TakesNothing { limit: Nanos },
    #[error("the peer has not finished in {limit} a record that it had begun")]
    Unfinished { limit: Nanos },
}

impl TransportError {
    /// Whether the peer has reset the connection, as a process does that ends without closing it.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Io(cause) if cause.kind() == io::ErrorKind::ConnectionReset)
    }
}

impl From<io::Error> for TransportError {
    fn from(cause: io::Error) -> Self {
        Self::Io(Arc::new(cause))
    }
}

/// A call was sent, or should have been, and no usable reply came.
#[derive(Clone, Debug, Error)]
pub enum CallError {
    #[error("no reply within {limit}")]
    TimedOut { limit: Nanos },
    #[error("the server closed the connection")]
    Closed,
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Transport(#[from] TransportError),
    #[error("the reply is malformed: {0}")]
    Malformed(#[from] DecodeError),
    #[error("the peer answers calls with calls, as an echo service would: it is no RPC server")]
    Echo,
    #[error("the peer sent {count} replies in a row to calls that were never made")]
    Unsolicited { count: u32 },
    /// Of datagrams; where there are connections, they are refused.
    #[error("nothing listens on that port")]
    NobodyListens,
    #[error("a call of {got} bytes, and a datagram takes {max}")]
    TooLarge { got: usize, max: usize },
    #[error("the server refused the call: {0}")]
    Refused(Refusal),
}

/// The RPC layer of the server refused (RFC 5531 section 9).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    #[error("that program is not served there")]
    ProgramUnavailable,
    #[error("that program is served only in versions {low} to {high}")]
    ProgramMismatch { low: u32, high: u32 },
    #[error("procedure unavailable")]
    ProcedureUnavailable,
    #[error("it could not decode the arguments (GARBAGE_ARGS)")]
    GarbageArguments,
    #[error("system error")]
    System,
    #[error("RPC versions {low} to {high} only")]
    RpcMismatch { low: u32, high: u32 },
    #[error("authentication failed: {status:?}")]
    Authentication { status: AuthStat },
}
