//! GETATTR: the attributes of a file (RFC 1813 section 3.3.1).

use crate::xdr::macros::xdr_struct;

use super::{Failure, Fattr3, FileHandle};

xdr_struct! {
    /// `GETATTR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
    }
}

/// `GETATTR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `GETATTR3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: Fattr3,
    }
}

/// Only the status.
pub type ReplyFail = Failure<()>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # object: 5 bytes and padding
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        ATTR                         # obj_attributes
    ";
    pub(crate) const FAIL: &str = "
        00000046                     # status: NFS3ERR_STALE (70)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { object: FH });
        golden::<Reply>(OK, Ok(ReplyOk { obj_attributes: ATTR }));
        golden::<Reply>(FAIL, Err(NfsStat3::Stale.into()));
    }
}
