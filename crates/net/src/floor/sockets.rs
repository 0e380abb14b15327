//! Blocking sockets for one peer.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use perf::units::{Instant, Nanos};

use super::error::FloorError;
use super::lines::{duration, is_passing};
use crate::clock::Clock;
use crate::error::ConnectError;
use crate::transport::udp;

/// Times that a full queue of the system is tried again before a datagram counts as refused.
const SEND_ATTEMPTS: u32 = 1_000;

/// Receives until `is_it` knows what came: when that was and how long it is, or `None` at `until`.
pub(super) fn receive(
    clock: &Clock,
    socket: &UdpSocket,
    buffer: &mut [u8],
    until: Instant,
    is_it: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<(Instant, usize)>> {
    loop {
        match socket.recv(buffer) {
            Ok(count) if is_it(&buffer[..count]) => return Ok(Some((clock.now(), count))),
            Ok(_) => {}
            Err(cause) if is_passing(&cause) => {}
            Err(cause) => return Err(cause),
        }
        if clock.now() >= until {
            return Ok(None);
        }
    }
}

/// A connection within `limit`.
///
/// # Errors
/// [`FloorError::Connect`].
pub(super) fn dial(address: SocketAddr, limit: Nanos) -> Result<TcpStream, FloorError> {
    let connected = TcpStream::connect_timeout(&address, duration(limit));
    let stream = connected.map_err(|cause| match cause.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused { address },
        io::ErrorKind::TimedOut => ConnectError::TimedOut { address, limit },
        _ => ConnectError::Unreachable { address, cause: Arc::new(cause) },
    })?;
    stream.set_nodelay(true).map_err(FloorError::System)?;
    Ok(stream)
}

/// A socket for one peer, whose reads give up now and then so that limits can be looked at.
pub(super) fn connected(address: SocketAddr) -> Result<UdpSocket, FloorError> {
    /// A tenth of the shortest limit that makes sense.
    const LOOK: Nanos = Nanos::from_millis(20);
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let made = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(address)?;
        socket.set_read_timeout(Some(duration(LOOK)))?;
        udp::enlarge(&socket);
        Ok(socket)
    });
    made.map_err(|cause| ConnectError::Unreachable { address, cause: Arc::new(cause) }.into())
}

/// Sends a datagram; false when the system has no room for it for long.
pub(super) fn send(socket: &UdpSocket, message: &[u8]) -> io::Result<bool> {
    for _ in 0..SEND_ATTEMPTS {
        match socket.send(message) {
            Ok(_) => return Ok(true),
            // ENOBUFS has no kind of its own.
            Err(cause) if is_passing(&cause) || is_full(&cause) => std::thread::yield_now(),
            Err(cause) => return Err(cause),
        }
    }
    Ok(false)
}

fn is_full(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error())
}

/// Pseudo-random bytes, the same each time, in which nothing finds a pattern.
pub fn pattern(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pattern = Vec::with_capacity(bytes + 8);
    while pattern.len() < bytes {
        // xorshift64 (Marsaglia 2003)
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        pattern.extend_from_slice(&state.to_le_bytes());
    }
    pattern.truncate(bytes);
    pattern
}
