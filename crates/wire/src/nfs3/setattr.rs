//! SETATTR: changes attributes, size among them (RFC 1813 section 3.3.2).

use crate::xdr::macros::xdr_struct;

use super::{Failure, FileHandle, NfsTime, Sattr3, WccData};

xdr_struct! {
    /// `SETATTR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub object: FileHandle,
        pub new_attributes: Sattr3,
        /// When given and not the file's ctime, nothing changes: NFS3ERR_NOT_SYNC.
        pub guard: Option<NfsTime>,
    }
}

/// `SETATTR3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `SETATTR3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub obj_wcc: WccData,
    }
}

/// `SETATTR3resfail`: `obj_wcc`.
pub type ReplyFail = Failure<WccData>;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::{NfsStat3, SetTime};
    use crate::testing::{ATTR, FH, WCC, golden};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # object
        00000001 000001ed            # mode: 0755
        00000000                     # uid: unchanged
        00000001 00000064            # gid: 100
        00000001 00000000 00000000   # size: 0, truncates
        00000001                     # atime: SET_TO_SERVER_TIME
        00000002 6553f100 00000007   # mtime: SET_TO_CLIENT_TIME
        00000001 6553f102 00000003   # guard: this ctime
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        WCC                          # obj_wcc
    ";
    pub(crate) const FAIL: &str = "
        00002712                     # status: NFS3ERR_NOT_SYNC (10002)
        00000000 00000001 ATTR       # obj_wcc: nothing before, attributes after
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let time = NfsTime { seconds: 1_700_000_000, nseconds: 7 };
        let args = Args {
            object: FH,
            new_attributes: Sattr3 {
                mode: Some(0o755),
                uid: None,
                gid: Some(100),
                size: Some(0),
                atime: SetTime::ServerTime,
                mtime: SetTime::ClientTime(time),
            },
            guard: Some(ATTR.ctime),
        };
        golden(ARGS, args);
        golden::<Reply>(OK, Ok(ReplyOk { obj_wcc: WCC }));
        let failure = ReplyFail {
            status: NfsStat3::NotSync,
            detail: WccData { before: None, after: Some(ATTR) },
        };
        golden::<Reply>(FAIL, Err(failure));
    }
}
