//! Calls that are wrong: handles, arguments, read-only exports, exports of others.

use bytes::Bytes;
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{Clients, Engine, EngineConfig, Export, Exported, Exports, Rule};
use std::sync::Arc;
use wire::nfs2::{self, DirOp, FHandle, NfsStat2, Procedure as P, Sattr2};
use wire::rpc::{AcceptStatus, ReplyHeader};
use wire::xdr::{Encode, Reader};
use wire::{Procedure, mount};

use crate::world::{World, XID, split};

use super::world::{Calls, World2, mode, over_both};

/// Arguments of every procedure that has a handle, naming it; two of them where there are two.
pub(crate) fn args_of(handle: FHandle, second: FHandle) -> Vec<(P, Vec<u8>)> {
    let where_ = DirOp { dir: handle, name: b"new" };
    let what = DirOp { dir: handle, name: b"f" };
    let to = DirOp { dir: second, name: b"new" };
    let file = handle;
    let attributes = mode(0o644);
    vec![
        (P::Getattr, nfs2::getattr::Args { file }.to_bytes()),
        (P::Setattr, nfs2::setattr::Args { file, attributes }.to_bytes()),
        (P::Lookup, nfs2::lookup::Args { what }.to_bytes()),
        (P::Readlink, nfs2::readlink::Args { file }.to_bytes()),
        (P::Read, nfs2::read::Args { file, offset: 0, count: 10, totalcount: 0 }.to_bytes()),
        (
            P::Write,
            nfs2::write::Args { file, beginoffset: 0, offset: 0, totalcount: 0, data: b"hello" }
                .to_bytes(),
        ),
        (P::Create, nfs2::create::Args { where_, attributes }.to_bytes()),
        (P::Remove, nfs2::remove::Args { what }.to_bytes()),
        (P::Rename, nfs2::rename::Args { from: what, to }.to_bytes()),
        (P::Link, nfs2::link::Args { from: file, to }.to_bytes()),
        (
            P::Symlink,
            nfs2::symlink::Args { from: where_, to: b"t", attributes: Sattr2::default() }
                .to_bytes(),
        ),
        (P::Mkdir, nfs2::mkdir::Args { where_, attributes }.to_bytes()),
        (P::Rmdir, nfs2::rmdir::Args { what }.to_bytes()),
        (P::Readdir, nfs2::readdir::Args { dir: handle, cookie: 0, count: 4096 }.to_bytes()),
        (P::Statfs, nfs2::statfs::Args { file }.to_bytes()),
    ]
}

/// The status of every procedure, each of which must fail with nothing but that.
fn refusals(world: &dyn Calls, handle: FHandle, second: FHandle) -> Vec<(P, u32)> {
    let refused = |(procedure, args)| {
        let results = world.call(procedure, args);
        assert_eq!(results.len(), 4, "{procedure}");
        (procedure, Reader::new(results).u32().unwrap())
    };
    args_of(handle, second).into_iter().map(refused).collect()
}

#[track_caller]
fn assert_all(world: &dyn Calls, handle: FHandle, second: FHandle, expected: NfsStat2) {
    for (procedure, status) in refusals(world, handle, second) {
        assert_eq!(status, expected.code(), "{procedure}");
    }
}

#[test]
fn handles_crafted_cut_short_and_of_other_exports_are_stale() {
    over_both(|world| {
        let root = world.root();
        assert_all(world, FHandle([0; 32]), root, NfsStat2::Stale);
        assert_all(world, FHandle([0xff; 32]), root, NfsStat2::Stale);
        let len = usize::from(root.as_bytes()[1]);
        for at in 0..6 + len {
            let mut crafted = *root.as_bytes();
            crafted[at] ^= 0x80;
            assert_all(world, FHandle(crafted), root, NfsStat2::Stale);
        }
        for len in 0..len {
            let mut cut = *root.as_bytes();
            cut[1] = u8::try_from(len).unwrap();
            assert_all(world, FHandle(cut), root, NfsStat2::Stale);
            cut[6 + len..].fill(0);
            assert_all(world, FHandle(cut), root, NfsStat2::Stale);
        }
        let mut longer = *root.as_bytes();
        longer[31] = 1;
        assert_all(world, FHandle(longer), root, NfsStat2::Stale);
    });
}

