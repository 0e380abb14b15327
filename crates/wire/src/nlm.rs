//! The network lock manager (X/Open XNFS chapter 10, RFC 1813 appendix II): its procedures by
//! number, and the replies of a server that gives no locks.
//!
//! The versions differ in the width of a lock's range, and 1 has no shares. Which lock a call is
//! about is not read here: all arguments begin with the cookie that the reply repeats.

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_enum, xdr_struct};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

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

impl Procedure {
    /// Whether version 1 has it, which knows no shares.
    pub const fn is_in_version_1(self) -> bool {
        self.code() <= Self::GrantedRes.code()
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

/// The arguments of all procedures but NULL and FREE_ALL, and what TEST returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cookied<'a> {
    pub cookie: &'a [u8],
    /// What follows, which is not looked into.
    pub rest: &'a [u8],
}

impl Encode for Cookied<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.cookie.encode(out);
        out.extend_from_slice(self.rest);
    }
}

impl<'a> Decode<'a> for Cookied<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let cookie = r.opaque_field("cookie", COOKIE_LEN_MAX)?;
        let rest = r.take(r.rest().len())?;
        Ok(Self { cookie, rest })
    }
}

impl Show for Cookied<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.cookie.show("cookie", line);
        line.payload("data", self.rest);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::golden;
    use crate::xdr::from_bytes;

    pub(crate) const REPLY: &str = "00000004 636f6f6b 00000002";
    pub(crate) const SHARE_REPLY: &str = "00000001 63000000 00000000 00000000";

    #[test]
    fn bytes_are_those_of_the_standard() {
        let cookie = b"cook";
        golden(REPLY, Reply { cookie, stat: Stat::DeniedNolocks });
        let sequence = 0;
        let unshared = ShareReply { cookie: b"c", stat: Stat::Granted, sequence };
        golden(SHARE_REPLY, unshared);
    }

    #[test]
    fn a_call_has_its_cookie_first() {
        let cookie = |args| from_bytes::<Cookied<'_>>(args).map(|args| (args.cookie, args.rest));
        let more = b"\0\0\0\x04cookand more";
        assert_eq!(cookie(&more[..]), Ok((&b"cook"[..], &b"and more"[..])));
        assert_eq!(cookie(&[0; 4]), Ok((&b""[..], &b""[..])));
        assert!(cookie(b"\0\0\0\x04coo").is_err());
        let long = [&1025_u32.to_be_bytes()[..], &[0; 1028]].concat();
        assert!(from_bytes::<Cookied<'_>>(&long).is_err());
    }
}
