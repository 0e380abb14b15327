//! GETATTR: the attributes of a file (RFC 1094 section 2.2.2).

use crate::xdr::macros::xdr_struct;

use super::{AttrStat, FHandle};

xdr_struct! {
    /// `fhandle`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FHandle,
    }
}

/// `attrstat`
pub type Reply = AttrStat;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::NfsStat2;
    use crate::testing::{ATTR2, FH2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # file
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        00000046                     # status: NFSERR_STALE (70)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { file: FH2 });
        golden::<Reply>(OK, Ok(ATTR2));
        golden::<Reply>(FAIL, Err(NfsStat2::Stale));
    }
}
