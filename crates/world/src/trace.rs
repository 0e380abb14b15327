//! Everything that is sent and received, as one number: runs with the same digest were the same.
//!
//! Each message goes in with the moment, the end that saw it, the direction, its length and all of
//! its bytes. It is taken at the clients' ends, before a link has done anything to a call and
//! after it has done everything to a reply.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use net::clock::Clock;
use net::error::TransportError;
use net::transport::Transport;
use net::transport::datagram::{Datagram, Datagrams, Route};
use net::transport::layer::Layer;
use parking_lot::Mutex;
use perf::units::Instant;
use wire::record::Message;

/// The digest of a run; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Digest>>); // guards the number; held while a message goes in

/// See the module's head.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Digest {
    number: u64,
    pub messages: u64,
    pub bytes: u64,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Sent,
    Received,
    /// The connection ended.
    Ended,
}

/// An odd number with no pattern (the golden ratio, as in splitmix64).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Mixes in a word, so that order counts.
    pub fn word(&mut self, word: u64) {
        self.number = (self.number.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    }

    /// Mixes in bytes and their number.
    pub fn mix(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        self.word(rest.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
    }
}

impl Trace {
    /// The number now.
    pub fn digest(&self) -> Digest {
        *self.0.lock()
    }

    fn add(&self, now: Instant, end: SocketAddr, direction: Direction, parts: [&[u8]; 2]) {
        let mut digest = self.0.lock();
        digest.messages += 1;
        digest.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        digest.word(now.as_nanos());
        digest.word(u64::from(end.port()) << 2 | direction as u64);
        if let SocketAddr::V4(end) = end {
            digest.word(u64::from(u32::from(*end.ip())));
        }
        parts.iter().for_each(|part| digest.mix(part));
    }
}

/// One end of a connection, or a socket, whose messages go into a trace.
#[derive(Debug)]
pub struct Traced<T> {
    inner: T,
    trace: Trace,
    clock: Clock,
    own: SocketAddr,
}

impl<T> Traced<T> {
    pub fn new(inner: T, trace: &Trace, clock: &Clock, own: SocketAddr) -> Self {
        Self { inner, trace: trace.clone(), clock: clock.clone(), own }
    }

    fn add(&self, direction: Direction, parts: [&[u8]; 2]) {
        self.trace.add(self.clock.now(), self.own, direction, parts);
    }
}

impl<T: Transport> Layer for Traced<T> {
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
        let polled = self.inner.poll_receive(cx);
        match &polled {
            Poll::Ready(Ok(Some(message))) => self.add(Direction::Received, [message, &[]]),
            Poll::Ready(_) => self.add(Direction::Ended, [&[], &[]]),
            Poll::Pending => {}
        }
        polled
    }

    fn send(&mut self, message: Message) {
        self.add(Direction::Sent, [&message.head, &message.payload]);
        self.inner.send(message);
    }

    fn local(&self) -> Option<SocketAddr> {
        Some(self.own)
    }
}

impl<D: Datagrams> Datagrams for Traced<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        let polled = self.inner.poll_receive(cx);
        if let Poll::Ready(Ok(datagram)) = &polled {
            self.add(Direction::Received, [&datagram.bytes, &[]]);
        }
        polled
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        let polled = self.inner.poll_send(cx, message, route);
        if polled.is_ready() {
            self.add(Direction::Sent, [&message.head, &message.payload]);
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_length_and_every_byte_count() {
        let of = |messages: &[&[u8]]| {
            let mut digest = Digest::default();
            messages.iter().for_each(|message| digest.mix(message));
            digest.number
        };
        let all = [
            of(&[b"one", b"two"]),
            of(&[b"two", b"one"]),
            of(&[b"onetwo"]),
            of(&[b"one", b"two", b""]),
            of(&[b"one", b"twp"]),
            of(&[b"12345678", b"two"]),
            of(&[b"12345678\0", b"two"]),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len(), "{all:x?}");
    }
}
