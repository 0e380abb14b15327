//! LINK: another name for a file (RFC 1813 section 3.3.15).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, FileHandle, PostOpAttr, WccData};

xdr_struct! {
    /// `LINK3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub file: FileHandle,
        pub link: DirOp<'a>,
    }
}

/// `LINK3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `LINK3resok`
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ReplyOk {
        pub file_attributes: PostOpAttr,
        pub linkdir_wcc: WccData,
    }
}

/// `LINK3resfail`: the same file and directory as in `LINK3resok`.
pub type ReplyFail = Failure<ReplyOk>;
