//! Whole messages between two hosts.
//!
//! [`Transport`] is poll-based and has one owner: the task that drives the connection. That keeps
//! locks out of the path and lets wrappers (see [`crate::shape`]) hold messages back in either
//! direction. [`tcp`] carries them over a socket, [`private`] over one that only this process has
//! both ends of, and [`memory`] inside a world.
//! [`datagram::Datagrams`] is the same for messages that may be lost: over a socket in [`udp`],
//! inside a process in [`lossy`].

pub mod buffer;
pub mod datagram;
pub mod layer;
pub mod lossy;
pub mod memory;
mod owner;
pub mod private;
pub mod tcp;
pub mod udp;

use std::fmt;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use perf::units::Instant;
use wire::record::Message;

pub use self::owner::is_everybodys_port;
use crate::error::TransportError;

/// Largest record by default: a call or reply with 1 MiB of data and its headers.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + (8 << 10);

/// Largest record that a server takes: a client that writes more than FSINFO says still gets an
/// answer.
pub const CALL_BYTES_MAX: usize = (4 << 20) + (8 << 10);

/// A connection that carries whole RPC messages in both directions.
pub trait Transport: fmt::Debug + Send {
    /// The next message from the peer; `None` when the peer has closed in good order.
    fn poll_receive(&mut self, cx: &mut Context<'_>)
    -> Poll<Result<Option<Bytes>, TransportError>>;

    /// Whether the queue of messages to send has room. Pending while it is full; the caller is
    /// woken when [`Transport::poll_flush`] has made some.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;

    /// Puts a message into the queue. Call only after `poll_ready`: the bound of the queue is the
    /// caller's to respect, one message over it is accepted.
    fn send(&mut self, message: Message);

    /// Sends what is queued and due; ready when nothing is left.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;

    fn peer(&self) -> SocketAddr;

    /// Our end of the connection, if it has an address.
    fn local(&self) -> Option<SocketAddr> {
        None
    }

    /// The user id of whose program is at the other end, where that is on this host and accepted
    /// by us.
    fn owner(&self) -> Option<u32> {
        None
    }

    /// Bytes of messages, each with 4 for its mark, that [`Transport::send`] was given and the
    /// system has not taken.
    fn unsent_bytes(&self) -> usize;

    /// When the last byte of what was last sent leaves this host, where an emulated link says it.
    fn departs(&self) -> Option<Instant> {
        None
    }

    /// Bytes of memory that a received message of this size keeps for as long as it lives.
    fn retained_bytes(&self, message_bytes: usize) -> usize {
        message_bytes
    }

    /// Whether the peer has begun a message that is not complete.
    fn is_within_record(&self) -> bool {
        false
    }

    /// From now on a record that needs more than a small slab is not read beyond its mark before
    /// [`Transport::allow`]. Where this has no effect, memory is taken as records come.
    fn ask_for_room(&mut self) {}

    /// Memory that the record which has begun will keep, if it waits to be allowed:
    /// [`Transport::poll_receive`] is pending then, and wakes nobody.
    fn wanted_bytes(&self) -> Option<usize> {
        None
    }

    /// There is room for the record that has begun.
    fn allow(&mut self) {}

    /// How the connection has broken, reported once, although messages that came before may not
    /// have been received: whoever resets a connection does not want them any more.
    fn take_error(&mut self) -> Option<TransportError> {
        None
    }

    /// Whether the last message received had to be read, or had come with the one before.
    fn is_fresh(&self) -> bool {
        true
    }

    /// Ends our half of the connection: nothing is to be sent after this. Everything is to be sent
    /// before, as [`Transport::poll_flush`] says. The peer's half goes on.
    fn end_sending(&mut self) {}

    /// The connection is of no use any more: when it is dropped nothing that was queued is sent,
    /// and its port is free at once.
    fn abort(&mut self) {}

    /// Ends our half of the connection, when everything is sent, and waits for the peer's end.
    /// Whatever else the peer sends is not read, so nothing is to be received after this.
    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}
