//! MOUNT versions 3 and 1: from the path of an export, or of a directory in it, to a file handle
//! (RFC 1813 appendix I, RFC 1094 appendix A). They differ in what MNT returns, and share the rest.
//!
//! A path is walked one component at a time through the store, with the caller's rights. Symbolic
//! links are not followed and `..` is refused: what they would lead to is the client's business.
//! The list of mounts serves DUMP alone. It has a maximum and forgets the oldest entry over it;
//! nothing depends on it being true.

use std::collections::VecDeque;
use std::net::IpAddr;

use parking_lot::Mutex;
use wire::mount::{
    DirPath, DumpReply, ExportReply, MntOk, MntOk1, MntReply1, MountEntry, MountStat3, Procedure,
};
use wire::rpc::{AUTH_NONE, AUTH_SYS};
use wire::xdr::{self, DecodeError, Encode, List, Void};

use crate::auth::Credential;
use crate::export::{Clients, Rule};
use crate::exports::{Exported, Exports, Place, components};
use crate::handle;
use crate::handle2;
use crate::peer::Peer;
use crate::proc3::NAME_LEN_MAX;
use crate::store::Store;
use crate::types::{Caller, FileKind, Handle, Status};

/// Mounts that are remembered, a few hundred bytes each.
const MOUNTS_MAX: usize = 1024;

/// A client that has mounted something and sent no UMNT.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mount {
    pub client: IpAddr,
    /// The path as the client gave it, without what does not matter in it.
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
    pub(crate) exports: &'c Exports<S>,
    pub(crate) mounts: &'c Mounts,
    pub(crate) credential: Credential,
    pub(crate) peer: &'c Peer,
    /// Bytes that a list may have in the reply.
    pub(crate) list_bytes_max: usize,
}

/// Bytes of a list in a datagram.
pub(crate) const LIST_DATAGRAM_BYTES_MAX: usize = 4 << 10;

/// Takes the entries of a list as long as they fit, an entry having `len` bytes of text.
fn fits(bytes_max: usize) -> impl FnMut(usize) -> bool {
    /// Two lengths, two marks of the list, and padding.
    const ENTRY_OVERHEAD: usize = 24;
    let mut left = bytes_max;
    move |len| {
        let rest = left.checked_sub(len + ENTRY_OVERHEAD);
        left = rest.unwrap_or(0);
        rest.is_some()
    }
}

/// Whose handles MNT gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    /// Of NFS version 2.
    One,
    /// Of NFS version 3.
    Three,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    Served,
    /// The export wants to know who mounts it.
    TooWeak,
}

/// Appends the results of a procedure.
pub(crate) async fn serve<S: Store>(
    cx: &Context<'_, S>,
    version: Version,
    procedure: Procedure,
    args: &[u8],
    head: &mut Vec<u8>,
) -> Result<Outcome, DecodeError> {
    match procedure {
        Procedure::Mnt => {
            let DirPath { dirpath } = xdr::from_bytes(args)?;
            let place = cx.place(dirpath);
            if place.as_ref().is_ok_and(|(place, _)| cx.credential.is_weak_for(place.rule)) {
                return Ok(Outcome::TooWeak);
            }
            let found = match place {
                Ok((place, below)) => {
                    let caller = cx.credential.caller(place.rule);
                    let found = walk(&*place.exported.store, &caller, below).await;
                    found.map(|handle| (place, handle))
                }
                Err(status) => Err(status),
            };
            let mounted = match version {
                Version::One => encode(found.and_then(mnt1).map_err(errno), head),
                Version::Three => encode(found.map(mnt3), head),
            };
            if mounted {
                cx.mounts.add(cx.mount(dirpath));
            }
            return Ok(Outcome::Served);
        }
        Procedure::Umnt => {
            let DirPath { dirpath } = xdr::from_bytes(args)?;
            cx.mounts.remove(&cx.mount(dirpath));
            return Ok(Outcome::Served);
        }
        Procedure::Null | Procedure::Dump | Procedure::Umntall | Procedure::Export => {
            xdr::from_bytes::<Void>(args)?;
        }
    }
    match procedure {
        Procedure::Dump => dump(cx.mounts, cx.list_bytes_max, head),
        Procedure::Export => export_list(cx.exports, cx.list_bytes_max, head),
        Procedure::Umntall => cx.mounts.remove_all_of(cx.peer.address.ip()),
        Procedure::Null | Procedure::Mnt | Procedure::Umnt => {}
    }
    Ok(Outcome::Served)
}

impl<'c, S> Context<'c, S> {
    fn mount(&self, dirpath: &[u8]) -> Mount {
        // However it is written, it is one mount.
        let mut directory = Vec::with_capacity(dirpath.len());
        for component in components(dirpath) {
            directory.push(b'/');
            directory.extend_from_slice(component);
        }
        if directory.is_empty() {
            directory.push(b'/');
        }
        Mount { client: self.peer.address.ip(), directory }
    }

