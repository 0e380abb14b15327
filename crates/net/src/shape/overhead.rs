//! o: processor time for each message, spent by the endpoint.
//!
//! A link takes a message's time, and its endpoint does something else meanwhile. Overhead is the
//! opposite: the processor that does the endpoint's work is busy, and nothing else is done. So it
//! is spent here, by the task that drives the connection: spun in the real world, and in a world
//! queued for the host's processor. A message to send leaves when its time is spent, one by one; a
//! message received is passed up when its time is spent.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::record::Message;

use super::conditions::Overhead;
use crate::clock::{Alarm, Clock};
use crate::error::TransportError;
use crate::processor::Processor;
use crate::transport::Transport;
use crate::transport::datagram::{Datagram, Datagrams, Outgoing, Route, poll_send_due};
use crate::transport::layer::{Layer, poll_flush_due};

/// Messages that wait for a world's processor after they were received; more stay below.
const WAITING_MAX: usize = 1024;

/// Work in the order in which it was requested.
#[derive(Debug)]
struct Line<M> {
    processor: Processor,
    clock: Clock,
    span: Nanos,
    waiting: VecDeque<(Instant, M)>,
    /// In a world only: in the real one nothing is left to wait for.
    alarm: Option<Alarm>,
}

impl<M> Line<M> {
    fn new(processor: &Processor, clock: &Clock, span: Nanos) -> io::Result<Self> {
        let alarm = clock.is_virtual().then(|| clock.alarm()).transpose()?;
        let processor = processor.clone();
        Ok(Self { processor, clock: clock.clone(), span, waiting: VecDeque::new(), alarm })
    }

    /// Spends the time for a message; in the real world it is over when this returns.
    fn enter(&mut self, message: M) {
        let now = self.clock.now();
        let done = match self.span {
            Nanos::ZERO => now,
            span => self.processor.claim(now, span),
        };
        self.waiting.push_back((done, message));
    }

    /// The first message when its time is spent; `None` without any.
    fn poll_done(&mut self, cx: &mut Context<'_>) -> Poll<Option<M>> {
        let Some(&(done, _)) = self.waiting.front() else {
            return Poll::Ready(None);
        };
        if let Some(alarm) = &mut self.alarm {
            ready!(alarm.poll_at(cx, done));
        }
        Poll::Ready(self.waiting.pop_front().map(|(_, message)| message))
    }

    /// The message that was just entered, if its time is spent and none is before it.
    fn take_if_alone(&mut self) -> Option<M> {
        // Without an alarm there is nothing to wait for, and no time to look at a clock.
        let is_done = |done| self.alarm.is_none() || done <= self.clock.now();
        match self.waiting.front() {
            Some(&(done, _)) if self.waiting.len() == 1 && is_done(done) => {
                self.waiting.pop_front().map(|(_, message)| message)
            }
            _ => None,
        }
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }
}

/// A transport whose messages cost processor time; see the module's head.
#[derive(Debug)]
pub struct Busy<T> {
    inner: T,
    sending: Line<Message>,
    receiving: Line<Bytes>,
    /// Bytes of `sending`, with 4 for each mark.
    unsent_bytes: usize,
    ended: Option<Result<(), TransportError>>,
}

impl<T: Transport> Busy<T> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(
        inner: T,
        overhead: Overhead,
        processor: &Processor,
        clock: &Clock,
    ) -> io::Result<Self> {
        Ok(Self {
            inner,
            sending: Line::new(processor, clock, overhead.send)?,
            receiving: Line::new(processor, clock, overhead.receive)?,
            unsent_bytes: 0,
            ended: None,
        })
    }
}

