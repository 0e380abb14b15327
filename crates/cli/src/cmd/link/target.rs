//! The server of a relay: the argument, and where its ports are.

use std::net::SocketAddr;

use client::mount;
use client::session::Credential;
use client::url::{FORM, Target as Url, Version};
use harness::exit::Failure;
use harness::served;
use net::clock::Clock;
use net::error::ConnectError;
use net::transport::tcp;
use perf::units::Nanos;
use server::types::Caller;

/// How long a resolver, a portmapper and a server may take to answer when the relay begins.
const LIMIT: Nanos = Nanos::from_secs(5);

/// What `--to` names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    /// One port, whatever is served there.
    Port { host: String, port: u16 },
    /// NFS and MOUNT of a server.
    Services(Box<Url>),
}

/// A port of the server, of which the first address is the one to try first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Place {
    pub(super) service: &'static str,
    pub(super) addresses: Vec<SocketAddr>,
}

/// `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, `HOST:/EXPORT` or a URL.
pub(super) fn parse(text: &str) -> Result<Target, String> {
    if text.contains(":/") {
        return parse_url(text);
    }
    let is_bare_ipv6 = text.parse::<std::net::Ipv6Addr>().is_ok();
    match text.rsplit_once(':') {
        Some((host, port)) if !is_bare_ipv6 && !text.ends_with(']') => one_port(host, port)
            .ok_or_else(|| {
                format!("{text:?} is not HOST:PORT, such as nfs-server:2049 or [::1]:2049")
            }),
        _ => parse_url(&format!("nfs://{}/", bracketed(text))),
    }
}

fn one_port(host: &str, port: &str) -> Option<Target> {
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then_some(Target::Port { host, port })
}

fn parse_url(text: &str) -> Result<Target, String> {
    let parsed: Result<Url, _> = text.parse();
    let services = parsed.map(|url| Target::Services(Box::new(url)));
    services.map_err(|error| format!("{error}\n  a target is HOST:PORT, or HOST, or {FORM}"))
}

fn bracketed(host: &str) -> String {
    match host.parse::<std::net::Ipv6Addr>() {
        Ok(_) => format!("[{host}]"),
        Err(_) => host.to_owned(),
    }
}

impl Target {
    /// The export, if one was named.
    pub(super) fn export(&self) -> Option<String> {
        match self {
            Self::Services(url) if url.path != b"/" => Some(url.path_text()),
            _ => None,
        }
    }

    /// The version that was requested.
    pub(super) fn version(&self) -> Version {
        match self {
            Self::Services(url) => url.version,
            Self::Port { .. } => Version::default(),
        }
    }

    /// Where it is.
    pub(super) async fn places(&self, clock: &Clock) -> Result<Vec<Place>, Failure> {
        match self {
            Self::Port { host, port } => place(clock, host, *port).await.map(|place| vec![place]),
            Self::Services(url) => services(clock, url).await,
        }
    }
}

async fn place(clock: &Clock, host: &str, port: u16) -> Result<Place, Failure> {
    let found = tcp::resolve(clock, host, port, LIMIT).await;
    let mut addresses = found.map_err(|error| unreachable(&error))?;
    // A server that listens on one family only is nearly always one of IPv4.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.dedup();
    Ok(Place { service: "its port", addresses })
}

async fn services(clock: &Clock, url: &Url) -> Result<Vec<Place>, Failure> {
    let Caller { uid, gid, gids } = served::this_user();
    let own = Credential { machine_name: String::new(), uid, gid, gids };
    let (connect_limit, reply_limit) = (LIMIT, LIMIT);
    let options = mount::Options { connect_limit, reply_limit, ..mount::Options::persistent(own) };
    let ports = mount::ports(clock, url, &options).await?;
    let at = |service, address| Place { service, addresses: vec![address] };
    Ok(match ports.mount == ports.nfs {
        true => vec![at("NFS and MOUNT", ports.nfs)],
        false => vec![at("NFS", ports.nfs), at("MOUNT", ports.mount)],
    })
}

/// What to say, and to try, about a server that is not there.
pub(super) fn unreachable(error: &ConnectError) -> Failure {
    let advice = match error {
        ConnectError::Resolve { .. } => "the host's address instead of its name, or check the name",
        ConnectError::Refused { .. } => "start the server, or correct the port of --to",
        _ => "check the address, the route and firewalls on the way (ping, then the port)",
    };
    Failure::environment(format!("cannot relay to the server: {error}"), advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_port_or_a_host() {
        let port = |host: &str, port| Ok(Target::Port { host: host.to_owned(), port });
        assert_eq!(parse("server:2049"), port("server", 2049));
        assert_eq!(parse("10.0.0.5:111"), port("10.0.0.5", 111));
        assert_eq!(parse("[::1]:2049"), port("::1", 2049));
        let host = |text| match parse(text).unwrap() {
            Target::Services(url) => (url.host.clone(), url.path_text(), url.nfs_port),
            Target::Port { .. } => panic!("{text} names no port alone"),
        };
        assert_eq!(host("server"), ("server".to_owned(), "/".to_owned(), None));
        assert_eq!(host("::1"), ("::1".to_owned(), "/".to_owned(), None));
        assert_eq!(host("server:/data"), ("server".to_owned(), "/data".to_owned(), None));
        let url = host("nfs://server/data?nfsport=7");
        assert_eq!(url, ("server".to_owned(), "/data".to_owned(), Some(7)));
        for wrong in ["", ":2049", "server:0", "server:99999", "server:x", "http://server/"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
