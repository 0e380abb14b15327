//! SYMLINK: a symbolic link (RFC 1813 section 3.3.10).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, NewObject, PATH_LEN_MAX, Sattr3, WccData};

xdr_struct! {
    /// `SYMLINK3args`, with the fields of `symlinkdata3` in place.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub symlink_attributes: Sattr3,
        /// Where it points; the server stores it as it is.
        pub symlink_data: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

/// `SYMLINK3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

/// `SYMLINK3resok`
pub type ReplyOk = NewObject;

/// `SYMLINK3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;
