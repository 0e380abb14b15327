//! A TCP connection from a privileged port, as root's mount has it.

use std::io::{self, IoSlice, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

/// Ports that root may take, from the top; a server may insist on one.
const PRIVILEGED: std::ops::RangeInclusive<u16> = 600..=1023;
/// A server that says nothing for so long is broken; the slowest call is a COMMIT.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Connects to a port of the loopback.
pub(crate) fn open(port: u16) -> Result<TcpStream, String> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    let failed = |error: io::Error| format!("no connection to {address}: {error}");
    let mut last = io::Error::other("no free port");
    for local in PRIVILEGED.rev() {
        let attempt = || {
            let fd = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            sockopt::set_socket_reuseaddr(&fd, true)?;
            bind(&fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, local))?;
            connect(&fd, &address)?;
            Ok::<_, io::Error>(TcpStream::from(fd))
        };
        match attempt() {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(failed)?;
                return Ok(stream);
            }
            // Taken, or the same pair of ports was used a moment ago: the next one.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
                ) =>
            {
                last = error;
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(last))
}

/// Writes a call and the payload behind it, without copying the payload.
pub(crate) fn write_with_payload(
    mut stream: &TcpStream,
    call: &[u8],
    payload: &[u8],
) -> io::Result<()> {
    let mut sent = 0;
    while sent < call.len() {
        sent += stream.write_vectored(&[IoSlice::new(&call[sent..]), IoSlice::new(payload)])?;
    }
    stream.write_all(&payload[sent - call.len()..])
}
