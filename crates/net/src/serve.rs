//! The server half of RPC: connections, their limits and back-pressure.
//!
//! Each connection is one task. It reads calls, starts each one at once, and sends every reply as
//! soon as it is there, in whatever order that is. A small call that needs no waiting is answered
//! before the next is looked at, and the replies of one batch of calls leave in one write. A large
//! call gets a task of its own, so that another processor can copy its data to the page cache
//! while this one receives the next.
//!
//! Over a limit we stop reading the socket, and TCP makes the client wait: that is the
//! back-pressure. Memory for calls is bounded by `bytes_in_flight_max` plus one record for each
//! connection, where small calls that wait may each keep the 64 KiB slab that they came in; memory
//! for replies, on each connection, by [`REPLY_BYTES_MAX`] plus what the
//! transport queues: a client that asks for much and reads nothing gets no further.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream};
use perf::units::Nanos;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use wire::record::Message;

use crate::clock::Clock;
use crate::error::TransportError;
use crate::shape::{LinkPair, Shaped};
use crate::transport::Transport;
use crate::transport::tcp::Listener;

/// What connections may hold, each and together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at once; one more is closed at once.
    pub connections_max: usize,
    /// Calls of one connection in progress.
    pub calls_per_connection_max: usize,
    /// Bytes of all calls in progress.
    pub bytes_in_flight_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections_max: 4096, calls_per_connection_max: 1024, bytes_in_flight_max: 1 << 30 }
    }
}

/// Answers calls: one record in, one reply out, or none where the record was no call, which ends
/// the connection.
pub trait Service: Clone + Send + 'static {
    fn call(
        &self,
        peer: SocketAddr,
        record: Bytes,
    ) -> impl Future<Output = Option<Message>> + Send + 'static;

    /// Most bytes that the reply to a call may have, as far as that is worth knowing: a few
    /// hundred are not.
    fn reply_bytes_max(&self, _record: &[u8]) -> usize {
        0
    }
}

/// Bytes of replies that the calls in progress on one connection may come to, less the last
/// call's.
pub const REPLY_BYTES_MAX: usize = 64 << 20;

impl<F, Fut> Service for F
where
    F: Fn(SocketAddr, Bytes) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Option<Message>> + Send + 'static,
{
    fn call(
        &self,
        peer: SocketAddr,
        record: Bytes,
    ) -> impl Future<Output = Option<Message>> + Send + 'static {
        self(peer, record)
    }
}

/// The bytes that all connections of a server share; clones share them.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// One permit is [`PERMIT_BYTES`].
    permits: Arc<Semaphore>,
    permits_max: u32,
}

const PERMIT_BYTES: usize = 1024;

