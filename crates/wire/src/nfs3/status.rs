//! Why a procedure failed (RFC 1813 section 2.6).

use crate::show::{Line, Show};
use crate::xdr::macros::xdr_failures;
use crate::xdr::{Decode, DecodeError, Encode, Reader};

xdr_failures! {
    /// `nfsstat3` without NFS3_OK, which is the `Ok` of a `Reply`.
    pub enum NfsStat3 {
        /// Not the owner, or not root.
        Perm = 1 "NFS3ERR_PERM",
        NoEnt = 2 "NFS3ERR_NOENT",
        /// A hard error, such as of a disk.
        Io = 5 "NFS3ERR_IO",
        NxIo = 6 "NFS3ERR_NXIO",
        /// The permissions do not allow it.
        Acces = 13 "NFS3ERR_ACCES",
        Exist = 17 "NFS3ERR_EXIST",
        /// A hard link across file systems.
        XDev = 18 "NFS3ERR_XDEV",
        NoDev = 19 "NFS3ERR_NODEV",
        NotDir = 20 "NFS3ERR_NOTDIR",
        IsDir = 21 "NFS3ERR_ISDIR",
        /// An argument that is invalid or not supported for the object.
        Inval = 22 "NFS3ERR_INVAL",
        FBig = 27 "NFS3ERR_FBIG",
        NoSpc = 28 "NFS3ERR_NOSPC",
        RoFs = 30 "NFS3ERR_ROFS",
        MLink = 31 "NFS3ERR_MLINK",
        NameTooLong = 63 "NFS3ERR_NAMETOOLONG",
        NotEmpty = 66 "NFS3ERR_NOTEMPTY",
        DQuot = 69 "NFS3ERR_DQUOT",
        /// The file the handle named is gone, or access to it was revoked.
        Stale = 70 "NFS3ERR_STALE",
        Remote = 71 "NFS3ERR_REMOTE",
        /// The handle fails the server's own checks.
        BadHandle = 10001 "NFS3ERR_BADHANDLE",
        /// The guard of a SETATTR did not match.
        NotSync = 10002 "NFS3ERR_NOT_SYNC",
        BadCookie = 10003 "NFS3ERR_BAD_COOKIE",
        NotSupp = 10004 "NFS3ERR_NOTSUPP",
        /// A buffer or request is too small.
        TooSmall = 10005 "NFS3ERR_TOOSMALL",
        /// Something that is none of the others.
        ServerFault = 10006 "NFS3ERR_SERVERFAULT",
        BadType = 10007 "NFS3ERR_BADTYPE",
        /// Try again later, with a new xid.
        Jukebox = 10008 "NFS3ERR_JUKEBOX",
    }
}

/// The failure side of a reply: why, and what the server still knows about the files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Failure<D> {
    pub status: NfsStat3,
    /// Attributes, as the procedure's `resfail` structure has them.
    pub detail: D,
}

impl<D: Default> From<NfsStat3> for Failure<D> {
    /// A failure that says nothing but why.
    fn from(status: NfsStat3) -> Self {
        let detail = D::default();
        Self { status, detail }
    }
}

impl<D: Encode> Encode for Failure<D> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.status.encode(out);
        self.detail.encode(out);
    }
}

impl<'a, D: Decode<'a>> Decode<'a> for Failure<D> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { status: r.field("status")?, detail: r.field("resfail")? })
    }
}

impl<D: Show> Show for Failure<D> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.status.show("", line);
        self.detail.show("attributes", line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs3::{PostOpAttr, lookup};
    use crate::xdr::from_bytes;

    #[test]
    fn an_unlisted_status_is_preserved_with_what_follows() {
        let bytes = [0, 0, 0x30, 0x39, 0, 0, 0, 0];
        let failure: Failure<PostOpAttr> =
            from_bytes::<lookup::Reply>(&bytes).unwrap().unwrap_err();
        assert_eq!(failure.status.code(), 12_345);
        assert_eq!(failure.status.to_string(), "unlisted(12345)");
        assert_eq!(failure.to_bytes(), bytes);
    }

    #[test]
    fn every_listed_status_comes_back_from_its_number() {
        for &status in NfsStat3::LISTED {
            assert_eq!(NfsStat3::from_code(status.code()), Some(status));
        }
        assert_eq!(NfsStat3::from_code(0), None);
        assert_eq!(NfsStat3::LISTED.len(), 28);
    }
}
