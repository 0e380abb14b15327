//! The portmapper, versions 2 (here) and 3 and 4 (`rpcbind.rs`), for the programs served here, so
//! that a client needs no other (RFC 1833).
//!
//! What is served is known from the start: SET and UNSET change nothing and reply FALSE. CALLIT is
//! not served (PROC_UNAVAIL): it would let strangers send calls in our name.

use std::net::{IpAddr, SocketAddr};

use wire::portmap::{Done, DumpReply, Mapping, PROTOCOL_TCP, PROTOCOL_UDP, Port, Procedure};
use wire::xdr::{self, DecodeError, Encode, Void};

use crate::peer::Transport;
use crate::programs::Versions;

/// Where the engine's owner listens. A socket that takes both families is two endpoints, one of
/// each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoint {
    Tcp(SocketAddr),
    Udp(SocketAddr),
}

impl Endpoint {
    pub(crate) fn address(self) -> SocketAddr {
        match self {
            Self::Tcp(address) | Self::Udp(address) => address,
        }
    }

    fn protocol(self) -> u32 {
        match self {
            Self::Tcp(_) => PROTOCOL_TCP,
            Self::Udp(_) => PROTOCOL_UDP,
        }
    }
}

/// What a call needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'c> {
    pub(crate) versions: Versions,
    /// Where NFS, MOUNT and NLM are.
    pub(crate) endpoints: &'c [Endpoint],
    /// Where the portmapper itself is.
    pub(crate) portmap_endpoints: &'c [Endpoint],
    /// How the call came, and from whom.
    pub(crate) transport: Transport,
    pub(crate) client: SocketAddr,
    /// The address of ours that the client called, if the socket knows it.
    pub(crate) local: Option<IpAddr>,
    /// Seconds since 1970, if there is a clock.
    pub(crate) seconds: Option<u32>,
}

impl<'c> Context<'c> {
    /// Everything there is, and where.
    pub(crate) fn served(&self) -> impl Iterator<Item = ((u32, u32), Endpoint)> + use<'c> {
        let Self { endpoints, portmap_endpoints, .. } = *self;
        self.versions.programs().flat_map(move |program| {
            let at = match program.0 == wire::portmap::PROGRAM {
                true => portmap_endpoints,
                false => endpoints,
            };
            at.iter().map(move |&endpoint| (program, endpoint))
        })
    }
}

