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
    is_first: bool,
}

impl Budget {
    /// For a reply of at most `maxcount` bytes, of which `dircount` are names. That is a hint, and
    /// the first entry is not held to it: a client that gives none sends 0.
    pub const fn new(dircount: u32, maxcount: u32) -> Self {
        let bytes = (maxcount as usize).saturating_sub(EMPTY_LEN);
        Self { dir_bytes: dircount as usize, bytes, is_first: true }
    }

    /// Takes the room for one more entry, attributes and handle included. When it returns false,
    /// the entry does not fit and nothing was taken; if it was the first, the answer is
    /// NFS3ERR_TOOSMALL.
    pub fn admit(&mut self, name_len: usize, handle_len: usize) -> bool {
        let dir_bytes = self.dir_bytes.checked_sub(readdir::entry_len(name_len));
        let bytes = self.bytes.checked_sub(entry_len(name_len, handle_len));
        let fits = bytes.is_some() && (dir_bytes.is_some() || self.is_first);
        if fits {
            let (dir_bytes, bytes) = (dir_bytes.unwrap_or(0), bytes.unwrap_or(0));
            *self = Self { dir_bytes, bytes, is_first: false };
        }
        fits
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, VERF, golden};
    use crate::xdr::Encode;

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # dir
        00000000 00000007            # cookie
        0102030405060708             # cookieverf
        00000200                     # dircount: 512
        00001000                     # maxcount: 4096
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # dir_attributes
        0102030405060708             # cookieverf
        00000001                     # an entry
        00000000 0000002a            # fileid: 42
        00000005 68656c6c 6f000000   # name: hello
        00000000 00000001            # cookie
        00000001 ATTR                # name_attributes
        00000001                     # name_handle: present
        00000005 a1a2a3a4 a5000000
        00000001                     # another
        00000000 0000002b            # fileid: 43
        00000003 666f6f 00           # name: foo
        00000000 00000002            # cookie
        00000000                     # name_attributes: absent
        00000000                     # name_handle: absent
        00000000                     # no more
        00000000                     # eof: not yet
    ";
    pub(crate) const FAIL: &str = "
        00000014                     # status: NFS3ERR_NOTDIR (20)
        00000001 ATTR                # dir_attributes
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { dir: FH, cookie: 7, cookieverf: VERF, dircount: 512, maxcount: 4096 };
        golden(ARGS, args);
        let hello = Entry {
            fileid: 42,
            name: b"hello",
            cookie: 1,
            name_attributes: Some(ATTR),
            name_handle: Some(FH),
        };
        let foo =
            Entry { fileid: 43, name: b"foo", cookie: 2, name_attributes: None, name_handle: None };
        let ok = ReplyOk {
            dir_attributes: Some(ATTR),
            cookieverf: VERF,
            entries: List(vec![hello, foo]),
            eof: false,
        };
        golden::<Reply<'_>>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::NotDir, detail: Some(ATTR) };
        golden::<Reply<'_>>(FAIL, Err(failure));
    }

    /// An empty reply that admits entries called `hello` while the budget lasts.
    fn filled(dircount: u32, maxcount: u32) -> ReplyOk<'static> {
        let mut budget = Budget::new(dircount, maxcount);
        let hello = Entry {
            fileid: 42,
            name: b"hello",
            cookie: 1,
            name_attributes: Some(ATTR),
            name_handle: Some(FH),
        };
        let mut entries = List::default();
        while budget.admit(hello.name.len(), FH.as_bytes().len()) {
            entries.0.push(hello);
        }
        ReplyOk { dir_attributes: Some(ATTR), cookieverf: VERF, entries, eof: false }
    }

    #[test]
    fn maxcount_bounds_the_whole_reply() {
        for maxcount in 0..1000 {
            let ok = filled(u32::MAX, maxcount);
            let (len, maxcount) = (ok.to_bytes().len(), maxcount as usize);
            assert!(len <= maxcount || ok.entries.is_empty());
            assert!(len + entry_len(5, 5) > maxcount);
        }
    }

    #[test]
    fn dircount_bounds_what_readdir_would_return() {
        assert_eq!(filled(3 * 32, 100_000).entries.len(), 3);
        assert_eq!(filled(3 * 32 - 1, 100_000).entries.len(), 2);
        assert_eq!(filled(0, 100_000).entries.len(), 1, "a client that has no hint sends 0");
    }
}
