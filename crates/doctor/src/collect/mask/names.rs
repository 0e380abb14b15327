//! Other addresses and names of hosts in the place of the real ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Names {
    addresses: BTreeMap<IpAddr, IpAddr>,
    /// In small letters: names of hosts have no others.
    hosts: BTreeMap<String, String>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Client,
    Server,
}

impl Names {
    /// What a host is called, wherever only a host can stand. Addresses stay, for [`line`].
    ///
    /// [`line`]: Self::line
    pub(super) fn host(&mut self, host: &str, kind: Kind) -> String {
        let is_none = ["", "*", "localhost"].contains(&host);
        if is_none || address(host.trim_matches(['[', ']'])).is_some() {
            return host.to_owned();
        }
        let kind = match kind {
            Kind::Client => "client-",
            Kind::Server => "server-",
        };
        let count = self.hosts.values().filter(|name| name.starts_with(kind)).count() + 1;
        let host = host.trim_end_matches('.').to_lowercase();
        self.hosts.entry(host).or_insert_with(|| format!("{kind}{count}")).clone()
    }

    /// What is mounted: `HOST:/path`, `HOST,HOST:/path`, `nfs://HOST:2049/path`.
    pub(super) fn device(&mut self, device: &str) -> String {
        let (scheme, rest) = match device.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), device),
        };
        let end = match rest.starts_with('[') || address_before_path(rest) {
            true => 0,
            false if scheme.is_empty() => rest.find(':').unwrap_or(0),
            false => rest.find([':', '/', '?']).unwrap_or(rest.len()),
        };
        let (hosts, path) = rest.split_at(end);
        let hosts: Vec<String> =
            hosts.split(',').map(|host| self.host(host, Kind::Server)).collect();
        format!("{scheme}{}{path}", hosts.join(","))
    }

    /// Options of a mount: of those with a value only what can be no host.
    pub(super) fn options(&mut self, options: &str) -> String {
        let masked = options.split(',').map(|option| match option.split_once('=') {
            Some((key, value)) => format!("{key}={}", self.value(key, value)),
            None => option.to_owned(),
        });
        masked.collect::<Vec<_>>().join(",")
    }

    fn value(&mut self, key: &str, value: &str) -> String {
        const PLAIN: [&str; 11] = [
            "fsc",
            "local_lock",
            "lookupcache",
            "minorversion",
            "mountproto",
            "mountvers",
            "nfsvers",
            "proto",
            "sec",
            "vers",
            "xprtsec",
        ];
        const HOSTS: [&str; 5] = ["addr", "clientaddr", "mountaddr", "mounthost", "host"];
        match key {
            _ if HOSTS.contains(&key) => self.host(value, Kind::Server),
            _ if PLAIN.contains(&key) || value.parse::<f64>().is_ok() => value.to_owned(),
            _ => MASKED.to_owned(),
        }
    }

    /// Every word of a line: addresses, and full names that are known by now; in paths short ones,
    /// too (`/net/HOST`). Words end where neither can go on.
    pub(super) fn line(&mut self, line: &str) -> String {
        let ends = |one: char| one.is_whitespace() || "=,()[]/'\"@+?&;#|<>{}".contains(one);
        let mut out = String::new();
        let mut word = String::new();
        let mut is_in_path = false;
        for one in line.chars().map(Some).chain([None]) {
            match one.filter(|one| !ends(*one)) {
                Some(one) => word.push(one),
                None => {
                    out.push_str(&self.word(&word, is_in_path));
                    word.clear();
                    out.extend(one);
                    is_in_path = one == Some('/');
                }
            }
        }
        out
    }

    /// `10.0.0.1`, `10.0.0.1:2049`, `fd00::1`, `fe80::1%eth0:2049`, `server.org:`.
    fn word(&mut self, word: &str, is_in_path: bool) -> String {
        let (bare, zone) = word.split_once('%').unwrap_or((word, ""));
        if let Some(address) = address(bare) {
            let port = zone.rsplit_once(':').map_or(String::new(), |(_, port)| format!(":{port}"));
            return format!("{}{port}", self.address(address));
        }
        let (head, tail) =
            word.rsplit_once(':').map_or((word, ""), |(head, _)| (head, &word[head.len()..]));
        match (address(head), self.known(head, is_in_path)) {
            (Some(address), _) => format!("{}{tail}", self.address(address)),
            (None, Some(name)) => format!("{name}{tail}"),
            (None, None) => word.to_owned(),
        }
    }

    /// A short name may be a word of any other kind, but in a path.
    fn known(&self, name: &str, is_in_path: bool) -> Option<&String> {
        let name = name.trim_end_matches('.');
        (is_in_path || name.contains('.')).then(|| self.hosts.get(&name.to_lowercase()))?
    }

    /// Of those that documents use (RFC 2544, RFC 3849).
    fn address(&mut self, address: IpAddr) -> IpAddr {
        if let IpAddr::V6(v6) = address
            && let Some(v4) = v6.to_ipv4_mapped()
            && let IpAddr::V4(v4) = self.address(v4.into())
        {
            return v4.to_ipv6_mapped().into();
        }
        if address.is_loopback() || address.is_unspecified() {
            return address;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a part of a number")]
        let number = self.addresses.len() as u16 + 1;
        *self.addresses.entry(address).or_insert_with(|| match address {
            IpAddr::V4(_) => {
                let [high, low] = number.to_be_bytes();
                Ipv4Addr::new(198, 18 + (high & 1), high, low).into()
            }
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number).into(),
        })
    }
}

/// In the place of what may be a name.
pub(super) const MASKED: &str = "masked";

/// An address, which has two dots or colons at least: a number is none.
fn address(word: &str) -> Option<IpAddr> {
    word.split('%').next().unwrap_or(word).parse().ok()
}

/// `fd00::1:/path`, as some print it.
fn address_before_path(device: &str) -> bool {
    device.rsplit_once(":/").is_some_and(|(host, _)| address(host).is_some())
}
