//! ACCESS: what the caller may do with a file (RFC 1813 section 3.3.4).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, PostOpAttr};

/// Read a file or a directory.
pub const READ: u32 = 0x01;
/// Look up names in a directory.
pub const LOOKUP: u32 = 0x02;
/// Rewrite existing data or entries.
pub const MODIFY: u32 = 0x04;
/// Write new data or add entries.
pub const EXTEND: u32 = 0x08;
/// Delete entries of a directory.
pub const DELETE: u32 = 0x10;
/// Execute a file.
pub const EXECUTE: u32 = 0x20;

xdr_struct! {
    /// `ACCESS3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
        /// The bits that are asked about.
        pub access: u32,
    }
}

/// `ACCESS3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `ACCESS3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: PostOpAttr,
        /// The bits that are allowed, of those asked about.
        pub access: u32,
    }
}

/// `ACCESS3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;
