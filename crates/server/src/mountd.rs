//! MOUNT version 3: from the path of an export, or of a directory in it, to a file handle
//! (RFC 1813 appendix I).
//!
//! A path is walked one component at a time through the store, with the caller's rights. Symbolic
//! links are not followed and `..` is refused: what they would lead to is the client's business.
//! The list of mounts serves DUMP alone. It has a maximum and forgets the oldest entry over it;
//! nothing depends on it being true.

use std::collections::VecDeque;
use std::net::IpAddr;

use parking_lot::Mutex;
use wire::mount::{
    DirPath, DumpReply, ExportReply, MntOk, MntReply, MountEntry, MountStat3, Procedure,
};
use wire::rpc::{AUTH_NONE, AUTH_SYS};
use wire::xdr::{self, DecodeError, Encode, List, Void};

use crate::export::Export;
use crate::handle;
use crate::proc3::NAME_LEN_MAX;
use crate::store::Store;
use crate::types::{Caller, FileKind, Handle, Status};

/// Mounts that are remembered, a few hundred bytes each.
const MOUNTS_MAX: usize = 1024;

/// A client that has mounted something and not said otherwise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    pub client: IpAddr,
    /// The path as the client gave it.
    pub directory: Vec<u8>,
}

/// Who has mounted what, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    list: Mutex<VecDeque<Mount>>, // guards itself
}

impl Mounts {
    fn add(&self, mount: Mount) {
        let mut list = self.list.lock();
        list.retain(|known| *known != mount);
        if list.len() == MOUNTS_MAX {
            list.pop_front();
        }
        list.push_back(mount);
    }

    fn remove(&self, mount: &Mount) {
        self.list.lock().retain(|known| known != mount);
    }

    fn remove_all_of(&self, client: IpAddr) {
        self.list.lock().retain(|known| known.client != client);
    }

    pub(crate) fn to_vec(&self) -> Vec<Mount> {
        self.list.lock().iter().cloned().collect()
    }
}

/// What a call needs.
pub(crate) struct Context<'c, S> {
    pub(crate) store: &'c S,
    pub(crate) export: &'c Export,
    pub(crate) mounts: &'c Mounts,
    pub(crate) caller: &'c Caller,
    pub(crate) client: IpAddr,
}

/// Appends the results of a procedure.
pub(crate) async fn serve<S: Store>(
    cx: &Context<'_, S>,
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match procedure {
        Procedure::Mnt => {
            let DirPath { dirpath } = xdr::from_bytes(args)?;
            mnt(cx, dirpath).await.encode(head);
            return Ok(());
        }
        Procedure::Umnt => {
            let DirPath { dirpath } = xdr::from_bytes(args)?;
            cx.mounts.remove(&cx.mount(dirpath));
            return Ok(());
        }
        Procedure::Null | Procedure::Dump | Procedure::Umntall | Procedure::Export => {
            xdr::from_bytes::<Void>(args)?;
        }
    }
    match procedure {
        Procedure::Dump => dump(cx.mounts, head),
        Procedure::Export => export_list(cx.export, head),
        Procedure::Umntall => cx.mounts.remove_all_of(cx.client),
        Procedure::Null | Procedure::Mnt | Procedure::Umnt => {}
    }
    Ok(())
}

impl<S> Context<'_, S> {
    fn mount(&self, dirpath: &[u8]) -> Mount {
        Mount { client: self.client, directory: dirpath.to_vec() }
    }
}

async fn mnt<S: Store>(cx: &Context<'_, S>, dirpath: &[u8]) -> MntReply {
    let handle = resolve(cx, dirpath).await?;
    cx.mounts.add(cx.mount(dirpath));
    let mut auth_flavors = vec![AUTH_SYS];
    if cx.export.anonymous_allowed {
        auth_flavors.push(AUTH_NONE);
    }
    Ok(MntOk { fhandle: handle::wrap(cx.export.id, &handle), auth_flavors })
}

async fn resolve<S: Store>(cx: &Context<'_, S>, dirpath: &[u8]) -> Result<Handle, MountStat3> {
    let below = below_export(&cx.export.name, dirpath).ok_or(MountStat3::NoEnt)?;
    let mut handle = cx.store.root();
    for name in components(below) {
        check_component(name)?;
        let found = cx.store.lookup(cx.caller, &handle, name).await;
        let node = found.result.map_err(mountstat3)?;
        if node.attr.kind != FileKind::Directory {
            return Err(MountStat3::NotDir);
        }
        handle = node.handle;
    }
    Ok(handle)
}

