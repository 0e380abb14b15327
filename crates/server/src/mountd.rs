//! MOUNT version 3 (RFC 1813 appendix I): from a path to its handle, and who has mounted what.
//!
//! A path inside the export is resolved through the store, one name after another, so it follows
//! no symbolic link and leaves the export no more than LOOKUP does. The list of mounts is only
//! told; nothing depends on it. It holds at most [`MOUNTS_MAX`] entries and forgets the oldest.

use std::collections::VecDeque;
use std::net::SocketAddr;

use parking_lot::Mutex;
use wire::mount::{DirPath, DumpReply, ExportReply, MntOk, MntReply, MountEntry, MountStat3, Procedure};
use wire::record::Message;
use wire::rpc::{AUTH_NONE, AUTH_SYS, AcceptStatus};
use wire::xdr::{Encode, List, Reader, Void};

use crate::engine::garbage;
use crate::export::Export;
use crate::proc3::arguments;
use crate::store::Store;
use crate::types::{Caller, FileKind, Handle, Status};

/// Mounts remembered.
pub(crate) const MOUNTS_MAX: usize = 1024;

/// Who has mounted what: host and path.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Mutex<VecDeque<(String, Vec<u8>)>>);

impl Mounts {
    #[expect(clippy::too_many_arguments, reason = "what a call has, passed on once")]
    pub(crate) async fn call<S: Store>(
        &self,
        store: &S,
        export: &Export,
        peer: SocketAddr,
        caller: &Caller,
        procedure: u32,
        reader: Reader<'_>,
        mut head: Vec<u8>,
    ) -> Result<Message, AcceptStatus> {
        let host = peer.ip().to_string();
        match Procedure::from_code(procedure).ok_or(AcceptStatus::ProcUnavail)? {
            Procedure::Null => {}
            Procedure::Mnt => {
                let DirPath { dirpath } = arguments(reader).map_err(garbage)?;
                let reply = mnt(store, export, caller, dirpath).await;
                if reply.is_ok() {
                    self.remember(host, dirpath);
                }
                reply.encode(&mut head);
            }
            Procedure::Dump => {
                arguments::<Void>(reader).map_err(garbage)?;
                self.dump(&mut head);
            }
            Procedure::Umnt => {
                let DirPath { dirpath } = arguments(reader).map_err(garbage)?;
                self.0.lock().retain(|(from, path)| *from != host || path != dirpath);
            }
            Procedure::Umntall => {
                arguments::<Void>(reader).map_err(garbage)?;
                self.0.lock().retain(|(from, _)| *from != host);
            }
            Procedure::Export => {
                arguments::<Void>(reader).map_err(garbage)?;
                let dir = export.path.as_bytes();
                let everyone = List::default();
                let exports = List(vec![wire::mount::Export { dir, groups: everyone }]);
                ExportReply { exports }.encode(&mut head);
            }
        }
        Ok(Message::new(head))
    }

    fn remember(&self, host: String, path: &[u8]) {
        let mut mounts = self.0.lock();
        let mount = (host, path.to_vec());
        if !mounts.contains(&mount) {
            if mounts.len() == MOUNTS_MAX {
                mounts.pop_front();
            }
            mounts.push_back(mount);
        }
    }

    fn dump(&self, head: &mut Vec<u8>) {
        let mounts = self.0.lock();
        let entries = mounts.iter().map(|(host, directory)| MountEntry {
            hostname: host.as_bytes(),
            directory,
        });
        DumpReply { mounts: entries.collect() }.encode(head);
    }
}

async fn mnt<S: Store>(
    store: &S,
    export: &Export,
    caller: &Caller,
    dirpath: &[u8],
) -> MntReply {
    let inside = inside(export.path.as_bytes(), dirpath).ok_or(MountStat3::NoEnt)?;
    let mut handle = store.root();
    for name in inside.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        handle = step(store, caller, &handle, name).await?;
    }
    let fhandle = export.wrap(&handle).ok_or(MountStat3::ServerFault)?;
    Ok(MntOk { fhandle, auth_flavors: vec![AUTH_SYS, AUTH_NONE] })
}

async fn step<S: Store>(
    store: &S,
    caller: &Caller,
    dir: &Handle,
    name: &[u8],
) -> Result<Handle, MountStat3> {
    // Only plain names: what `..` would reach has another path already.
    if name == b"." || name == b".." || name.contains(&0) || name.len() > 255 {
        return Err(MountStat3::Inval);
    }
    let node = store.lookup(caller, dir, name).await.result.map_err(|status| match status {
        Status::NoEntry | Status::Stale => MountStat3::NoEnt,
        Status::Access | Status::NotOwner => MountStat3::Acces,
        Status::NotDirectory => MountStat3::NotDir,
        Status::NameTooLong => MountStat3::NameTooLong,
        Status::Io => MountStat3::Io,
        _ => MountStat3::ServerFault,
    })?;
    match node.attr.kind {
        FileKind::Directory => Ok(node.handle),
        _ => Err(MountStat3::NotDir),
    }
}

/// The part of `path` behind the export's own.
fn inside<'p>(export: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    let export = export.strip_suffix(b"/").unwrap_or(export);
    let rest = path.strip_prefix(export)?;
    (rest.is_empty() || rest[0] == b'/').then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inside_an_export_only_at_a_slash() {
        assert_eq!(inside(b"/", b"/a/b"), Some(&b"/a/b"[..]));
        assert_eq!(inside(b"/", b"/"), Some(&b"/"[..]));
        assert_eq!(inside(b"/srv", b"/srv"), Some(&b""[..]));
        assert_eq!(inside(b"/srv", b"/srv/x"), Some(&b"/x"[..]));
        assert_eq!(inside(b"/srv", b"/srvx"), None);
        assert_eq!(inside(b"/srv", b"/"), None);
    }
}
