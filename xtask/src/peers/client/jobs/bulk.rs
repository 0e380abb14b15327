//! READ and WRITE, block by block from the start of a file to its end.

use wire::Procedure;
use wire::nfs3::{self, FileHandle, StableHow, read, write};
use wire::xdr::{Bulk, Encode};

use super::{is_pattern, pattern, word};
use crate::peers::client::pipeline::{Job, SLOTS_MAX};
use crate::peers::client::replies::{results, succeeded};
use crate::peers::client::{call, put_call};

/// One reply in so many is compared byte by byte; of the others the first and last word.
const COMPARED_IN_FULL: u64 = 64;

/// Reads a file of the [`pattern`] over and over.
#[derive(Debug)]
pub(crate) struct Read {
    calls: Vec<Vec<u8>>,
    block_bytes: u32,
    next: usize,
    /// The block that each slot requested.
    requested: [usize; SLOTS_MAX],
    done: u64,
}

impl Read {
    /// `file_bytes` is a multiple of `block_bytes`, and that of 8.
    pub(crate) fn new(file: FileHandle, file_bytes: u64, block_bytes: u32) -> Self {
        let of = |block: u64| {
            let offset = block * u64::from(block_bytes);
            let args = read::Args { file, offset, count: block_bytes };
            call(Procedure::Nfs3(nfs3::Procedure::Read), |out| args.encode(out), 0)
        };
        let calls = (0..file_bytes / u64::from(block_bytes)).map(of).collect();
        Self { calls, block_bytes, next: 0, requested: [0; SLOTS_MAX], done: 0 }
    }

    fn check(&self, block: usize, data: &[u8]) -> Result<(), String> {
        let offset = block as u64 * u64::from(self.block_bytes);
        let len = self.block_bytes as usize;
        let words = (offset / 8, (offset + u64::from(self.block_bytes)) / 8 - 1);
        let as_written = data.len() == len
            && data.starts_with(&word(words.0))
            && data.ends_with(&word(words.1))
            && (!self.done.is_multiple_of(COMPARED_IN_FULL) || is_pattern(offset, data));
        match as_written {
            true => Ok(()),
            false => Err(format!("READ at {offset}: other data than written")),
        }
    }
}

impl Job for Read {
    fn next(&mut self, slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        put_call(out, &self.calls[self.next], xid);
        self.requested[slot] = self.next;
        self.next = (self.next + 1) % self.calls.len();
        true
    }

    fn reply(&mut self, slot: usize, reply: &[u8]) -> Result<(), String> {
        let ok = succeeded::<read::Reply<'_>, _>("READ", results(reply)?)?;
        self.check(self.requested[slot], ok.data)?;
        self.done += 1;
        Ok(())
    }

    fn amount(&self) -> u64 {
        self.done * u64::from(self.block_bytes)
    }
}

/// How a [`Write`] job goes through its files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) block_bytes: u32,
    /// Of each file; a multiple of `block_bytes`.
    pub(crate) file_bytes: u64,
    pub(crate) stable: StableHow,
    /// Whether to begin again at the end.
    pub(crate) again: bool,
}

/// Writes the same block everywhere, in turn to each of the files.
#[derive(Debug)]
pub(crate) struct Write {
    span: Span,
    calls: Vec<Vec<u8>>,
    payload: Vec<u8>,
    next: usize,
    done: u64,
    verifier: Option<[u8; 8]>,
}

impl Write {
    pub(crate) fn new(files: &[FileHandle], span: Span) -> Self {
        let payload = pattern(0, span.block_bytes as usize);
        let of = |block: u64, file: FileHandle| {
            let offset = block * u64::from(span.block_bytes);
            let data = &payload[..];
            let args =
                write::Args { file, offset, count: span.block_bytes, stable: span.stable, data };
            let procedure = Procedure::Nfs3(nfs3::Procedure::Write);
            call(procedure, |out| args.encode_head(out), data.len())
        };
        let blocks = 0..span.file_bytes / u64::from(span.block_bytes);
        let calls = blocks
            .flat_map(|block| files.iter().map(move |&file| (block, file)))
            .map(|(block, file)| of(block, file))
            .collect();
        Self { span, calls, payload, next: 0, done: 0, verifier: None }
    }

    /// The verifier of all replies; a COMMIT must return the same.
    pub(crate) fn verifier(&self) -> Option<[u8; 8]> {
        self.verifier
    }
}

impl Job for Write {
    fn next(&mut self, _slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        if self.next == self.calls.len() {
            if !self.span.again {
                return false;
            }
            self.next = 0;
        }
        put_call(out, &self.calls[self.next], xid);
        self.next += 1;
        true
    }

    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn reply(&mut self, _slot: usize, reply: &[u8]) -> Result<(), String> {
        let ok = succeeded::<write::Reply, _>("WRITE", results(reply)?)?;
        if ok.count != self.span.block_bytes {
            return Err(format!("WRITE: {} of {} bytes", ok.count, self.span.block_bytes));
        }
        if ok.committed < self.span.stable {
            return Err(format!(
                "WRITE: only {:?} where {:?} was requested",
                ok.committed, self.span.stable
            ));
        }
        if *self.verifier.get_or_insert(ok.verf) != ok.verf {
            return Err("WRITE: the verifier changed".to_owned());
        }
        self.done += 1;
        Ok(())
    }

    fn amount(&self) -> u64 {
        self.done * u64::from(self.span.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nfs3::WccData;
    use wire::rpc::ReplyHeader;

    const FILE: [u8; 8] = [1; 8];

    fn message(results: &impl Encode) -> Vec<u8> {
        let mut bytes = ReplyHeader::success(0).to_bytes();
        results.encode(&mut bytes);
        bytes
    }

    #[test]
    fn data_of_another_place_is_not_taken_for_what_was_requested() {
        let mut job = Read::new(FileHandle::new(&FILE).unwrap(), 4096, 1024);
        let mut out = Vec::new();
        assert!(job.next(0, 1, &mut out) && job.next(1, 2, &mut out));
        let reply = |offset, len: usize| {
            let data = &pattern(offset, len)[..];
            let count = u32::try_from(len).unwrap();
            let ok = read::ReplyOk { file_attributes: None, count, eof: false, data };
            message(&read::Reply::Ok(ok))
        };
        assert_eq!(job.reply(1, &reply(1024, 1024)), Ok(()));
        assert!(job.reply(0, &reply(1024, 1024)).is_err());
        assert!(job.reply(0, &reply(0, 512)).is_err());
        assert_eq!(job.amount(), 1024);
    }

    #[test]
    fn a_write_that_is_less_stable_than_requested_is_an_error() {
        let span =
            Span { block_bytes: 64, file_bytes: 128, stable: StableHow::FileSync, again: false };
        let mut job = Write::new(&[FileHandle::new(&FILE).unwrap()], span);
        let mut out = Vec::new();
        assert!(job.next(0, 1, &mut out) && job.next(1, 2, &mut out));
        assert!(!job.next(2, 3, &mut out), "the file has two blocks");
        let reply = |committed, verf| {
            let ok = write::ReplyOk { file_wcc: WccData::default(), count: 64, committed, verf };
            message(&write::Reply::Ok(ok))
        };
        assert_eq!(job.reply(0, &reply(StableHow::FileSync, [7; 8])), Ok(()));
        assert!(job.reply(1, &reply(StableHow::Unstable, [7; 8])).is_err());
        assert!(job.reply(1, &reply(StableHow::FileSync, [8; 8])).is_err());
        assert_eq!(job.verifier(), Some([7; 8]));
    }
}
