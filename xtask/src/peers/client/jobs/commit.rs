//! COMMIT of a whole file.

use wire::Procedure;
use wire::nfs3::{self, FileHandle, commit};
use wire::xdr::Encode;

use crate::peers::client::pipeline::Job;
use crate::peers::client::replies::{results, succeeded};
use crate::peers::client::{call, put_call};

/// One COMMIT, whose verifier must be that of the writes.
#[derive(Debug)]
pub(crate) struct Commit {
    file: FileHandle,
    verifier: Option<[u8; 8]>,
    is_sent: bool,
}

impl Commit {
    pub(crate) fn new(file: FileHandle, verifier: Option<[u8; 8]>) -> Self {
        Self { file, verifier, is_sent: false }
    }
}

impl Job for Commit {
    fn next(&mut self, _slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        if self.is_sent {
            return false;
        }
        self.is_sent = true;
        let args = commit::Args { file: self.file, offset: 0, count: 0 };
        let procedure = Procedure::Nfs3(nfs3::Procedure::Commit);
        put_call(out, &call(procedure, |out| args.encode(out), 0), xid);
        true
    }

    fn reply(&mut self, _slot: usize, reply: &[u8]) -> Result<(), String> {
        let ok = succeeded::<commit::Reply, _>("COMMIT", results(reply)?)?;
        match self.verifier {
            Some(verifier) if verifier != ok.verf => {
                Err("COMMIT: not the verifier of the writes".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn amount(&self) -> u64 {
        u64::from(self.is_sent)
    }
}
