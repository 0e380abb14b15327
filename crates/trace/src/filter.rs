//! Which transactions are looked at.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use wire::show::Hex;

use super::files::Files;
use super::flows::Ends;
use super::ids::FileId;
use super::operation::Operation;
use crate::capture::End;

/// Empty parts let everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub clients: Vec<Host>,
    pub servers: Vec<Host>,
    /// Names of operations, in capitals.
    pub operations: Vec<String>,
    /// A part of the path, or of the handle in hexadecimal.
    pub file: Option<String>,
    /// Calls from this moment on, in nanoseconds since the first packet.
    pub from_ns: Option<u64>,
    /// Calls before this moment.
    pub until_ns: Option<u64>,
}

/// An address, with a port or any.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Host {
    pub address: IpAddr,
    pub port: Option<u16>,
}

impl Host {
    fn is(&self, end: End) -> bool {
        end.ip() == self.address && self.port.is_none_or(|port| port == end.port)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

impl std::str::FromStr for Host {
    type Err = &'static str;

    /// `10.0.0.2`, `10.0.0.2:2049`, `fd00::2`, `[fd00::2]`, `[fd00::2]:2049`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let address =
            bare.map_or_else(|| text.parse(), |text| text.parse::<Ipv6Addr>().map(IpAddr::V6));
        if let Ok(address) = address {
            return Ok(Self { address: address.to_canonical(), port: None });
        }
        match text.parse::<SocketAddr>() {
            Ok(end) => Ok(Self { address: end.ip().to_canonical(), port: Some(end.port()) }),
            Err(_) => Err("an address, or one with a port: 10.0.0.2, 10.0.0.2:2049, fd00::2 or \
                           [fd00::2]:2049"),
        }
    }
}

impl Filter {
    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
            && self.servers.is_empty()
            && self.operations.is_empty()
            && self.file.is_none()
            && self.from_ns.is_none()
            && self.until_ns.is_none()
    }

    pub(super) fn takes_hosts(&self, ends: Option<Ends>) -> bool {
        let among = |list: &[Host], end: Option<End>| {
            list.is_empty() || end.is_some_and(|end| list.iter().any(|host| host.is(end)))
        };
        among(&self.clients, ends.map(|ends| ends.client))
            && among(&self.servers, ends.map(|ends| ends.server))
    }

    pub(super) fn takes_operation(&self, operation: Operation) -> bool {
        let is = |name: &String| name == operation.name() || *name == operation.to_string();
        self.operations.is_empty() || self.operations.iter().any(is)
    }

    /// So long after the first packet.
    pub(super) fn takes_time(&self, since_ns: u64) -> bool {
        self.from_ns.is_none_or(|from| since_ns >= from)
            && self.until_ns.is_none_or(|until| since_ns < until)
    }

    /// By the file, whose name may have been learned with the reply.
    pub(super) fn takes_file(&self, files: &Files, file: FileId) -> bool {
        let Some(part) = &self.file else { return true };
        if file == FileId::OTHER {
            return false;
        }
        files.path(file).contains(part) || Hex(files.handle(file)).to_string().contains(part)
    }
}
