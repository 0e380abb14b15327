//! What the analysis sees of a packet.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An address and a port, in a form that is quick to hash. IPv4 addresses are mapped.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct End {
    pub address: u128,
    pub port: u16,
}

impl End {
    pub fn v4(address: [u8; 4], port: u16) -> Self {
        Self { address: 0xffff_0000_0000 | u128::from(u32::from_be_bytes(address)), port }
    }

    pub const fn v6(address: [u8; 16], port: u16) -> Self {
        Self { address: u128::from_be_bytes(address), port }
    }

    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.address).to_canonical()
    }
}

impl From<SocketAddr> for End {
    fn from(address: SocketAddr) -> Self {
        match address.ip() {
            IpAddr::V4(ip) => Self::v4(ip.octets(), address.port()),
            IpAddr::V6(ip) => Self::v6(ip.octets(), address.port()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.ip(), self.port).fmt(f)
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a packet was captured: what distinguishes two captures of the same packet.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// Of several files which, from 0.
    pub file: u16,
    /// The interface: by its index on the host that captured, or its number in a pcapng file; 0
    /// where the file does not say.
    pub interface: u32,
}

/// A segment of TCP, or a datagram of UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Segment<'a> {
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    pub place: Place,
    /// It leaves the host that captured it, as Linux cooked captures tell: what a host passes on
    /// comes in first.
    pub leaves: bool,
    /// The identification of version 4 of IP, by which each packet of a sender has another; 0 where
    /// there is none.
    pub id: u16,
    /// How many routers it may still pass.
    pub hops: u8,
    pub from: End,
    pub to: End,
    pub protocol: Protocol,
    /// What was captured of the payload.
    pub payload: &'a [u8],
    /// Bytes the payload had on the wire: never fewer.
    pub len: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    Tcp(TcpPart),
    Udp,
}

/// What of TCP's header is looked at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpPart {
    pub seq: u32,
    /// With ACK set.
    pub ack: Option<u32>,
    pub window: u16,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    /// Bytes that it acknowledges as having come before (RFC 2883): sent twice for nothing.
    pub had: u32,
}

impl Segment<'_> {
    /// It has data, or begins a connection: sent twice it is a retransmission.
    pub(crate) const fn takes_room(&self) -> bool {
        self.len > 0 || matches!(self.protocol, Protocol::Tcp(TcpPart { syn: true, .. }))
    }
}
