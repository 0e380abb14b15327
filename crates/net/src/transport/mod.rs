//! Whole messages between two hosts.
//!
//! [`Transport`] is poll-based and has one owner: the task that drives the connection. That keeps
//! locks out of the path and lets wrappers (see [`crate::shape`]) hold messages back in either
//! direction. [`tcp`] carries them over a socket, [`memory`] inside a process.

pub mod buffer;
pub mod memory;
pub mod tcp;

use std::fmt;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use wire::record::Message;

use crate::error::TransportError;

/// Largest record by default: a call or reply with 1 MiB of data and its headers.
pub const RECORD_BYTES_MAX: usize = (1 << 20) + (8 << 10);

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
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        (**self).poll_receive(cx)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        (**self).poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
        (**self).send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        (**self).poll_flush(cx)
    }

    fn peer(&self) -> SocketAddr {
        (**self).peer()
    }
}
