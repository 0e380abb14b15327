//! MKDIR: a directory (RFC 1094 section 2.2.15).

/// `createargs` and `diropres`, as of CREATE.
pub use super::create::{Args, Reply};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::{DirOpOk, NfsStat2, Sattr2};
    use crate::testing::{ATTR2, FH2, FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # where.dir
        00000003 666f6f 00           # where.name: foo
        000001ed ffffffff ffffffff   # mode: 0755; uid, gid: unchanged
        ffffffff                     # size: unchanged
        ffffffff ffffffff            # atime: unchanged
        ffffffff ffffffff            # mtime: unchanged
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        FH2                          # file
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        00000011                     # status: NFSERR_EXIST (17)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let attributes = Sattr2 { mode: Some(0o755), ..Sattr2::default() };
        golden(ARGS, Args { where_: FOO2, attributes });
        golden::<Reply>(OK, Ok(DirOpOk { file: FH2, attributes: ATTR2 }));
        golden::<Reply>(FAIL, Err(NfsStat2::Exist));
    }
}
