//! SYMLINK: a symbolic link (RFC 1094 section 2.2.14).

use crate::xdr::Void;
use crate::xdr::macros::xdr_struct;

use super::{DirOp, NfsStat2, PATH_LEN_MAX, Sattr2};

xdr_struct! {
    /// `symlinkargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub from: DirOp<'a>,
        /// Where it points; the server stores it as it is.
        pub to: &'a [u8] where len <= PATH_LEN_MAX,
        pub attributes: Sattr2,
    }
}

/// `stat`
pub type Reply = Result<Void, NfsStat2>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # from.dir
        00000003 666f6f 00           # from.name: foo
        00000006 2e2e2f626172 0000   # to: ../bar
        000001ff ffffffff ffffffff   # mode: 0777; uid, gid: unchanged
        ffffffff ffffffff ffffffff   # size, atime: unchanged
        ffffffff ffffffff            # mtime: unchanged
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
    ";
    pub(crate) const FAIL: &str = "
        00000045                     # status: NFSERR_DQUOT (69)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let attributes = Sattr2 { mode: Some(0o777), ..Sattr2::default() };
        golden(ARGS, Args { from: FOO2, to: b"../bar", attributes });
        golden::<Reply>(OK, Ok(()));
        golden::<Reply>(FAIL, Err(NfsStat2::DQuot));
    }
}
