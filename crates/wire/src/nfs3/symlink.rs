//! SYMLINK: a symbolic link (RFC 1813 section 3.3.10).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, PATH_LEN_MAX, Sattr3};

xdr_struct! {
    /// `SYMLINK3args`, with the fields of `symlinkdata3` in place.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub symlink_attributes: Sattr3,
        /// Where it points; the server stores it as it is.
        pub symlink_data: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

/// `SYMLINK3res` has the fields of that of CREATE.
pub use super::create::{Reply, ReplyFail, ReplyOk};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FOO, NEW, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # where.dir
        00000003 666f6f 00           # where.name: foo
        00000000                     # mode: unchanged
        00000000 00000000 00000000   # uid, gid, size: unchanged
        00000000 00000000            # atime, mtime: unchanged
        00000006 2e2e2f626172 0000   # symlink_data: ../bar
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        NEW                          # obj, obj_attributes, dir_wcc
    ";
    pub(crate) const FAIL: &str = "
        00002714                     # status: NFS3ERR_NOTSUPP (10004)
        WCC                          # dir_wcc
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args =
            Args { where_: FOO, symlink_attributes: Sattr3::default(), symlink_data: b"../bar" };
        golden(ARGS, args);
        golden::<Reply>(OK, Ok(NEW));
        let failure = ReplyFail { status: NfsStat3::NotSupp, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }
}
