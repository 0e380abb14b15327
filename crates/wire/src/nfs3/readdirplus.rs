//! READDIRPLUS: the names in a directory with attributes and handles (RFC 1813 section 3.3.17).

use crate::xdr::macros::xdr_struct;
use crate::xdr::{List, opaque_len};

use super::{Failure, Fattr3, FileHandle, NAME_LEN_MAX, PostOpAttr, PostOpFh, readdir};

xdr_struct! {
    /// `READDIRPLUS3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub dir: FileHandle,
        /// Where to go on: 0 at first, then the cookie of the last entry received.
        pub cookie: u64,
        /// Zeros at first, then as in the last reply.
        pub cookieverf: [u8; 8],
        /// Most bytes of fileids, names and cookies: what READDIR would return.
        pub dircount: u32,
        /// Most bytes of `READDIRPLUS3resok`, all of it.
        pub maxcount: u32,
    }
}

/// `READDIRPLUS3res`
pub type Reply<'a> = Result<ReplyOk<'a>, ReplyFail>;

xdr_struct! {
    /// `READDIRPLUS3resok`, with the fields of `dirlistplus3` in place.
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        pub dir_attributes: PostOpAttr,
        pub cookieverf: [u8; 8],
        pub entries: List<Entry<'a>>,
        /// The last entry is the last of the directory.
        pub eof: bool,
    }
}

xdr_struct! {
    /// `entryplus3`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Entry<'a> {
        pub fileid: u64,
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
        pub cookie: u64,
        pub name_attributes: PostOpAttr,
        pub name_handle: PostOpFh,
    }
}

/// `READDIRPLUS3resfail`: `dir_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

/// Bytes of `READDIRPLUS3resok` without entries, with attributes.
pub const EMPTY_LEN: usize = readdir::EMPTY_LEN;

/// Bytes an entry with attributes and a handle of `handle_len` bytes adds to the list.
pub const fn entry_len(name_len: usize, handle_len: usize) -> usize {
    readdir::entry_len(name_len) + (4 + Fattr3::LEN) + (4 + opaque_len(handle_len))
}

/// How much of a reply is left while it is filled.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    dir_bytes: usize,
    bytes: usize,
}

impl Budget {
    /// For a reply of at most `maxcount` bytes, of which `dircount` are names.
    pub const fn new(dircount: u32, maxcount: u32) -> Self {
        Self {
            dir_bytes: dircount as usize,
            bytes: (maxcount as usize).saturating_sub(EMPTY_LEN),
        }
    }

    /// Takes the room for one more entry, attributes and handle included. When it returns false,
    /// the entry does not fit and nothing was taken; if it was the first, the answer is
    /// NFS3ERR_TOOSMALL.
    pub fn admit(&mut self, name_len: usize, handle_len: usize) -> bool {
        let dir_bytes = self.dir_bytes.checked_sub(readdir::entry_len(name_len));
        let bytes = self.bytes.checked_sub(entry_len(name_len, handle_len));
        match (dir_bytes, bytes) {
            (Some(dir_bytes), Some(bytes)) => {
                *self = Self { dir_bytes, bytes };
                true
            }
            _ => false,
        }
    }
}
