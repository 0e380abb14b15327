//! A socket of datagrams behind links: one for each peer, in each direction.
//!
//! What is late, lost, repeated or damaged is decided by [`super::lane`]. Sending never waits: what
//! finds [`HELD_BYTES_MAX`](super::conditions::HELD_BYTES_MAX) on their way already is lost, and
//! counted by itself. The links of [`PEERS_MAX`] peers are remembered; of more, the one that was
//! silent longest starts anew, idle, so that nobody can make us remember without end.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::task::{Context, Poll};

use lru::LruCache;
use perf::units::Instant;
use wire::record::Message;

use super::controls::{Follower, Shape, Side};
use super::direction::{Damage, hold};
use super::held::Held;
use crate::clock::Clock;
use crate::transport::datagram::{Datagram, Datagrams, Outgoing, Route, poll_send_due};

/// Peers of one socket whose links are remembered.
const PEERS_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("above zero");

/// Datagrams taken from below in one go, before those that have arrived get their turn.
const BATCH_MAX: usize = 64;

/// A socket behind links; see the module's head.
#[derive(Debug)]
pub struct ShapedDatagrams<D> {
    inner: D,
    clock: Clock,
    shape: Shape,
    peers: LruCache<SocketAddr, Peer>,
    there: Held<Outgoing>,
    back: Held<Datagram>,
    /// What has arrived and the socket does not take yet.
    leaving: Option<Outgoing>,
    /// What became of a datagram that was sent later than it was given to us.
    failed: Option<io::Error>,
}

#[derive(Debug)]
struct Peer {
    there: Follower,
    back: Follower,
}

impl<D: Datagrams> ShapedDatagrams<D> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(inner: D, shape: impl Into<Shape>, clock: &Clock) -> io::Result<Self> {
        let shape = shape.into();
        Ok(Self {
            inner,
            clock: clock.clone(),
            peers: LruCache::new(PEERS_MAX),
            there: Held::new(clock, shape.tally(Side::There).clone())?,
            back: Held::new(clock, shape.tally(Side::Back).clone())?,
            leaving: None,
            failed: None,
            shape,
        })
    }

    fn peer(&mut self, address: SocketAddr) -> &mut Peer {
        let shape = &self.shape;
        self.peers.get_or_insert_mut(address, || Peer {
            there: shape.follower(Side::There),
            back: shape.follower(Side::Back),
        })
    }

    /// Takes what the socket has, and starts its way over the link.
    fn pull(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        for _ in 0..BATCH_MAX {
            match std::task::ready!(self.inner.poll_receive(cx)) {
                Ok(datagram) => self.admit(self.clock.now(), datagram),
                Err(cause) => return Poll::Ready(cause),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn admit(&mut self, now: Instant, datagram: Datagram) {
        let bytes = datagram.bytes.len() as u64;
        let shape = self.shape.clone();
        let fate = self.peer(datagram.route.peer).back.lane(&shape).datagram(now, bytes);
        hold(&mut self.back, fate, datagram, bytes);
    }

    /// Sends what is due; pending while something is on its way.
    fn push(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { inner, leaving, failed, there, .. } = self;
        poll_send_due(inner, cx, leaving, failed, |cx| there.poll_arrived(cx))
    }
}

impl<D: Datagrams> Datagrams for ShapedDatagrams<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        if let Poll::Ready(cause) = self.pull(cx) {
            self.failed = Some(cause);
        }
        // Whoever receives lets what is due be sent: nobody else may come by.
        let _ = self.push(cx);
        if let Poll::Ready(Some(datagram)) = self.back.poll_arrived(cx) {
            return Poll::Ready(Ok(datagram));
        }
        self.failed.take().map_or(Poll::Pending, |cause| Poll::Ready(Err(cause)))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        let (now, bytes) = (self.clock.now(), message.wire_len() as u64);
        let shape = self.shape.clone();
        let fate = self.peer(route.peer).there.lane(&shape).datagram(now, bytes);
        if fate.arrival.is_ok() {
            let outgoing = Outgoing { message: message.clone(), route: *route };
            hold(&mut self.there, fate, outgoing, bytes);
        } else {
            self.there.tally().decided(bytes, &fate);
        }
        if self.push(cx).is_ready()
            && let Some(cause) = self.failed.take()
        {
            return Poll::Ready(Err(cause));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.push(cx));
        match self.failed.take() {
            Some(cause) => Poll::Ready(Err(cause)),
            None => self.inner.poll_flush(cx),
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

impl Damage for Datagram {
    fn flip(&mut self, bit: u64) {
        self.bytes.flip(bit);
    }
}

impl Damage for Outgoing {
    fn flip(&mut self, bit: u64) {
        self.message.flip(bit);
    }
}
