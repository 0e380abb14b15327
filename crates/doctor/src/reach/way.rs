//! On the way to the host: its name, a route, and whether anything there answers.

use super::fault::{Cause, Known, cause};
use super::phase::Phase;
use crate::finding::Layer;

pub(super) fn unresolved(known: &Known) -> Vec<Cause> {
    vec![
        cause("the name is misspelt", format!("getent hosts {}", known.host)).of(Layer::Client),
        cause("the name server does not answer", "resolvectl status, or /etc/resolv.conf")
            .of(Layer::Network),
        cause("the host is in no name service", "its address instead of its name")
            .of(Layer::Client),
    ]
}

pub(super) fn unreachable(known: &Known) -> Vec<Cause> {
    vec![
        cause("this host has no route there", format!("ip route get {}", known.host))
            .of(Layer::Network),
        cause("a firewall refuses it with an ICMP message", "nft list ruleset, on both hosts")
            .of(Layer::Network),
        cause("the host is down, and its neighbour says so", format!("ping {}", known.host)),
    ]
}

pub(super) fn silent(phase: Phase, known: &Known) -> Vec<Cause> {
    let firewall = cause(
        match known.port {
            Some(port) => format!("a firewall drops what goes to port {port} of that host"),
            None => "a firewall drops what goes to that host".to_owned(),
        },
        match known.port {
            Some(port) => {
                format!("allow TCP {port} there: firewall-cmd --list-all, nft list ruleset")
            }
            None => "nft list ruleset on both hosts, and on what is between".to_owned(),
        },
    )
    .of(Layer::Network);
    let down =
        cause("the host is down, or the address is another's", format!("ping {}", known.host));
    let full = cause(
        "its queue of connections is full",
        "ss -ltn there: Recv-Q at Send-Q; nstat -az TcpExtListenOverflows",
    );
    match (phase, known.is_alive) {
        // Something else of the host answers: it is the port.
        (_, true) => vec![firewall, full],
        (Phase::Portmapper, false) => vec![firewall, down],
        (_, false) => vec![down, firewall],
    }
}
