//! A link with latency L, gap g and Gap per byte G around any transport.
//!
//! A message to send waits here until the link would have delivered it, then goes to the transport
//! below; a message from below waits here in the same way before it is handed up. So either end
//! may be wrapped, and the other need not know. When each message arrives is decided by
//! [`perf::model::loggp`], the type that also predicts.
//!
//! The link adds its delays to those of the transport below, which it cannot remove: what a
//! loopback connection costs by itself is measured, not hidden. Bytes are those of the RPC record
//! with its mark; Ethernet and TCP/IP framing are not added.
//!
//! Each direction holds at most [`HELD_BYTES_MAX`]; beyond that the sender waits (as it would for
//! its network card) and the receiving side stops reading from the transport below.

pub mod profile;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::model::loggp::{Link, Occupancy};
use perf::units::Instant;
use wire::record::Message;

use crate::clock::{Alarm, Clock};
use crate::error::TransportError;
use crate::transport::Transport;

/// Bytes held back in one direction: 100 ms of 10 Gbit/s.
pub const HELD_BYTES_MAX: u64 = 128 << 20;

/// Both directions of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkPair {
    /// From the wrapped end to its peer.
    pub there: Link,
    pub back: Link,
}

impl LinkPair {
    pub fn symmetric(link: Link) -> Self {
        Self { there: link, back: link }
    }
}

/// A transport behind a link; see the module's head.
#[derive(Debug)]
pub struct Shaped<T> {
    inner: T,
    clock: Clock,
    there: Direction<Message>,
    back: Direction<Bytes>,
    /// How the transport below ended; told when all that came before it has been handed up.
    ended: Option<Result<(), TransportError>>,
}

#[derive(Debug)]
struct Direction<M> {
    link: Link,
    occupancy: Occupancy,
    held: VecDeque<(Instant, M, u64)>,
    held_bytes: u64,
    /// When the last byte of what was last admitted leaves.
    departs: Option<Instant>,
    alarm: Alarm,
}

impl<M> Direction<M> {
    fn new(link: Link, clock: &Clock) -> io::Result<Self> {
        Ok(Self {
            link,
            occupancy: Occupancy::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            departs: None,
            alarm: clock.alarm()?,
        })
    }

    fn admit(&mut self, now: Instant, message: M, bytes: u64) {
        let passage = self.occupancy.admit(&self.link, now, bytes);
        self.held.push_back((passage.arrives, message, bytes));
        self.held_bytes += bytes;
        self.departs = Some(passage.departs);
    }

    /// The next message, when it has arrived.
    fn poll_arrived(&mut self, cx: &mut Context<'_>) -> Poll<Option<M>> {
        let Some(&(arrives, ..)) = self.held.front() else {
            return Poll::Ready(None);
        };
        std::task::ready!(self.alarm.poll_at(cx, arrives));
        let (_, message, bytes) = self.held.pop_front().expect("the front was seen above");
        self.held_bytes -= bytes;
        Poll::Ready(Some(message))
    }

    fn is_full(&self) -> bool {
        self.held_bytes >= HELD_BYTES_MAX
    }
}

impl<T: Transport> Shaped<T> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(inner: T, links: LinkPair, clock: &Clock) -> io::Result<Self> {
        Ok(Self {
            inner,
            clock: clock.clone(),
            there: Direction::new(links.there, clock)?,
            back: Direction::new(links.back, clock)?,
            ended: None,
        })
    }

    /// Takes what the transport below has, and starts its way over the link.
    fn pull(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() && !self.back.is_full() {
            match self.inner.poll_receive(cx) {
                Poll::Ready(Ok(Some(message))) => {
                    let bytes = message.len() as u64 + 4;
                    self.back.admit(self.clock.now(), message, bytes);
                }
                Poll::Ready(Ok(None)) => self.ended = Some(Ok(())),
                Poll::Ready(Err(error)) => self.ended = Some(Err(error)),
                Poll::Pending => break,
            }
        }
    }
}

impl<T: Transport> Transport for Shaped<T> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        self.pull(cx);
        match self.back.poll_arrived(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(message)) => Poll::Ready(Ok(Some(message))),
            Poll::Ready(None) => match &self.ended {
                None => Poll::Pending,
                Some(Ok(())) => Poll::Ready(Ok(None)),
                Some(Err(error)) => Poll::Ready(Err(error.clone())),
            },
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if self.there.is_full() {
            match self.poll_flush(cx) {
                Poll::Pending if self.there.is_full() => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                _ => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    fn send(&mut self, message: Message) {
        let bytes = message.wire_len() as u64 + 4;
        self.there.admit(self.clock.now(), message, bytes);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        loop {
            std::task::ready!(self.inner.poll_ready(cx))?;
            match self.there.poll_arrived(cx) {
                Poll::Ready(Some(message)) => self.inner.send(message),
                Poll::Ready(None) => return self.inner.poll_flush(cx),
                Poll::Pending => {
                    // What has arrived must not wait for what has not.
                    if let Poll::Ready(Err(error)) = self.inner.poll_flush(cx) {
                        return Poll::Ready(Err(error));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn local(&self) -> Option<SocketAddr> {
        self.inner.local()
    }

    fn unsent_bytes(&self) -> usize {
        usize::try_from(self.there.held_bytes).unwrap_or(usize::MAX) + self.inner.unsent_bytes()
    }

    fn departs(&self) -> Option<Instant> {
        self.there.departs
    }

    fn kept_bytes(&self, message_bytes: usize) -> usize {
        self.inner.kept_bytes(message_bytes)
    }

    fn is_within_record(&self) -> bool {
        self.inner.is_within_record()
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_close(cx)
    }
}
