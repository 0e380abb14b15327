//! LOOKUP: from a name in a directory to a handle (RFC 1813 section 3.3.3).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `LOOKUP3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub what: DirOp<'a>,
    }
}

/// `LOOKUP3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `LOOKUP3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub object: FileHandle,
        pub obj_attributes: PostOpAttr,
        pub dir_attributes: PostOpAttr,
    }
}

/// `LOOKUP3resfail`: `dir_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;
