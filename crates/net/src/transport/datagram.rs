//! Messages that come and go one by one, and may be lost.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use wire::record::Message;

/// Most bytes of a datagram over IPv4: 65,535 less the headers of IP and UDP.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

/// The two ends of a datagram, as its receiver sees them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    /// Who sent it.
    pub peer: SocketAddr,
    /// Which of our addresses it was sent to, if the system says so: a reply from another one is
    /// not taken by its client.
    pub local: Option<IpAddr>,
}

/// A message, and the way back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Datagram {
    pub bytes: Bytes,
    pub route: Route,
}

/// A message that is to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    pub(crate) route: Route,
}

/// Sends what is `due` through a socket, and what it did not take when it was; pending while there
/// is more of either. `failed` is the last error of one of them.
pub(crate) fn poll_send_due(
    socket: &mut impl Datagrams,
    cx: &mut Context<'_>,
    leaving: &mut Option<Outgoing>,
    failed: &mut Option<io::Error>,
    mut due: impl FnMut(&mut Context<'_>) -> Poll<Option<Outgoing>>,
) -> Poll<()> {
    loop {
        let next = match leaving.take() {
            Some(next) => next,
            None => match ready!(due(cx)) {
                Some(next) => next,
                None => return Poll::Ready(()),
            },
        };
        match socket.poll_send(cx, &next.message, &next.route) {
            Poll::Pending => {
                *leaving = Some(next);
                return Poll::Pending;
            }
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(cause)) => *failed = Some(cause),
        }
    }
}

/// A socket of datagrams. It has one owner, the task that drives it.
pub trait Datagrams: fmt::Debug + Send {
    /// The next datagram. An error may pass by itself: ask again.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>>;

    /// Sends a message back along a route.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>>;

    /// Sends what was taken and is due, where an emulated link keeps it; pending while there is
    /// more of it. Whoever receives need not ask.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// # Errors
    /// As the system says.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

impl<D: Datagrams + ?Sized> Datagrams for Box<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        (**self).poll_receive(cx)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        (**self).poll_send(cx, message, route)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_flush(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        (**self).local_addr()
    }
}
