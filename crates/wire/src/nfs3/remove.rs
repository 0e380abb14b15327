//! REMOVE: removes a name that is no directory (RFC 1813 section 3.3.12).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, WccData};

xdr_struct! {
    /// `REMOVE3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub object: DirOp<'a>,
    }
}

/// `REMOVE3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `REMOVE3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub dir_wcc: WccData,
    }
}

/// `REMOVE3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;
