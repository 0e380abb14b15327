//! SETATTR: changes attributes, size among them (RFC 1094 section 2.2.3).

use crate::xdr::macros::xdr_struct;

use super::{AttrStat, FHandle, Sattr2};

xdr_struct! {
    /// `sattrargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FHandle,
        pub attributes: Sattr2,
    }
}

/// `attrstat`
pub type Reply = AttrStat;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::{NfsStat2, Timeval};
    use crate::testing::{ATTR2, FH2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # file
        000001ed ffffffff            # mode: 0755, uid: unchanged
        00000064 00000000            # gid: 100, size: 0, truncates
        ffffffff ffffffff            # atime: unchanged
        6553f100 00000007            # mtime
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        0000001e                     # status: NFSERR_ROFS (30)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let attributes = Sattr2 {
            mode: Some(0o755),
            uid: None,
            gid: Some(100),
            size: Some(0),
            atime: None,
            mtime: Some(Timeval { seconds: 1_700_000_000, useconds: 7 }),
        };
        golden(ARGS, Args { file: FH2, attributes });
        golden::<Reply>(OK, Ok(ATTR2));
        golden::<Reply>(FAIL, Err(NfsStat2::RoFs));
    }
}
