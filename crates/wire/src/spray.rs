//! The spray protocol, version 1, of SunOS (`spray.x`): calls without replies, counted by who gets
//! them.
//!
//! A SPRAY call is not answered; GET tells how many have come since CLEAR, and in which time.

use crate::xdr::macros::{xdr_enum, xdr_struct};

pub const PROGRAM: u32 = 100_012;
pub const VERSION: u32 = 1;

/// Most bytes of a SPRAY call's argument (`SPRAYMAX`).
pub const ARRAY_LEN_MAX: usize = 8_845;

/// What the classic `spray` counts in a packet beside the argument: the headers of Ethernet, IP,
/// UDP and the call (`SPRAYOVERHEAD`).
pub const OVERHEAD_BYTES: usize = 86;

xdr_enum! {
    /// The procedures of spray.
    pub enum Procedure {
        Null = 0 "NULL",
        /// [`Array`] -> silence
        Spray = 1 "SPRAY",
        /// nothing -> [`Counted`]
        Get = 2 "GET",
        /// nothing -> nothing
        Clear = 3 "CLEAR",
    }
}

xdr_struct! {
    /// What a SPRAY call carries; nobody looks at it.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Array<'a> {
        pub data: &'a [u8] where len <= ARRAY_LEN_MAX,
    }
}

xdr_struct! {
    /// SPRAY calls since the last CLEAR, and the time since then.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Counted {
        pub calls: u32,
        pub secs: u32,
        pub micros: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        golden("00000003 61626300", Array { data: b"abc" });
        golden("0000005e 00000001 00000002", Counted { calls: 94, secs: 1, micros: 2 });
        assert_eq!(Procedure::Spray.code(), 1);
    }
}
