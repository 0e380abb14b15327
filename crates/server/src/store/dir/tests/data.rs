//! Reading and writing.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn what_was_written_is_read_and_the_end_is_reported() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        assert_eq!(at.write(&file.handle, 0, b"hello world"), Ok(11));
        assert_eq!(at.write(&file.handle, 6, b"there"), Ok(5));
        at.create(&at.root(), "other");
        let read = |offset, count| at.read(&file.handle, offset, count).unwrap();
        assert_eq!(read(0, 5), (b"hello".to_vec(), false));
        assert_eq!(read(6, 5), (b"there".to_vec(), true));
        assert_eq!(read(6, 500), (b"there".to_vec(), true));
        assert_eq!(read(11, 5), (Vec::new(), true));
        assert_eq!(read(u64::MAX, 5), (Vec::new(), true));
        assert_eq!(read(3, 0), (Vec::new(), false));
        assert_eq!(fs::read(at.path("file")).unwrap(), b"hello there");
    });
}

#[test]
fn attributes_of_a_read_are_never_newer_than_its_data() {
    let at = Fixture::new(DirOptions::default());
    let file = at.create(&at.root(), "file");
    let path = at.path("file");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut grows = fs::OpenOptions::new().append(true).open(path).unwrap();
            // As long as somebody reads; the most is a bound for a test that has failed.
            for _ in 0..1 << 20 {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                grows.write_all(b"x").unwrap();
            }
        });
        let newer = (0..2_000).filter(|_| {
            let read = block_on(at.store.read(&ME, &file.handle, 0, u32::MAX));
            read.attr.unwrap().size > read.result.unwrap().data.len() as u64
        });
        let newer = newer.count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(newer, 0, "replies that tell a size whose bytes they lack");
    });
}

/// The descriptor that has written it is open still.
#[test]
fn what_was_made_immutable_or_append_only_is_not_written_any_more() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file").handle;
        at.write(&file, 0, b"before").unwrap();
        for attribute in ["i", "a"] {
            let Some(guarded) = Chattr::set(at.path("file"), attribute) else { return };
            assert_eq!(at.write(&file, 0, b"later").unwrap_err(), Status::NotOwner);
            let cut = SetAttr { size: Some(0), ..SetAttr::default() };
            assert_eq!(at.set_attr(&file, cut).unwrap_err(), Status::NotOwner);
            assert_eq!(at.read(&file, 0, 9).unwrap().0, b"before");
            drop(guarded);
        }
        at.write(&file, 0, b"after ").unwrap();
    });
}

#[test]
fn large_reads_and_writes_are_whole() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let data: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        let written =
            at.store.write(&ME, &file.handle, 5, Bytes::from(data.clone()), Stability::DataSync);
        let written = block_on(written).result.unwrap();
        assert_eq!(written.count as usize, data.len());
        assert!(matches!(written.committed, Committed::Stable(Stability::DataSync, _)));
        let (read, eof) = at.read(&file.handle, 5, u32::MAX).unwrap();
        assert!(eof && read == data);
    });
}

#[test]
fn a_read_of_what_the_cache_has_lost_waits_for_the_disk() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let data = Bytes::from(vec![0xa5; 1 << 20]);
        let written = at.store.write(&ME, &file.handle, 0, data.clone(), Stability::FileSync);
        block_on(written).result.unwrap();
        let fd = fs::File::open(at.path("file")).unwrap();
        rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        // A piece in the middle comes back into the cache: the read is part warm, part cold.
        let part = at.read(&file.handle, 300_000, 10_000).unwrap();
        assert_eq!(part.0, &data[..10_000]);
        let (read, eof) = at.read(&file.handle, 0, 1 << 20).unwrap();
        assert!(eof && read == data);
    });
}

#[test]
fn a_file_can_have_a_hole_of_five_gibibytes() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let far = 5 << 30;
        at.write(&file.handle, far, b"end").unwrap();
        let attr = at.attr(&file.handle).unwrap();
        assert_eq!(attr.size, far + 3);
        assert!(attr.used < 1 << 20, "the hole takes no space");
        assert_eq!(at.read(&file.handle, far - 2, 9).unwrap().0, b"\0\0end");
        assert_eq!(at.read(&file.handle, 4 << 30, 3).unwrap().0, b"\0\0\0");
    });
}

