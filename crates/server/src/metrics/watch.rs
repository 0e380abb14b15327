//! A call under watch: where its time goes while its future is polled.
//!
//! A future that is polled works; one that is pending waits. So [`procedure`] reads the clock when
//! it polls the procedure and when that returns: what lies between is the store at work, and what
//! lies between two polls is waiting for the store's threads. It includes the wait for the
//! processor after the store is done, as the caller's wait does.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use perf::units::{Instant, Nanos};
use wire::rpc::Answer;

use super::Metrics;
use super::phase::Phases;
use crate::peer::Peer;

/// Dropped before [`Watch::end`], the call counts as abandoned.
#[derive(Debug)]
pub(crate) struct Watch<'m> {
    metrics: &'m Metrics,
    arrived: Instant,
    begun: Instant,
    /// Behind the last thing that is worth a look at the clock.
    last: Span,
    queued: Span,
    store: Span,
    sync_wait: Span,
    ended: bool,
}

/// Nanoseconds that a call's future adds to. One thread at a time polls it: atomic only so that
/// the future may move to another thread.
#[derive(Debug, Default)]
struct Span(AtomicU64);

impl Span {
    fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }

    fn add(&self, span: Nanos) {
        self.set(self.value().as_nanos().saturating_add(span.as_nanos()));
    }

    fn value(&self) -> Nanos {
        Nanos::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl<'m> Watch<'m> {
    pub(super) fn begin(metrics: &'m Metrics, arrived: Option<Instant>) -> Self {
        let begun = metrics.now();
        Self {
            metrics,
            arrived: arrived.unwrap_or(begun).min(begun),
            begun,
            last: Span::default(),
            queued: Span::default(),
            store: Span::default(),
            sync_wait: Span::default(),
            ended: false,
        }
    }

    /// The reply, or what stands for it, is there. Gives the tag that the reply is sent with.
    pub(crate) fn end(mut self, peer: Peer, record: &[u8], answer: &Answer) -> u32 {
        self.ended = true;
        let end = match self.last.value() {
            Nanos::ZERO => self.metrics.now(),
            last => Instant::from_nanos(last.as_nanos()),
        };
        let (store, sync_wait) = (self.store.value(), self.sync_wait.value());
        let waited = self.queued.value();
        let phases = Phases {
            queue: self.begun.since(self.arrived) + waited,
            decode: end.since(self.begun) - waited - store - sync_wait,
            store,
            sync_wait,
        };
        self.metrics.ended(peer, record, answer, phases, end)
    }

    /// Something took a while that belongs to no phase of its own.
    pub(crate) fn lap(&self) {
        self.last.set(self.metrics.now().as_nanos());
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.metrics.abandoned();
        }
    }
}

/// Waits for a turn.
pub(crate) async fn queue<F: Future>(
    watch: Option<&Watch<'_>>,
    mut turn: Pin<&mut F>,
) -> F::Output {
    let mut since = None;
    std::future::poll_fn(|cx| {
        let polled = turn.as_mut().poll(cx);
        let Some(watch) = watch else { return polled };
        match (polled.is_pending(), since) {
            (true, None) => since = Some(watch.metrics.now()),
            (false, Some(since)) => watch.queued.add(watch.metrics.now().since(since)),
            _ => {}
        }
        polled
    })
    .await
}

/// Runs a procedure against its store.
pub(crate) async fn procedure<F: Future>(
    watch: Option<&Watch<'_>>,
    mut work: Pin<&mut F>,
) -> F::Output {
    let mut pending_since: Option<Instant> = None;
    std::future::poll_fn(|cx| {
        let Some(watch) = watch else { return work.as_mut().poll(cx) };
        let begin = watch.metrics.now();
        if let Some(since) = pending_since {
            watch.sync_wait.add(begin.since(since));
        }
        let polled = work.as_mut().poll(cx);
        let end = watch.metrics.now();
        watch.store.add(end.since(begin));
        watch.last.set(end.as_nanos());
        pending_since = Some(end);
        polled
    })
    .await
}
