//! Errors of writes: who gets them, when, and once.

use super::*;

#[test]
fn an_error_that_comes_after_the_last_close_is_reported_at_the_end() {
    served(64 << 10, |kernel, scene| {
        let file = kernel.create();
        // Through a mapping: nobody closes the file after it.
        kernel.write(file, CACHED, 0, &[1; 100_000]);
        kernel.answer();
        kernel.release(file);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

#[test]
fn an_error_that_an_interrupted_close_was_to_report_is_reported_at_the_end() {
    served(64 << 10, |kernel, scene| {
        let (node, file) = kernel.create();
        kernel.write((node, file), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        interrupted(scene, FLUSH, node, &parts(&[file, 0, 0]));
        kernel.ask(RELEASE, node, &parts(&[file, 0, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

/// The work of a request that was interrupted goes on, and may end after the file was closed.
#[test]
fn an_error_that_a_program_has_not_heard_when_its_file_is_closed_is_reported_at_the_end() {
    served(64 << 10, |_, scene| {
        let lost = scene.runtime.block_on(async {
            let who = own();
            let root = scene.files.root();
            let made = scene.files.create(&who, root, b"file", Sattr3::default(), true).await;
            let open = scene.files.open_made(&who, made.unwrap().handle);
            open.write(0, &[1; 100_000]).await.unwrap();
            let error = open.flush_at_close().await.unwrap_err();
            open.close().await;
            open.not_heard(error);
            scene.files.shut_down().await
        });
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

#[test]
fn an_error_is_reported_once_to_each_descriptor_that_was_open_when_it_came() {
    served(64 << 10, |kernel, _| {
        let (node, first) = kernel.create();
        let open = || {
            kernel.ask(OPEN, node, &parts(&[2]));
            u64_at(&kernel.answer(), 0)
        };
        let fsync = |file| {
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            kernel.ended(7).0
        };
        let close = |file| {
            kernel.ask(FLUSH, node, &parts(&[file, 0, 0]));
            kernel.ended(7).0
        };
        let (second, third) = (open(), open());
        kernel.write((node, first), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        let full = Errno::NOSPC.raw_os_error();
        assert_eq!([fsync(second), fsync(second), close(second)], [full, 0, 0]);
        assert_eq!([close(third), close(third)], [full, full], "it may be another's, too (dup(2))");
        // What it has of the file is not what the file has: it looks the name up, and comes again.
        kernel.ask(OPEN, node, &parts(&[2]));
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.ask(OPEN, node, &parts(&[2]));
        let later = u64_at(&kernel.ended(7).1, 0);
        assert_eq!([fsync(later), close(later)], [0, 0], "it was reported");
        assert_eq!([close(first), fsync(first), fsync(first)], [full, full, 0]);
        kernel.write((node, first), CACHED, 0, &[1; 100_000]);
        kernel.answer();
        let all = [first, second, third, later];
        assert_eq!(all.map(fsync), [full; 4], "another one");
        all.into_iter().for_each(|file| kernel.release((node, file)));
    });
}

/// A kernel that makes several requests of one write(2) answers it with the bytes of those before
/// the one that failed, and drops the error.
#[test]
fn an_error_that_a_write_has_got_is_reported_by_the_next_flush_too() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 64 << 10, |kernel, scene| {
            let (node, file) = kernel.create();
            let write = |offset, data: &[u8]| {
                kernel.write((node, file), 0, offset, data);
                kernel.ended(7).0
            };
            let flush = |opcode| {
                kernel.ask(opcode, node, &parts(&[file, 0, 0]));
                kernel.ended(7).0
            };
            let full = Errno::NOSPC.raw_os_error();
            let fail = || {
                let taken = write(0, &[1; 100_000]);
                let dirty = || !scene.files.write_behind().dirty_files().is_empty();
                scene.runtime.block_on(async {
                    while dirty() {
                        tokio::task::yield_now().await;
                    }
                });
                taken
            };
            assert_eq!([fail(), write(100_000, b"rest")], [0, full]);
            assert_eq!(write(100_000, b"rest"), 0, "whoever goes on writing has got it once");
            assert_eq!([flush(FSYNC), flush(FSYNC), flush(FLUSH)], [full, 0, 0]);
            assert_eq!([fail(), write(100_000, b"rest")], [0, full], "another one");
            assert_eq!([flush(FLUSH), flush(FLUSH)], [full, full], "who closes it, too");
            kernel.release((node, file));
            assert!(scene.runtime.block_on(scene.files.shut_down()).is_empty());
        });
    }
}

/// The page that the next append is in would go to the server with them, over another's record.
#[test]
fn a_kernel_forgets_what_could_not_be_written() {
    for cache in [KernelCache::Writeback, KernelCache::Writethrough] {
        served_with(cache, 64 << 10, |kernel, _| {
            let (node, file) = kernel.create();
            kernel.write((node, file), CACHED, 0, &[1; 100_000]);
            kernel.answer();
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            assert_eq!(kernel.notice(), (INVAL, parts(&[node, 0, 0])), "all of its data");
            assert_eq!(kernel.ended(7).0, Errno::NOSPC.raw_os_error());
            kernel.ask(FSYNC, node, &parts(&[file, 0]));
            kernel.answer();
        });
    }
}

/// A kernel that writes a part of a page holds the page until it is answered, and forgets nothing
/// of it before: so that it forgets is not waited for.
#[test]
fn a_write_after_one_that_failed_is_answered_before_the_kernel_has_forgotten_what_was_lost() {
    for cache in [KernelCache::Writeback, KernelCache::Writethrough] {
        let sync = files::Options { sync: true, ..files::Options::default() };
        let held = |_: &Arc<Device>| Notifier::to();
        served_by(held, (sync, cache, LinkPair::default()), 64 << 10, move |kernel, scene| {
            let file = kernel.create();
            kernel.write(file, 0, 0, &[1; 100_000]);
            assert_eq!(kernel.ended(7).0, Errno::NOSPC.raw_os_error());
            kernel.write(file, 0, 0, b"small");
            assert_eq!(kernel.ended(7).0, 0);
            let (notice, _) = scene.held.recv_timeout(LONG).unwrap();
            let all = Notice::Forget { node: file.0, offset: 0, length: 0 };
            assert_eq!(notice, all);
        });
    }
}

/// A kernel that writes back flushes the time before it asks, at a close, for errors of writes; if
/// that failed it would not ask.
#[test]
fn an_error_of_a_file_that_is_gone_is_reported_at_the_close_and_not_at_the_end() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.write(file, CACHED, 0, b"lost");
        kernel.answer();
        scene.runtime.block_on(async {
            let (who, other) = (own(), &scene.other);
            let found = other.lookup(&who, other.root(), b"file").await.unwrap();
            other.remove(&who, other.root(), b"file").await.unwrap();
            scene.files.write_behind().settle(found.handle).await;
        });
        set_time(kernel, file.0, Some(file.1), 1000, 0);
        kernel.ask(FLUSH, file.0, &parts(&[file.1, 0, 0]));
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.release(file);
        assert!(scene.runtime.block_on(scene.files.shut_down()).is_empty());
    });
}

#[test]
fn an_error_after_one_that_was_reported_at_a_close_is_reported_too() {
    served(64 << 10, |kernel, scene| {
        let file = kernel.create();
        kernel.write(file, CACHED, 0, &[1; 100_000]);
        kernel.answer();
        kernel.ask(FLUSH, file.0, &parts(&[file.1, 0, 0]));
        assert_eq!(kernel.ended(7).0, Errno::NOSPC.raw_os_error());
        // Through a mapping that is still there, and has failed before it goes.
        kernel.write(file, CACHED, 100_000, &[1; 100_000]);
        kernel.answer();
        let dirty = || !scene.files.write_behind().dirty_files().is_empty();
        scene.runtime.block_on(async {
            while dirty() {
                tokio::task::yield_now().await;
            }
        });
        kernel.release(file);
        let lost = scene.runtime.block_on(scene.files.shut_down());
        assert_eq!(lost.len(), 1, "{lost:?}");
    });
}

#[test]
fn a_mount_holds_no_more_than_its_bound_of_what_the_server_has_not() {
    const BOUND: u64 = 512 << 10;
    let write = client::write_behind::Options { dirty_bytes_max: BOUND, ..Default::default() };
    let options = files::Options { write, ..files::Options::default() };
    served_as(options, KernelCache::Writeback, 64 << 20, |kernel, scene| {
        let file = kernel.create();
        let mut most = 0;
        for at in 0..128 {
            // All that it gives at once, and none that it keeps.
            kernel.write(file, CACHED, at << 15, &[7; 1 << 15]);
            kernel.answer();
            let held = scene.files.write_behind().counters();
            most = most.max(held.dirty_bytes + held.uncommitted_bytes);
        }
        assert!((1..=BOUND).contains(&most), "{most}");
        kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(on_the_server(scene).size, 128 << 15);
    });
}
