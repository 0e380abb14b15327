//! The network lock manager (X/Open XNFS chapter 10, RFC 1813 appendix II): its procedures by
//! number, and the replies of a server that gives no locks.
//!
//! The versions differ in the width of a lock's range, and 1 has no shares. Which lock a call is
//! about is not read here: all arguments begin with the cookie that the reply repeats.

use crate::xdr::macros::{xdr_enum, xdr_struct};
use crate::xdr::{DecodeError, Reader};

pub const PROGRAM: u32 = 100_021;
/// For NFS version 2, as [`VERSION_3`].
pub const VERSION_1: u32 = 1;
/// Version 1 with shares (DOS).
pub const VERSION_3: u32 = 3;
/// For NFS version 3.
pub const VERSION_4: u32 = 4;

/// `MAXNETOBJ_SZ`: most bytes of a cookie.
pub const COOKIE_LEN_MAX: usize = 1024;

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

xdr_enum! {
    /// What became of a call (`nlm_stats`), as all versions have it.
    pub enum Stat {
        Granted = 0 "LCK_GRANTED",
        Denied = 1 "LCK_DENIED",
        DeniedNolocks = 2 "LCK_DENIED_NOLOCKS",
        Blocked = 3 "LCK_BLOCKED",
        DeniedGracePeriod = 4 "LCK_DENIED_GRACE_PERIOD",
    }
}

xdr_struct! {
    /// The reply to LOCK, NM_LOCK, CANCEL and UNLOCK; and to TEST, unless somebody has the lock.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Reply<'a> {
        pub cookie: &'a [u8] where len <= COOKIE_LEN_MAX,
        pub stat: Stat,
    }
}

xdr_struct! {
    /// The reply to SHARE and UNSHARE.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ShareReply<'a> {
        pub cookie: &'a [u8] where len <= COOKIE_LEN_MAX,
        pub stat: Stat,
        pub sequence: u32,
    }
}

/// The cookie with which the arguments of a call begin, FREE_ALL's and NULL's apart.
///
/// # Errors
/// They are cut off, or it is too long.
pub fn cookie(args: &[u8]) -> Result<&[u8], DecodeError> {
    Reader::new(args).opaque_field("cookie", COOKIE_LEN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    #[test]
    fn bytes_are_those_of_the_standard() {
        let cookie = b"cook";
        golden("00000004 636f6f6b 00000002", Reply { cookie, stat: Stat::DeniedNolocks });
        let sequence = 0;
        let unshared = ShareReply { cookie: b"c", stat: Stat::Granted, sequence };
        golden("00000001 63000000 00000000 00000000", unshared);
    }

    #[test]
    fn a_call_has_its_cookie_first() {
        assert_eq!(cookie(b"\0\0\0\x04cookand more"), Ok(&b"cook"[..]));
        assert_eq!(cookie(&[0; 4]), Ok(&b""[..]));
        assert!(cookie(b"\0\0\0\x04coo").is_err());
        assert!(cookie(&[&1025_u32.to_be_bytes()[..], &[0; 1028]].concat()).is_err());
    }
}
