//! RENAME: gives a file another name, atomically (RFC 1094 section 2.2.12).

use crate::xdr::Void;
use crate::xdr::macros::xdr_struct;

use super::{DirOp, NfsStat2};

xdr_struct! {
    /// `renameargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub from: DirOp<'a>,
        pub to: DirOp<'a>,
    }
}

/// `stat`
pub type Reply = Result<Void, NfsStat2>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::FHandle;
    use crate::testing::{FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # from.dir
        00000003 666f6f 00           # from.name: foo
        b1b1b1b1 b1b1b1b1 b1b1b1b1 b1b1b1b1 b1b1b1b1 b1b1b1b1 b1b1b1b1 b1b1b1b1   # to.dir
        00000004 62617221            # to.name: bar!
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
    ";
    pub(crate) const FAIL: &str = "
        00000012                     # status: NFSERR_XDEV (18)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let to = DirOp { dir: FHandle([0xb1; 32]), name: b"bar!" };
        golden(ARGS, Args { from: FOO2, to });
        golden::<Reply>(OK, Ok(()));
        golden::<Reply>(FAIL, Err(NfsStat2::XDev));
    }
}
