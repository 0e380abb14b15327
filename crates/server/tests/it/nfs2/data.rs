//! GETATTR, SETATTR, READ, WRITE, STATFS, and the procedures without arguments.

use server::store::mem::MemOptions;
use server::{CommitMode, EngineConfig};
use wire::Procedure;
use wire::nfs2::{
    self, FHandle, Fattr2, NfsStat2, Procedure as P, Sattr2, Timeval, USECONDS_SERVER_TIME,
};
use wire::nfs3;
use wire::xdr::Encode;

use crate::held::Held;
use crate::world::{START_SECS, World};

use super::world::{Calls, World2, mnt, mode, over_both, size};

#[test]
fn what_was_written_is_read() {
    over_both(|world| {
        let file = world.create(world.root(), b"f");
        let written = world.write(file, 3, b"hello").unwrap();
        assert_eq!(written.size, 8);
        assert_eq!(world.getattr(file), Ok(written));
        let read = world.read(file, 0, 100).unwrap();
        assert_eq!(read.data, b"\0\0\0hello");
        assert_eq!(read.attributes.size, 8);
        assert_eq!(world.read(file, 4, 2).unwrap().data, b"el");
        assert_eq!(world.read(file, 8, 1).unwrap().data, b"");
        assert_eq!(world.write(file, 0, b"").unwrap().size, 8);
    });
}

#[test]
fn a_transfer_has_8_kib_at_the_most() {
    over_both(|world| {
        let file = world.create(world.root(), b"f");
        let data: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        for (at, part) in data.chunks(8192).enumerate() {
            world.write(file, u32::try_from(at * 8192).unwrap(), part).unwrap();
        }
        assert_eq!(world.read(file, 0, u32::MAX).unwrap().data, &data[..8192]);
        assert_eq!(world.read(file, 16_384, 8192).unwrap().data, &data[16_384..]);
    });
}

#[test]
fn offsets_of_32_bits_are_unsigned_and_end() {
    over_both(|world| {
        let file = world.create(world.root(), b"f");
        assert_eq!(world.write(file, 0x8000_0000, b"x").unwrap().size, 0x8000_0001);
        assert_eq!(world.read(file, 0x8000_0000, 8).unwrap().data, b"x");
        assert_eq!(world.write(file, u32::MAX - 1, b"z").unwrap().size, u32::MAX);
        assert_eq!(world.write(file, u32::MAX - 1, b"zz"), Err(NfsStat2::FBig));
        assert_eq!(world.write(file, u32::MAX, b"z"), Err(NfsStat2::FBig));
        assert_eq!(world.read(file, u32::MAX - 1, 8).unwrap().data, b"z");
        assert_eq!(world.read(file, u32::MAX, u32::MAX).unwrap().data, b"");
    });
}

#[test]
fn a_file_larger_than_32_bits_has_the_largest_size_of_32_bits() {
    let world = World2::new();
    let root = world.world.root();
    let large = world.world.create(root, b"large");
    let calls: &dyn Calls = &world;
    world.world.write(large, 5 << 30, b"end").unwrap();
    let file = calls.lookup(world.root, b"large").unwrap();
    let attributes = calls.getattr(file).unwrap();
    assert_eq!((attributes.size, attributes.blocks), (u32::MAX, 8));
    assert_eq!(calls.read(file, u32::MAX - 3, 100).unwrap().data, [0; 100]);
    assert_eq!(calls.write(file, 0, b"start").unwrap().size, u32::MAX);
    assert_eq!(world.world.getattr(large).size, (5 << 30) + 3);
    assert_eq!(calls.setattr(file, size(10)).unwrap().size, 10);
    assert_eq!(calls.remove(world.root, b"large"), Ok(()));
}

#[test]
fn attributes_are_set_and_minus_one_keeps_them() {
    over_both(|world| {
        let file = world.create(world.root(), b"f");
        let (atime, mtime) = (
            Timeval { seconds: 1_000_000_000, useconds: 7 },
            Timeval { seconds: 4_000_000_000, useconds: 999_999 },
        );
        let times = Sattr2 { atime: Some(atime), mtime: Some(mtime), ..mode(0o100_600) };
        let set = world.setattr(file, times).unwrap();
        // ext4 with small inodes keeps whole seconds, until 2038.
        let is_coarse = set.atime.useconds == 0;
        let coarse =
            |time: Timeval| Timeval { seconds: time.seconds.min(i32::MAX as u32), useconds: 0 };
        let stored = |time| if is_coarse { coarse(time) } else { time };
        assert_eq!((set.mode, set.atime, set.mtime), (0o100_600, stored(atime), stored(mtime)));
        for nothing in [Sattr2::default(), mode(0xffff)] {
            assert_eq!(world.setattr(file, nothing).map(unmoved), Ok(unmoved(set)));
        }
        let set = world.setattr(file, size(100)).unwrap();
        assert_eq!((set.size, set.atime), (100, stored(atime)));
        let wrong = Timeval { useconds: USECONDS_SERVER_TIME + 1, ..atime };
        let wrong = Sattr2 { mtime: Some(wrong), ..Sattr2::default() };
        assert_eq!(world.setattr(file, wrong), Err(NfsStat2::Inval));
        assert_eq!(world.setattr(world.root(), size(0)), Err(NfsStat2::IsDir));
    });
}

/// Without the change time, which moves.
fn unmoved(attributes: Fattr2) -> Fattr2 {
    Fattr2 { ctime: Timeval::default(), ..attributes }
}

