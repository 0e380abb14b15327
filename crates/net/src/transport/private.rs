//! Connections between a client and a server of one process, which nobody else can take part in.
//!
//! They are TCP over the loopback, so that what is measured through them costs what a socket costs.
//! But no socket stays open for whoever comes. For each connection one listens for as long as the
//! connection takes to be made, and of what arrives only the connection from the very socket that
//! we have just made is taken: a pair of addresses and ports belongs to one connection. Whoever
//! else comes in that moment finds a closed connection. ADR 16 has the reasons.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use perf::units::Nanos;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::buffer::Pool;
use super::tcp::{Listener, Tcp};
use crate::clock::Clock;
use crate::error::ConnectError;

/// Connections that the server has not accepted yet; one more waits.
const WAITING_MAX: usize = 64;

/// Connections that the system holds while ours is made: others' may be among them.
const BACKLOG: u32 = 1024;

/// What stands for the server's address, which nobody can connect to.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The client's half: makes connections to the one server; clones share it.
#[derive(Clone, Debug)]
pub struct Dialer(mpsc::Sender<std::net::TcpStream>);

/// A server that can only be reached by the [`Dialer`], of any runtime of this process.
pub fn listener(record_bytes_max: usize) -> (Dialer, Listener) {
    let (made, accepted) = mpsc::channel(WAITING_MAX);
    (Dialer(made), Listener::private(accepted, record_bytes_max))
}

impl Dialer {
    /// Connects within `limit`.
    ///
    /// # Errors
    /// [`ConnectError`]: the server has ended, or the system gives no sockets.
    pub async fn connect(
        &self,
        clock: &Clock,
        limit: Nanos,
        pool: &Pool,
        record_bytes_max: usize,
    ) -> Result<Tcp, ConnectError> {
        let unreachable =
            |cause| ConnectError::Unreachable { address: ADDRESS, cause: Arc::new(cause) };
        let made = clock
            .within(limit, std::pin::pin!(self.make()))
            .await
            .map_err(|_elapsed| ConnectError::TimedOut { address: ADDRESS, limit })?;
        let stream = made.map_err(|cause| match cause.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused { address: ADDRESS },
            _ => unreachable(cause),
        })?;
        Tcp::new(stream, pool, record_bytes_max).map_err(unreachable)
    }

    async fn make(&self) -> io::Result<TcpStream> {
        let (ours, theirs) = pair().await?;
        // Of another runtime, which has to register it for itself.
        let theirs = theirs.into_std()?;
        let ended = |_| io::Error::from(io::ErrorKind::ConnectionRefused);
        self.0.send(theirs).await.map_err(ended)?;
        Ok(ours)
    }
}

/// Both ends of a connection.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(ADDRESS)?;
    let listener = socket.listen(BACKLOG)?;
    let ours = TcpStream::connect(listener.local_addr()?).await?;
    let theirs = accept_from(&listener, ours.local_addr()?).await?;
    Ok((ours, theirs))
}

/// The connection of this peer; others are closed.
async fn accept_from(listener: &TcpListener, peer: SocketAddr) -> io::Result<TcpStream> {
    loop {
        let (stream, from) = listener.accept().await?;
        if from == peer {
            return Ok(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use bytes::Bytes;
    use wire::record::Message;

    use super::*;
    use crate::transport::{RECORD_BYTES_MAX, Transport};

    const LIMIT: Nanos = Nanos::from_secs(10);

    #[test]
    fn messages_go_both_ways_between_runtimes() {
        let (dialer, listener) = listener(RECORD_BYTES_MAX);
        let echo = async move {
            let mut tcp = listener.accept().await.unwrap();
            let call = std::future::poll_fn(|cx| tcp.poll_receive(cx)).await.unwrap().unwrap();
            tcp.send(Message::new(call.to_vec()));
            std::future::poll_fn(|cx| tcp.poll_flush(cx)).await.unwrap();
            std::future::poll_fn(|cx| tcp.poll_receive(cx)).await.unwrap()
        };
        let server = std::thread::spawn(|| crate::runtime::block_on(echo).unwrap());
        crate::runtime::block_on(async {
            let pool = Pool::new(RECORD_BYTES_MAX);
            let clock = Clock::real();
            let mut tcp = dialer.connect(&clock, LIMIT, &pool, RECORD_BYTES_MAX).await.unwrap();
            tcp.send(Message::new(b"call".to_vec()));
            std::future::poll_fn(|cx| tcp.poll_flush(cx)).await.unwrap();
            let reply = std::future::poll_fn(|cx| tcp.poll_receive(cx)).await.unwrap();
            assert_eq!(reply, Some(Bytes::from_static(b"call")));
        })
        .unwrap();
        assert_eq!(server.join().unwrap(), None, "the end of the client's half is seen");
    }

    #[test]
    fn who_comes_first_but_is_another_is_closed_unread() {
        crate::runtime::block_on(async {
            let listener = TcpListener::bind(ADDRESS).await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut stranger = std::net::TcpStream::connect(address).unwrap();
            stranger.write_all(b"a call before anybody else's").unwrap();
            let ours = TcpStream::connect(address).await.unwrap();
            let own = ours.local_addr().unwrap();
            let theirs = accept_from(&listener, own).await.unwrap();
            assert_eq!(theirs.peer_addr().unwrap(), own);
            let end = stranger.read(&mut [0; 8]);
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        })
        .unwrap();
    }

    #[test]
    fn nothing_listens_once_a_connection_is_made() {
        crate::runtime::block_on(async {
            let (ours, theirs) = pair().await.unwrap();
            assert_eq!(ours.local_addr().unwrap(), theirs.peer_addr().unwrap());
            let again = std::net::TcpStream::connect(theirs.local_addr().unwrap());
            assert_eq!(again.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        })
        .unwrap();
    }

    #[test]
    fn a_server_that_has_ended_refuses() {
        let (dialer, listener) = listener(RECORD_BYTES_MAX);
        drop(listener);
        crate::runtime::block_on(async {
            let pool = Pool::new(RECORD_BYTES_MAX);
            let refused = dialer.connect(&Clock::real(), LIMIT, &pool, RECORD_BYTES_MAX).await;
            assert!(matches!(refused, Err(ConnectError::Refused { .. })), "{refused:?}");
        })
        .unwrap();
    }
}
