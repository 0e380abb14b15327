//! rpcbind versions 3 and 4: where the programs served here are, with their addresses (RFC 1833
//! section 2).
//!
//! - The netid of GETADDR names the transport that is wanted. When it is none of ours (the RFC has
//!   it ignored), it is the one through which the call came.
//! - A socket that is bound to every address is at the one the client called, if that is known; at
//!   the one the client says it called, if not; else at 0.0.0.0 or ::.
//! - Procedures that make calls in our name (CALLIT, BCAST, INDIRECT) or that nobody asks for
//!   (GETADDRLIST, GETSTAT) are not served; GETTIME only where there is a clock.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use wire::portmap::Done;
use wire::rpcbind::{DumpReply, Netbuf, Procedure, Rpcb, Seconds, Uaddr, parse_uaddr, uaddr};
use wire::xdr::{self, DecodeError, Encode, Void};

use crate::peer::Transport;
use crate::portmap::{Context, Endpoint};

/// The owner of all registrations: whoever runs the server.
const OWNER: &[u8] = b"superuser";

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
            xdr::from_bytes::<Rpcb<'_>>(args)?;
            Done { done: false }.encode(head);
        }
        Procedure::Getaddr | Procedure::Getversaddr => {
            let args: Rpcb<'_> = xdr::from_bytes(args)?;
            let found = address(cx, &args, procedure == Procedure::Getversaddr);
            let uaddr = found.map(uaddr).unwrap_or_default();
            Uaddr { uaddr: uaddr.as_bytes() }.encode(head);
        }
        Procedure::Dump => {
            xdr::from_bytes::<Void>(args)?;
            dump(cx, head);
        }
        Procedure::Gettime => {
            xdr::from_bytes::<Void>(args)?;
            let Some(seconds) = cx.seconds else { return Ok(false) };
            Seconds { seconds }.encode(head);
        }
        Procedure::Uaddr2taddr => {
            let args: Uaddr<'_> = xdr::from_bytes(args)?;
            let buf = parse_uaddr(args.uaddr).map(sockaddr).unwrap_or_default();
            // At most the 28 bytes of a sockaddr_in6.
            let maxlen = u32::try_from(buf.len()).unwrap_or(0);
            Netbuf { maxlen, buf: &buf }.encode(head);
        }
        Procedure::Taddr2uaddr => {
            let args: Netbuf<'_> = xdr::from_bytes(args)?;
            let uaddr = parse_sockaddr(args.buf).map(uaddr).unwrap_or_default();
            Uaddr { uaddr: uaddr.as_bytes() }.encode(head);
        }
        Procedure::Bcast | Procedure::Indirect | Procedure::Getaddrlist | Procedure::Getstat => {
            return Ok(false);
        }
    }
    Ok(true)
}

fn dump(cx: &Context<'_>, head: &mut Vec<u8>) {
    let served =
        || cx.served().map(|(program, endpoint)| (program, endpoint, seen(cx, endpoint, b"")));
    let addresses: Vec<String> = served().map(|(.., address)| uaddr(address)).collect();
    let entries = served().zip(&addresses).map(|(((program, version), endpoint, _), addr)| Rpcb {
        program,
        version,
        netid: netid(endpoint),
        addr: addr.as_bytes(),
        owner: OWNER,
    });
    DumpReply { entries: entries.collect() }.encode(head);
}

/// Where a program is; another version of it when that is all there is and it need not be
/// `exactly` this one.
fn address(cx: &Context<'_>, wanted: &Rpcb<'_>, exactly: bool) -> Option<SocketAddr> {
    let network = match KNOWN.contains(&wanted.netid) {
        true => wanted.netid,
        false => came_through(cx),
    };
    let found = |&((program, _), endpoint): &((u32, u32), Endpoint)| {
        program == wanted.program && netid(endpoint) == network
    };
    let of_version = |&((_, version), _): &((u32, u32), Endpoint)| version == wanted.version;
    let exact = cx.served().filter(found).find(of_version);
    let any = || cx.served().find(found).filter(|_| !exactly);
    exact.or_else(any).map(|(_, endpoint)| seen(cx, endpoint, wanted.addr))
}

const KNOWN: [&[u8]; 4] = [b"tcp", b"tcp6", b"udp", b"udp6"];

fn netid(endpoint: Endpoint) -> &'static [u8] {
    match (endpoint, endpoint.address().is_ipv4()) {
        (Endpoint::Tcp(_), true) => b"tcp",
        (Endpoint::Tcp(_), false) => b"tcp6",
        (Endpoint::Udp(_), true) => b"udp",
        (Endpoint::Udp(_), false) => b"udp6",
    }
}

