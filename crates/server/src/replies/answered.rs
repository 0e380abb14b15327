//! Calls that were answered before this process began, as a store has recorded them.

use std::net::{IpAddr, Ipv6Addr};

use bytes::Bytes;

use super::cache::Key;
use crate::types::Time;

/// A call that was answered before this process began.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recorded {
    pub(super) call: log::reply::Call,
    pub(super) came: Time,
    pub(super) reply: Bytes,
}

impl Recorded {
    /// As a log has it.
    pub(crate) fn new(reply: &log::Reply<'_>, came: Time) -> Self {
        Self { call: reply.call, came, reply: Bytes::copy_from_slice(reply.bytes) }
    }

    pub(super) fn key(&self) -> Key {
        let log::reply::Call { client, xid, program, version, procedure, checksum } = self.call;
        let client = IpAddr::V6(Ipv6Addr::from(client)).to_canonical();
        Key { client, xid, program, version, procedure, checksum }
    }
}

impl From<&Key> for log::reply::Call {
    fn from(key: &Key) -> Self {
        let &Key { client, xid, program, version, procedure, checksum } = key;
        Self { client: octets(client), xid, program, version, procedure, checksum }
    }
}

/// An address of either version, in 16 bytes.
pub(super) fn octets(client: IpAddr) -> [u8; 16] {
    match client {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
