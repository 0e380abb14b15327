//! GETATTR: the attributes of a file (RFC 1813 section 3.3.1).

use crate::xdr::macros::xdr_struct;

use super::{Failure, Fattr3, FileHandle};

xdr_struct! {
    /// `GETATTR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
    }
}

/// `GETATTR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `GETATTR3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: Fattr3,
    }
}

/// Only the status.
pub type ReplyFail = Failure<()>;
