//! MKDIR: a directory (RFC 1813 section 3.3.9).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Sattr3};

xdr_struct! {
    /// `MKDIR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub attributes: Sattr3,
    }
}

/// `MKDIR3res` has the fields of that of CREATE.
pub use super::create::{Reply, ReplyFail, ReplyOk};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FOO, NEW, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # where.dir
        00000003 666f6f 00           # where.name: foo
        00000001 000001ed            # mode: 0755
        00000000 00000000 00000000   # uid, gid, size: unchanged
        00000000 00000000            # atime, mtime: unchanged
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        NEW                          # obj, obj_attributes, dir_wcc
    ";
    pub(crate) const FAIL: &str = "
        0000001e                     # status: NFS3ERR_ROFS (30)
        WCC                          # dir_wcc
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { where_: FOO, attributes: Sattr3::of_mode(0o755) };
        golden(ARGS, args);
        golden::<Reply>(OK, Ok(NEW));
        let failure = ReplyFail { status: NfsStat3::RoFs, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }
}
