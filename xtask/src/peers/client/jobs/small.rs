//! Calls that carry nothing: NULL, GETATTR, ACCESS, LOOKUP, round robin over many files.

use wire::Procedure;
use wire::nfs3::{self, DirOp, FileHandle, access, getattr, lookup};
use wire::xdr::{Encode, from_bytes};

use crate::peers::client::pipeline::Job;
use crate::peers::client::replies::{expect_ok, results, succeeded};
use crate::peers::client::{call, put_call};

/// Which small call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Null,
    Getattr,
    Access,
    Lookup,
}

/// Everything that ACCESS can ask about a file.
const ACCESS_WANTED: u32 = access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;
/// What root may do with any file, whatever its mode.
const ACCESS_EXPECTED: u32 = access::READ | access::MODIFY | access::EXTEND;

/// The same kind of call for one file after the other.
#[derive(Debug)]
pub(crate) struct Small {
    kind: Kind,
    calls: Vec<Vec<u8>>,
    next: usize,
    done: u64,
}

impl Small {
    /// Calls for files in a directory; each has its name and its handle.
    pub(crate) fn new(kind: Kind, dir: FileHandle, files: &[(String, FileHandle)]) -> Self {
        let nfs = |procedure, args: &dyn Encode| {
            call(Procedure::Nfs3(procedure), |out| args.encode(out), 0)
        };
        let of = |(name, handle): &(String, FileHandle)| match kind {
            Kind::Null => nfs(nfs3::Procedure::Null, &()),
            Kind::Getattr => nfs(nfs3::Procedure::Getattr, &getattr::Args { object: *handle }),
            Kind::Access => {
                let args = access::Args { object: *handle, access: ACCESS_WANTED };
                nfs(nfs3::Procedure::Access, &args)
            }
            Kind::Lookup => {
                let what = DirOp { dir, name: name.as_bytes() };
                nfs(nfs3::Procedure::Lookup, &lookup::Args { what })
            }
        };
        Self { kind, calls: files.iter().map(of).collect(), next: 0, done: 0 }
    }

    /// Everything in a reply; done for as many replies as there are files, at first.
    fn check(&self, results: &[u8]) -> Result<(), String> {
        match self.kind {
            Kind::Null => from_bytes::<()>(results).map_err(|error| format!("NULL: {error}")),
            Kind::Getattr => {
                let ok = succeeded::<getattr::Reply, _>("GETATTR", results)?;
                match ok.obj_attributes.ftype {
                    nfs3::FType::Reg => Ok(()),
                    other => Err(format!("a file is replied as {other:?}")),
                }
            }
            Kind::Access => {
                let ok = succeeded::<access::Reply, _>("ACCESS", results)?;
                match ok.access & ACCESS_EXPECTED {
                    ACCESS_EXPECTED => Ok(()),
                    _ => Err(format!("root may only {:#x}", ok.access)),
                }
            }
            Kind::Lookup => {
                let ok = succeeded::<lookup::Reply, _>("LOOKUP", results)?;
                match ok.obj_attributes {
                    Some(_) => Ok(()),
                    None => Err("no attributes".to_owned()),
                }
            }
        }
    }
}

impl Job for Small {
    fn next(&mut self, _slot: usize, xid: u32, out: &mut Vec<u8>) -> bool {
        put_call(out, &self.calls[self.next], xid);
        self.next += 1;
        if self.next == self.calls.len() {
            self.next = 0;
        }
        true
    }

    fn reply(&mut self, _slot: usize, reply: &[u8]) -> Result<(), String> {
        let results = results(reply)?;
        if self.done < self.calls.len() as u64 {
            self.check(results)?;
        } else if self.kind != Kind::Null {
            expect_ok(results)?;
        }
        self.done += 1;
        Ok(())
    }

    fn amount(&self) -> u64 {
        self.done
    }
}