/// What `path` has below the export's name; none when it lies elsewhere.
fn below_export<'p>(name: &str, path: &'p [u8]) -> Option<&'p [u8]> {
    components(name.as_bytes()).try_fold(path, |rest, expected| {
        let start = rest.iter().position(|&byte| byte != b'/')?;
        let rest = &rest[start..];
        let end = rest.iter().position(|&byte| byte == b'/');
        let (first, rest) = rest.split_at(end.unwrap_or(rest.len()));
        (first == expected).then_some(rest)
    })
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".")
}

fn check_component(name: &[u8]) -> Result<(), MountStat3> {
    match name {
        b".." => Err(MountStat3::Acces),
        name if name.len() > NAME_LEN_MAX => Err(MountStat3::NameTooLong),
        name if name.contains(&0) => Err(MountStat3::Inval),
        _ => Ok(()),
    }
}

fn mountstat3(status: Status) -> MountStat3 {
    match status {
        Status::NotOwner => MountStat3::Perm,
        Status::NoEntry | Status::Stale => MountStat3::NoEnt,
        Status::Io => MountStat3::Io,
        Status::Access => MountStat3::Acces,
        Status::NotDirectory => MountStat3::NotDir,
        Status::Invalid => MountStat3::Inval,
        Status::NameTooLong => MountStat3::NameTooLong,
        Status::NotSupported => MountStat3::NotSupp,
        _ => MountStat3::ServerFault,
    }
}

fn dump(mounts: &Mounts, head: &mut Vec<u8>) {
    let mounts = mounts.to_vec();
    let hosts: Vec<String> = mounts.iter().map(|mount| mount.client.to_string()).collect();
    let entry = |(mount, host)| {
        let (mount, host): (&Mount, &String) = (mount, host);
        MountEntry { hostname: host.as_bytes(), directory: &mount.directory }
    };
    let mounts = mounts.iter().zip(&hosts).map(entry).collect();
    DumpReply { mounts }.encode(head);
}

fn export_list(export: &Export, head: &mut Vec<u8>) {
    let everyone = wire::mount::Export { dir: export.name.as_bytes(), groups: List::default() };
    ExportReply { exports: List(vec![everyone]) }.encode(head);
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn paths_are_compared_by_component() {
        let below = |name, path: &'static str| below_export(name, path.as_bytes());
        assert_eq!(below("/", "/a/b"), Some(&b"/a/b"[..]));
        assert_eq!(below("/", ""), Some(&b""[..]));
        assert_eq!(below("/export", "/export"), Some(&b""[..]));
        assert_eq!(below("/export/", "//export//a"), Some(&b"//a"[..]));
        assert_eq!(below("/srv/nfs", "/srv/nfs/a/"), Some(&b"/a/"[..]));
        assert_eq!(below("/export", "/exports"), None);
        assert_eq!(below("/export", "/"), None);
        assert_eq!(below("/srv/nfs", "/srv"), None);
    }

    #[test]
    fn components_that_lead_elsewhere_are_refused() {
        assert_eq!(check_component(b"a"), Ok(()));
        assert_eq!(check_component(b".."), Err(MountStat3::Acces));
        assert_eq!(check_component(&[b'a'; 256]), Err(MountStat3::NameTooLong));
        assert_eq!(check_component(b"a\0"), Err(MountStat3::Inval));
        let kept: Vec<_> = components(b"/./a//b/.").collect();
        assert_eq!(kept, [b"a", b"b"]);
    }

    #[test]
    fn the_list_forgets_the_oldest_and_has_nothing_twice() {
        let mounts = Mounts::default();
        let mount = |host: u32| Mount {
            client: IpAddr::V4(Ipv4Addr::from(host)),
            directory: b"/".to_vec(),
        };
        for host in 0..=u32::try_from(MOUNTS_MAX).unwrap() {
            mounts.add(mount(host));
        }
        mounts.add(mount(1));
        let list = mounts.to_vec();
        assert_eq!(list.len(), MOUNTS_MAX);
        assert_eq!((&list[0], &list[MOUNTS_MAX - 1]), (&mount(2), &mount(1)));
        mounts.remove(&mount(1));
        mounts.remove_all_of(mount(2).client);
        assert_eq!(mounts.to_vec().len(), MOUNTS_MAX - 2);
    }
}
