//! LOOKUP: from a name in a directory to a handle (RFC 1094 section 2.2.5).

use crate::xdr::macros::xdr_struct;

use super::{DirOp, DirOpRes};

xdr_struct! {
    /// `diropargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub what: DirOp<'a>,
    }
}

/// `diropres`
pub type Reply = DirOpRes;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::{DirOpOk, NAME_LEN_MAX, NfsStat2};
    use crate::testing::{ATTR2, FH2, FOO2, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        FH2                          # what.dir
        00000003 66 6f 6f 00         # what.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        FH2                          # file
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        00000002                     # status: NFSERR_NOENT
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { what: FOO2 });
        golden::<Reply>(OK, Ok(DirOpOk { file: FH2, attributes: ATTR2 }));
        golden::<Reply>(FAIL, Err(NfsStat2::NoEnt));
    }

    #[test]
    fn a_name_longer_than_any_file_system_takes_still_decodes() {
        let name = [b'n'; NAME_LEN_MAX + 1];
        let long = |len| Args { what: DirOp { dir: FH2, name: &name[..len] } };
        assert!(from_bytes::<Args<'_>>(&long(256).to_bytes()).is_ok());
        assert!(from_bytes::<Args<'_>>(&long(NAME_LEN_MAX).to_bytes()).is_ok());
        let refused = from_bytes::<Args<'_>>(&long(NAME_LEN_MAX + 1).to_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "name at byte 32: 4097 bytes, at most 4096 are allowed");
    }
}
