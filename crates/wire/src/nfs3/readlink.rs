//! READLINK: where a symbolic link points (RFC 1813 section 3.3.5).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, PATH_LEN_MAX, PostOpAttr};

xdr_struct! {
    /// `READLINK3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub symlink: FileHandle,
    }
}

/// `READLINK3res`
pub type Reply<'a> = Result<ReplyOk<'a>, ReplyFail>;

xdr_struct! {
    /// `READLINK3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        pub symlink_attributes: PostOpAttr,
        /// The path, which the client interprets.
        pub data: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

/// `READLINK3resfail`: `symlink_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # symlink
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000000                     # symlink_attributes: absent
        00000006 2e2e 2f666f6f 0000  # data: ../foo
    ";
    pub(crate) const FAIL: &str = "
        00000016                     # status: NFS3ERR_INVAL (22), not a symbolic link
        00000001 ATTR                # symlink_attributes
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { symlink: FH });
        let ok = ReplyOk { symlink_attributes: None, data: b"../foo" };
        golden::<Reply<'_>>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::Inval, detail: Some(ATTR) };
        golden::<Reply<'_>>(FAIL, Err(failure));
    }
}
