//! GETATTR, SETATTR, READ, WRITE, COMMIT.

use server::store::mem::MemOptions;
use server::{EngineConfig, Peer, Transport};
use wire::nfs3::{
    self, FileHandle, NfsStat3, NfsTime, Procedure as P, Sattr3, SetTime, StableHow, WccData,
};
use wire::rpc::Answer;

use crate::world::{PEER, START_SECS, World, mode, size, status, write_args};

fn file(world: &World) -> FileHandle {
    world.create(world.root(), b"f")
}

fn wcc_of(reply: &nfs3::write::Reply) -> WccData {
    reply.map_or_else(|failure| failure.detail, |ok| ok.file_wcc)
}

#[test]
fn what_was_written_is_read() {
    let world = World::new();
    let file = file(&world);
    let written = world.watched(file, || world.write(file, 3, b"hello"), wcc_of).unwrap();
    assert_eq!((written.count, written.committed), (5, StableHow::Unstable));
    let read = world.read(file, 0, 100).unwrap();
    assert_eq!((read.data, read.count, read.eof), (&b"\0\0\0hello"[..], 8, true));
    assert_eq!(read.file_attributes, Some(world.getattr(file)));
    let part = world.read(file, 4, 2).unwrap();
    assert_eq!((part.data, part.eof), (&b"el"[..], false));
    let past = world.read(file, 8, 1).unwrap();
    assert_eq!((past.data, past.eof), (&b""[..], true));
    let attributes = world.getattr(file);
    assert_eq!((attributes.size, attributes.used), (8, 4096));
}

#[test]
fn a_read_across_chunks_is_whole_and_one_within_a_chunk_is_not_copied() {
    let world = World::new();
    let file = file(&world);
    let data: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    world.write(file, 1000, &data).unwrap();
    let read = world.read(file, 1000, 300_000).unwrap();
    assert!(read.data == data);
    let payload = || {
        let args = nfs3::read::Args { file, offset: 70_000, count: 1000 };
        let record = world.record(wire::Procedure::Nfs3(P::Read), &args);
        world.send(record).unwrap().payload
    };
    assert_eq!(payload().as_ptr(), payload().as_ptr());
}

#[test]
fn reads_are_clipped_to_what_the_server_offers() {
    let config = EngineConfig { transfer_bytes_max: 100, ..EngineConfig::default() };
    let world = World::with(MemOptions::default(), config);
    let file = file(&world);
    let written = world.write(file, 0, &[7; 150]).unwrap();
    assert_eq!(written.count, 100);
    world.write(file, 100, &[8; 50]).unwrap();
    let read = world.read(file, 0, 1000).unwrap();
    assert_eq!((read.count, read.eof), (100, false));
    let rest = world.read(file, 100, 1000).unwrap();
    assert_eq!((rest.data, rest.eof), (&[8; 50][..], true));
}

#[test]
fn a_datagram_carries_less() {
    use futures_util::FutureExt;
    let world = World::new();
    let file = file(&world);
    world.write(file, 0, &[7; 100_000]).unwrap();
    let args = nfs3::read::Args { file, offset: 0, count: 100_000 };
    let record = world.record(wire::Procedure::Nfs3(P::Read), &args);
    let peer = Peer { transport: Transport::Datagram, ..PEER };
    let reply = world.engine.call(peer, record).now_or_never().and_then(Answer::reply);
    assert_eq!(reply.unwrap().payload.len(), 32 * 1024);
}

#[test]
fn stable_writes_say_so_and_a_commit_has_the_same_verifier() {
    let world = World::new();
    let file = file(&world);
    let write =
        |stable| -> nfs3::write::Reply { world.nfs(P::Write, &write_args(file, 0, b"x", stable)) };
    let unstable = write(StableHow::Unstable).unwrap();
    assert_eq!(unstable.committed, StableHow::Unstable);
    for stable in [StableHow::DataSync, StableHow::FileSync] {
        let written = write(stable).unwrap();
        assert_eq!((written.committed, written.verf), (stable, unstable.verf));
    }
    let commit = |file, offset| -> nfs3::commit::Reply {
        let count = 10;
        world.nfs(P::Commit, &nfs3::commit::Args { file, offset, count })
    };
    let committed = commit(file, 0).unwrap();
    assert_eq!(committed.verf, unstable.verf);
    assert_eq!(committed.file_wcc.after, Some(world.getattr(file)));
    assert_eq!(status(commit(world.root(), 0)), Err(NfsStat3::Inval));
}

