//! Connections that come.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

use super::{KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES, Tcp};
use crate::transport::buffer::Pool;
use crate::transport::{RECORD_BYTES_MAX, owner, private};

/// Listens for connections.
#[derive(Debug)]
pub struct Listener {
    inner: Source,
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
    async fn next(&self) -> io::Result<TcpStream> {
        match self {
            Self::Socket(socket) => Ok(socket.accept().await?.0),
            Self::Private(accepted) => match accepted.lock().await.recv().await {
                Some(stream) => TcpStream::from_std(stream),
                // Nobody is left who could connect.
                None => std::future::pending().await,
            },
        }
    }
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
        socket.bind(&address.into())?;
        socket.listen(1024)?;
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
        Self { inner, pool, record_bytes_max }
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
        let stream = self.inner.next().await?;
        self.adopt(stream)
    }

    /// The next connection if it comes from where it may; else none, and it is closed before a
    /// byte of it is read.
    ///
    /// # Errors
    /// As [`Listener::accept`].
    pub async fn accept_of(&self, may_come: impl Fn(IpAddr) -> bool) -> io::Result<Option<Tcp>> {
        let stream = self.inner.next().await?;
        match may_come(stream.peer_addr()?.ip().to_canonical()) {
            true => self.adopt(stream).map(Some),
            false => Ok(None),
        }
    }

    fn adopt(&self, stream: TcpStream) -> io::Result<Tcp> {
        // A client that has vanished must not keep its place for ever.
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_PROBES);
        let socket = socket2::SockRef::from(&stream);
        socket.set_tcp_keepalive(&keepalive)?;
        #[cfg(target_os = "linux")]
        socket
            .set_tcp_user_timeout(Some(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES))?;
        let mut tcp = Tcp::new(stream, &self.pool, self.record_bytes_max)?;
        // Now, and not with the first call: who sends and closes at once is not there any more.
        tcp.owner = tcp.local.and_then(|local| owner::of_peer(tcp.peer, local));
        Ok(tcp)
    }
}
