//! What is exported, to whom, and how its callers are seen.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use crate::peer::Peer;
use crate::types::Caller;

/// User and group of nobody, as Linux has them.
pub const NOBODY: u32 = 65_534;

/// Ports from which only privileged processes call.
const PRIVILEGED_PORTS_END: u16 = 1024;

/// A tree offered to clients, the whole of a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Export {
    /// The path clients mount, absolute: `/` or `/export`.
    pub name: String,
    /// Part of every file handle; keep it as long as clients may have handles.
    pub id: u32,
    /// The first rule that names a client is the client's; who is named by none has no access.
    pub rules: Vec<Rule>,
}

impl Default for Export {
    /// `/`, for everyone as [`Rule::default`] has it.
    fn default() -> Self {
        Self::ruled(Rule::default())
    }
}

impl Export {
    /// `/` under one rule.
    pub fn ruled(rule: Rule) -> Self {
        Self { name: "/".to_owned(), id: 0, rules: vec![rule] }
    }

    /// An id that depends on nothing but the name, so that handles stay valid when a server comes
    /// back with other exports beside this one (32-bit FNV-1a).
    pub fn id_of(name: &str) -> u32 {
        const OFFSET: u32 = 0x811c_9dc5;
        const PRIME: u32 = 0x0100_0193;
        name.bytes().fold(OFFSET, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(PRIME))
    }

    /// Whether some rule is for everyone.
    pub fn is_open(&self) -> bool {
        self.rules.iter().any(|rule| rule.clients.is_everyone())
    }

    /// How a client may use it.
    pub(crate) fn rule_for(&self, client: IpAddr) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.clients.contains(client))
    }
}

/// What some clients may do with an export, and as whom.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rule {
    pub clients: Clients,
    /// Changes are refused with NFS3ERR_ROFS.
    pub read_only: bool,
    pub squash: Squash,
    /// Who AUTH_NONE and squashed callers are.
    pub anonymous: Arc<Caller>,
    /// Take calls with AUTH_NONE; otherwise they are refused with AUTH_TOOWEAK.
    pub anonymous_allowed: bool,
    /// Refuse calls from ports that every user of a client may take (`secure`); on this host calls
    /// of programs that are neither root's nor the server's user's.
    pub privileged_port: bool,
}

impl Default for Rule {
    /// Everyone may write, ids as stated, nobody for the rest.
    fn default() -> Self {
        Self {
            clients: Clients::Everyone,
            read_only: false,
            squash: Squash::None,
            anonymous: Arc::new(Caller { uid: NOBODY, gid: NOBODY, gids: Vec::new() }),
            anonymous_allowed: true,
            privileged_port: false,
        }
    }
}

impl Rule {
    /// Whether it names its clients, and is not for everyone.
    pub(crate) fn names_clients(&self) -> bool {
        !self.clients.is_everyone()
    }

    pub(crate) fn takes(&self, peer: &Peer) -> bool {
        let has_privileged_port = peer.address.port() < PRIVILEGED_PORTS_END;
        !self.privileged_port || peer.is_trusted.unwrap_or(has_privileged_port)
    }
}

/// Whose ids are replaced by the anonymous caller's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Squash {
    /// AUTH_SYS ids are taken as they are.
    #[default]
    None,
    /// Those of uid 0.
    Root,
    /// Everyone's.
    All,
}

/// For whom a rule is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Clients {
    Everyone,
    Of(Vec<Network>),
}

impl Clients {
    /// Whether it is for all hosts of a family, also where that is a network (`0.0.0.0/0`).
    pub fn is_everyone(&self) -> bool {
        match self {
            Self::Everyone => true,
            Self::Of(networks) => networks.iter().any(Network::is_everyone),
        }
    }

    fn contains(&self, client: IpAddr) -> bool {
        match self {
            Self::Everyone => true,
            Self::Of(networks) => networks.iter().any(|network| network.contains(client)),
        }
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// One host.
    pub fn host(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix_bits: bits(address) }
    }

    /// `None` when the address has fewer bits, or bits behind the prefix.
    pub fn new(address: IpAddr, prefix_bits: u8) -> Option<Self> {
        let network = Self { address, prefix_bits };
        (prefix_bits <= bits(address) && network.masked(address) == address).then_some(network)
    }

    /// Whether it has all addresses of its family.
    pub fn is_everyone(&self) -> bool {
        self.prefix_bits == 0
    }

    pub fn contains(&self, client: IpAddr) -> bool {
        // A socket for both families says ::ffff:a.b.c.d for a client of the older one.
        let client = client.to_canonical();
        client.is_ipv4() == self.address.is_ipv4() && self.masked(client) == self.address
    }

