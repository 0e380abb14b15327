//! RMDIR: removes an empty directory (RFC 1094 section 2.2.16).

/// `diropargs` and `stat`, as of REMOVE.
pub use super::remove::{Args, Reply};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::NfsStat2;
    use crate::testing::{FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # what.dir
        00000003 666f6f 00           # what.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
    ";
    pub(crate) const FAIL: &str = "
        00000042                     # status: NFSERR_NOTEMPTY (66)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { what: FOO2 });
        golden::<Reply>(OK, Ok(()));
        golden::<Reply>(FAIL, Err(NfsStat2::NotEmpty));
    }
}
