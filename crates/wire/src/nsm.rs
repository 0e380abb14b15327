//! The network status monitor: its procedures by number (X/Open XNFS chapter 11).

use crate::xdr::macros::xdr_enum;

pub const PROGRAM: u32 = 100_024;

xdr_enum! {
    /// The procedures of version 1.
    pub enum Procedure {
        Null = 0 "NULL",
        Stat = 1 "STAT",
        Mon = 2 "MON",
        Unmon = 3 "UNMON",
        UnmonAll = 4 "UNMON_ALL",
        SimuCrash = 5 "SIMU_CRASH",
        Notify = 6 "NOTIFY",
    }
}
