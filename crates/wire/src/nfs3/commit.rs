//! COMMIT: unstable data onto stable storage (RFC 1813 section 3.3.21).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, WccData};

xdr_struct! {
    /// `COMMIT3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FileHandle,
        pub offset: u64,
        /// Bytes from `offset`; 0 means to the end of the file.
        pub count: u32,
    }
}

/// `COMMIT3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `COMMIT3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub file_wcc: WccData,
        /// Data written under another verifier may be lost and has to be written again.
        pub verf: [u8; 8],
    }
}

/// `COMMIT3resfail`: `file_wcc`.
pub type ReplyFail = Failure<WccData>;