    fn masked(&self, address: IpAddr) -> IpAddr {
        let zeros = u32::from(bits(address).saturating_sub(self.prefix_bits));
        match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(zeros).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(zeros).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix_bits == bits(self.address) {
            true => write!(f, "{}", self.address),
            false => write!(f, "{}/{}", self.address, self.prefix_bits),
        }
    }
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NetworkError {
    #[error("not an address")]
    Address,
    #[error("the prefix is not a number of bits that the address has")]
    Prefix,
    #[error("the address has bits set behind its prefix")]
    HostBits,
}

impl FromStr for Network {
    type Err = NetworkError;

    /// `10.0.0.0/8`, `10.1.2.3`, `fd00::/8`, `::1`.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address)?;
        let Some(prefix) = prefix else { return Ok(Self::host(address)) };
        let prefix: u8 = prefix.parse().map_err(|_| NetworkError::Prefix)?;
        if prefix > bits(address) {
            return Err(NetworkError::Prefix);
        }
        // Clients of ::ffff:0:0/96 are known by the address of the older family.
        let (address, prefix) = match (address.to_canonical(), prefix.checked_sub(96)) {
            (canonical @ IpAddr::V4(_), Some(prefix)) if address.is_ipv6() => (canonical, prefix),
            _ => (address, prefix),
        };
        Self::new(address, prefix).ok_or(NetworkError::HostBits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_what_begins_with_their_bits() {
        let inside = |net: &str, host: &str| network(net).contains(host.parse().unwrap());
        assert!(inside("10.0.0.0/8", "10.255.0.1"));
        assert!(!inside("10.0.0.0/8", "11.0.0.1"));
        assert!(inside("10.0.0.0/8", "::ffff:10.1.1.1"), "the same host through another socket");
        assert!(inside("0.0.0.0/0", "1.2.3.4"));
        assert!(inside("::ffff:10.0.0.0/104", "10.1.1.1"), "the same network");
        assert!(inside("::ffff:0.0.0.0/96", "1.2.3.4"));
        assert!(!inside("0.0.0.0/0", "::1"));
        assert!(inside("::/0", "::1"));
        assert!(inside("fd00::/8", "fdff::1"));
        assert!(inside("192.168.1.7", "192.168.1.7"));
        assert!(!inside("192.168.1.7", "192.168.1.8"));
        assert!(inside("192.168.1.6/31", "192.168.1.7"));
    }

    #[test]
    fn what_is_no_network_is_named() {
        let refused = |text: &str| text.parse::<Network>().unwrap_err();
        assert_eq!(refused("10.0.0"), NetworkError::Address);
        assert_eq!(refused(""), NetworkError::Address);
        assert_eq!(refused("10.0.0.0/33"), NetworkError::Prefix);
        assert_eq!(refused("10.0.0.0/"), NetworkError::Prefix);
        assert_eq!(refused("::/129"), NetworkError::Prefix);
        assert_eq!(refused("10.0.0.1/8"), NetworkError::HostBits);
    }

    #[test]
    fn networks_are_written_as_they_are_read() {
        for text in ["10.0.0.0/8", "10.1.2.3", "fd00::/8", "::1", "0.0.0.0/0"] {
            assert_eq!(network(text).to_string(), text);
        }
    }

    #[test]
    fn the_first_rule_that_names_a_client_is_the_clients() {
        let of = |networks: &[&str], read_only| Rule {
            clients: Clients::Of(networks.iter().map(|text| network(text)).collect()),
            read_only,
            ..Rule::default()
        };
        let rules = vec![of(&["10.0.0.1"], false), of(&["10.0.0.0/8", "fd00::/8"], true)];
        let export = Export { rules, ..Export::default() };
        let read_only =
            |client: &str| export.rule_for(client.parse().unwrap()).map(|rule| rule.read_only);
        assert_eq!(read_only("10.0.0.1"), Some(false));
        assert_eq!(read_only("10.0.0.2"), Some(true));
        assert_eq!(read_only("fd00::1"), Some(true));
        assert_eq!(read_only("192.168.0.1"), None);
    }

    #[test]
    fn a_network_of_all_addresses_is_everyone() {
        let of = |text| Clients::Of(vec![network("10.0.0.0/8"), network(text)]);
        assert!(Clients::Everyone.is_everyone());
        assert!(of("0.0.0.0/0").is_everyone() && of("::/0").is_everyone());
        assert!(!of("0.0.0.0/1").is_everyone() && !of("fd00::/8").is_everyone());
        // The other family is not let in by it.
        assert!(!Clients::Of(vec![network("0.0.0.0/0")]).contains("::1".parse().unwrap()));
        let open = Rule { clients: of("::/0"), ..Rule::default() };
        let closed = Rule { clients: Clients::Of(vec![network("fd00::/8")]), ..Rule::default() };
        assert!(!Export::ruled(closed.clone()).is_open());
        assert!(Export { rules: vec![closed, open], ..Export::default() }.is_open());
    }

    #[test]
    fn ids_depend_on_the_name_alone() {
        assert_eq!(Export::id_of(""), 0x811c_9dc5);
        assert_eq!(Export::id_of("a"), 0xe40c_292c);
        assert_ne!(Export::id_of("/a"), Export::id_of("/b"));
    }
}
