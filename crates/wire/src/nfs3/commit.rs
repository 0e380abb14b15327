//! COMMIT: unstable data onto stable storage (RFC 1813 section 3.3.21).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, WccData};

xdr_struct! {
    /// `COMMIT3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FileHandle,
        pub offset: u64,
        /// Bytes from `offset`; 0 means to the end of the file.
        pub count: u32,
    }
}

/// `COMMIT3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `COMMIT3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub file_wcc: WccData,
        /// Data written under another verifier may be lost and has to be written again.
        pub verf: [u8; 8],
    }
}

/// `COMMIT3resfail`: `file_wcc`.
pub type ReplyFail = Failure<WccData>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FH, VERF, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # file
        00000000 00002000            # offset: 8192
        00000000                     # count: to the end
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        WCC                          # file_wcc
        0102030405060708             # verf
    ";
    pub(crate) const FAIL: &str = "
        00000045                     # status: NFS3ERR_DQUOT (69)
        WCC                          # file_wcc
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { file: FH, offset: 8192, count: 0 };
        golden(ARGS, args);
        let ok = ReplyOk { file_wcc: WCC, verf: VERF };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::DQuot, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }
}
