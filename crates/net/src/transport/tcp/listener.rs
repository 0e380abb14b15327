//! Connections that come.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

use super::refused::Refused;
use super::{KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, Tcp};
use crate::transport::buffer::Pool;
use crate::transport::owner::Owners;
use crate::transport::{RECORD_BYTES_MAX, private};

/// Connections that wait to be accepted, as far as the system's own limit (net.core.somaxconn,
/// 4,096 by default) allows. One more is not refused: its client tries again after a second.
const BACKLOG: i32 = 4096;

/// Listens for connections.
#[derive(Debug)]
pub struct Listener {
    inner: Source,
    owners: Owners,
    pool: Pool,
    record_bytes_max: usize,
}

/// Where connections come from.
#[derive(Debug)]
enum Source {
    Socket(TcpListener),
    /// From a [`private::Dialer`]. Held by the one who waits for the next.
    Private(Mutex<mpsc::Receiver<std::net::TcpStream>>),
}

impl Source {
    /// With the options that [`prepare`] sets.
    async fn next(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Socket(socket) => {
                let (stream, peer) = socket.accept().await?;
                if !OPTIONS_ARE_INHERITED {
                    prepare(&socket2::SockRef::from(&stream))?;
                }
                Ok((stream, peer))
            }
            Self::Private(accepted) => match accepted.lock().await.recv().await {
                Some(stream) => {
                    prepare(&socket2::SockRef::from(&stream))?;
                    let stream = TcpStream::from_std(stream)?;
                    let peer = stream.peer_addr()?;
                    Ok((stream, peer))
                }
                // Nobody is left who could connect.
                None => std::future::pending().await,
            },
        }
    }
}

/// Whether what is accepted has the options of the socket that listens: six system calls less for
/// each connection.
const OPTIONS_ARE_INHERITED: bool = cfg!(target_os = "linux");

/// A client that has vanished must not keep its place for ever, and a reply waits for no other.
fn prepare(socket: &socket2::SockRef<'_>) -> io::Result<()> {
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES))?;
    socket.set_tcp_nodelay(true)
}

/// Whether a connection could not be had because something is short here, and the next would fare
/// no better at once; else its peer has gone already.
pub(crate) fn is_shortage(cause: &io::Error) -> bool {
    use rustix::io::Errno;
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    cause.raw_os_error().is_some_and(|code| short.iter().any(|errno| errno.raw_os_error() == code))
}

impl Listener {
    /// # Errors
    /// The address is taken, or not of this host, or needs a privilege.
    pub fn bind(address: SocketAddr, record_bytes_max: usize) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            // [::] takes clients of both families, whatever the host's default is.
            socket.set_only_v6(false)?;
        }
        socket.set_nonblocking(true)?;
        prepare(&socket2::SockRef::from(&socket))?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let inner = TcpListener::from_std(socket.into())?;
        Ok(Self::of(Source::Socket(inner), record_bytes_max))
    }

    pub(in crate::transport) fn private(
        accepted: mpsc::Receiver<std::net::TcpStream>,
        record_bytes_max: usize,
    ) -> Self {
        Self::of(Source::Private(Mutex::new(accepted)), record_bytes_max)
    }

    fn of(inner: Source, record_bytes_max: usize) -> Self {
        let pool = Pool::new(record_bytes_max.min(RECORD_BYTES_MAX));
        Self { inner, owners: Owners::new(), pool, record_bytes_max }
    }

    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.inner {
            Source::Socket(socket) => socket.local_addr(),
            Source::Private(_) => Ok(private::ADDRESS),
        }
    }

    /// Most bytes of a record.
    pub fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// The slabs that all connections of this listener share.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// # Errors
    /// Those of one connection and of a shortage of descriptors alike: go on after a pause.
    pub async fn accept(&self) -> io::Result<Tcp> {
        let (stream, peer) = self.inner.next().await?;
        Ok(self.adopt(stream, peer))
    }

    /// The next connection if it comes from where it may; else what there is to close of it.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub async fn accept_of(
        &self,
        may_come: impl Fn(IpAddr) -> bool,
    ) -> io::Result<Result<Tcp, Refused>> {
        let (stream, peer) = self.inner.next().await?;
        Ok(match may_come(peer.ip().to_canonical()) {
            true => Ok(self.adopt(stream, peer)),
            false => Err(Refused::new(stream, peer)),
        })
    }

    fn adopt(&self, stream: TcpStream, peer: SocketAddr) -> Tcp {
        let mut tcp = Tcp::of_prepared(stream, peer, &self.pool, self.record_bytes_max);
        // Now, and not with the first call: who sends and closes at once is not there any more.
        tcp.owner = tcp.local.and_then(|local| self.owners.of_peer(peer, local));
        tcp
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn what_is_accepted_has_the_options_that_watch_for_vanished_peers() {
        crate::runtime::block_on(async {
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
            let address = listener.local_addr().unwrap();
            let client = std::net::TcpStream::connect(address).unwrap();
            let accepted = listener.accept().await.unwrap();
            let socket = socket2::SockRef::from(&accepted.stream);
            assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE_IDLE);
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE_INTERVAL);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
            #[cfg(target_os = "linux")]
            assert!(socket.tcp_user_timeout().unwrap().is_some());
            assert_eq!(accepted.peer, client.local_addr().unwrap());
        })
        .unwrap();
    }
}
