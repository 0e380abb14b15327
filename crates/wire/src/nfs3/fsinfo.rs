//! FSINFO: sizes and properties a client should know about a server (RFC 1813 section 3.3.19).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, NfsTime, PostOpAttr};

/// [`ReplyOk::properties`]: hard links are supported.
pub const FSF_LINK: u32 = 0x01;
/// [`ReplyOk::properties`]: symbolic links are supported.
pub const FSF_SYMLINK: u32 = 0x02;
/// [`ReplyOk::properties`]: PATHCONF says the same for every file.
pub const FSF_HOMOGENEOUS: u32 = 0x08;
/// [`ReplyOk::properties`]: SETATTR can set times exactly.
pub const FSF_CANSETTIME: u32 = 0x10;

xdr_struct! {
    /// `FSINFO3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub fsroot: FileHandle,
    }
}

/// `FSINFO3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `FSINFO3resok`. Sizes are in bytes.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: PostOpAttr,
        /// Most bytes a READ may ask for.
        pub rtmax: u32,
        /// Bytes a READ should ask for.
        pub rtpref: u32,
        /// A READ should ask for a multiple of this.
        pub rtmult: u32,
        /// Most bytes a WRITE may carry.
        pub wtmax: u32,
        /// Bytes a WRITE should carry.
        pub wtpref: u32,
        /// A WRITE should carry a multiple of this.
        pub wtmult: u32,
        /// Bytes a READDIR should ask for.
        pub dtpref: u32,
        pub maxfilesize: u64,
        /// How fine the server's time stamps are.
        pub time_delta: NfsTime,
        /// `FSF_` bits.
        pub properties: u32,
    }
}

/// `FSINFO3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;
