//! NFS version 2 (RFC 1094): one file per procedure, in the form of version 3.
//!
//! Sizes, offsets, file numbers and cookies have 32 bits, a file handle always has 32 bytes, and a
//! failure is a status and nothing else. Types that several procedures share are in `types.rs`.

pub mod create;
pub mod getattr;
pub mod link;
pub mod lookup;
pub mod mkdir;
pub mod null;
pub mod read;
pub mod readdir;
pub mod readlink;
pub mod remove;
pub mod rename;
pub mod rmdir;
pub mod root;
pub mod setattr;
pub mod statfs;
pub mod symlink;
pub mod write;
pub mod writecache;

mod handle;
mod status;
mod types;

pub use handle::FHandle;
pub use status::NfsStat2;
pub use types::{
    AttrStat, DirOp, DirOpOk, DirOpRes, FType, Fattr2, MODE_TYPE_MASK, RDEV_FIFO, Sattr2, Timeval,
    USECONDS_SERVER_TIME, mode_type,
};

use crate::xdr::macros::xdr_enum;

pub const PROGRAM: u32 = 100_003;
pub const VERSION: u32 = 2;

/// Bytes in a file handle (FHSIZE).
pub const HANDLE_LEN: usize = 32;
/// Most bytes of data in a READ or WRITE.
pub const MAXDATA: u32 = 8192;
/// [`MAXDATA`] as a length.
pub const DATA_LEN_MAX: usize = 8192;
/// Most bytes in a name that we decode. MAXNAMLEN is 255; up to this size a server can answer
/// NFSERR_NAMETOOLONG, above it the call is garbage.
pub const NAME_LEN_MAX: usize = 4096;
/// Most bytes in the contents of a symbolic link that we decode. MAXPATHLEN is 1024; the rest is
/// the same leeway.
pub const PATH_LEN_MAX: usize = 4096;
/// MAXPATHLEN: most bytes in a path that every client takes.
pub const MAXPATHLEN: usize = 1024;

/// Calls the macro `$each` with every procedure, its module, number and name.
macro_rules! for_each_procedure {
    ($each:ident) => {
        $each! {
            Null null = 0 "NULL",
            Getattr getattr = 1 "GETATTR",
            Setattr setattr = 2 "SETATTR",
            Root root = 3 "ROOT",
            Lookup lookup = 4 "LOOKUP",
            Readlink readlink = 5 "READLINK",
            Read read = 6 "READ",
            Writecache writecache = 7 "WRITECACHE",
            Write write = 8 "WRITE",
            Create create = 9 "CREATE",
            Remove remove = 10 "REMOVE",
            Rename rename = 11 "RENAME",
            Link link = 12 "LINK",
            Symlink symlink = 13 "SYMLINK",
            Mkdir mkdir = 14 "MKDIR",
            Rmdir rmdir = 15 "RMDIR",
            Readdir readdir = 16 "READDIR",
            Statfs statfs = 17 "STATFS",
        }
    };
}
pub(crate) use for_each_procedure;

macro_rules! procedures {
    ($($name:ident $module:ident = $code:literal $text:literal,)*) => {
        xdr_enum! {
            /// The procedures of NFS version 2, in the order of RFC 1094 section 2.2.
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
    fn calls_and_replies_decode_without_an_allocation() {
        owns_nothing::<getattr::Args>();
        owns_nothing::<setattr::Args>();
        owns_nothing::<lookup::Args<'_>>();
        owns_nothing::<read::Args>();
        owns_nothing::<write::Args<'_>>();
        owns_nothing::<create::Args<'_>>();
        owns_nothing::<getattr::Reply>();
        owns_nothing::<lookup::Reply>();
        owns_nothing::<read::Reply<'_>>();
        owns_nothing::<write::Reply>();
        owns_nothing::<create::Reply>();
        owns_nothing::<statfs::Reply>();
    }

    #[test]
    fn procedures_have_the_numbers_and_names_of_the_rfc() {
        let name = |number| Procedure::from_code(number).map(Procedure::name);
        assert_eq!(name(0), Some("NULL"));
        assert_eq!(name(3), Some("ROOT"));
        assert_eq!(name(8), Some("WRITE"));
        assert_eq!(name(17), Some("STATFS"));
        assert_eq!(name(18), None);
        assert_eq!(Procedure::ALL.len(), 18);
    }
}
