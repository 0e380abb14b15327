//! PATHCONF: what POSIX pathconf says about a file (RFC 1813 section 3.3.20).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `PATHCONF3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
    }
}

/// `PATHCONF3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `PATHCONF3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_attributes: PostOpAttr,
        /// Most hard links to a file.
        pub linkmax: u32,
        /// Most bytes in a name.
        pub name_max: u32,
        /// A longer name is refused, not cut.
        pub no_trunc: bool,
        /// Only root may give files away.
        pub chown_restricted: bool,
        pub case_insensitive: bool,
        pub case_preserving: bool,
    }
}

/// `PATHCONF3resfail`: `obj_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # object
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000000                     # obj_attributes: absent
        00007fff 000000ff            # linkmax, name_max
        00000001 00000001            # no_trunc, chown_restricted
        00000000 00000001            # case_insensitive, case_preserving
    ";
    pub(crate) const FAIL: &str = "
        00002718                     # status: NFS3ERR_JUKEBOX (10008)
        00000001 ATTR                # obj_attributes
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { object: FH });
        let ok = ReplyOk {
            obj_attributes: None,
            linkmax: 32_767,
            name_max: 255,
            no_trunc: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
        };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::Jukebox, detail: Some(ATTR) };
        golden::<Reply>(FAIL, Err(failure));
    }
}
