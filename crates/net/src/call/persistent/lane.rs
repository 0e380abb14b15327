//! One of the connections of a persistent client: up, being made, or to be made later.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use perf::units::{Instant, Nanos};

use super::backoff::Backoff;
use crate::call::handed::Handed;
use crate::error::ConnectError;
use crate::transport::Transport;

/// A connection being made.
pub(in crate::call) type Connecting<T> =
    Pin<Box<dyn Future<Output = Result<T, ConnectError>> + Send>>;

/// How connections are made, given our end of the one before.
pub(in crate::call) type Connect<T> = Box<dyn Fn(Option<SocketAddr>) -> Connecting<T> + Send>;

/// See the module's head.
pub(super) struct Lane<T> {
    pub(super) state: State<T>,
    pub(super) backoff: Backoff,
    /// Calls whose last transmission went this way and that have no reply.
    pub(super) in_flight: usize,
    pub(super) handed: Handed,
    /// Calls to be retransmitted this way and no other, the earliest first; some may be gone.
    pub(super) again: VecDeque<u32>,
    /// Our end of the last connection: a server's reply cache may know calls by it.
    pub(super) local: Option<SocketAddr>,
    /// Replies in a row that no call waited for.
    pub(super) unsolicited: u32,
    /// When the last connection ended.
    pub(super) ended: Instant,
    /// When something last came.
    pub(super) heard: Instant,
    /// It was reported as broken.
    pub(super) is_reported: bool,
}

pub(super) enum State<T> {
    Up(T),
    Connecting(Connecting<T>),
    Down { until: Instant },
}

impl<T: Transport> Lane<T> {
    pub(super) fn new(transport: Option<T>, now: Instant) -> Self {
        Self {
            local: transport.as_ref().and_then(Transport::local),
            again: VecDeque::new(),
            state: transport.map_or(State::Down { until: now }, State::Up),
            backoff: Backoff::default(),
            in_flight: 0,
            handed: Handed::default(),
            unsolicited: 0,
            ended: now,
            heard: now,
            is_reported: false,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Up(_))
    }

    /// When it wants to be connected again, if it is down.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Down { until } => Some(until),
            _ => None,
        }
    }

    /// How long there has been no connection.
    pub(super) fn down_for(&self, now: Instant) -> Option<Nanos> {
        (!self.is_up()).then(|| now.since(self.ended))
    }

    /// Goes on with a connection that is being made. Ready when there is one, or none.
    pub(super) fn poll_connecting(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Result<(), ConnectError>> {
        let State::Connecting(connecting) = &mut self.state else {
            return Poll::Pending;
        };
        let transport = std::task::ready!(connecting.as_mut().poll(cx))?;
        self.local = transport.local().or(self.local);
        self.state = State::Up(transport);
        (self.in_flight, self.unsolicited, self.heard) = (0, 0, now);
        self.handed = Handed::default();
        Poll::Ready(Ok(()))
    }

    /// The connection is over, or there was none.
    pub(super) fn end(&mut self, now: Instant) {
        if let State::Up(transport) = &mut self.state {
            // The next one is made from the same port, which has to be free at once.
            transport.abort();
            self.ended = now;
        }
        self.state = State::Down { until: self.backoff.ended(now) };
        self.in_flight = 0;
        self.handed = Handed::default();
    }
}
