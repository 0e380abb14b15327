//! A connection of a world whose peer can reset it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use net::error::TransportError;
use net::transport::Transport;
use net::transport::memory::Memory;
use wire::record::Message;

/// The end that is reset. As of a socket, what had come before can still be received.
#[derive(Debug)]
pub(crate) struct Resetting {
    inner: Memory,
    is_reset: Arc<AtomicBool>,
}

/// The other end.
pub(crate) struct Resets {
    inner: Memory,
    is_reset: Arc<AtomicBool>,
}

/// Both ends of a connection, of which the first can reset it.
pub(crate) fn of((peer, own): (Memory, Memory)) -> (Resets, Resetting) {
    let is_reset = Arc::new(AtomicBool::new(false));
    let own = Resetting { inner: own, is_reset: Arc::clone(&is_reset) };
    (Resets { inner: peer, is_reset }, own)
}

impl Resets {
    pub(crate) fn transport(&mut self) -> &mut Memory {
        &mut self.inner
    }

    pub(crate) fn reset(self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }
}

impl Transport for Resetting {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        match self.inner.poll_receive(cx) {
            Poll::Ready(Ok(None)) if self.is_reset.load(Ordering::Relaxed) => {
                Poll::Ready(Err(io::Error::from(io::ErrorKind::ConnectionReset).into()))
            }
            received => received,
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
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

    fn take_error(&mut self) -> Option<TransportError> {
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset).into();
        self.is_reset.swap(false, Ordering::Relaxed).then(reset)
    }
}
