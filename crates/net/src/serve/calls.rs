//! The calls in progress of one connection.
//!
//! Most calls are answered when they are polled for the first time, so that is where they cost
//! least: they are polled in a place that is reused for the next one, and join the set only when
//! they have to wait.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_util::stream::{FuturesUnordered, Stream};
use tokio::sync::oneshot;

use super::Reply;
use super::budget::Lent;
use super::turns::Turn;
use crate::clock::Clock;

/// Calls of this size and more get a task of their own: copying so much takes several times as
/// long as waking another processor.
pub(super) const OWN_TASK_BYTES: usize = 128 << 10;

/// Calls whose futures are `F`, each with a note for when it is done.
pub(super) struct Calls<F, N> {
    set: FuturesUnordered<InProgress<F, N>>,
    /// A place for the next call.
    spare: Option<Place<F>>,
}

type Place<F> = Pin<Box<Option<F>>>;

struct InProgress<F, N> {
    at: At<F>,
    note: Option<N>,
}

enum At<F> {
    Here(Option<Place<F>>),
    /// In a task of its own.
    There(oneshot::Receiver<Option<Reply>>),
}

struct Done<F, N> {
    reply: Option<Reply>,
    note: Option<N>,
    place: Option<Place<F>>,
}

impl<F, N> Calls<F, N>
where
    F: Future<Output = Option<Reply>> + Send + 'static,
    N: Unpin,
{
    pub(super) fn new() -> Self {
        Self { set: FuturesUnordered::new(), spare: None }
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Starts the call that `begin` makes, here. Ready if it needed no waiting, then without its
    /// note. It is made where it will stay: calls are large, and moving one costs as much as
    /// answering a small one.
    #[inline]
    pub(super) fn start(
        &mut self,
        cx: &mut Context<'_>,
        begin: impl FnOnce() -> F,
        note: impl FnOnce() -> N,
    ) -> Poll<Option<Reply>> {
        let mut place = self.spare.take().unwrap_or_else(|| Box::pin(None));
        place.set(Some(begin()));
        if let Some(reply) = poll_place(&mut place, cx) {
            self.spare = Some(place);
            return Poll::Ready(reply);
        }
        // The set polls it again, with a waker of its own.
        self.set.push(InProgress { at: At::Here(Some(place)), note: Some(note()) });
        Poll::Pending
    }

    /// Starts a call in a task of its own, where it runs to its end whatever becomes of this. It
    /// has a turn whenever it runs.
    pub(super) fn start_there(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        call: F,
        (lent, mut turn): (Lent, Turn),
        note: N,
    ) -> Poll<Option<Reply>> {
        let (answer, answered) = oneshot::channel();
        clock.spawn(async move {
            let mut call = pin!(call);
            let reply = poll_fn(|cx| {
                ready!(turn.poll_take(cx));
                let polled = call.as_mut().poll(cx);
                turn.end();
                polled
            });
            let reply = reply.await;
            drop(lent);
            answer.send(reply).ok();
        });
        let mut call = InProgress { at: At::There(answered), note: Some(note) };
        // Polled, so that it knows whom to wake until the set polls it.
        let polled = Pin::new(&mut call).poll(cx).map(|done| done.reply);
        if polled.is_pending() {
            self.set.push(call);
        }
        polled
    }

    /// The next reply that is there, with its call's note; pending also when no call is left.
    pub(super) fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<(Option<Reply>, N)> {
        while !self.set.is_empty() {
            let Some(done) = std::task::ready!(Pin::new(&mut self.set).poll_next(cx)) else {
                break;
            };
            self.spare = self.spare.take().or(done.place);
            if let Some(note) = done.note {
                return Poll::Ready((done.reply, note));
            }
        }
        Poll::Pending
    }
}

/// The reply, when it is there; the place is empty then.
#[inline]
fn poll_place<F>(place: &mut Place<F>, cx: &mut Context<'_>) -> Option<Option<Reply>>
where
    F: Future<Output = Option<Reply>>,
{
    let reply = match place.as_mut().as_pin_mut() {
        Some(call) => match call.poll(cx) {
            Poll::Ready(reply) => reply,
            Poll::Pending => return None,
        },
        None => None,
    };
    place.set(None);
    Some(reply)
}

impl<F, N> Future for InProgress<F, N>
where
    F: Future<Output = Option<Reply>>,
    N: Unpin,
{
    type Output = Done<F, N>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = match &mut self.at {
            At::Here(Some(place)) => match poll_place(place, cx) {
                Some(reply) => reply,
                None => return Poll::Pending,
            },
            At::Here(None) => None,
            // A task that went away without an answer has panicked: end the connection.
            At::There(answered) => std::task::ready!(Pin::new(answered).poll(cx)).unwrap_or(None),
        };
        let place = match &mut self.at {
            At::Here(place) => place.take(),
            At::There(_) => None,
        };
        Poll::Ready(Done { reply, note: self.note.take(), place })
    }
}