fn came_through(cx: &Context<'_>) -> &'static [u8] {
    match (cx.transport, cx.client.ip().to_canonical().is_ipv4()) {
        (Transport::Stream, true) => b"tcp",
        (Transport::Stream, false) => b"tcp6",
        (Transport::Datagram, true) => b"udp",
        (Transport::Datagram, false) => b"udp6",
    }
}

/// An endpoint as the client reaches it. `hint` is the universal address through which it says it
/// called.
fn seen(cx: &Context<'_>, endpoint: Endpoint, hint: &[u8]) -> SocketAddr {
    let bound = endpoint.address();
    if !bound.ip().is_unspecified() {
        return bound;
    }
    let fits = |ip: &IpAddr| ip.is_ipv4() == bound.is_ipv4() && !ip.is_unspecified();
    let local = cx.local.map(|local| local.to_canonical()).filter(fits);
    let hinted = || parse_uaddr(hint).map(|hint| hint.ip()).filter(fits);
    SocketAddr::new(local.or_else(hinted).unwrap_or_else(|| bound.ip()), bound.port())
}

// Numbers and layouts of Linux's <bits/socket.h> and <netinet/in.h>.
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCKADDR_IN_LEN: usize = 16;

/// An address as this machine's interface has it: a `sockaddr_in` or `sockaddr_in6`.
fn sockaddr(address: SocketAddr) -> Vec<u8> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => {
            [&AF_INET.to_ne_bytes()[..], &port, &ip.octets(), &[0; SOCKADDR_IN_LEN - 8]].concat()
        }
        IpAddr::V6(ip) => {
            [&AF_INET6.to_ne_bytes()[..], &port, &[0; 4], &ip.octets(), &[0; 4]].concat()
        }
    }
}

