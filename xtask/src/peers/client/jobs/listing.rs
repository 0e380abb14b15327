//! READDIRPLUS of a directory, page after page.

use wire::Procedure;
use wire::nfs3::{self, FileHandle, readdirplus};
use wire::xdr::Encode;

use crate::peers::client::pipeline::Job;
use crate::peers::client::replies::{results, succeeded};
use crate::peers::client::{call, put_call};

/// Bytes of a page: what a client with a few pages of memory for directories requests.
const PAGE_BYTES: u32 = 64 << 10;

/// Lists a directory, once or over and over; one call at a time, as a cookie leads to the next.
#[derive(Debug)]
pub(crate) struct Listing {
    dir: FileHandle,
    /// Names that must be found, besides `.` and `..`.
    expected: u64,
    cookie: u64,
    cookieverf: [u8; 8],
    again: bool,
    is_at_end: bool,
    found: u64,
    /// Entries of all complete and begun listings.
    entries: u64,
}

impl Listing {
    pub(crate) fn new(dir: FileHandle, expected: u64, again: bool) -> Self {
        Self {
            dir,
            expected,
            cookie: 0,
            cookieverf: [0; 8],
            again,
            is_at_end: false,
            found: 0,
            entries: 0,
        }
    }
}

impl Job for Listing {
    fn next(&mut self, _slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        if self.is_at_end {
            if !self.again {
                return false;
            }
            (self.cookie, self.cookieverf, self.found) = (0, [0; 8], 0);
            self.is_at_end = false;
        }
        let (dir, cookie, cookieverf) = (self.dir, self.cookie, self.cookieverf);
        let args = readdirplus::Args {
            dir,
            cookie,
            cookieverf,
            dircount: PAGE_BYTES,
            maxcount: PAGE_BYTES,
        };
        let procedure = Procedure::Nfs3(nfs3::Procedure::Readdirplus);
        put_call(out, &call(procedure, |out| args.encode(out), 0), xid);
        true
    }

    fn reply(&mut self, _slot: usize, reply: &[u8]) -> Result<(), String> {
        let ok = succeeded::<readdirplus::Reply<'_>, _>("READDIRPLUS", results(reply)?)?;
        for entry in &ok.entries {
            if entry.name == b"." || entry.name == b".." {
                continue;
            }
            if entry.name_attributes.is_none() || entry.name_handle.is_none() {
                let name = String::from_utf8_lossy(entry.name);
                return Err(format!("READDIRPLUS: {name} without attributes or handle"));
            }
            self.found += 1;
        }
        match ok.entries.last() {
            Some(last) => self.cookie = last.cookie,
            None if ok.eof => {}
            None => return Err("READDIRPLUS: an empty page that is not the last".to_owned()),
        }
        self.entries += ok.entries.len() as u64;
        self.cookieverf = ok.cookieverf;
        self.is_at_end = ok.eof;
        if ok.eof && self.found != self.expected {
            return Err(format!("READDIRPLUS: {} of {} names", self.found, self.expected));
        }
        Ok(())
    }

    fn amount(&self) -> u64 {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nfs3::Fattr3;
    use wire::rpc::ReplyHeader;
    use wire::xdr::{List, from_bytes};

    fn page(names: &[&str], with_handles: bool, eof: bool) -> Vec<u8> {
        let handle = FileHandle::new(&[1]).unwrap();
        let entries = names.iter().map(|name| readdirplus::Entry {
            fileid: 1,
            name: name.as_bytes(),
            cookie: 5,
            name_attributes: Some(from_bytes::<Fattr3>(&ATTRIBUTES).unwrap()),
            name_handle: with_handles.then_some(handle),
        });
        let entries: List<_> = entries.collect();
        let ok = readdirplus::ReplyOk { dir_attributes: None, cookieverf: [0; 8], entries, eof };
        let mut bytes = ReplyHeader::success(0).to_bytes();
        readdirplus::Reply::Ok(ok).encode(&mut bytes);
        bytes
    }

    /// A regular file, and zeros.
    const ATTRIBUTES: [u8; Fattr3::LEN] = {
        let mut bytes = [0; Fattr3::LEN];
        bytes[3] = 1;
        bytes
    };

    #[test]
    fn a_listing_that_loses_a_name_is_an_error() {
        let mut job = Listing::new(FileHandle::new(&[1]).unwrap(), 3, false);
        assert_eq!(job.reply(0, &page(&[".", "..", "a", "b"], true, false)), Ok(()));
        assert!(job.reply(0, &page(&[], true, true)).unwrap_err().contains("2 of 3"));
        let mut job = Listing::new(FileHandle::new(&[1]).unwrap(), 3, false);
        assert_eq!(job.reply(0, &page(&["a", "b", "c"], true, true)), Ok(()));
        assert!(!job.next(0, 1, &mut Vec::new()));
        assert_eq!(job.amount(), 3);
    }

    #[test]
    fn an_entry_without_a_handle_is_less_work_and_an_error() {
        let mut job = Listing::new(FileHandle::new(&[1]).unwrap(), 1, true);
        assert!(job.reply(0, &page(&["a"], false, true)).is_err());
    }
}