#[test]
fn handles_of_deleted_files_are_stale() {
    over_both(|world| {
        let root = world.root();
        world.create(root, b"new");
        let file = world.create(root, b"gone");
        world.remove(root, b"gone").unwrap();
        world.create(root, b"gone");
        assert_all(world, file, root, NfsStat2::Stale);
        let dir = world.mkdir(root, b"d");
        world.rmdir(root, b"d").unwrap();
        assert_all(world, dir, dir, NfsStat2::Stale);
        // The second handle counts as well, and nothing is done.
        let what = DirOp { dir: root, name: b"new" };
        let to = DirOp { dir, name: b"x" };
        let renamed: nfs2::rename::Reply =
            world.nfs(P::Rename, &nfs2::rename::Args { from: what, to });
        assert_eq!(renamed, Err(NfsStat2::Stale));
        assert!(world.lookup(root, b"new").is_ok());
    });
}

#[test]
fn every_change_of_a_read_only_export_is_refused() {
    let hold = |store: MemStore| store;
    let rule = Rule { read_only: true, ..Rule::default() };
    let world = World::exporting(Export::ruled(rule), EngineConfig::default(), hold);
    let world = World2::of(world).unwrap();
    let calls: &dyn Calls = &world;
    let changes = [
        P::Setattr,
        P::Write,
        P::Create,
        P::Remove,
        P::Rename,
        P::Link,
        P::Symlink,
        P::Mkdir,
        P::Rmdir,
    ];
    for (procedure, args) in args_of(world.root, world.root) {
        let status = Reader::new(calls.call(procedure, args)).u32().unwrap();
        let refused = status == NfsStat2::RoFs.code();
        assert_eq!(refused, changes.contains(&procedure), "{procedure}: {status}");
    }
    // A file that is gone is stale here too.
    let mut gone = *world.root.as_bytes();
    gone[21] ^= 1;
    assert_all(calls, FHandle(gone), world.root, NfsStat2::Stale);
}

/// `/a` and `/b` for everyone, `/c` for nobody.
fn three_exports() -> World2 {
    let exported = |(name, clients): (&str, Clients)| {
        let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
        let rules = vec![Rule { clients, ..Rule::default() }];
        let export = Export { name: name.to_owned(), id: Export::id_of(name), rules };
        Exported { export, store: Arc::new(store) }
    };
    let all = [("/a", Clients::Everyone), ("/b", Clients::Everyone), ("/c", Clients::Of(vec![]))];
    let exports = Exports::new(all.into_iter().map(exported).collect()).unwrap();
    let mut world = World::new();
    world.engine = Engine::new(exports, EngineConfig::default());
    let root = super::world::mnt(&world, b"/a").unwrap();
    World2 { world, root }
}

#[test]
fn one_export_does_not_lead_to_another() {
    let world = three_exports();
    let calls: &dyn Calls = &world;
    let mnt = |path| super::world::mnt(&world.world, path);
    let (a, b) = (world.root, mnt(b"/b").unwrap());
    assert_eq!(mnt(b"/c"), Err(mount::MountStat3::Acces));
    assert_eq!(mnt(b"/d"), Err(mount::MountStat3::NoEnt));
    let file = calls.create(a, b"f");
    assert_eq!(calls.link(file, b, b"g"), Err(NfsStat2::XDev));
    assert_eq!(calls.rename((a, b"f"), (b, b"g")), Err(NfsStat2::XDev));
    assert_eq!(calls.lookup(b, b"f"), Err(NfsStat2::NoEnt));
    // The same file in the other export's handle.
    let mut other = *file.as_bytes();
    other[2..6].copy_from_slice(&b.as_bytes()[2..6]);
    assert_eq!(calls.getattr(FHandle(other)), Err(NfsStat2::Stale));
    other[2..6].copy_from_slice(&Export::id_of("/c").to_be_bytes());
    assert_all(calls, FHandle(other), a, NfsStat2::Acces);
}

