//! READDIR: the names in a directory, part by part (RFC 1094 section 2.2.17).

use crate::xdr::macros::xdr_struct;
use crate::xdr::{List, opaque_len};

use super::{FHandle, NAME_LEN_MAX, NfsStat2};

xdr_struct! {
    /// `readdirargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub dir: FHandle,
        /// Where to go on: 0 at first, then the cookie of the last entry received. The RFC has
        /// it as four opaque bytes, which are read as a number here.
        pub cookie: u32,
        /// Most bytes of directory information, all that follows the status.
        pub count: u32,
    }
}

/// `readdirres`
pub type Reply<'a> = Result<ReplyOk<'a>, NfsStat2>;

xdr_struct! {
    /// `readdirok`
    #[derive(Clone, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        pub entries: List<Entry<'a>>,
        /// The last entry is the last of the directory.
        pub eof: bool,
    }
}

xdr_struct! {
    /// `entry`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Entry<'a> {
        pub fileid: u32,
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
        pub cookie: u32,
    }
}

/// Bytes of `readdirok` without entries.
pub const EMPTY_LEN: usize = 4 + 4;

/// Bytes an entry adds to the list: its `TRUE`, fileid, name and cookie.
pub const fn entry_len(name_len: usize) -> usize {
    4 + 4 + opaque_len(name_len) + 4
}

/// How much of a reply is left while it is filled.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    bytes: usize,
}

impl Budget {
    /// For a reply of at most `count` bytes.
    pub const fn new(count: u32) -> Self {
        Self { bytes: (count as usize).saturating_sub(EMPTY_LEN) }
    }

    /// Takes the room for one more entry. When it returns false, the entry does not fit and
    /// nothing was taken.
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
    use crate::testing::{FH2, golden};
    use crate::xdr::Encode;

    pub(crate) const ARGS: &str = "
        FH2                          # dir
        80000007 00001000            # cookie, count: 4096
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        00000001 0000002a            # an entry, fileid: 42
        00000003 666f6f00 00000001   # name: foo, cookie
        00000001 0000002b            # another, fileid: 43
        00000004 62617221 80000002   # name: bar!, cookie
        00000000 00000001            # no more entries, eof
    ";
    pub(crate) const FAIL: &str = "
        00000014                     # status: NFSERR_NOTDIR (20)
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { dir: FH2, cookie: 0x8000_0007, count: 4096 });
        let foo = Entry { fileid: 42, name: b"foo", cookie: 1 };
        let bar = Entry { fileid: 43, name: b"bar!", cookie: 0x8000_0002 };
        golden::<Reply<'_>>(OK, Ok(ReplyOk { entries: List(vec![foo, bar]), eof: true }));
        golden::<Reply<'_>>(FAIL, Err(NfsStat2::NotDir));
    }

    #[test]
    fn the_budget_is_that_of_the_encoding() {
        for count in 0..300_u32 {
            let mut budget = Budget::new(count);
            let mut ok = ReplyOk { entries: List::default(), eof: false };
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
