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
/// All that can be requested.
pub const ALL: u32 = READ | LOOKUP | MODIFY | EXTEND | DELETE | EXECUTE;

xdr_struct! {
    /// `ACCESS3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
        /// The bits that are requested.
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
        /// The bits that are allowed, of those requested.
        pub access: u32,
    }
}

/// `ACCESS3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # object
        0000001f                     # access: all but EXECUTE
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # obj_attributes
        0000000d                     # access: READ, MODIFY, EXTEND
    ";
    pub(crate) const FAIL: &str = "
        0000000d                     # status: NFS3ERR_ACCES (13)
        00000000                     # obj_attributes: absent
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let access = READ | LOOKUP | MODIFY | EXTEND | DELETE;
        golden(ARGS, Args { object: FH, access });
        let ok = ReplyOk { obj_attributes: Some(ATTR), access: READ | MODIFY | EXTEND };
        golden::<Reply>(OK, Ok(ok));
        golden::<Reply>(FAIL, Err(NfsStat3::Acces.into()));
    }
}
