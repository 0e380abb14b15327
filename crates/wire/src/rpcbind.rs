//! rpcbind versions 3 and 4 (RFC 1833 section 2): at which address a program listens.
//!
//! They share the portmapper's program number, and most procedures with each other. Addresses are
//! "universal": text that ends with the two bytes of a port, `10.0.0.7.8.1` or `fd00::7.8.1`, for
//! port 2049. A transport is named by its "netid".
//!
//! Of version 4's own procedures only GETVERSADDR is spelled out. The rest, which lets rpcbind
//! call others (BCAST, INDIRECT), lists all transports or counts calls, is opaque here.

use std::net::{IpAddr, SocketAddr};

use crate::xdr::List;
use crate::xdr::macros::{xdr_enum, xdr_struct};

pub const PROGRAM: u32 = crate::portmap::PROGRAM;
pub const VERSION_3: u32 = 3;
pub const VERSION_4: u32 = 4;

/// Most bytes in a netid, address or owner that we decode (guess: addresses have at most 54).
pub const TEXT_LEN_MAX: usize = 1024;
/// Most bytes of an address in the form of the machine's own interface (guess: the longest are
/// paths of 110 bytes).
pub const NETBUF_LEN_MAX: usize = 1024;

xdr_enum! {
    /// The procedures of versions 3 and 4. Version 3 ends with TADDR2UADDR.
    pub enum Procedure {
        Null = 0 "NULL",
        /// [`Rpcb`] -> [`Done`](crate::portmap::Done)
        Set = 1 "SET",
        /// [`Rpcb`] -> [`Done`](crate::portmap::Done)
        Unset = 2 "UNSET",
        /// [`Rpcb`] (with the address through which the client sees us) -> [`Uaddr`]
        Getaddr = 3 "GETADDR",
        /// nothing -> [`DumpReply`]
        Dump = 4 "DUMP",
        /// CALLIT in version 3.
        Bcast = 5 "BCAST",
        /// nothing -> [`Seconds`]
        Gettime = 6 "GETTIME",
        /// [`Uaddr`] -> [`Netbuf`]
        Uaddr2taddr = 7 "UADDR2TADDR",
        /// [`Netbuf`] -> [`Uaddr`]
        Taddr2uaddr = 8 "TADDR2UADDR",
        /// GETADDR for exactly the version requested.
        Getversaddr = 9 "GETVERSADDR",
        Indirect = 10 "INDIRECT",
        Getaddrlist = 11 "GETADDRLIST",
        Getstat = 12 "GETSTAT",
    }
}

impl Procedure {
    /// Whether version 3 has it.
    pub const fn is_in_version_3(self) -> bool {
        self.code() <= Self::Taddr2uaddr.code()
    }
}

xdr_struct! {
    /// Where a version of a program listens (`rpcb`).
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct Rpcb<'a> {
        pub program: u32,
        pub version: u32,
        pub netid: &'a [u8] where len <= TEXT_LEN_MAX,
        pub addr: &'a [u8] where len <= TEXT_LEN_MAX,
        /// Who registered it.
        pub owner: &'a [u8] where len <= TEXT_LEN_MAX,
    }
}

xdr_struct! {
    /// A universal address; empty when the program is not registered.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Uaddr<'a> {
        pub uaddr: &'a [u8] where len <= TEXT_LEN_MAX,
    }
}

xdr_struct! {
    /// Everything that is registered.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct DumpReply<'a> {
        pub entries: List<Rpcb<'a>>,
    }
}

xdr_struct! {
    /// Seconds since 1970 on the machine of the rpcbind.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Seconds {
        pub seconds: u32,
    }
}

xdr_struct! {
    /// An address as the machine's own interface has it (`netbuf`).
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Netbuf<'a> {
        pub maxlen: u32,
        pub buf: &'a [u8] where len <= NETBUF_LEN_MAX,
    }
}

/// The universal address of a socket.
pub fn uaddr(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    format!("{}.{high}.{low}", address.ip())
}

