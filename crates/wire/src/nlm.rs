//! The network lock manager: its procedures by number (X/Open XNFS chapter 10, RFC 1813 appendix
//! II).

use crate::xdr::macros::xdr_enum;

pub const PROGRAM: u32 = 100_021;

xdr_enum! {
    /// The procedures of all versions; 16 to 19 are unused.
    pub enum Procedure {
        Null = 0 "NULL",
        Test = 1 "TEST",
        Lock = 2 "LOCK",
        Cancel = 3 "CANCEL",
        Unlock = 4 "UNLOCK",
        Granted = 5 "GRANTED",
        TestMsg = 6 "TEST_MSG",
        LockMsg = 7 "LOCK_MSG",
        CancelMsg = 8 "CANCEL_MSG",
        UnlockMsg = 9 "UNLOCK_MSG",
        GrantedMsg = 10 "GRANTED_MSG",
        TestRes = 11 "TEST_RES",
        LockRes = 12 "LOCK_RES",
        CancelRes = 13 "CANCEL_RES",
        UnlockRes = 14 "UNLOCK_RES",
        GrantedRes = 15 "GRANTED_RES",
        Share = 20 "SHARE",
        Unshare = 21 "UNSHARE",
        NmLock = 22 "NM_LOCK",
        FreeAll = 23 "FREE_ALL",
    }
}
