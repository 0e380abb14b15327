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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # fsroot
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000000                     # obj_attributes: absent
        00000100 00000000            # tbytes: 1 TiB
        00000080 00000000            # fbytes
        00000040 00000000            # abytes
        00000000 00100000            # tfiles
        00000000 000fffff            # ffiles
        00000000 000ffffe            # afiles
        0000001e                     # invarsec: 30
    ";
    pub(crate) const FAIL: &str = "
        00002711                     # status: NFS3ERR_BADHANDLE (10001)
        00000000                     # obj_attributes: absent
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { fsroot: FH });
        let ok = ReplyOk {
            obj_attributes: None,
            tbytes: 1 << 40,
            fbytes: 1 << 39,
            abytes: 1 << 38,
            tfiles: 0x10_0000,
            ffiles: 0xf_ffff,
            afiles: 0xf_fffe,
            invarsec: 30,
        };
        golden::<Reply>(OK, Ok(ok));
        golden::<Reply>(FAIL, Err(NfsStat3::BadHandle.into()));
    }
}