/// The socket a universal address means; none when it is none.
pub fn parse_uaddr(uaddr: &[u8]) -> Option<SocketAddr> {
    let mut parts = std::str::from_utf8(uaddr).ok()?.rsplitn(3, '.');
    let low: u8 = byte(parts.next()?)?;
    let high: u8 = byte(parts.next()?)?;
    let ip: IpAddr = parts.next()?.parse().ok()?;
    Some(SocketAddr::new(ip, u16::from_be_bytes([high, low])))
}

/// A decimal number without sign.
fn byte(digits: &str) -> Option<u8> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::golden;
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const RPCB: &str = "
        000186a3 00000003            # program: NFS, version
        00000003 74637000            # netid: tcp
        0000000c 31302e30 2e302e37 2e382e31   # addr: 10.0.0.7.8.1
        00000004 726f6f74            # owner: root
    ";
    pub(crate) const UADDR: &str = "
        0000000b 66643030 3a3a372e 382e3100   # uaddr: fd00::7.8.1
    ";
    pub(crate) const DUMP_OK: &str = "
        00000001                     # an entry
        000186a3 00000003 00000003 74637000
        0000000c 31302e30 2e302e37 2e382e31 00000004 726f6f74
        00000001                     # another, with nothing but numbers
        000186a5 00000001 00000000 00000000 00000000
        00000000                     # no more
    ";
    pub(crate) const SECONDS: &str = "6553f100";
    pub(crate) const NETBUF: &str = "
        00000080                     # maxlen
        00000010 02000801 0a000007 00000000 00000000   # buf: a sockaddr_in
    ";

    const NFS: Rpcb<'_> =
        Rpcb { program: 100_003, version: 3, netid: b"tcp", addr: b"10.0.0.7.8.1", owner: b"root" };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(RPCB, NFS);
        golden(UADDR, Uaddr { uaddr: b"fd00::7.8.1" });
        let mount = Rpcb { program: 100_005, version: 1, netid: b"", addr: b"", owner: b"" };
        golden(DUMP_OK, DumpReply { entries: List(vec![NFS, mount]) });
        golden(SECONDS, Seconds { seconds: 1_700_000_000 });
        let buf = &[2, 0, 8, 1, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
        golden(NETBUF, Netbuf { maxlen: 128, buf });
    }

    #[test]
    fn texts_that_are_too_long_are_refused() {
        let netid = [b'x'; TEXT_LEN_MAX + 1];
        let of = |len| Rpcb { netid: &netid[..len], ..NFS }.to_bytes();
        assert!(from_bytes::<Rpcb<'_>>(&of(TEXT_LEN_MAX)).is_ok());
        let error = from_bytes::<Rpcb<'_>>(&of(TEXT_LEN_MAX + 1)).unwrap_err();
        assert_eq!(error.to_string(), "netid at byte 8: 1025 bytes, at most 1024 are allowed");
    }

    #[test]
    fn universal_addresses_end_with_the_port() {
        for (text, address) in [
            ("10.0.0.7.8.1", "10.0.0.7:2049"),
            ("0.0.0.0.0.111", "0.0.0.0:111"),
            ("fd00::7.8.1", "[fd00::7]:2049"),
            ("::.255.255", "[::]:65535"),
            ("::ffff:10.0.0.7.8.1", "[::ffff:10.0.0.7]:2049"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(uaddr(address), text);
            assert_eq!(parse_uaddr(text.as_bytes()), Some(address));
        }
    }

    #[test]
    fn what_is_no_universal_address_is_none() {
        for text in [
            "",
            ".",
            "..",
            "8.1",
            "10.0.0.7",
            "10.0.0.7.8",
            "10.0.0.7.256.1",
            "10.0.0.7.8.",
            "10.0.0.7.+8.1",
            "10.0.0.7.8.-1",
            "a.b.c.d.8.1",
            "fe80::1%eth0.8.1",
            "/run/rpcbind",
        ] {
            assert_eq!(parse_uaddr(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_uaddr(b"10.0.0.\xff.8.1"), None);
    }

    #[test]
    fn version_3_ends_before_the_procedures_of_version_4() {
        let version_3 = Procedure::ALL.iter().filter(|procedure| procedure.is_in_version_3());
        assert_eq!((version_3.count(), Procedure::ALL.len()), (9, 13));
    }
}