fn parse_sockaddr(bytes: &[u8]) -> Option<SocketAddr> {
    let (&family, rest) = bytes.split_first_chunk()?;
    let (&port, rest) = rest.split_first_chunk()?;
    let ip = match u16::from_ne_bytes(family) {
        AF_INET => IpAddr::from(Ipv4Addr::from(*rest.first_chunk::<4>()?)),
        AF_INET6 => IpAddr::from(Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portmap::tests::{context, tcp, udp};
    use crate::programs::Versions;

    const NFS: u32 = 100_003;

    fn query<'a>(version: u32, netid: &'a [u8], addr: &'a [u8]) -> Rpcb<'a> {
        Rpcb { program: NFS, version, netid, addr, owner: b"" }
    }

    fn endpoints() -> [Endpoint; 4] {
        [tcp("0.0.0.0:2049"), tcp("[::]:2049"), udp("10.0.0.7:2050"), udp("[fd00::7]:2051")]
    }

    fn getaddr(cx: &Context<'_>, procedure: Procedure, query: &Rpcb<'_>) -> String {
        let mut head = Vec::new();
        assert_eq!(serve(cx, procedure, &query.to_bytes(), &mut head), Ok(true));
        let Uaddr { uaddr } = xdr::from_bytes(&head).unwrap();
        String::from_utf8(uaddr.to_vec()).unwrap()
    }

    #[test]
    fn each_netid_has_its_address() {
        let endpoints = endpoints();
        let cx = context(&endpoints, &[]);
        let found = |netid: &[u8]| getaddr(&cx, Procedure::Getaddr, &query(3, netid, b""));
        assert_eq!(found(b"tcp"), "0.0.0.0.8.1");
        assert_eq!(found(b"tcp6"), "::.8.1");
        assert_eq!(found(b"udp"), "10.0.0.7.8.2");
        assert_eq!(found(b"udp6"), "fd00::7.8.3");
        assert_eq!(found(b"local"), "0.0.0.0.8.1", "the transport of the call");
        let (transport, client) = (Transport::Datagram, "[fd00::9]:700".parse().unwrap());
        let cx = Context { transport, client, ..cx };
        assert_eq!(getaddr(&cx, Procedure::Getaddr, &query(3, b"", b"")), "fd00::7.8.3");
        let none = Rpcb { program: 100_024, ..query(3, b"tcp", b"") };
        assert_eq!(getaddr(&cx, Procedure::Getaddr, &none), "");
    }

    #[test]
    fn a_socket_on_every_address_is_where_the_client_called() {
        let endpoints = endpoints();
        let cx = context(&endpoints, &[]);
        let found = |cx: &Context<'_>, netid: &[u8], hint: &[u8]| {
            getaddr(cx, Procedure::Getaddr, &query(2, netid, hint))
        };
        assert_eq!(found(&cx, b"tcp", b"192.168.1.1.0.111"), "192.168.1.1.8.1");
        assert_eq!(found(&cx, b"tcp6", b"192.168.1.1.0.111"), "::.8.1", "of the other family");
        assert_eq!(found(&cx, b"tcp", b"nonsense"), "0.0.0.0.8.1");
        assert_eq!(found(&cx, b"udp", b"192.168.1.1.0.111"), "10.0.0.7.8.2", "it is bound");
        let local = Some("::ffff:192.168.1.2".parse().unwrap());
        let cx = Context { local, ..cx };
        assert_eq!(found(&cx, b"tcp", b"192.168.1.1.0.111"), "192.168.1.2.8.1");
    }

    #[test]
    fn another_version_will_do_unless_it_will_not() {
        let endpoints = endpoints();
        let cx = context(&endpoints, &[]);
        let args = query(4, b"tcp", b"");
        assert_eq!(getaddr(&cx, Procedure::Getaddr, &args), "0.0.0.0.8.1");
        assert_eq!(getaddr(&cx, Procedure::Getversaddr, &args), "");
    }

    #[test]
    fn everything_is_listed_with_netid_and_address() {
        let (endpoints, portmap) = (endpoints(), [udp("0.0.0.0:111")]);
        let versions = Versions { nfs2: false, nfs3: true };
        let local = Some("10.0.0.7".parse().unwrap());
        let cx = Context { versions, local, ..context(&endpoints, &portmap) };
        let mut head = Vec::new();
        assert_eq!(serve(&cx, Procedure::Dump, &[], &mut head), Ok(true));
        let DumpReply { entries } = xdr::from_bytes(&head).unwrap();
        assert_eq!(entries.len(), 3 + 4 + 4 + 4);
        let first = entries[0];
        assert_eq!((first.program, first.version, first.netid), (100_000, 2, &b"udp"[..]));
        assert_eq!((first.addr, first.owner), (&b"10.0.0.7.0.111"[..], OWNER));
        assert_eq!(entries[4].addr, b"::.8.1");
    }

    #[test]
    fn addresses_are_converted_both_ways() {
        let cx = context(&[], &[]);
        for (text, len) in [("10.0.0.7.8.1", 16), ("fd00::7.8.1", 28), ("nonsense", 0)] {
            let mut head = Vec::new();
            let args = Uaddr { uaddr: text.as_bytes() }.to_bytes();
            assert_eq!(serve(&cx, Procedure::Uaddr2taddr, &args, &mut head), Ok(true));
            let netbuf: Netbuf<'_> = xdr::from_bytes(&head).unwrap();
            assert_eq!((netbuf.buf.len(), netbuf.maxlen), (len, u32::try_from(len).unwrap()));
            let mut back = Vec::new();
            let args = netbuf.to_bytes();
            assert_eq!(serve(&cx, Procedure::Taddr2uaddr, &args, &mut back), Ok(true));
            let Uaddr { uaddr } = xdr::from_bytes(&back).unwrap();
            assert_eq!(uaddr, if len == 0 { b"" } else { text.as_bytes() });
        }
        let full = sockaddr("[fd00::7]:1".parse().unwrap());
        for len in 0..full.len() {
            assert!(parse_sockaddr(&full[..len]).is_none() || len >= 24);
        }
    }

    #[test]
    fn the_time_is_given_where_there_is_a_clock_and_nothing_is_registered_or_forwarded() {
        let cx = context(&[], &[]);
        let mut head = Vec::new();
        assert_eq!(serve(&cx, Procedure::Gettime, &[], &mut head), Ok(false));
        let cx = Context { seconds: Some(7), ..cx };
        assert_eq!(serve(&cx, Procedure::Gettime, &[], &mut head), Ok(true));
        assert_eq!(xdr::from_bytes(&head), Ok(Seconds { seconds: 7 }));
        head.clear();
        let args = query(3, b"tcp", b"").to_bytes();
        assert_eq!(serve(&cx, Procedure::Set, &args, &mut head), Ok(true));
        assert_eq!(xdr::from_bytes(&head), Ok(Done { done: false }));
        for procedure in [Procedure::Bcast, Procedure::Indirect, Procedure::Getstat] {
            assert_eq!(serve(&cx, procedure, &args, &mut head), Ok(false));
        }
    }
}
