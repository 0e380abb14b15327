//! Requested against measured, over a socket.
//!
//! One thread sends messages of 128 bytes through a [`Shaped`] TCP connection over loopback at a
//! set rate, another takes them. What is measured is the delay that the link adds: from when a
//! message is given to the link to when it is given to the socket, with everything that the
//! sending thread has to do beside, the writes included. A bare connection adds nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use wire::record::Message;

use crate::clock::Clock;
use crate::error::TransportError;
use crate::runtime::{self, Background};
use crate::shape::{LinkPair, Shaped};
use crate::transport::buffer::Pool;
use crate::transport::{RECORD_BYTES_MAX, Transport, private, tcp};

/// The latencies and rates that are worth a table.
pub const LATENCIES: [Nanos; 7] = [
    Nanos::from_micros(10),
    Nanos::from_micros(50),
    Nanos::from_micros(100),
    Nanos::from_micros(500),
    Nanos::from_millis(1),
    Nanos::from_millis(5),
    Nanos::from_millis(40),
];
pub const RATES: [u64; 4] = [1_000, 10_000, 50_000, 100_000];

/// How long each is tried, beside its latency.
const TRIED_FOR: Nanos = Nanos::from_millis(500);

/// Of what the sender waits at most for a connection.
const CONNECT_LIMIT: Nanos = Nanos::from_secs(5);

const MESSAGE_BYTES: usize = 128;

/// One latency at one rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    pub requested: Nanos,
    pub messages_per_sec: u64,
    /// The delay as it was.
    pub median: Nanos,
    pub p99: Nanos,
    pub messages: usize,
    /// Messages per second that were really sent.
    pub sent_per_sec: u64,
}

impl Cell {
    /// How wrong the delay was at the median.
    pub fn error(&self) -> Nanos {
        self.median.saturating_sub(self.requested)
    }
}

/// Tries one latency at one rate, on threads of its own; takes its time.
///
/// # Errors
/// The system gives no socket, timers or threads.
pub fn sweep(latency: Nanos, messages_per_sec: u64) -> io::Result<Cell> {
    let (dialer, listener) = private::listener(RECORD_BYTES_MAX);
    let (_receiver, ()) = Background::start(1, || async { take(listener) })?;
    runtime::block_on(async {
        let clock = Clock::real();
        let pool = Pool::new(RECORD_BYTES_MAX);
        let tcp = dialer.connect(&clock, CONNECT_LIMIT, &pool, RECORD_BYTES_MAX);
        let given = Given { clock: clock.clone(), times: Arc::default() };
        let tcp = Stamped { inner: tcp.await.map_err(io::Error::other)?, given: given.clone() };
        let link = Link { latency, ..Link::default() };
        let link = Shaped::new(tcp, LinkPair::symmetric(link), &clock)?;
        let per_sec = u128::from(messages_per_sec);
        let messages = u128::from(TRIED_FOR.as_nanos()) * per_sec / 1_000_000_000;
        let messages = usize::try_from(messages).unwrap_or(usize::MAX).max(100);
        let begun = clock.now();
        let sent = send(&clock, link, messages, messages_per_sec).await?;
        let took = sent.last().map_or(Nanos::ZERO, |last| last.since(begun));
        let times = given.times.lock();
        let mut delays: Vec<Nanos> =
            times.iter().zip(&sent).map(|(left, given)| left.since(*given)).collect();
        delays.sort_unstable();
        let at = |share: usize| delays.get(delays.len() * share / 100).copied().unwrap_or_default();
        let sent_per_sec = messages as f64 / took.as_secs_f64().max(1e-9);
        Ok(Cell {
            requested: latency,
            messages_per_sec,
            median: at(50),
            p99: at(99),
            messages: delays.len(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates; a rate is positive"
            )]
            sent_per_sec: sent_per_sec as u64,
        })
    })?
}

/// Takes whatever comes on one connection.
fn take(listener: tcp::Listener) {
    Clock::real().spawn(async move {
        if let Ok(mut tcp) = listener.accept().await {
            while let Ok(Some(_)) = std::future::poll_fn(|cx| tcp.poll_receive(cx)).await {}
        }
    });
}

/// Sends at set times; says when each was given to the link.
async fn send(
    clock: &Clock,
    mut link: impl Transport,
    messages: usize,
    messages_per_sec: u64,
) -> io::Result<Vec<Instant>> {
    let apart = Nanos::from_nanos(1_000_000_000 / messages_per_sec.max(1));
    let mut pace = clock.alarm()?;
    let mut sent = Vec::with_capacity(messages);
    let mut next = clock.now();
    let ended = std::future::poll_fn(|cx| {
        loop {
            let flushed = link.poll_flush(cx)?;
            if sent.len() == messages {
                return flushed.map(Ok);
            }
            if pace.poll_at(cx, next).is_pending() || link.poll_ready(cx)?.is_pending() {
                return Poll::<Result<(), TransportError>>::Pending;
            }
            sent.push(clock.now());
            link.send(Message::new(vec![0; MESSAGE_BYTES]));
            next += apart;
        }
    });
    ended.await.map_err(io::Error::other)?;
    Ok(sent)
}

/// When messages were given to the socket.
#[derive(Clone, Debug)]
struct Given {
    clock: Clock,
    /// Guards what one thread writes and reads: never waited for.
    times: Arc<Mutex<Vec<Instant>>>,
}

/// A connection that notes when it is given what.
#[derive(Debug)]
struct Stamped {
    inner: tcp::Tcp,
    given: Given,
}

impl Transport for Stamped {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        self.inner.poll_receive(cx)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
        self.given.times.lock().push(self.given.clock.now());
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_flush(cx)
    }

    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn unsent_bytes(&self) -> usize {
        self.inner.unsent_bytes()
    }
}
