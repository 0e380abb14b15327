//! A read-only export refuses every change, with attributes before and after, and serves the rest.

use futures_util::FutureExt;
use server::store::Store;
use server::store::mem::MemStore;
use server::types::{Access, Attr, Caller, CreateHow as How, SetAttr};
use server::{EngineConfig, Export, Rule};
use wire::nfs3::create::CreateHow;
use wire::nfs3::mknod::MknodData;
use wire::nfs3::{self, DirOp, FileHandle, NfsStat3, Procedure as P, WccData};

use crate::world::{World, mode, status};

/// A world with a file `f` that was there before it became read-only.
fn world() -> (World, FileHandle) {
    let export = Export::ruled(Rule { read_only: true, ..Rule::default() });
    let world = World::exporting(export, EngineConfig::default(), |store| {
        prepare(&store);
        store
    });
    let file = world.lookup(world.root(), b"f").unwrap().object;
    (world, file)
}

fn prepare(store: &MemStore) {
    let caller = Caller { uid: 1000, gid: 100, gids: Vec::new() };
    let attrs = SetAttr { mode: Some(0o666), ..SetAttr::default() };
    let root = store.root();
    let made = store.create(&caller, &root, b"f", How::Guarded(attrs));
    let node = made.now_or_never().unwrap().result.unwrap();
    let Attr { mode, .. } = node.attr;
    assert_eq!(mode, 0o666);
}

#[test]
fn every_change_is_refused_with_attributes() {
    let (world, file) = world();
    let root = world.root();
    let untouched = |object| {
        let attributes = world.getattr(object);
        WccData { before: Some((&attributes).into()), after: Some(attributes) }
    };
    let (of_root, of_file) = (untouched(root), untouched(file));
    let refused = |status| assert_eq!(status, NfsStat3::RoFs);

    let failure = world.setattr(file, mode(0)).unwrap_err();
    refused(failure.status);
    assert_eq!(failure.detail, of_file);
    let failure = world.write(file, 0, b"x").unwrap_err();
    refused(failure.status);
    assert_eq!(failure.detail, of_file);

    let how = CreateHow::Unchecked(mode(0));
    let mknod = || -> nfs3::mknod::Reply {
        let what = MknodData::Fifo(mode(0));
        let where_ = DirOp { dir: root, name: b"p" };
        world.nfs(P::Mknod, &nfs3::mknod::Args { where_, what })
    };
    for failure in [
        world.create_how(root, b"f", how).unwrap_err(),
        world.mkdir_reply(root, b"d").unwrap_err(),
        world.symlink(root, b"s", b"f").unwrap_err(),
        mknod().unwrap_err(),
        world.remove(root, b"f").unwrap_err(),
        world.rmdir(root, b"f").unwrap_err(),
    ] {
        refused(failure.status);
        assert_eq!(failure.detail, of_root);
    }

    let failure = world.rename((root, b"f"), (root, b"g")).unwrap_err();
    refused(failure.status);
    assert_eq!(failure.detail.fromdir_wcc, of_root);
    assert_eq!(failure.detail.todir_wcc, of_root);
    let failure = world.link(file, root, b"g").unwrap_err();
    refused(failure.status);
    assert_eq!(failure.detail.file_attributes, of_file.after);
    assert_eq!(failure.detail.linkdir_wcc, of_root);
}

#[test]
fn looking_goes_on() {
    let (world, file) = world();
    assert_eq!(status(world.read(file, 0, 10)), Ok(()));
    let args = nfs3::access::Args { object: file, access: 0x3f };
    let access: nfs3::access::Reply = world.nfs(P::Access, &args);
    assert_eq!(access.unwrap().access, Access::READ);
    let args = nfs3::commit::Args { file, offset: 0, count: 0 };
    let commit: nfs3::commit::Reply = world.nfs(P::Commit, &args);
    assert_eq!(status(commit), Ok(()));
}

#[test]
fn a_stale_handle_is_stale_here_too() {
    let (world, _) = world();
    let mut stale = world.root().as_bytes().to_vec();
    *stale.last_mut().unwrap() ^= 1;
    let stale = FileHandle::new(&stale).unwrap();
    assert_eq!(status(world.write(stale, 0, b"x")), Err(NfsStat3::Stale));
}