#[test]
fn arguments_cut_off_anywhere_or_too_long_are_garbage() {
    let world = World2::new();
    let garbage = ReplyHeader::accepted(XID, AcceptStatus::GarbageArgs);
    let mut all = args_of(world.root, world.root);
    // A handle that leads nowhere does not hide what is wrong behind it.
    all.extend(args_of(FHandle([0xff; 32]), world.root));
    all.extend([P::Null, P::Root, P::Writecache].map(|procedure| (procedure, Vec::new())));
    for (procedure, args) in all {
        let record = world.world.record(Procedure::Nfs2(procedure), &());
        let cut = (0..args.len()).map(|len| [&record[..], &args[..len]].concat());
        let long = [&record[..], &args, &[0; 4]].concat();
        for wrong in cut.chain([long]) {
            let reply = world.world.send(Bytes::from(wrong)).unwrap();
            assert_eq!(split(&reply).0, garbage, "{procedure}");
        }
    }
    let calls: &dyn Calls = &world;
    assert_eq!(calls.readdir(world.root, 0, 4096).unwrap().entries.len(), 2);
}

#[test]
fn data_over_8_kib_and_names_over_4_are_garbage() {
    let world = World2::new();
    let garbage = ReplyHeader::accepted(XID, AcceptStatus::GarbageArgs);
    let calls: &dyn Calls = &world;
    let file = calls.create(world.root, b"f");
    let (offset, long) = (0, [0; 8193]);
    let data = &long[..];
    let write = nfs2::write::Args { file, beginoffset: 0, offset, totalcount: 0, data };
    let what = DirOp { dir: world.root, name: &long[..4097] };
    for (procedure, args) in
        [(P::Write, write.to_bytes()), (P::Lookup, nfs2::lookup::Args { what }.to_bytes())]
    {
        let record = world.world.record(Procedure::Nfs2(procedure), &());
        let reply = world.world.send(Bytes::from([&record[..], &args].concat())).unwrap();
        assert_eq!(split(&reply).0, garbage, "{procedure}");
    }
    assert_eq!(calls.getattr(file).unwrap().size, 0);
}

#[test]
fn a_mount_of_version_1_is_remembered_like_any_other() {
    let world = World2::new();
    let calls: &dyn Calls = &world;
    calls.mkdir(world.root, b"d");
    calls.create(world.root, b"f");
    let mnt = |path| super::world::mnt(&world.world, path);
    assert_eq!(mnt(b"/d"), Ok(calls.lookup(world.root, b"d").unwrap()));
    assert_eq!(mnt(b"/f"), Err(mount::MountStat3::NotDir));
    assert_eq!(mnt(b"/d/.."), Err(mount::MountStat3::Acces));
    assert_eq!(mnt(&[&b"/"[..], &[b'n'; 256]].concat()), Err(mount::MountStat3::NameTooLong));
    let of = Procedure::Mount1;
    let dump = || {
        let reply: mount::DumpReply<'static> = world.world.call(of(mount::Procedure::Dump), &());
        reply.mounts.iter().map(|entry| entry.directory).collect::<Vec<_>>()
    };
    assert_eq!(dump(), [b"/" as &[u8], b"/d"]);
    let exports: mount::ExportReply<'static> = world.world.call(of(mount::Procedure::Export), &());
    assert_eq!(exports.exports[0].dir, b"/");
    let dirpath = b"/d";
    let () = world.world.call(of(mount::Procedure::Umnt), &mount::DirPath { dirpath });
    assert_eq!(dump(), [b"/"]);
    let () = world.world.call(of(mount::Procedure::Umntall), &());
    assert!(dump().is_empty());
}
