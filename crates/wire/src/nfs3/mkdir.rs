//! MKDIR: a directory (RFC 1813 section 3.3.9).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, NewObject, Sattr3, WccData};

xdr_struct! {
    /// `MKDIR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub attributes: Sattr3,
    }
}

/// `MKDIR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

/// `MKDIR3resok`
pub type ReplyOk = NewObject;

/// `MKDIR3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;
