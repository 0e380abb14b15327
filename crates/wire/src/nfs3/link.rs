//! LINK: another name for a file (RFC 1813 section 3.3.15).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, FileHandle, PostOpAttr, WccData};

xdr_struct! {
    /// `LINK3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub file: FileHandle,
        pub link: DirOp<'a>,
    }
}

/// `LINK3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `LINK3resok`
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ReplyOk {
        pub file_attributes: PostOpAttr,
        pub linkdir_wcc: WccData,
    }
}

/// `LINK3resfail`: the same file and directory as in `LINK3resok`.
pub type ReplyFail = Failure<ReplyOk>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FOO, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000001 b1 000000           # file: another handle, of 1 byte
        00000005 a1a2a3a4 a5000000   # link.dir
        00000003 666f6f 00           # link.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # file_attributes
        WCC                          # linkdir_wcc
    ";
    pub(crate) const FAIL: &str = "
        0000001f                     # status: NFS3ERR_MLINK (31)
        00000001 ATTR                # file_attributes
        00000000 00000000            # linkdir_wcc: nothing
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let file = FileHandle::new(&[0xb1]).unwrap();
        golden(ARGS, Args { file, link: FOO });
        let ok = ReplyOk { file_attributes: Some(ATTR), linkdir_wcc: WCC };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail {
            status: NfsStat3::MLink,
            detail: ReplyOk { linkdir_wcc: WccData::default(), ..ok },
        };
        golden::<Reply>(FAIL, Err(failure));
    }
}