impl InFlight {
    pub fn new(limits: &Limits) -> Self {
        let permits = (limits.bytes_in_flight_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        let permits_max = u32::try_from(permits).unwrap_or(u32::MAX);
        Self { permits: Arc::new(Semaphore::new(permits_max as usize)), permits_max }
    }

    fn permits_for(&self, bytes: usize) -> u32 {
        // A record larger than all there is must still pass, alone.
        u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(self.permits_max)
    }
}

/// Accepts and serves until dropped.
///
/// # Errors
/// None while it runs: what goes wrong with one connection ends that connection.
pub async fn listen(
    listener: Listener,
    clock: Clock,
    limits: Limits,
    links: LinkPair,
    service: impl Service + Sync,
) -> io::Result<()> {
    let in_flight = InFlight::new(&limits);
    let places = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
    loop {
        let Ok(tcp) = listener.accept().await else {
            // Out of descriptors, or the peer has gone already: the next may do better.
            clock.sleep(Nanos::from_millis(10)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (service, in_flight, calls, own) =
            (service.clone(), in_flight.clone(), limits.calls_per_connection_max, clock.clone());
        if links == LinkPair::default() {
            clock.spawn(async move {
                connection(tcp, &own, service, in_flight, calls).await.ok();
                drop(place);
            });
        } else {
            // Out of descriptors for timers: that ends this connection alone.
            let Ok(shaped) = Shaped::new(tcp, links, &clock) else {
                continue;
            };
            clock.spawn(async move {
                connection(shaped, &own, service, in_flight, calls).await.ok();
                drop(place);
            });
        }
    }
}

/// Serves one connection until it ends. When it breaks, small calls in progress are dropped at
/// their next await point, for their client is gone; large ones run to their end.
///
/// # Errors
/// The connection broke, or carried what is no record.
pub async fn connection(
    mut transport: impl Transport,
    clock: &Clock,
    service: impl Service,
    in_flight: InFlight,
    calls_max: usize,
) -> Result<(), TransportError> {
    let mut state = Connection {
        clock: clock.clone(),
        peer: transport.peer(),
        service,
        in_flight,
        calls_max,
        calls: FuturesUnordered::new(),
        reply_bytes: 0,
        waiting: None,
        garbled: false,
    };
    std::future::poll_fn(|cx| state.poll(&mut transport, cx)).await
}

/// A call in progress; gives the reply, and the bytes that were kept free for it.
type Reply = Pin<Box<dyn Future<Output = (Option<Message>, usize)> + Send>>;

struct Connection<S> {
    clock: Clock,
    peer: SocketAddr,
    service: S,
    in_flight: InFlight,
    calls_max: usize,
    calls: FuturesUnordered<Reply>,
    /// What is kept free for the replies to `calls`.
    reply_bytes: usize,
    /// A call that has been read and waits for bytes in flight.
    waiting: Option<(Bytes, Acquire)>,
    /// Something came that was no call.
    garbled: bool,
}

type Acquire =
    Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, tokio::sync::AcquireError>> + Send>>;

/// Calls of this size and more get a task of their own: copying so much takes several times as
/// long as waking another processor.
const OWN_TASK_BYTES: usize = 128 << 10;

/// Calls started per wake-up before replies are sent and other connections get their turn.
const BATCH_MAX: usize = 64;

impl<S: Service> Connection<S> {
    fn poll(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        // Replies first: they free what new calls need.
        while let Poll::Ready(Some((reply, bytes))) = Pin::new(&mut self.calls).poll_next(cx) {
            self.reply_bytes -= bytes;
            self.answer(transport, reply);
        }
        let mut ended = self.garbled.then_some(Ok(()));
        for started in 0.. {
            if started == BATCH_MAX {
                cx.waker().wake_by_ref();
                break;
            }
            let full = self.calls.len() >= self.calls_max || self.reply_bytes >= REPLY_BYTES_MAX;
            if ended.is_some() || full || transport.poll_ready(cx)?.is_pending() {
                break;
            }
            match self.poll_next_call(transport, cx) {
                Poll::Ready(Ok(Some((record, permit)))) => {
                    self.start(transport, cx, record, permit);
                    ended = self.garbled.then_some(Ok(()));
                }
                Poll::Ready(end) => {
                    ended = Some(end.map(|_| ()));
                    break;
                }
                Poll::Pending => break,
            }
        }
        let flushed = transport.poll_flush(cx)?;
        match ended {
            // What was asked before the end is still answered.
            Some(Ok(())) if !self.calls.is_empty() || flushed.is_pending() => Poll::Pending,
            Some(end) => Poll::Ready(end),
            None => Poll::Pending,
        }
    }

    /// Sends a reply. A record that deserves none was no call: what follows it on the stream is
    /// not to be trusted, so the connection ends when all earlier calls have been answered.
    fn answer(&mut self, transport: &mut impl Transport, reply: Option<Message>) {
        match reply {
            Some(reply) => transport.send(reply),
            None => self.garbled = true,
        }
    }

    /// The next call, with the bytes that it takes.
    fn poll_next_call(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<(Bytes, OwnedSemaphorePermit)>, TransportError>> {
        if self.waiting.is_none() {
            let Some(record) = std::task::ready!(transport.poll_receive(cx))? else {
                return Poll::Ready(Ok(None));
            };
            let count = self.in_flight.permits_for(record.len());
            let permits = Arc::clone(&self.in_flight.permits);
            if let Ok(permit) = Arc::clone(&permits).try_acquire_many_owned(count) {
                return Poll::Ready(Ok(Some((record, permit))));
            }
            self.waiting = Some((record, Box::pin(permits.acquire_many_owned(count))));
        }
        let Some((_, acquire)) = &mut self.waiting else {
            return Poll::Pending;
        };
        let acquired = std::task::ready!(acquire.as_mut().poll(cx));
        let record = self.waiting.take().map(|(record, _)| record);
        // The semaphore is never closed; were it, the connection would end.
        Poll::Ready(Ok(record.zip(acquired.ok())))
    }

    fn start(
        &mut self,
        transport: &mut impl Transport,
        cx: &mut Context<'_>,
        record: Bytes,
        permit: OwnedSemaphorePermit,
    ) {
        let large = record.len() >= OWN_TASK_BYTES;
        let reply_bytes = self.service.reply_bytes_max(&record);
        let call = self.service.call(self.peer, record);
        let call = async move {
            let reply = call.await;
            drop(permit);
            (reply, reply_bytes)
        };
        let mut call: Reply = if large {
            let (answer, answered) = oneshot::channel();
            self.clock.spawn(async move {
                answer.send(call.await).ok();
            });
            Box::pin(async move { answered.await.unwrap_or((None, reply_bytes)) })
        } else {
            Box::pin(call)
        };
        match call.as_mut().poll(cx) {
            Poll::Ready((reply, _)) => self.answer(transport, reply),
            // Pushed futures are polled again by the set, with its own waker.
            Poll::Pending => {
                self.reply_bytes += reply_bytes;
                self.calls.push(call);
            }
        }
    }
}
