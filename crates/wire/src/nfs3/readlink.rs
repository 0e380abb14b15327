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