#[test]
fn what_is_no_regular_file_is_not_read_or_written() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        assert_eq!(at.read(&dir.handle, 0, 1), Err(Status::IsDirectory));
        assert_eq!(at.write(&dir.handle, 0, b"x"), Err(Status::IsDirectory));
        let commit = block_on(at.store.commit(&ME, &dir.handle, 0, 0));
        assert_eq!(commit.result.unwrap_err(), Status::IsDirectory);
        let root = at.root();
        let fifo = at.store.make_node(&ME, &root, b"fifo", Special::Fifo, mode(0o600));
        let fifo = block_on(fifo).result.unwrap();
        // To open a fifo for reading would wait for a writer.
        assert_eq!(at.read(&fifo.handle, 0, 1), Err(Status::Invalid));
        assert_eq!(at.write(&fifo.handle, 0, b"x"), Err(Status::Invalid));
    });
}

#[test]
fn offsets_beyond_the_largest_file_are_too_large() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        for offset in [u64::MAX, 1 << 63, (1 << 63) - 1] {
            assert_eq!(at.write(&file.handle, offset, b"xx"), Err(Status::TooLarge));
        }
        let size = SetAttr { size: Some(u64::MAX), ..SetAttr::default() };
        assert_eq!(at.set_attr(&file.handle, size), Err(Status::TooLarge));
        assert_eq!(at.attr(&file.handle).unwrap().size, 0);
    });
}

#[test]
fn replies_to_writes_carry_the_file_before_and_after() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let before = at.attr(&file.handle).unwrap();
        let data = Bytes::from_static(b"12345");
        let written = at.store.write(&ME, &file.handle, 0, data, Stability::Unstable);
        let written = block_on(written);
        assert_eq!(written.wcc.before.unwrap().size, 0);
        assert_eq!(written.wcc.before.unwrap().changed, before.changed);
        assert_eq!(written.wcc.after.unwrap().size, 5);
        let commit = block_on(at.store.commit(&ME, &file.handle, 0, 0));
        assert_eq!(commit.wcc.after.unwrap().size, 5);
        assert_eq!(commit.result.unwrap().verifier(), at.store.verifier());
    });
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_store_working() {
    let place = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::tmpfs(place.path().to_owned(), "size=1m") else {
        return;
    };
    let store = DirStore::open(place.path(), &DirOptions::default()).unwrap();
    assert_eq!(store.medium(), Medium::Memory, "synced or not");
    let how = CreateHow::Guarded(mode(0o644));
    let file = block_on(store.create(&ME, &store.root(), b"file", how));
    let file = file.result.unwrap().handle;
    let write = |offset, len| {
        let data = Bytes::from(vec![1; len]);
        block_on(store.write(&ME, &file, offset, data, Stability::FileSync)).result
    };
    write(0, 500_000).unwrap();
    assert_eq!(write(500_000, 1 << 20).unwrap_err(), Status::NoSpace);
    let space = block_on(store.space(&ME, &store.root())).result.unwrap();
    assert_eq!((space.bytes_total, space.bytes_available), (1 << 20, 0));
    let empty = SetAttr { size: Some(0), ..SetAttr::default() };
    block_on(store.set_attr(&ME, &file, empty, None)).result.unwrap();
    assert_eq!(write(0, 500_000).unwrap().count, 500_000);
}

#[test]
fn space_and_properties_are_those_of_the_file_system() {
    each_kind(|at| {
        let space = block_on(at.store.space(&ME, &at.root())).result.unwrap();
        assert!(space.bytes_total >= space.bytes_free);
        assert!(space.bytes_free >= space.bytes_available);
        let looked = block_on(at.store.properties(&ME, &at.root()));
        let properties = looked.result.unwrap();
        assert_eq!(properties.name_bytes_max, 255);
        assert!(properties.file_size_max > 1 << 40 && properties.links_max > 1000);
        assert_eq!(looked.attr.unwrap().kind, FileKind::Directory);
    });
}

/// CREATE of a file that is there truncates it; no WRITE that goes on at the same time may report
/// that the file was longer before it than after.
#[test]
fn a_truncation_by_create_does_not_fall_between_the_attributes_of_a_write() {
    let at =
        Fixture::new(DirOptions { metadata_sync: MetadataSync::Never, ..DirOptions::default() });
    let file = at.create(&at.root(), "file").handle;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let (at, ends) = (&at, &ends);
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
                block_on(at.store.create(&ME, &at.root(), b"file", how)).result.unwrap();
            }
        });
        for round in 0..3000_u64 {
            let offset = if round % 2 == 0 { 100_000 } else { 0 };
            let data = Bytes::from_static(b"data");
            let write = at.store.write(&ME, &file, offset, data, Stability::Unstable);
            let wcc = block_on(write).wcc;
            let (before, after) = (wcc.before.unwrap(), wcc.after.unwrap());
            assert!(before.size <= after.size, "{before:?} {after:?}");
        }
        ends.store(true, Ordering::Relaxed);
    });
}
