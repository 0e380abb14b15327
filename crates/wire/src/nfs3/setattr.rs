//! SETATTR: changes attributes, size among them (RFC 1813 section 3.3.2).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, NfsTime, Sattr3, WccData};

xdr_struct! {
    /// `SETATTR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
        pub new_attributes: Sattr3,
        /// When given and not the file's ctime, nothing changes: NFS3ERR_NOT_SYNC.
        pub guard: Option<NfsTime>,
    }
}

/// `SETATTR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `SETATTR3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_wcc: WccData,
    }
}

/// `SETATTR3resfail`: `obj_wcc`.
pub type ReplyFail = Failure<WccData>;