/// Appends the results of a procedure; `false` when it is not served.
pub(crate) fn serve(
    cx: &Context<'_>,
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<bool, DecodeError> {
    match procedure {
        Procedure::Null => xdr::from_bytes::<Void>(args)?.encode(head),
        Procedure::Set | Procedure::Unset => {
            xdr::from_bytes::<Mapping>(args)?;
            Done { done: false }.encode(head);
        }
        Procedure::Getport => {
            let mapping: Mapping = xdr::from_bytes(args)?;
            let port = port(cx, &mapping);
            Port { port }.encode(head);
        }
        Procedure::Dump => {
            xdr::from_bytes::<Void>(args)?;
            let mappings = mappings(cx).into();
            DumpReply { mappings }.encode(head);
        }
        Procedure::Callit => return Ok(false),
    }
    Ok(true)
}

/// All endpoints as this version has them, which knows no addresses: those of IPv4 first, and those
/// of IPv6 as far as they have other ports.
fn mappings(cx: &Context<'_>) -> Vec<Mapping> {
    let mut mappings = Vec::new();
    for family in [SocketAddr::is_ipv4, SocketAddr::is_ipv6] {
        for ((program, version), endpoint) in cx.served() {
            let port = u32::from(endpoint.address().port());
            let mapping = Mapping { program, version, protocol: endpoint.protocol(), port };
            if family(&endpoint.address()) && !mappings.contains(&mapping) {
                mappings.push(mapping);
            }
        }
    }
    mappings
}

/// The port of a program; of another version when that is all there is, so that the client hears
/// from the program itself which versions there are. 0 when it is not served over the protocol.
fn port(cx: &Context<'_>, mapping: &Mapping) -> u32 {
    let found =
        |found: &&Mapping| found.program == mapping.program && found.protocol == mapping.protocol;
    let mappings = mappings(cx);
    let exact = mappings.iter().filter(found).find(|found| found.version == mapping.version);
    exact.or_else(|| mappings.iter().find(found)).map_or(0, |found| found.port)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An endpoint with its port for a context whose endpoints are all on every address.
    pub(crate) fn context<'c>(
        endpoints: &'c [Endpoint],
        portmap_endpoints: &'c [Endpoint],
    ) -> Context<'c> {
        Context {
            versions: Versions::default(),
            endpoints,
            portmap_endpoints,
            transport: Transport::Stream,
            client: "10.0.0.9:700".parse().unwrap(),
            local: None,
            seconds: None,
        }
    }

    pub(crate) fn tcp(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().unwrap())
    }

    pub(crate) fn udp(address: &str) -> Endpoint {
        Endpoint::Udp(address.parse().unwrap())
    }

    fn endpoints() -> [Endpoint; 4] {
        [tcp("[::]:2049"), tcp("0.0.0.0:2049"), udp("10.0.0.7:2050"), udp("[::1]:2051")]
    }

    fn getport(cx: &Context<'_>, program: u32, version: u32, protocol: u32) -> u32 {
        let wanted = Mapping { program, version, protocol, port: 0 };
        let mut head = Vec::new();
        assert_eq!(serve(cx, Procedure::Getport, &wanted.to_bytes(), &mut head), Ok(true));
        xdr::from_bytes::<Port>(&head).unwrap().port
    }

    #[test]
    fn ports_are_those_of_the_protocol_and_of_ipv4_if_there_is_one() {
        let (endpoints, portmap) = (endpoints(), [tcp("[::]:111")]);
        let cx = context(&endpoints, &portmap);
        assert_eq!(getport(&cx, 100_003, 3, PROTOCOL_TCP), 2049);
        assert_eq!(getport(&cx, 100_003, 2, PROTOCOL_TCP), 2049);
        assert_eq!(getport(&cx, 100_005, 1, PROTOCOL_UDP), 2050);
        assert_eq!(getport(&cx, 100_003, 4, PROTOCOL_TCP), 2049);
        assert_eq!(getport(&cx, 100_000, 2, PROTOCOL_TCP), 111);
        assert_eq!(getport(&cx, 100_000, 2, PROTOCOL_UDP), 0);
        assert_eq!(getport(&cx, 100_021, 4, PROTOCOL_TCP), 2049);
        assert_eq!(getport(&cx, 100_024, 1, PROTOCOL_TCP), 0);
        assert_eq!(getport(&cx, 100_003, 3, 99), 0);
    }

    #[test]
    fn all_programs_are_listed_for_all_ports() {
        let (endpoints, portmap) = (endpoints(), [tcp("0.0.0.0:111")]);
        let mut head = Vec::new();
        serve(&context(&endpoints, &portmap), Procedure::Dump, &[], &mut head).unwrap();
        let DumpReply { mappings } = xdr::from_bytes(&head).unwrap();
        let parts = |mapping: &Mapping| (mapping.version, mapping.protocol, mapping.port);
        let of = |program| {
            let found = mappings.iter().filter(move |mapping| mapping.program == program);
            found.map(parts).collect::<Vec<_>>()
        };
        assert_eq!(of(100_000), [(2, 6, 111), (3, 6, 111), (4, 6, 111)]);
        let nfs = [(2, 6, 2049), (2, 17, 2050), (3, 6, 2049), (3, 17, 2050)];
        assert_eq!(of(100_003), [&nfs[..], &[(2, 17, 2051), (3, 17, 2051)]].concat());
        assert_eq!(of(100_005).len(), 6);
    }

    #[test]
    fn versions_that_are_not_offered_are_not_listed() {
        let endpoints = endpoints();
        let versions = Versions { nfs2: false, nfs3: true };
        let cx = Context { versions, ..context(&endpoints, &[]) };
        let mappings = mappings(&cx);
        assert_eq!(mappings.len(), 9);
        let versions = mappings.iter().map(|mapping| (mapping.program, mapping.version));
        let offered = [(100_003, 3), (100_005, 3), (100_021, 4)];
        assert!(versions.into_iter().all(|version| offered.contains(&version)));
    }

    #[test]
    fn registrations_are_refused_and_calls_not_forwarded() {
        let protocol = PROTOCOL_TCP;
        let mapping = Mapping { program: 1, version: 1, protocol, port: 9 }.to_bytes();
        let cx = context(&[], &[]);
        let mut head = Vec::new();
        for procedure in [Procedure::Set, Procedure::Unset] {
            head.clear();
            serve(&cx, procedure, &mapping, &mut head).unwrap();
            assert_eq!(xdr::from_bytes(&head), Ok(Done { done: false }));
        }
        let callit = serve(&cx, Procedure::Callit, &[], &mut Vec::new());
        assert_eq!(callit, Ok(false));
        assert!(serve(&cx, Procedure::Set, &[0; 15], &mut head).is_err());
    }
}
