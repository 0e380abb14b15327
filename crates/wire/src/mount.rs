//! MOUNT version 3 (RFC 1813 appendix I): from a path to its file handle, and who has mounted what.
//!
//! Version 1 (RFC 1094 appendix A) has the same procedures, arguments and lists; only the results
//! of MNT differ, and belong to NFS version 2: [`MntReply1`].

use crate::nfs2::FHandle;
use crate::nfs3::FileHandle;
use crate::xdr::List;
use crate::xdr::macros::{xdr_enum, xdr_failures, xdr_struct};

pub const PROGRAM: u32 = 100_005;
pub const VERSION: u32 = 3;
/// Version 1 serves NFS version 2.
pub const VERSION_1: u32 = 1;

/// MNTPATHLEN: most bytes in a path.
pub const PATH_LEN_MAX: usize = 1024;
/// MNTNAMLEN: most bytes in a name.
pub const NAME_LEN_MAX: usize = 255;

xdr_enum! {
    /// The procedures of MOUNT.
    pub enum Procedure {
        Null = 0 "NULL",
        /// [`DirPath`] -> [`MntReply`]
        Mnt = 1 "MNT",
        /// nothing -> [`DumpReply`]
        Dump = 2 "DUMP",
        /// [`DirPath`] -> nothing
        Umnt = 3 "UMNT",
        /// nothing -> nothing
        Umntall = 4 "UMNTALL",
        /// nothing -> [`ExportReply`]
        Export = 5 "EXPORT",
    }
}

xdr_struct! {
    /// The path to mount or unmount.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct DirPath<'a> {
        pub dirpath: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

/// What MNT returns.
pub type MntReply = Result<MntOk, MountStat3>;

xdr_struct! {
    /// The root of the mounted tree.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct MntOk {
        pub fhandle: FileHandle,
        /// RPC authentication flavors the server takes for this tree, best first.
        pub auth_flavors: Vec<u32>,
    }
}

xdr_failures! {
    /// Why a tree cannot be mounted (`mountstat3`).
    pub enum MountStat3 {
        Perm = 1 "MNT3ERR_PERM",
        NoEnt = 2 "MNT3ERR_NOENT",
        Io = 5 "MNT3ERR_IO",
        Acces = 13 "MNT3ERR_ACCES",
        NotDir = 20 "MNT3ERR_NOTDIR",
        Inval = 22 "MNT3ERR_INVAL",
        NameTooLong = 63 "MNT3ERR_NAMETOOLONG",
        NotSupp = 10004 "MNT3ERR_NOTSUPP",
        ServerFault = 10006 "MNT3ERR_SERVERFAULT",
    }
}

/// What MNT of version 1 returns (`fhstatus`). A failure is an error of UNIX, whose numbers are
/// those of [`MountStat3`] too.
pub type MntReply1 = Result<MntOk1, MountStat3>;

xdr_struct! {
    /// The root of the mounted tree, as NFS version 2 has it.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct MntOk1 {
        pub directory: FHandle,
    }
}

xdr_struct! {
    /// Every mount the server remembers.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct DumpReply<'a> {
        pub mounts: List<MountEntry<'a>>,
    }
}

xdr_struct! {
    /// Who has mounted what.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct MountEntry<'a> {
        pub hostname: &'a [u8] where len <= NAME_LEN_MAX,
        pub directory: &'a [u8] where len <= PATH_LEN_MAX,
    }
}

xdr_struct! {
    /// Every tree the server exports.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ExportReply<'a> {
        pub exports: List<Export<'a>>,
    }
}

xdr_struct! {
    /// A tree, and which groups of clients may mount it; everyone when there are none.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct Export<'a> {
        pub dir: &'a [u8] where len <= PATH_LEN_MAX,
        pub groups: List<Group<'a>>,
    }
}

xdr_struct! {
    /// A host or netgroup.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Group<'a> {
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FH, FH2, golden};

    pub(crate) const DIR_PATH: &str = "
        00000007 2f657870 6f727400   # dirpath: /export
    ";
    pub(crate) const MNT_OK: &str = "
        00000000                     # fhs_status: MNT3_OK
        00000005 a1a2a3a4 a5000000   # fhandle
        00000002 00000001 00000000   # auth_flavors: AUTH_SYS, AUTH_NONE
    ";
    pub(crate) const MNT_FAIL: &str = "
        0000000d                     # fhs_status: MNT3ERR_ACCES
    ";
    pub(crate) const MNT1_OK: &str = "
        00000000                     # status: no error
        FH2                          # directory
    ";
    pub(crate) const DUMP_OK: &str = "
        00000001                     # an entry
        00000006 636c6965 6e740000   # hostname: client
        00000007 2f657870 6f727400   # directory: /export
        00000000                     # no more
    ";
    pub(crate) const EXPORT_OK: &str = "
        00000001                     # an export
        00000007 2f657870 6f727400   # dir: /export
        00000001 00000003 6c616200   # groups: lab
        00000001 00000001 2a000000   # and *
        00000000                     # no more groups
        00000001                     # another export
        00000001 2f000000            # dir: /
        00000000                     # no groups
        00000000                     # no more exports
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(DIR_PATH, DirPath { dirpath: b"/export" });
        let ok = MntOk { fhandle: FH, auth_flavors: vec![1, 0] };
        golden::<MntReply>(MNT_OK, Ok(ok));
        golden::<MntReply>(MNT_FAIL, Err(MountStat3::Acces));
        golden::<MntReply1>(MNT1_OK, Ok(MntOk1 { directory: FH2 }));
        golden::<MntReply1>(MNT_FAIL, Err(MountStat3::Acces));
    }

    #[test]
    fn lists_have_the_bytes_of_the_rfc() {
        let entry = MountEntry { hostname: b"client", directory: b"/export" };
        golden(DUMP_OK, DumpReply { mounts: List(vec![entry]) });
        let export = Export {
            dir: b"/export",
            groups: List(vec![Group { name: b"lab" }, Group { name: b"*" }]),
        };
        let open = Export { dir: b"/", groups: List::default() };
        golden(EXPORT_OK, ExportReply { exports: List(vec![export, open]) });
    }
}
