//! RMDIR: removes an empty directory (RFC 1813 section 3.3.13).

/// `RMDIR3args` and `RMDIR3res` have the fields of those of REMOVE.
pub use super::remove::{Args, Reply, ReplyFail, ReplyOk};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FOO, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # object.dir
        00000003 666f6f 00           # object.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        WCC                          # dir_wcc
    ";
    pub(crate) const FAIL: &str = "
        00000042                     # status: NFS3ERR_NOTEMPTY (66)
        WCC                          # dir_wcc
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { object: FOO });
        golden::<Reply>(OK, Ok(ReplyOk { dir_wcc: WCC }));
        let failure = ReplyFail { status: NfsStat3::NotEmpty, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }
}
