//! Our own servers of this host, by their metrics: found by their command lines, and asked twice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use doctor::Report;
use doctor::reason::of_our_server;
use doctor::rules::OurServed;
use harness::counted::processes;
use net::clock::Clock;
use perf::units::Instant;
use watch::ours::{OurServer, Ours, Page};

use crate::samples::page;

/// Of each server that answers, a page and when it came.
pub(super) struct Pages(Vec<(SocketAddr, Page, Instant)>);

impl Pages {
    /// Asks all that there are.
    pub(super) async fn take(clock: &Clock) -> Self {
        let mut pages = Vec::new();
        for address in addresses(Path::new("/proc")) {
            if let Ok(found) = page(clock, address).await {
                pages.push((address, found, clock.now()));
            }
        }
        Self(pages)
    }

    /// A report of each server, of what came since `before`.
    pub(super) fn reports(&self, before: &Self, clock: &Clock) -> Vec<Report> {
        let each = self.0.iter().filter_map(|(address, now, at)| {
            let older = before.0.iter().find(|(other, ..)| other == address);
            let older = older.map(|(_, page, then)| (page, at.since(*then).as_secs_f64()));
            match now.rates(older, clock.since_1970().as_secs_f64())? {
                Ours::Server(server) => Some(report(*address, &server)),
                Ours::Mount(_) => None,
            }
        });
        each.collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn report(address: SocketAddr, server: &OurServer) -> Report {
    let total = &server.total;
    let served = OurServed {
        address: address.to_string(),
        calls: total.calls,
        calls_per_s: total.calls_per_s,
        p99_ms: total.response_ms.p99,
        phases_ms: total.phases_ms_mean.clone(),
        replayed: server.replayed,
        in_service: total.in_service_mean,
        processors: server.processors_mean,
        syncs_per_s: server.syncs_per_s,
    };
    of_our_server(&served, server.span)
}

/// Where the servers of this host that run with `--metrics` give them.
fn addresses(proc: &Path) -> Vec<SocketAddr> {
    let metrics = |folder: PathBuf| {
        let comm = std::fs::read(folder.join("comm")).ok()?;
        let line = std::fs::read(folder.join("cmdline")).ok()?;
        comm.starts_with(b"nfskit").then(|| metrics_of(&line)).flatten()
    };
    let mut found: Vec<SocketAddr> = processes(proc).filter_map(metrics).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The address of `nfskit serve ... --metrics ADDRESS`, whose arguments end in zeros.
fn metrics_of(command_line: &[u8]) -> Option<SocketAddr> {
    let line = String::from_utf8_lossy(command_line);
    let arguments: Vec<&str> = line.split('\0').collect();
    if !arguments.iter().skip(1).any(|argument| *argument == "serve") {
        return None;
    }
    let both = arguments.iter().zip(arguments.iter().skip(1));
    let behind = both.filter(|(name, _)| **name == "--metrics").map(|(_, value)| *value);
    let joined = arguments.iter().filter_map(|argument| argument.strip_prefix("--metrics="));
    let mut address: SocketAddr = behind.chain(joined).next()?.parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    (address.port() != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_by_its_arguments() {
        let of = |line: &str| metrics_of(line.replace(' ', "\0").as_bytes());
        let found = of("/usr/bin/nfskit serve /srv --metrics 127.0.0.1:9049 ");
        assert_eq!(found, Some(SocketAddr::from(([127, 0, 0, 1], 9049))));
        assert_eq!(of("nfskit serve --metrics=0.0.0.0:1 /srv"), Some(([127, 0, 0, 1], 1).into()));
        assert_eq!(of("nfskit mount --metrics 127.0.0.1:9049 x y"), None);
        assert_eq!(of("nfskit serve /srv"), None);
        assert_eq!(of("nfskit serve --metrics 127.0.0.1:0"), None);
    }
}
