//! Connections that are made: from a privileged port where one is free.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use perf::units::Nanos;
use tokio::net::{TcpSocket, TcpStream};

use super::Tcp;
use crate::clock::Clock;
use crate::error::ConnectError;
use crate::transport::buffer::Pool;

/// Behind the ports that only privileged processes have.
pub const PRIVILEGED_PORTS_END: u16 = 1024;

/// Privileged ports from which to call: above those of well-known services.
const PRIVILEGED_PORT_MIN: u16 = 665;
const PRIVILEGED_PORTS: u16 = PRIVILEGED_PORTS_END - PRIVILEGED_PORT_MIN;
const PRIVILEGED_ATTEMPTS: u16 = 40;

/// Connects within `limit`.
///
/// # Errors
/// [`ConnectError`] says whether nobody listens, nobody answers, or the way is closed.
pub async fn connect(
    clock: &Clock,
    address: SocketAddr,
    limit: Nanos,
    pool: &Pool,
    record_bytes_max: usize,
) -> Result<Tcp, ConnectError> {
    connected(clock, address, limit, dial(address), pool, record_bytes_max).await
}

/// The same from this port, or from another where it cannot be had: of a connection that has ended,
/// so that a server which knows calls by the port that they come from knows them again.
///
/// # Errors
/// As [`connect`].
pub async fn connect_from(
    clock: &Clock,
    port: u16,
    address: SocketAddr,
    limit: Nanos,
    pool: &Pool,
    record_bytes_max: usize,
) -> Result<Tcp, ConnectError> {
    let dial = async {
        match bound(port, address).await {
            Err(cause) if is_of_the_port(&cause) => dial(address).await,
            made => made,
        }
    };
    connected(clock, address, limit, dial, pool, record_bytes_max).await
}

/// The same from any port but a privileged one.
///
/// # Errors
/// As [`connect`].
pub async fn connect_unprivileged(
    clock: &Clock,
    address: SocketAddr,
    limit: Nanos,
    pool: &Pool,
    record_bytes_max: usize,
) -> Result<Tcp, ConnectError> {
    let dial = TcpStream::connect(address);
    connected(clock, address, limit, dial, pool, record_bytes_max).await
}

async fn connected(
    clock: &Clock,
    address: SocketAddr,
    limit: Nanos,
    dial: impl Future<Output = io::Result<TcpStream>>,
    pool: &Pool,
    record_bytes_max: usize,
) -> Result<Tcp, ConnectError> {
    let stream = clock
        .within(limit, std::pin::pin!(dial))
        .await
        .map_err(|_elapsed| ConnectError::TimedOut { address, limit })?
        .map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused { address },
            io::ErrorKind::TimedOut => ConnectError::TimedOut { address, limit },
            _ => ConnectError::Unreachable { address, cause: Arc::new(cause) },
        })?;
    Tcp::new(stream, pool, record_bytes_max)
        .map_err(|cause| ConnectError::Unreachable { address, cause: Arc::new(cause) })
}

/// From a privileged port where we may have one: many servers answer no other (`secure` in
/// exports(5), the default of Linux's). From any port otherwise.
async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    for port in privileged_ports() {
        match bound(port, address).await {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => break,
            Err(cause) if is_of_the_port(&cause) => {}
            made => return made,
        }
    }
    let socket = socket_to(address)?;
    // So that the next connection can have its port.
    socket.set_reuseaddr(true)?;
    socket.connect(address).await
}

/// Somebody has that port, had it for the same server a moment ago, or we may not have it.
fn is_of_the_port(cause: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    matches!(cause.kind(), AddrInUse | AddrNotAvailable | PermissionDenied)
}

/// Privileged ports to try in turn.
pub(in crate::transport) fn privileged_ports() -> impl Iterator<Item = u16> {
    static CONNECTIONS: AtomicU32 = AtomicU32::new(0);
    // Different processes begin at different ports, so that they seldom meet; and each connection
    // behind the one before, whose port may have to rest.
    let made = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let first = std::process::id().wrapping_add(made) % u32::from(PRIVILEGED_PORTS);
    let first = u16::try_from(first).unwrap_or(0);
    (0..PRIVILEGED_ATTEMPTS)
        .map(move |attempt| PRIVILEGED_PORT_MIN + (first + attempt) % PRIVILEGED_PORTS)
}

fn socket_to(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

/// A connection from this port.
async fn bound(port: u16, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket_to(address)?;
    let any = match address {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(any, port))?;
    socket.connect(address).await
}

/// Finds the addresses of a host name, or takes an address as it is.
///
/// # Errors
/// [`ConnectError::Resolve`], also when the resolver does not answer within `limit`.
pub async fn resolve(
    clock: &Clock,
    host: &str,
    port: u16,
    limit: Nanos,
) -> Result<Vec<SocketAddr>, ConnectError> {
    let failed = |cause: String| ConnectError::Resolve { host: host.to_owned(), cause };
    // A numeric IPv6 address may come in brackets, as in a URL.
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = clock
        .within(limit, tokio::net::lookup_host((bare, port)))
        .await
        .map_err(|elapsed| failed(elapsed.to_string()))?
        .map_err(|cause| failed(cause.to_string()))?;
    Ok(found.collect())
}