impl<T: Transport> Layer for Busy<T> {
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
        // An answer to the last message goes out before the next costs its time. An error of
        // sending is reported to who sends.
        let _ = Layer::poll_flush(self, cx);
        loop {
            if let Poll::Ready(Some(message)) = self.receiving.poll_done(cx) {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.ended.is_some() || self.receiving.is_full() {
                break;
            }
            match self.inner.poll_receive(cx) {
                Poll::Ready(Ok(Some(message))) => self.receiving.enter(message),
                Poll::Ready(Ok(None)) => self.ended = Some(Ok(())),
                Poll::Ready(Err(error)) => self.ended = Some(Err(error)),
                Poll::Pending => break,
            }
        }
        match &self.ended {
            Some(end) if self.receiving.waiting.is_empty() => {
                Poll::Ready(end.clone().map(|()| None))
            }
            _ => Poll::Pending,
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        // What was sent leaves now, and not when the next message's time is spent as well.
        if let Poll::Ready(Err(error)) = Layer::poll_flush(self, cx) {
            return Poll::Ready(Err(error));
        }
        match self.sending.is_full() {
            true => Poll::Pending,
            false => self.inner.poll_ready(cx),
        }
    }

    fn send(&mut self, message: Message) {
        self.unsent_bytes += 4 + message.wire_len();
        self.sending.enter(message);
        if let Some(message) = self.sending.take_if_alone() {
            self.unsent_bytes -= 4 + message.wire_len();
            self.inner.send(message);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let Self { inner, sending, unsent_bytes, .. } = self;
        poll_flush_due(inner, cx, |cx| {
            let done = ready!(sending.poll_done(cx));
            *unsent_bytes -= done.as_ref().map_or(0, |message| 4 + message.wire_len());
            Poll::Ready(done)
        })
    }

    fn unsent_bytes(&self) -> usize {
        self.unsent_bytes + self.inner.unsent_bytes()
    }

    /// Of a message that waits for a world's processor it is known when it gets to the link, and
    /// no more.
    fn departs(&self) -> Option<Instant> {
        let done = self.sending.waiting.back().map(|&(done, _)| done);
        done.or_else(|| self.inner.departs())
    }

    /// As over a link.
    fn end_sending(&mut self) {}
}

/// A socket of datagrams whose messages cost processor time; see the module's head.
#[derive(Debug)]
pub struct BusyDatagrams<D> {
    inner: D,
    sending: Line<Outgoing>,
    receiving: Line<Datagram>,
    /// Its time is spent, and the socket does not take it yet.
    leaving: Option<Outgoing>,
}

impl<D: Datagrams> BusyDatagrams<D> {
    /// # Errors
    /// The system has no more timers to give.
    pub fn new(
        inner: D,
        overhead: Overhead,
        processor: &Processor,
        clock: &Clock,
    ) -> io::Result<Self> {
        Ok(Self {
            inner,
            sending: Line::new(processor, clock, overhead.send)?,
            receiving: Line::new(processor, clock, overhead.receive)?,
            leaving: None,
        })
    }

    fn push(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (Self { inner, leaving, sending, .. }, mut failed) = (self, None);
        ready!(poll_send_due(inner, cx, leaving, &mut failed, |cx| sending.poll_done(cx)));
        Poll::Ready(failed.map_or(Ok(()), Err))
    }
}

impl<D: Datagrams> Datagrams for BusyDatagrams<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        if let Poll::Ready(Err(cause)) = self.push(cx) {
            return Poll::Ready(Err(cause));
        }
        loop {
            if let Poll::Ready(Some(datagram)) = self.receiving.poll_done(cx) {
                return Poll::Ready(Ok(datagram));
            }
            if self.receiving.is_full() {
                return Poll::Pending;
            }
            self.receiving.enter(ready!(self.inner.poll_receive(cx))?);
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        if self.sending.is_full() {
            ready!(self.push(cx))?;
        }
        self.sending.enter(Outgoing { message: message.clone(), route: *route });
        match self.push(cx) {
            Poll::Ready(sent) => Poll::Ready(sent),
            // It is ours now.
            Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.push(cx))?;
        self.inner.poll_flush(cx)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
