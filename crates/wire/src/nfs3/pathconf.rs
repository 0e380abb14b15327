//! PATHCONF: what POSIX pathconf says about a file (RFC 1813 section 3.3.20).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `PATHCONF3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
    }
}

/// `PATHCONF3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `PATHCONF3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: PostOpAttr,
        /// Most hard links to a file.
        pub linkmax: u32,
        /// Most bytes in a name.
        pub name_max: u32,
        /// A longer name is refused, not cut.
        pub no_trunc: bool,
        /// Only root may give files away.
        pub chown_restricted: bool,
        pub case_insensitive: bool,
        pub case_preserving: bool,
    }
}

/// `PATHCONF3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;
