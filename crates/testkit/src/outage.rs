//! Connections that break when a test says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use net::error::{ConnectError, TransportError};
use net::transport::Transport;
use parking_lot::Mutex;
use perf::units::Instant;
use wire::record::Message;

/// The fate of all connections that were wrapped in it; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Outage(Arc<Mutex<Fate>>);

#[derive(Debug, Default)]
struct Fate {
    is_down: bool,
    /// Connections of an earlier number are broken.
    broken_below: u64,
    made: u64,
    /// So many more messages pass, then the connection breaks that has the next.
    calls_left: Option<u64>,
    replies_left: Option<u64>,
    wakers: Vec<Waker>,
}

/// A connection whose end is decided elsewhere.
#[derive(Debug)]
pub struct Cut<T> {
    inner: T,
    number: u64,
    /// It has broken by itself.
    is_broken: bool,
    outage: Outage,
}

impl Outage {
    /// Breaks every connection there is.
    pub fn cut(&self) {
        let mut fate = self.0.lock();
        fate.broken_below = fate.made;
        let wakers = std::mem::take(&mut fate.wakers);
        drop(fate);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Breaks every connection there is, and no more can be made until [`Outage::end`].
    pub fn begin(&self) {
        self.0.lock().is_down = true;
        self.cut();
    }

    pub fn end(&self) {
        self.0.lock().is_down = false;
    }

    /// After so many more calls the connection that is given the next breaks, once.
    pub fn cut_after_calls(&self, calls: u64) {
        self.0.lock().calls_left = Some(calls);
    }

    /// After so many more replies the connection that has the next breaks, once.
    pub fn cut_after_replies(&self, replies: u64) {
        self.0.lock().replies_left = Some(replies);
    }

    /// Connections made so far.
    pub fn made(&self) -> u64 {
        self.0.lock().made
    }

    /// A new connection, if there is no outage.
    ///
    /// # Errors
    /// [`ConnectError::Refused`] during an outage.
    pub fn connect<T: Transport>(&self, make: impl FnOnce() -> T) -> Result<Cut<T>, ConnectError> {
        if self.0.lock().is_down {
            let address = SocketAddr::from(([127, 1, 0, 1], 2049));
            return Err(ConnectError::Refused { address });
        }
        let inner = make();
        let mut fate = self.0.lock();
        let number = fate.made;
        fate.made += 1;
        drop(fate);
        Ok(Cut { inner, number, is_broken: false, outage: self.clone() })
    }
}

impl<T> Cut<T> {
    fn check(&mut self) -> Result<(), TransportError> {
        self.is_broken |= self.number < self.outage.0.lock().broken_below;
        match self.is_broken {
            true => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into()),
            false => Ok(()),
        }
    }
}

/// Whether this message is the one that is cut off.
fn runs_out(left: &mut Option<u64>) -> bool {
    match left {
        Some(0) => left.take().is_some(),
        Some(count) => {
            *count -= 1;
            false
        }
        None => false,
    }
}

impl<T: Transport> Transport for Cut<T> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        self.check()?;
        let poll = self.inner.poll_receive(cx);
        let mut fate = self.outage.0.lock();
        if poll.is_pending() {
            fate.wakers.retain(|waker| !waker.will_wake(cx.waker()));
            fate.wakers.push(cx.waker().clone());
        } else if runs_out(&mut fate.replies_left) {
            self.is_broken = true;
            return Poll::Ready(Err(TransportError::Truncated));
        }
        poll
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.check()?;
        self.inner.poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
        let is_cut_off = runs_out(&mut self.outage.0.lock().calls_left);
        self.is_broken |= is_cut_off;
        if !self.is_broken {
            self.inner.send(message);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.check()?;
        self.inner.poll_flush(cx)
    }

    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn unsent_bytes(&self) -> usize {
        self.inner.unsent_bytes()
    }

    fn departs(&self) -> Option<Instant> {
        self.inner.departs()
    }
}
