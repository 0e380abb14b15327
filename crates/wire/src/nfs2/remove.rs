//! REMOVE: takes a name away from a file (RFC 1094 section 2.2.11).

use crate::xdr::Void;
use crate::xdr::macros::xdr_struct;

use super::{DirOp, NfsStat2};

xdr_struct! {
    /// `diropargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub what: DirOp<'a>,
    }
}

/// `stat`
pub type Reply = Result<Void, NfsStat2>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FOO2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # what.dir
        00000003 666f6f 00           # what.name: foo
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
    ";
    pub(crate) const FAIL: &str = "
        0000000d                     # status: NFSERR_ACCES (13)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { what: FOO2 });
        golden::<Reply>(OK, Ok(()));
        golden::<Reply>(FAIL, Err(NfsStat2::Acces));
    }
}
