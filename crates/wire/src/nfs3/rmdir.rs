//! RMDIR: removes an empty directory (RFC 1813 section 3.3.13).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, WccData};

xdr_struct! {
    /// `RMDIR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub object: DirOp<'a>,
    }
}

/// `RMDIR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `RMDIR3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub dir_wcc: WccData,
    }
}

/// `RMDIR3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;
