//! A connection behind a link.
//!
//! Nothing is lost or mixed up on a stream; what that costs in time is in [`super::lane`]. Where
//! the link's queue is full, or [`HELD_BYTES_MAX`](super::conditions::HELD_BYTES_MAX) are on their
//! way, the sender waits (as it would for its network card) and the receiving side stops reading
//! from the transport below. What is held goes with the connection, and when the peer resets it:
//! over an idle link a new connection of the peer would pass it.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use perf::units::Instant;
use wire::record::Message;

use super::controls::{Shape, Side};
use super::direction::Direction;
use crate::clock::Clock;
use crate::error::TransportError;
use crate::transport::Transport;
use crate::transport::layer::{Layer, poll_flush_due};

/// A transport behind a link; see the module's head.
#[derive(Debug)]
pub struct Shaped<T> {
    inner: T,
    clock: Clock,
    there: Direction<Message>,
    back: Direction<Bytes>,
    /// How the transport below ended; reported when all that came before it has been passed up.
    ended: Option<Result<(), TransportError>>,
}

impl<T: Transport> Shaped<T> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(inner: T, shape: impl Into<Shape>, clock: &Clock) -> io::Result<Self> {
        let shape = shape.into();
        Ok(Self {
            inner,
            clock: clock.clone(),
            there: Direction::new(&shape, Side::There, clock)?,
            back: Direction::new(&shape, Side::Back, clock)?,
            ended: None,
        })
    }

    /// Takes what the transport below has, and starts its way over the link.
    fn pull(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none()
            && !self.back.is_empty()
            && let Some(error) = self.inner.take_error()
        {
            self.back.lose();
            self.ended = Some(Err(error));
        }
        while self.ended.is_none() && self.back.poll_room(self.clock.now()).is_ready() {
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

impl<T: Transport> Layer for Shaped<T> {
    type Beneath = T;

    fn beneath(&self) -> &T {
        &self.inner
    }

    fn beneath_mut(&mut self) -> &mut T {
        &mut self.inner
    }

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
        if self.there.has_room(self.clock.now()) {
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(Err(error)) = Layer::poll_flush(self, cx) {
            return Poll::Ready(Err(error));
        }
        ready!(self.there.poll_room(self.clock.now()));
        Poll::Ready(Ok(()))
    }

    fn send(&mut self, message: Message) {
        let bytes = message.wire_len() as u64 + 4;
        self.there.admit(self.clock.now(), message, bytes);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        poll_flush_due(&mut self.inner, cx, |cx| self.there.poll_arrived(cx))
    }

    fn unsent_bytes(&self) -> usize {
        usize::try_from(self.there.held_bytes()).unwrap_or(usize::MAX) + self.inner.unsent_bytes()
    }

    fn departs(&self) -> Option<Instant> {
        self.there.departs()
    }

    fn is_fresh(&self) -> bool {
        true
    }

    /// A relay alone ends one direction, and its transports have no link.
    fn end_sending(&mut self) {}
}
