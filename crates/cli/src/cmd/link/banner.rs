//! What a relay says when it begins: where clients find the server, and how they mount it.

use std::fmt;
use std::net::SocketAddr;

use client::url::Version;
use harness::mountable::Mountable;

/// A port that is relayed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Leg {
    pub(super) service: &'static str,
    pub(super) listen: SocketAddr,
    pub(super) server: SocketAddr,
}

#[derive(Debug, Default)]
pub(super) struct Banner<'a> {
    pub(super) legs: &'a [Leg],
    pub(super) profile: String,
    pub(super) udp: bool,
    pub(super) export: Option<String>,
    pub(super) version: Version,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) notes: Vec<(&'static str, String)>,
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(first), Some(last)) = (self.legs.first(), self.legs.last()) else {
            return Ok(());
        };
        let over = if self.udp { "TCP and UDP" } else { "TCP" };
        writeln!(f, "nfskit {} relays {over} over {}", env!("CARGO_PKG_VERSION"), self.profile)?;
        for leg in self.legs {
            writeln!(f, "  relays      {} -> {} ({})", leg.listen, leg.server, leg.service)?;
        }
        if let Some(metrics) = self.metrics {
            writeln!(f, "  metrics     http://{metrics}/metrics")?;
        }
        for (name, note) in &self.notes {
            writeln!(f, "  {name:11} {note}")?;
        }
        let mountable = Mountable {
            listen: first.listen,
            mount_port: last.listen.port(),
            export: self.export.as_deref().unwrap_or("/EXPORT"),
            version: self.version,
        };
        writeln!(f, "  url         {}", mountable.url())?;
        let protocols: &[&str] = if self.udp { &["tcp", "udp"] } else { &["tcp"] };
        for protocol in protocols {
            writeln!(f, "  Linux       {}", mountable.linux(protocol))?;
        }
        Ok(())
    }
}
