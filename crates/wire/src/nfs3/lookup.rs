//! LOOKUP: from a name in a directory to a handle (RFC 1813 section 3.3.3).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `LOOKUP3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub what: DirOp<'a>,
    }
}

/// `LOOKUP3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `LOOKUP3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub object: FileHandle,
        pub obj_attributes: PostOpAttr,
        pub dir_attributes: PostOpAttr,
    }
}

/// `LOOKUP3resfail`: `dir_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::{NAME_LEN_MAX, NfsStat3};
    use crate::testing::{ATTR, FH, FOO, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # what.dir
        00000003 66 6f 6f 00         # what.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000005 a1a2a3a4 a5000000   # object
        00000001 ATTR                # obj_attributes
        00000000                     # dir_attributes: absent
    ";
    pub(crate) const FAIL: &str = "
        00000002                     # status: NFS3ERR_NOENT
        00000001 ATTR                # dir_attributes
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { what: FOO });
        let ok = ReplyOk { object: FH, obj_attributes: Some(ATTR), dir_attributes: None };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::NoEnt, detail: Some(ATTR) };
        golden::<Reply>(FAIL, Err(failure));
    }

    #[test]
    fn a_name_longer_than_any_file_system_takes_still_decodes() {
        let name = [b'n'; NAME_LEN_MAX + 1];
        let long = |len| Args { what: DirOp { dir: FH, name: &name[..len] } };
        assert!(from_bytes::<Args<'_>>(&long(NAME_LEN_MAX).to_bytes()).is_ok());
        let refused = from_bytes::<Args<'_>>(&long(NAME_LEN_MAX + 1).to_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "name at byte 12: 4097 bytes, at most 4096 are allowed");
    }
}
