//! One call at a time, everything decoded: mounting, and finding or making the files to use.

use std::io::Write;
use std::net::TcpStream;

use wire::Procedure;
use wire::mount::{self, DirPath, MntReply};
use wire::nfs3::{
    self, DirOp, FileHandle, Sattr3, StableHow, commit, create, lookup, mkdir, remove, write,
};
use wire::xdr::{Encode, from_bytes};

use super::replies::{Replies, results, succeeded, xid};
use super::{call, connection, put_call};
use crate::host::nfskit::Address;

/// A connection on which one call is outstanding at most.
#[derive(Debug)]
pub(crate) struct Session {
    stream: TcpStream,
    replies: Replies,
    xid: u32,
    pub(crate) root: FileHandle,
}

impl Session {
    /// Mounts the export of a server.
    pub(crate) fn mount(address: Address) -> Result<Self, String> {
        let mut session = Self::connect(address.mount_port)?;
        let path = DirPath { dirpath: address.export.as_bytes() };
        let procedure = Procedure::Mount(mount::Procedure::Mnt);
        let reply = session.exchange(procedure, |out| path.encode(out))?;
        let mounted: MntReply = from_bytes(&reply).map_err(|error| format!("MNT: {error}"))?;
        let root = mounted.map_err(|status| format!("MNT: {status}"))?.fhandle;
        let session = if address.nfs_port == address.mount_port {
            session
        } else {
            Self::connect(address.nfs_port)?
        };
        Ok(Self { root, ..session })
    }

    fn connect(port: u16) -> Result<Self, String> {
        let root = FileHandle::new(&[]).ok_or("a handle of no bytes")?;
        let stream = connection::open(port)?;
        // A server whose replies outlive it would take the calls of a second run for the first's.
        let xid = 0x7000_0000 | fastrand::u32(..1 << 27);
        Ok(Self { stream, replies: Replies::new(), xid, root })
    }

    pub(crate) fn lookup(&mut self, dir: FileHandle, name: &str) -> Result<FileHandle, String> {
        let args = lookup::Args { what: DirOp { dir, name: name.as_bytes() } };
        let reply = self.nfs(nfs3::Procedure::Lookup, &args)?;
        Ok(succeeded::<lookup::Reply, _>(&format!("LOOKUP of {name}"), &reply)?.object)
    }

    pub(crate) fn create(&mut self, dir: FileHandle, name: &str) -> Result<FileHandle, String> {
        let mode = Sattr3 { mode: Some(0o644), size: Some(0), ..Sattr3::default() };
        let where_ = DirOp { dir, name: name.as_bytes() };
        let args = create::Args { where_, how: create::CreateHow::Unchecked(mode) };
        let reply = self.nfs(nfs3::Procedure::Create, &args)?;
        let ok = succeeded::<create::Reply, _>(&format!("CREATE of {name}"), &reply)?;
        ok.obj.ok_or_else(|| format!("CREATE of {name}: no handle"))
    }

    pub(crate) fn mkdir(&mut self, dir: FileHandle, name: &str) -> Result<FileHandle, String> {
        let attributes = Sattr3::of_mode(0o755);
        let where_ = DirOp { dir, name: name.as_bytes() };
        let reply = self.nfs(nfs3::Procedure::Mkdir, &mkdir::Args { where_, attributes })?;
        let ok = succeeded::<mkdir::Reply, _>(&format!("MKDIR of {name}"), &reply)?;
        ok.obj.ok_or_else(|| format!("MKDIR of {name}: no handle"))
    }

    pub(crate) fn remove(&mut self, dir: FileHandle, name: &str) -> Result<(), String> {
        let args = remove::Args { object: DirOp { dir, name: name.as_bytes() } };
        let reply = self.nfs(nfs3::Procedure::Remove, &args)?;
        succeeded::<remove::Reply, _>(&format!("REMOVE of {name}"), &reply).map(drop)
    }

    pub(crate) fn write(
        &mut self,
        file: FileHandle,
        offset: u64,
        data: &[u8],
    ) -> Result<(), String> {
        let count = u32::try_from(data.len()).map_err(|error| error.to_string())?;
        let args = write::Args { file, offset, count, stable: StableHow::Unstable, data };
        let reply = self.nfs(nfs3::Procedure::Write, &args)?;
        match succeeded::<write::Reply, _>("WRITE", &reply)?.count {
            written if written == count => Ok(()),
            written => Err(format!("WRITE: {written} of {count} bytes")),
        }
    }

    /// Everything of the file onto stable storage; the write verifier.
    pub(crate) fn commit(&mut self, file: FileHandle) -> Result<[u8; 8], String> {
        let args = commit::Args { file, offset: 0, count: 0 };
        let reply = self.nfs(nfs3::Procedure::Commit, &args)?;
        Ok(succeeded::<commit::Reply, _>("COMMIT", &reply)?.verf)
    }

    fn nfs(&mut self, procedure: nfs3::Procedure, args: &impl Encode) -> Result<Vec<u8>, String> {
        self.exchange(Procedure::Nfs3(procedure), |out| args.encode(out))
    }

    /// Sends one call and returns its results.
    fn exchange(
        &mut self,
        procedure: Procedure,
        args: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, String> {
        self.xid += 1;
        let mut out = Vec::new();
        put_call(&mut out, &call(procedure, args, 0), self.xid);
        (&self.stream).write_all(&out).map_err(|error| format!("cannot send: {error}"))?;
        loop {
            if let Some(range) = self.replies.take()? {
                let reply = self.replies.at(range);
                return match xid(reply) == self.xid {
                    true => results(reply).map(<[u8]>::to_vec),
                    false => Err(format!("{procedure}: a reply to another call")),
                };
            }
            self.replies.fill(&self.stream)?;
        }
    }
}
