//! READLINK: where a symbolic link points (RFC 1094 section 2.2.6).

use crate::xdr::macros::xdr_struct;

use super::{FHandle, NfsStat2, PATH_LEN_MAX};

xdr_struct! {
    /// `fhandle`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FHandle,
    }
}

/// `readlinkres`
pub type Reply<'a> = Result<ReplyOk<'a>, NfsStat2>;

xdr_struct! {
    /// The path.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        /// Which the client interprets.
        pub data: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FH2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # file
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        00000006 2e2e 2f666f6f 0000  # data: ../foo
    ";
    pub(crate) const FAIL: &str = "
        00000016                     # status: NFSERR_INVAL (22), not a symbolic link
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { file: FH2 });
        golden::<Reply<'_>>(OK, Ok(ReplyOk { data: b"../foo" }));
        golden::<Reply<'_>>(FAIL, Err(NfsStat2::Inval));
    }
}
