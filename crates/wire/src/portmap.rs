//! Portmapper version 2 (RFC 1833 section 3): which port a program listens on.

use crate::xdr::List;
use crate::xdr::macros::{xdr_enum, xdr_struct};

pub const PROGRAM: u32 = 100_000;
pub const VERSION: u32 = 2;
/// The port the portmapper itself listens on, over UDP and TCP.
pub const PORT: u16 = 111;

/// [`Mapping::protocol`]: TCP.
pub const PROTOCOL_TCP: u32 = 6;
/// [`Mapping::protocol`]: UDP.
pub const PROTOCOL_UDP: u32 = 17;

/// Most bytes of arguments or results we let a CALLIT carry; it travels over UDP only.
pub const CALLIT_LEN_MAX: usize = 65_536;

xdr_enum! {
    /// The procedures of the portmapper.
    pub enum Procedure {
        Null = 0 "NULL",
        /// [`Mapping`] -> [`Done`]
        Set = 1 "SET",
        /// [`Mapping`] (protocol and port ignored) -> [`Done`]
        Unset = 2 "UNSET",
        /// [`Mapping`] (port ignored) -> [`Port`]
        Getport = 3 "GETPORT",
        /// nothing -> [`DumpReply`]
        Dump = 4 "DUMP",
        /// [`CallitArgs`] -> [`CallitReply`], and silence when the call fails
        Callit = 5 "CALLIT",
    }
}

xdr_struct! {
    /// Where a version of a program listens.
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct Mapping {
        pub program: u32,
        pub version: u32,
        /// [`PROTOCOL_TCP`] or [`PROTOCOL_UDP`].
        pub protocol: u32,
        pub port: u32,
    }
}

xdr_struct! {
    /// Whether SET or UNSET changed anything.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Done {
        pub done: bool,
    }
}

xdr_struct! {
    /// The port requested; 0 when the program is not registered.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Port {
        pub port: u32,
    }
}

xdr_struct! {
    /// Everything that is registered.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct DumpReply {
        pub mappings: List<Mapping>,
    }
}

xdr_struct! {
    /// A call the portmapper makes for us.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct CallitArgs<'a> {
        pub program: u32,
        pub version: u32,
        pub procedure: u32,
        pub args: &'a [u8] where len <= CALLIT_LEN_MAX,
    }
}

xdr_struct! {
    /// The port of the program that was called, and its results.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct CallitReply<'a> {
        pub port: u32,
        pub results: &'a [u8] where len <= CALLIT_LEN_MAX,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::golden;

    pub(crate) const MAPPING: &str = "
        000186a3 00000003            # program: NFS, version
        00000006 00000801            # protocol: TCP, port: 2049
    ";
    pub(crate) const DONE: &str = "00000001";
    pub(crate) const PORT: &str = "00000801";
    pub(crate) const DUMP_OK: &str = "
        00000001                     # a mapping
        000186a3 00000003 00000006 00000801
        00000001                     # another: MOUNT 3 over UDP
        000186a5 00000003 00000011 0000028a
        00000000                     # no more
    ";
    pub(crate) const CALLIT_ARGS: &str = "
        000186a5 00000003 00000001   # program: MOUNT, version, procedure: MNT
        00000005 61726773 21000000   # args: args!
    ";
    pub(crate) const CALLIT_OK: &str = "
        0000028a                     # port: 650
        00000003 72657300            # results: res
    ";

    const NFS: Mapping =
        Mapping { program: 100_003, version: 3, protocol: PROTOCOL_TCP, port: 2049 };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(MAPPING, NFS);
        golden(DONE, Done { done: true });
        golden(PORT, Port { port: 2049 });
        let mount = Mapping { program: 100_005, version: 3, protocol: PROTOCOL_UDP, port: 650 };
        golden(DUMP_OK, DumpReply { mappings: List(vec![NFS, mount]) });
    }

    #[test]
    fn calls_on_behalf_have_the_bytes_of_the_rfc() {
        let args = CallitArgs { program: 100_005, version: 3, procedure: 1, args: b"args!" };
        golden(CALLIT_ARGS, args);
        let results = b"res";
        golden(CALLIT_OK, CallitReply { port: 650, results });
    }
}
