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
        Self { bytes: (count as usize).saturating_sub(EMPTY_LEN) }
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
        00001000                     # count: 4096
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # dir_attributes
        0102030405060708             # cookieverf
        00000001                     # an entry
        00000000 0000002a            # fileid: 42
        00000001 2e 000000           # name: .
        00000000 00000001            # cookie
        00000001                     # another
        00000000 0000002b            # fileid: 43
        00000005 68656c6c 6f000000   # name: hello
        80000000 00000002            # cookie
        00000000                     # no more
        00000001                     # eof
    ";
    pub(crate) const FAIL: &str = "
        00002713                     # status: NFS3ERR_BAD_COOKIE (10003)
        00000000                     # dir_attributes: absent
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { dir: FH, cookie: 7, cookieverf: VERF, count: 4096 };
        golden(ARGS, args);
        let dot = Entry { fileid: 42, name: b".", cookie: 1 };
        let hello = Entry { fileid: 43, name: b"hello", cookie: 0x8000_0000_0000_0002 };
        let ok = ReplyOk {
            dir_attributes: Some(ATTR),
            cookieverf: VERF,
            entries: List(vec![dot, hello]),
            eof: true,
        };
        golden::<Reply<'_>>(OK, Ok(ok));
        golden::<Reply<'_>>(FAIL, Err(NfsStat3::BadCookie.into()));
    }

    #[test]
    fn the_budget_is_spent_to_the_last_byte_and_not_over() {
        for count in 0..700 {
            let mut budget = Budget::new(count);
            let mut ok = ReplyOk {
                dir_attributes: Some(ATTR),
                cookieverf: VERF,
                entries: List::default(),
                eof: false,
            };
            let names = [&b"a"[..], b"four", b"a longer name", b"", b"b.txt"];
            let mut names = names.into_iter().cycle();
            let refused = loop {
                let name = names.next().unwrap();
                if !budget.admit(name.len()) {
                    break name;
                }
                ok.entries.0.push(Entry { fileid: 1, name, cookie: 2 });
            };
            let (len, count) = (ok.to_bytes().len(), count as usize);
            assert!(len <= count || ok.entries.is_empty());
            assert!(len + entry_len(refused.len()) > count);
        }
    }
}