#[test]
fn a_million_microseconds_are_the_servers_time() {
    let world = World2::new();
    let calls: &dyn Calls = &world;
    let file = calls.create(world.root, b"f");
    world.world.pass(100);
    let now = Timeval { seconds: 5, useconds: USECONDS_SERVER_TIME };
    let set = Sattr2 { mtime: Some(now), ..Sattr2::default() };
    let set = calls.setattr(file, set).unwrap();
    assert_eq!(set.mtime.seconds, START_SECS + 100);
}

#[test]
fn directories_have_no_bytes_and_files_no_names() {
    over_both(|world| {
        let root = world.root();
        let file = world.create(root, b"f");
        assert_eq!(world.read(root, 0, 1), Err(NfsStat2::IsDir));
        assert_eq!(world.write(root, 0, b"x"), Err(NfsStat2::IsDir));
        assert_eq!(world.readdir(file, 0, 4096), Err(NfsStat2::NotDir));
    });
}

#[test]
fn statfs_counts_blocks() {
    let options = MemOptions { bytes_max: 1 << 20, ..MemOptions::default() };
    let world = World2::of(World::with(options, EngineConfig::default())).unwrap();
    let world: &dyn Calls = &world;
    let file = world.create(world.root(), b"f");
    let before = world.statfs(file).unwrap();
    assert_eq!((before.tsize, before.bsize, before.blocks), (8192, 4096, 256));
    world.write(file, 0, &[1; 8192]).unwrap();
    let after = world.statfs(file).unwrap();
    assert_eq!((before.bfree - after.bfree, after.bavail), (2, after.bfree));
}

#[test]
fn procedures_without_arguments_answer_with_nothing() {
    let world = World2::new();
    for procedure in [P::Null, P::Root, P::Writecache] {
        assert_eq!(world.call(procedure, Vec::new()), b"");
    }
}

#[test]
fn a_write_is_answered_when_it_is_stable_and_stalls_others_where_commits_do() {
    for mode in [CommitMode::Concurrent, CommitMode::Stall] {
        let config = EngineConfig { commit_mode: mode, ..EngineConfig::default() };
        let world = World::wrapped(MemOptions::default(), config, Held::new);
        world.create(world.root(), b"f");
        let root = mnt(&world, b"/").unwrap();
        let what = nfs2::DirOp { dir: root, name: b"f" };
        let lookup = Procedure::Nfs2(P::Lookup);
        let found: nfs2::DirOpRes = world.call(lookup, &nfs2::lookup::Args { what });
        let file = found.unwrap().file;
        let args = write_args(file);
        let record = world.record(Procedure::Nfs2(P::Write), &args);
        let received = record.as_ptr_range();
        let mut write = Box::pin(world.engine.call(crate::world::PEER, record.clone()));
        assert!(poll(write.as_mut()).is_none(), "the sync has not come");
        let getattr = world.record(Procedure::Nfs2(P::Getattr), &nfs2::getattr::Args { file });
        let mut other = Box::pin(world.engine.call(crate::world::PEER, getattr));
        assert_eq!(poll(other.as_mut()).is_some(), mode == CommitMode::Concurrent);
        world.engine.store().release();
        assert!(poll(write.as_mut()).is_some());
        let store = world.engine.store();
        let place = store.written.lock().unwrap()[0].as_ptr_range();
        assert!(received.start < place.start && place.end <= received.end, "it was not copied");
    }
}

fn write_args(file: FHandle) -> nfs2::write::Args<'static> {
    nfs2::write::Args { file, beginoffset: 0, offset: 0, totalcount: 0, data: b"some data" }
}

fn poll<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    futures_util::FutureExt::now_or_never(future)
}

#[test]
fn the_bytes_of_a_read_are_not_copied() {
    let world = World2::new();
    let calls: &dyn Calls = &world;
    let file = calls.create(world.root, b"f");
    calls.write(file, 0, &[7; 8192]).unwrap();
    let payload = || {
        let args = nfs2::read::Args { file, offset: 100, count: 1000, totalcount: 0 };
        let record = world.world.record(Procedure::Nfs2(P::Read), &args);
        world.world.send(record).unwrap().payload
    };
    assert_eq!(payload().as_ptr(), payload().as_ptr());
}

#[test]
fn how_long_a_reply_may_become_is_known_from_the_call() {
    let world = World2::new();
    let announced = |procedure, args: Vec<u8>| {
        let record = world.world.record(Procedure::Nfs2(procedure), &());
        world.world.engine.reply_bytes_max(&[&record[..], &args].concat())
    };
    let args = nfs2::read::Args { file: world.root, offset: 0, count: 100, totalcount: 0 };
    assert_eq!(announced(P::Read, args.to_bytes()), 8192);
    assert_eq!(announced(P::Readdir, Vec::new()), 8192);
    assert_eq!(announced(P::Getattr, Vec::new()), 0);
}

#[test]
fn both_versions_speak_of_the_same_files() {
    let world = World2::new();
    let calls: &dyn Calls = &world;
    let file = calls.create(world.root, b"f");
    calls.write(file, 0, b"hello").unwrap();
    let root = world.world.root();
    let found = world.world.lookup(root, b"f").unwrap();
    assert_eq!(world.world.read(found.object, 0, 10).unwrap().data, b"hello");
    let ids = |fileid: u64| u32::try_from(fileid).unwrap();
    let attributes = calls.getattr(file).unwrap();
    assert_eq!(ids(found.obj_attributes.unwrap().fileid), attributes.fileid);
    // The handles of one are none to the other.
    let three = nfs3::FileHandle::new(file.as_bytes()).unwrap();
    assert_eq!(world.world.getattr_status(three), Err(nfs3::NfsStat3::BadHandle));
    let mut two = [0; 32];
    two[..found.object.as_bytes().len()].copy_from_slice(found.object.as_bytes());
    assert_eq!(calls.getattr(FHandle(two)), Err(NfsStat2::Stale));
}