    /// The export that a path is in, and the way from there.
    fn place<'p>(&self, dirpath: &'p [u8]) -> Result<(Place<'c, S>, &'p [u8]), MountStat3> {
        let (exported, below) = self.exports.of_path(dirpath).ok_or(MountStat3::NoEnt)?;
        // Both reasons are one to a client: it may not.
        let place = Place::of(exported, self.peer).map_err(|_| MountStat3::Acces)?;
        Ok((place, below))
    }
}

/// Appends the reply of an MNT, and says whether it is a success.
fn encode<T: Encode>(reply: Result<T, MountStat3>, head: &mut Vec<u8>) -> bool {
    reply.encode(head);
    reply.is_ok()
}

fn mnt3<S>((place, handle): (Place<'_, S>, Handle)) -> MntOk {
    let mut auth_flavors = vec![AUTH_SYS];
    if place.rule.anonymous_allowed {
        auth_flavors.push(AUTH_NONE);
    }
    MntOk { fhandle: handle::wrap(place.exported.export.id, &handle), auth_flavors }
}

/// Fails when the store's handles are too long for NFS version 2.
fn mnt1<S: Store>((place, handle): (Place<'_, S>, Handle)) -> MntReply1 {
    let Exported { export, store } = place.exported;
    let directory = handle2::name2(&**store, export.id, &handle);
    directory.map(|directory| MntOk1 { directory }).ok_or(MountStat3::NotSupp)
}

/// A failure as version 1 has it: an error of UNIX, EIO for what is none.
fn errno(status: MountStat3) -> MountStat3 {
    match status {
        MountStat3::NotSupp | MountStat3::ServerFault => MountStat3::Io,
        status => status,
    }
}

async fn walk<S: Store>(store: &S, caller: &Caller, path: &[u8]) -> Result<Handle, MountStat3> {
    if store.is_root_gone() {
        return Err(MountStat3::NoEnt);
    }
    let mut handle = store.root();
    for name in components(path) {
        check_component(name)?;
        let found = store.lookup(caller, &handle, name).await;
        let node = found.result.map_err(mountstat3)?;
        if node.attr.kind != FileKind::Directory {
            return Err(MountStat3::NotDir);
        }
        handle = node.handle;
    }
    Ok(handle)
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

fn dump(mounts: &Mounts, bytes_max: usize, head: &mut Vec<u8>) {
    let mut fits = fits(bytes_max);
    let mut mounts = mounts.to_vec();
    // The latest, where not all have room.
    let listed = mounts.iter().rev().take_while(|mount| fits(mount.directory.len() + 46)).count();
    mounts.drain(..mounts.len() - listed);
    let hosts: Vec<String> = mounts.iter().map(|mount| mount.client.to_string()).collect();
    let entry = |(mount, host)| {
        let (mount, host): (&Mount, &String) = (mount, host);
        MountEntry { hostname: host.as_bytes(), directory: &mount.directory }
    };
    let mounts = mounts.iter().zip(&hosts).map(entry).collect();
    DumpReply { mounts }.encode(head);
}

fn export_list<S>(exports: &Exports<S>, bytes_max: usize, head: &mut Vec<u8>) {
    let mut fits = fits(bytes_max);
    let groups: Vec<Vec<String>> =
        exports.iter().map(|exported| groups(&exported.export.rules)).collect();
    let list = exports.iter().zip(&groups).map(|(exported, groups)| {
        let names = groups.iter().map(String::as_bytes);
        let groups = List(names.map(|name| wire::mount::Group { name }).collect());
        wire::mount::Export { dir: exported.export.name.as_bytes(), groups }
    });
    let list = list.take_while(|export| {
        let names = export.groups.iter().map(|group| group.name.len() + 12).sum::<usize>();
        fits(export.dir.len() + names)
    });
    ExportReply { exports: List(list.collect()) }.encode(head);
}

/// Who may mount; nobody listed means everyone.
fn groups(rules: &[Rule]) -> Vec<String> {
    let mut groups = Vec::new();
    for rule in rules {
        match &rule.clients {
            Clients::Everyone => return Vec::new(),
            Clients::Of(networks) => groups.extend(networks.iter().map(ToString::to_string)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn components_that_lead_elsewhere_are_refused() {
        assert_eq!(check_component(b"a"), Ok(()));
        assert_eq!(check_component(b".."), Err(MountStat3::Acces));
        assert_eq!(check_component(&[b'a'; 256]), Err(MountStat3::NameTooLong));
        assert_eq!(check_component(b"a\0"), Err(MountStat3::Inval));
    }

    #[test]
    fn version_1_says_its_failures_in_errors_of_unix() {
        assert_eq!(errno(MountStat3::NoEnt), MountStat3::NoEnt);
        for status in [MountStat3::NotSupp, MountStat3::ServerFault] {
            assert_eq!(errno(status), MountStat3::Io);
        }
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
