//! FSSTAT: how full a file system is (RFC 1813 section 3.3.18).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `FSSTAT3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub fsroot: FileHandle,
    }
}

/// `FSSTAT3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `FSSTAT3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: PostOpAttr,
        /// Bytes in total.
        pub tbytes: u64,
        /// Bytes that are free.
        pub fbytes: u64,
        /// Bytes that are free for the caller.
        pub abytes: u64,
        /// File slots in total.
        pub tfiles: u64,
        /// File slots that are free.
        pub ffiles: u64,
        /// File slots that are free for the caller.
        pub afiles: u64,
        /// Seconds for which this is not expected to change; 0 when it may at any time.
        pub invarsec: u32,
    }
}

/// `FSSTAT3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;