#[test]
fn another_instance_has_another_verifier_and_its_handles_are_stale() {
    let instance = |instance| {
        let options = MemOptions { instance, ..MemOptions::default() };
        World::with(options, EngineConfig::default())
    };
    let (first, second) = (instance(1), instance(2));
    let (before, after) = (file(&first), file(&second));
    let verf = |world: &World, file| world.write(file, 0, b"x").unwrap().verf;
    assert_ne!(verf(&first, before), verf(&second, after));
    assert_eq!(second.getattr_status(before), Err(NfsStat3::Stale));
}

#[test]
fn a_count_that_is_not_the_datas_is_refused() {
    let world = World::new();
    let file = file(&world);
    for count in [0, 4, 6, u32::MAX] {
        let args =
            nfs3::write::Args { count, ..write_args(file, 0, b"hello", StableHow::Unstable) };
        let failure: nfs3::write::Reply = world.nfs(P::Write, &args);
        let failure = failure.unwrap_err();
        assert_eq!(failure.status, NfsStat3::Inval);
        assert_eq!(failure.detail.after, Some(world.getattr(file)));
    }
    assert_eq!(world.getattr(file).size, 0);
}

#[test]
fn writing_nothing_succeeds_and_changes_nothing() {
    let world = World::new();
    let file = file(&world);
    let before = world.getattr(file);
    world.pass(1);
    let written = world.write(file, 1 << 40, b"").unwrap();
    assert_eq!(written.count, 0);
    assert_eq!(world.getattr(file), before);
}

#[test]
fn offsets_end_where_files_may_end() {
    let world = World::new();
    let file = file(&world);
    let end = i64::MAX.cast_unsigned();
    world.write(file, end - 1, b"x").unwrap();
    assert_eq!(world.getattr(file).size, end);
    assert_eq!(world.getattr(file).used, 65_536); // the byte is the last of a chunk
    let beyond = world.watched(
        file,
        || world.write(file, end, b"x"),
        // The engine refused it without asking the store to write.
        |reply| reply.unwrap_err().detail,
    );
    assert_eq!(status(beyond), Err(NfsStat3::FBig));
    assert_eq!(status(world.write(file, u64::MAX, b"x")), Err(NfsStat3::FBig));
    let read = world.read(file, end - 1, 1).unwrap();
    assert_eq!((read.data, read.eof), (&b"x"[..], true));
    // A client that reads whole pages requests what no file can have.
    let read = world.read(file, end - 1, 4096).unwrap();
    assert_eq!((read.data, read.eof), (&b"x"[..], true));
    for behind in [end, end + 1, u64::MAX] {
        let read = world.read(file, behind, 10).unwrap();
        assert_eq!((read.data, read.eof), (&b""[..], true), "{behind:#x}");
    }
    for (offset, count) in [(end - 1, 4096), (end, 1), (u64::MAX, u32::MAX)] {
        let args = nfs3::commit::Args { file, offset, count };
        let committed: nfs3::commit::Reply = world.nfs(P::Commit, &args);
        assert!(committed.is_ok(), "{offset:#x}");
    }
    assert_eq!(status(world.setattr(file, size(end + 1))), Err(NfsStat3::FBig));
}

#[test]
fn only_files_have_bytes() {
    let world = World::new();
    let root = world.root();
    let failure = world.read(root, 0, 1).unwrap_err();
    assert_eq!(failure.status, NfsStat3::Inval);
    assert_eq!(failure.detail, Some(world.getattr(root)));
    let failure = world.watched(root, || world.write(root, 0, b"x"), wcc_of);
    assert_eq!(status(failure), Err(NfsStat3::Inval));
    let link = world.symlink(root, b"s", b"f").unwrap().obj.unwrap();
    assert_eq!(status(world.read(link, 0, 1)), Err(NfsStat3::Inval));
    assert_eq!(status(world.write(link, 0, b"x")), Err(NfsStat3::Inval));
}

