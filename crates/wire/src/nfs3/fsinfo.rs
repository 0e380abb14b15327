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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # fsroot
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # obj_attributes
        00100000 00080000 00001000   # rtmax, rtpref, rtmult
        00200000 00040000 00000200   # wtmax, wtpref, wtmult
        00010000                     # dtpref
        7fffffff ffffffff            # maxfilesize
        00000000 00000001            # time_delta: 1 ns
        0000001b                     # properties: all four
    ";
    pub(crate) const FAIL: &str = "
        00002716                     # status: NFS3ERR_SERVERFAULT (10006)
        00000001 ATTR                # obj_attributes
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { fsroot: FH });
        let ok = ReplyOk {
            obj_attributes: Some(ATTR),
            rtmax: 0x10_0000,
            rtpref: 0x8_0000,
            rtmult: 0x1000,
            wtmax: 0x20_0000,
            wtpref: 0x4_0000,
            wtmult: 0x200,
            dtpref: 0x1_0000,
            maxfilesize: i64::MAX.cast_unsigned(),
            time_delta: NfsTime { seconds: 0, nseconds: 1 },
            properties: FSF_LINK | FSF_SYMLINK | FSF_HOMOGENEOUS | FSF_CANSETTIME,
        };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::ServerFault, detail: Some(ATTR) };
        golden::<Reply>(FAIL, Err(failure));
    }
}
