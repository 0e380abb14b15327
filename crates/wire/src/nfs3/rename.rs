//! RENAME: gives a file another name, atomically (RFC 1813 section 3.3.14).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, WccData};

xdr_struct! {
    /// `RENAME3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub from: DirOp<'a>,
        pub to: DirOp<'a>,
    }
}

/// `RENAME3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `RENAME3resok`
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct ReplyOk {
        pub fromdir_wcc: WccData,
        pub todir_wcc: WccData,
    }
}

/// `RENAME3resfail`: the same two directories as in `RENAME3resok`.
pub type ReplyFail = Failure<ReplyOk>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::{FileHandle, NfsStat3};
    use crate::testing::{ATTR, FOO, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # from.dir
        00000003 666f6f 00           # from.name: foo
        00000001 b1 000000           # to.dir: another, of 1 byte
        00000004 62617221            # to.name: bar!
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000000 00000001 ATTR       # fromdir_wcc: nothing before
        WCC                          # todir_wcc
    ";
    pub(crate) const FAIL: &str = "
        00000012                     # status: NFS3ERR_XDEV (18)
        WCC                          # fromdir_wcc
        00000000 00000000            # todir_wcc: nothing
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let to = DirOp { dir: FileHandle::new(&[0xb1]).unwrap(), name: b"bar!" };
        golden(ARGS, Args { from: FOO, to });
        let ok =
            ReplyOk { fromdir_wcc: WccData { before: None, after: Some(ATTR) }, todir_wcc: WCC };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail {
            status: NfsStat3::XDev,
            detail: ReplyOk { fromdir_wcc: WCC, todir_wcc: WccData::default() },
        };
        golden::<Reply>(FAIL, Err(failure));
    }
}
