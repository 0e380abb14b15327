//! CREATE: a regular file (RFC 1094 section 2.2.10).
//!
//! Since there is no MKNOD, other types are made by it too, by the type in the mode; the number of
//! a device travels as its size (practice of SunOS and everybody since).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, DirOpRes, Sattr2};

xdr_struct! {
    /// `createargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub attributes: Sattr2,
    }
}

/// `diropres`
pub type Reply = DirOpRes;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::{DirOpOk, NfsStat2};
    use crate::testing::{ATTR2, FH2, FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # where.dir
        00000003 666f6f 00           # where.name: foo
        000081a4 ffffffff ffffffff   # mode: regular, 0644; uid, gid: unchanged
        00000000                     # size: 0, truncates
        ffffffff ffffffff            # atime: unchanged
        ffffffff ffffffff            # mtime: unchanged
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        FH2                          # file
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        0000003f                     # status: NFSERR_NAMETOOLONG (63)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let attributes = Sattr2 { mode: Some(0o100_644), size: Some(0), ..Sattr2::default() };
        golden(ARGS, Args { where_: FOO2, attributes });
        golden::<Reply>(OK, Ok(DirOpOk { file: FH2, attributes: ATTR2 }));
        golden::<Reply>(FAIL, Err(NfsStat2::NameTooLong));
    }
}
