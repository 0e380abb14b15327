//! Why a procedure failed (RFC 1094 section 2.3.1). It is all that a failed reply says.

use crate::xdr::macros::xdr_failures;

xdr_failures! {
    /// `stat` without NFS_OK, which is the `Ok` of a `Reply`.
    ///
    /// The RFC says that the numbers are those of UNIX's errors, and clients take others than it
    /// lists for what they are there. Those that every client knows are listed too.
    pub enum NfsStat2 {
        /// Not the owner, or not root.
        Perm = 1 "NFSERR_PERM",
        NoEnt = 2 "NFSERR_NOENT",
        /// A hard error, such as of a disk.
        Io = 5 "NFSERR_IO",
        NxIo = 6 "NFSERR_NXIO",
        /// The permissions do not allow it.
        Acces = 13 "NFSERR_ACCES",
        Exist = 17 "NFSERR_EXIST",
        /// A hard link across file systems; not in the RFC.
        XDev = 18 "NFSERR_XDEV",
        NoDev = 19 "NFSERR_NODEV",
        NotDir = 20 "NFSERR_NOTDIR",
        IsDir = 21 "NFSERR_ISDIR",
        /// An argument that is invalid for the object; not in the RFC.
        Inval = 22 "NFSERR_INVAL",
        FBig = 27 "NFSERR_FBIG",
        NoSpc = 28 "NFSERR_NOSPC",
        RoFs = 30 "NFSERR_ROFS",
        /// Too many hard links; not in the RFC.
        MLink = 31 "NFSERR_MLINK",
        NameTooLong = 63 "NFSERR_NAMETOOLONG",
        NotEmpty = 66 "NFSERR_NOTEMPTY",
        DQuot = 69 "NFSERR_DQUOT",
        /// The file the handle named is gone, or access to it was revoked.
        Stale = 70 "NFSERR_STALE",
        /// The write cache of WRITECACHE was flushed to disk.
        WFlush = 99 "NFSERR_WFLUSH",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs2::getattr;
    use crate::xdr::{Encode, from_bytes};

    #[test]
    fn an_unlisted_status_is_preserved() {
        let bytes = [0, 0, 0x30, 0x39];
        let status = from_bytes::<getattr::Reply>(&bytes).unwrap().unwrap_err();
        assert_eq!(status.to_string(), "unlisted(12345)");
        assert_eq!(status.to_bytes(), bytes);
    }

    #[test]
    fn every_listed_status_comes_back_from_its_number() {
        for &status in NfsStat2::LISTED {
            assert_eq!(NfsStat2::from_code(status.code()), Some(status));
        }
        assert_eq!(NfsStat2::from_code(0), None);
        assert_eq!(NfsStat2::from_code(99), Some(NfsStat2::WFlush));
        assert_eq!(NfsStat2::LISTED.len(), 20);
    }
}
