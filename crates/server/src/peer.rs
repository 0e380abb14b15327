//! Whoever sends calls, as far as a server knows.

use std::net::SocketAddr;

/// Who sent a call, and how.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    pub transport: Transport,
    /// Nobody else can call in this one's name. Of a datagram that is not so by itself.
    pub is_proven: bool,
    /// Our address that the call was sent to, where that is known.
    pub local: Option<SocketAddr>,
    /// Whether it is a program of root's or of the server's user on this host; `None` where that
    /// is not known, and its port has to tell. `false` also of a port that tells nothing.
    pub is_trusted: Option<bool>,
}

impl Peer {
    /// One who calls an address of ours that is not known.
    pub const fn at(address: SocketAddr, transport: Transport) -> Self {
        Self { address, transport, is_proven: true, local: None, is_trusted: None }
    }
}

/// What bounds the size of a reply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    Stream,
    /// A reply has to fit one datagram.
    Datagram,
}
