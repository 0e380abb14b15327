//! LINK: a further name for a file (RFC 1094 section 2.2.13).

use crate::xdr::Void;
use crate::xdr::macros::xdr_struct;

use super::{DirOp, FHandle, NfsStat2};

xdr_struct! {
    /// `linkargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub from: FHandle,
        pub to: DirOp<'a>,
    }
}

/// `stat`
pub type Reply = Result<Void, NfsStat2>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FH2, FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # from
        FH2                          # to.dir
        00000003 666f6f 00           # to.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
    ";
    pub(crate) const FAIL: &str = "
        0000001f                     # status: NFSERR_MLINK (31)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { from: FH2, to: FOO2 });
        golden::<Reply>(OK, Ok(()));
        golden::<Reply>(FAIL, Err(NfsStat2::MLink));
    }
}
