//! NFS version 3 (RFC 1813): one file per procedure.
//!
//! Each has `Args`, `ReplyOk`, `ReplyFail` and `Reply` (either of the two), with the RFC's field
//! names and order. A failure is a status and what the server still says about the files
//! concerned: [`Failure`]. Types that several procedures share are in `types.rs`.

pub mod access;
pub mod commit;
pub mod create;
pub mod fsinfo;
pub mod fsstat;
pub mod getattr;
pub mod link;
pub mod lookup;
pub mod mkdir;
pub mod mknod;
pub mod null;
pub mod pathconf;
pub mod read;
pub mod readdir;
pub mod readdirplus;
pub mod readlink;
pub mod remove;
pub mod rename;
pub mod rmdir;
pub mod setattr;
pub mod symlink;
pub mod write;

mod handle;
mod status;
mod types;

pub use handle::FileHandle;
pub use status::{Failure, NfsStat3};
pub use types::{
    DirOp, FType, Fattr3, NewObject, NfsTime, PostOpAttr, PostOpFh, Sattr3, SetTime, Specdata,
    StableHow, WccAttr, WccData,
};

use crate::xdr::macros::xdr_enum;

pub const PROGRAM: u32 = 100_003;
pub const VERSION: u32 = 3;
/// Where a server listens unless configured otherwise.
pub const PORT: u16 = 2049;

/// Most bytes in a file handle (NFS3_FHSIZE).
pub const HANDLE_LEN_MAX: usize = 64;
/// Most bytes in a name that we decode. File systems stop at 255; up to this size a server can
/// answer NFS3ERR_NAMETOOLONG, above it the call is garbage.
pub const NAME_LEN_MAX: usize = 4096;
/// Most bytes in the contents of a symbolic link that we decode. PATH_MAX is 4096; the rest is
/// the same leeway.
pub const PATH_LEN_MAX: usize = 8192;

/// Calls the macro `$each` with every procedure, its module, number and name.
macro_rules! for_each_procedure {
    ($each:ident) => {
        $each! {
            Null null = 0 "NULL",
            Getattr getattr = 1 "GETATTR",
            Setattr setattr = 2 "SETATTR",
            Lookup lookup = 3 "LOOKUP",
            Access access = 4 "ACCESS",
            Readlink readlink = 5 "READLINK",
            Read read = 6 "READ",
            Write write = 7 "WRITE",
            Create create = 8 "CREATE",
            Mkdir mkdir = 9 "MKDIR",
            Symlink symlink = 10 "SYMLINK",
            Mknod mknod = 11 "MKNOD",
            Remove remove = 12 "REMOVE",
            Rmdir rmdir = 13 "RMDIR",
            Rename rename = 14 "RENAME",
            Link link = 15 "LINK",
            Readdir readdir = 16 "READDIR",
            Readdirplus readdirplus = 17 "READDIRPLUS",
            Fsstat fsstat = 18 "FSSTAT",
            Fsinfo fsinfo = 19 "FSINFO",
            Pathconf pathconf = 20 "PATHCONF",
            Commit commit = 21 "COMMIT",
        }
    };
}
pub(crate) use for_each_procedure;

macro_rules! procedures {
    ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
        xdr_enum! {
            /// The procedures of NFS version 3, in the order of RFC 1813 section 3.3.
            pub enum Procedure { $($name = $code $text,)* }
        }
    };
}
for_each_procedure!(procedures);

#[cfg(test)]
mod tests {
    use super::*;

    /// What is `Copy` owns no memory.
    const fn owns_nothing<T: Copy>() {}

    #[test]
    fn the_hot_calls_and_replies_decode_without_an_allocation() {
        owns_nothing::<getattr::Args>();
        owns_nothing::<getattr::Reply>();
        owns_nothing::<setattr::Args>();
        owns_nothing::<lookup::Args<'_>>();
        owns_nothing::<lookup::Reply>();
        owns_nothing::<access::Args>();
        owns_nothing::<access::Reply>();
        owns_nothing::<read::Args>();
        owns_nothing::<read::Reply<'_>>();
        owns_nothing::<write::Args<'_>>();
        owns_nothing::<write::Reply>();
        owns_nothing::<commit::Args>();
        owns_nothing::<commit::Reply>();
    }

    #[test]
    fn procedures_have_the_numbers_and_names_of_the_rfc() {
        let name = |number| Procedure::from_code(number).map(Procedure::name);
        assert_eq!(name(0), Some("NULL"));
        assert_eq!(name(7), Some("WRITE"));
        assert_eq!(name(17), Some("READDIRPLUS"));
        assert_eq!(name(21), Some("COMMIT"));
        assert_eq!(name(22), None);
        assert_eq!(Procedure::ALL.len(), 22);
    }
}