#[test]
fn a_full_store_takes_no_more_bytes_and_gives_back_what_it_had() {
    let options = MemOptions { bytes_max: 3 * 4096, ..MemOptions::default() };
    let world = World::with(options, EngineConfig::default());
    let file = file(&world);
    world.write(file, 0, &[1; 4096]).unwrap();
    let failure = world.watched(file, || world.write(file, 4096, &[1; 2 * 4096]), wcc_of);
    assert_eq!(status(failure), Err(NfsStat3::NoSpc));
    world.write(file, 4096, &[1; 100]).unwrap();
    world.setattr(file, size(0)).unwrap();
    world.write(file, 0, &[1; 8192]).unwrap();
    world.audit();
}

#[test]
fn attributes_change_as_requested() {
    let world = World::new();
    let file = file(&world);
    let time = NfsTime { seconds: 5, nseconds: 6 };
    let all = Sattr3 {
        mode: Some(0o100_600),
        uid: Some(1000),
        gid: Some(100),
        size: Some(70_000),
        atime: SetTime::ClientTime(time),
        mtime: SetTime::ServerTime,
    };
    let set = world.watched(file, || world.setattr(file, all), |reply| reply.unwrap().obj_wcc);
    assert_eq!(status(set), Ok(()));
    let attributes = world.getattr(file);
    assert_eq!((attributes.mode, attributes.size), (0o600, 70_000));
    assert_eq!(attributes.used, 0);
    assert_eq!(attributes.atime, time);
    assert_eq!(attributes.mtime.seconds, START_SECS + 1);
    assert_eq!(attributes.ctime.seconds, START_SECS + 1);
    let directory = world.watched(
        world.root(),
        || world.setattr(world.root(), size(0)),
        |reply| reply.unwrap_err().detail,
    );
    assert!(status(directory).is_err());
}

#[test]
fn a_guard_lets_only_those_change_who_know_the_state() {
    let world = World::new();
    let file = file(&world);
    let guarded = |guard| -> nfs3::setattr::Reply {
        let args =
            nfs3::setattr::Args { object: file, new_attributes: mode(0o600), guard: Some(guard) };
        world.nfs(P::Setattr, &args)
    };
    let ctime = world.getattr(file).ctime;
    let other = NfsTime { nseconds: ctime.nseconds + 1, ..ctime };
    let failure = world.watched(file, || guarded(other), |reply| reply.unwrap_err().detail);
    assert_eq!(status(failure), Err(NfsStat3::NotSync));
    assert_eq!(world.getattr(file).mode, 0o644);
    assert_eq!(status(guarded(ctime)), Ok(()));
    assert_eq!(status(guarded(ctime)), Err(NfsStat3::NotSync));
}

#[test]
fn every_change_is_seen_although_the_clock_stands_still() {
    let world = World::new();
    let file = file(&world);
    let mut seen = vec![world.getattr(file)];
    for _ in 0..3 {
        world.write(file, 0, b"x").unwrap();
        seen.push(world.getattr(file));
    }
    for pair in seen.windows(2) {
        assert!(pair[0].mtime < pair[1].mtime && pair[0].ctime < pair[1].ctime);
    }
}

#[test]
fn reading_moves_the_access_time_once_after_a_change() {
    let world = World::new();
    let file = file(&world);
    world.write(file, 0, b"x").unwrap();
    let atime = || world.getattr(file).atime.seconds;
    world.pass(10);
    let read = world.read(file, 0, 1).unwrap();
    assert_eq!(read.file_attributes.unwrap().atime.seconds, START_SECS + 10);
    world.pass(10);
    world.read(file, 0, 1).unwrap();
    assert_eq!(atime(), START_SECS + 10);
    world.write(file, 0, b"y").unwrap();
    world.read(file, 0, 1).unwrap();
    assert_eq!(atime(), START_SECS + 20);
}

#[test]
fn bad_handles_are_distinguished_from_stale_ones() {
    let world = World::new();
    let handle = |bytes: &[u8]| FileHandle::new(bytes).unwrap();
    let bad = Err(NfsStat3::BadHandle);
    assert_eq!(world.getattr_status(handle(&[])), bad);
    assert_eq!(world.getattr_status(handle(&[9; 64])), bad);
    let mut root = world.root().as_bytes().to_vec();
    root.push(0);
    assert_eq!(world.getattr_status(handle(&root)), bad);
    root.pop();
    root[4] ^= 1; // the export
    assert_eq!(world.getattr_status(handle(&root)), Err(NfsStat3::Stale));
}
