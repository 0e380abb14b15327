//! READDIR: the names in a directory, part by part (RFC 1813 section 3.3.16).

use crate::xdr::macros::xdr_struct;
use crate::xdr::{List, opaque_len};

use super::{Failure, Fattr3, FileHandle, NAME_LEN_MAX, PostOpAttr};

xdr_struct! {
    /// `READDIR3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub dir: FileHandle,
        /// Where to go on: 0 at first, then the cookie of the last entry received.
        pub cookie: u64,
        /// Zeros at first, then as in the last reply.
        pub cookieverf: [u8; 8],
        /// Most bytes of `READDIR3resok`, all of it.
        pub count: u32,
    }
}

/// `READDIR3res`
pub type Reply<'a> = Result<ReplyOk<'a>, ReplyFail>;

xdr_struct! {
    /// `READDIR3resok`, with the fields of `dirlist3` in place.
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
    /// `entry3`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Entry<'a> {
        pub fileid: u64,
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
        pub cookie: u64,
    }
}

/// `READDIR3resfail`: `dir_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

/// Bytes of `READDIR3resok` without entries, with attributes.
pub const EMPTY_LEN: usize = 4 + Fattr3::LEN + 8 + 4 + 4;

/// Bytes an entry adds to the list: its `TRUE`, fileid, name and cookie.
pub const fn entry_len(name_len: usize) -> usize {
    4 + 8 + opaque_len(name_len) + 8
}

/// How much of a reply is left while it is filled.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// For a reply of at most `count` bytes, attributes included.
    pub const fn new(count: u32) -> Self {
        Self {
            bytes: (count as usize).saturating_sub(EMPTY_LEN),
        }
    }

    /// Takes the room for one more entry. When it returns false, the entry does not fit and
    /// nothing was taken; if it was the first, the answer is NFS3ERR_TOOSMALL.
    pub fn admit(&mut self, name_len: usize) -> bool {
        match self.bytes.checked_sub(entry_len(name_len)) {
            Some(left) => {
                self.bytes = left;
                true
            }
            None => false,
        }
    }
}
