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
    /// The port asked for; 0 when the program is not registered.
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
