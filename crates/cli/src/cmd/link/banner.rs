//! What a relay says when it begins: where clients find the server, and how they mount it.

use std::fmt;
use std::net::SocketAddr;

use client::url::encoded;
use harness::shell;

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
    pub(super) metrics: Option<SocketAddr>,
    pub(super) notes: Vec<(&'static str, String)>,
}

impl Banner<'_> {
    fn host(&self) -> String {
        match self.legs.first().map(|leg| leg.listen) {
            Some(listen) if listen.ip().is_unspecified() => {
                rustix::system::uname().nodename().to_string_lossy().into_owned()
            }
            Some(listen) if listen.is_ipv6() => format!("[{}]", listen.ip()),
            Some(listen) => listen.ip().to_string(),
            None => String::new(),
        }
    }
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
        let (port, mount_port) = (first.listen.port(), last.listen.port());
        let host = self.host();
        let export = self.export.as_deref().unwrap_or("/EXPORT");
        let ports = format!("nfsport={port}&mountport={mount_port}");
        let place = shell::quoted(format!("{host}:{export}"));
        writeln!(f, "  url         nfs://{host}{}?{ports}", encoded(export.as_bytes()))?;
        let mut protocols = vec!["tcp"];
        if self.udp {
            protocols.push("udp");
        }
        for protocol in protocols {
            writeln!(
                f,
                "  Linux       mount -t nfs -o vers=3,proto={protocol},port={port},\
                 mountport={mount_port},mountproto={protocol},nolock {place} /mnt"
            )?;
        }
        Ok(())
    }
}
