//! RENAME: gives a file another name, atomically (RFC 1813 section 3.3.14).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, WccData};

xdr_struct! {
    /// `RENAME3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub from: DirOp<'a>,
        pub to: DirOp<'a>,
    }
}

/// `RENAME3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `RENAME3resok`
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ReplyOk {
        pub fromdir_wcc: WccData,
        pub todir_wcc: WccData,
    }
}

/// `RENAME3resfail`: the same two directories as in `RENAME3resok`.
pub type ReplyFail = Failure<ReplyOk>;
