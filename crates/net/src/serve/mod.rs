//! The server half of RPC: connections and datagrams, their limits and back-pressure.
//!
//! Each connection is one task. It reads calls, starts each one at once, and sends every reply as
//! soon as it is there, in whatever order that is. A small call that needs no waiting is answered
//! before the next is looked at, and the replies of one batch of calls leave in one write. A large
//! call gets a task of its own, so that another processor can copy its data to the page cache
//! while this one receives the next. A socket of datagrams is one task in the same way.
//!
//! - [`Host`] is what all of them share: limits, the bytes in flight, counts, and the end.
//! - `budget.rs` says who may have how many of the bytes, `accounts.rs` what of them is reserved;
//!   `turns.rs` who moves data, `seats.rs` who may be connected; `patience.rs` who is given up,
//!   and when.
//! - `connection.rs` and `datagrams.rs` drive the two sorts of transport.

mod accounts;
pub(crate) mod budget;
mod calls;
mod connection;
mod datagrams;
mod held;
pub(crate) mod host;
pub(crate) mod patience;
pub(crate) mod seats;
mod turns;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use wire::record::Message;

pub use host::{Counts, Drained, Host};

/// What connections may hold, each and together, and how long they may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at once; one more takes the place of the idlest, or is closed if all are busy.
    pub connections_max: usize,
    /// Of these, those of one address; one more takes the place of its idlest, in the same way.
    pub connections_per_host_max: usize,
    /// Calls of one connection in progress, and of one socket of datagrams.
    pub calls_per_connection_max: usize,
    /// Bytes of all calls in progress and of their replies until they are sent.
    pub bytes_in_flight_max: usize,
    /// A connection without a call for so long is closed.
    pub idle_max: Nanos,
    /// A peer that takes no byte of its replies for so long is given up, and one that does not
    /// complete a record it has begun.
    pub stall_max: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            connections_per_host_max: 1024,
            calls_per_connection_max: 1024,
            bytes_in_flight_max: 1 << 30,
            // Linux's client leaves after five minutes by itself, its server closes after six.
            idle_max: Nanos::from_secs(6 * 60),
            stall_max: Nanos::from_secs(60),
        }
    }
}

/// Who calls, and how the call came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Peer {
    /// An IPv4 address is given as one, whatever the socket's family.
    pub address: SocketAddr,
    pub carrier: Carrier,
    /// Nobody else can call in this one's name: a connection stands for it.
    pub is_proven: bool,
    /// Our address that the call was sent to, if it is known.
    pub local: Option<SocketAddr>,
    /// The user id of who calls, where that is a program on this host with a connection.
    pub owner: Option<u32>,
}

/// What a call comes in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carrier {
    /// A reply has to fit one.
    Datagram,
    Stream,
}

/// The answer to a call.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reply {
    pub message: Message,
    /// Passed to [`Service::sent`] when the reply has left; 0 for a reply nobody asks about.
    pub tag: u32,
}

impl Reply {
    /// What stands for no reply to a call that deserves none, for it is answered elsewhere.
    pub const NOTHING: Self =
        Self { message: Message { head: Vec::new(), payload: Bytes::new() }, tag: 0 };
}

impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self { message, tag: 0 }
    }
}

/// Answers calls: one record in, one reply out, or none where the record was no call, which ends
/// a connection.
pub trait Service: Clone + Send + 'static {
    /// `arrived` is when the last byte of the record was read, if the service is timed.
    fn call(
        &self,
        peer: Peer,
        record: Bytes,
        arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<Self>;

    /// Most bytes that the reply to a call may have, as far as that is worth knowing: a few
    /// hundred are not.
    fn reply_bytes_max(&self, _record: &[u8]) -> usize {
        0
    }

    /// Whether there is anything for this address: else [`Self::refuse`] answers a few of its
    /// calls, and its connections are closed soon.
    fn is_for(&self, _host: IpAddr) -> bool {
        true
    }

    /// The answer to a call from where it has nothing for, of which the head is here alone; none:
    /// no more of it is read. It is made at once.
    fn refuse(&self, _peer: &Peer, _record: &[u8]) -> Option<Message> {
        None
    }

    /// Whether it wants to know when calls arrived. Called once for each connection.
    fn is_timed(&self) -> bool {
        false
    }

    /// The last byte of a reply with a tag has been given to the system, `since_reply` after the
    /// reply was there.
    fn sent(&self, _peer: &Peer, _tag: u32, _since_reply: Nanos) {}
}

impl<F, Fut> Service for F
where
    F: Fn(Peer, Bytes) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Option<Message>> + Send + 'static,
{
    fn call(
        &self,
        peer: Peer,
        record: Bytes,
        _arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<F, Fut> {
        let message = self(peer, record);
        async move { message.await.map(Reply::from) }
    }
}

/// Bytes of replies that the calls in progress on one connection may come to, less the last
/// call's.
pub const REPLY_BYTES_MAX: usize = 64 << 20;
