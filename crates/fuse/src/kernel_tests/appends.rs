//! Where an append goes, and what is written and read past caches.

use perf::model::loggp::Link;
use perf::units::Nanos;

use super::*;

#[test]
fn what_is_written_past_the_kernels_cache_is_forgotten_there_before_it_is_answered() {
    served(1 << 20, |kernel, _| {
        let created = kernel.create();
        let (node, file) = created;
        let write = |kind, offset, data: &[u8]| kernel.write(created, kind, offset, data);
        let answers = |(unique, code, _): Heard| assert_eq!((unique, code), (7, 0));
        write(DIRECT, 0, &[1; 9000]);
        answers(kernel.hear());
        // From here on the kernel has pages of it.
        kernel.ask(READ, node, &parts(&[file, 0, 4096, 0, 0]));
        answers(kernel.hear());
        write(DIRECT, 4096, &[2; 4096]);
        let (unique, notice, notified) = kernel.hear();
        assert_eq!((unique, notice), (0, 2), "data of an inode are to be forgotten");
        assert_eq!(notified, parts(&[node, 4096, 4096]));
        answers(kernel.hear());
        // What comes from its cache is in its cache.
        write(CACHED, 0, &[3; 4096]);
        answers(kernel.hear());
    });
}

/// In the flags of a READ or WRITE.
const O_DIRECT: u64 = rustix::fs::OFlags::DIRECT.bits() as u64;

#[test]
fn what_a_program_writes_with_o_direct_is_at_the_server_when_the_write_returns() {
    served(64 << 10, |kernel, scene| {
        let (node, file) = kernel.create();
        let write = |offset: u64, data: &[u8]| {
            let head = parts(&[file, offset, DIRECT | data.len() as u64, 0, O_DIRECT]);
            kernel.ask(WRITE, node, &[&head, data].concat());
            kernel.ended(7).0
        };
        assert_eq!(write(0, &[1; 4096]), 0);
        assert_eq!(on_the_server(scene).size, 4096);
        let full = Errno::NOSPC.raw_os_error();
        assert_eq!(write(4096, &[1; 100_000]), full, "its own error");
        assert_eq!(write(4096, &[1; 4096]), 0, "notified once");
        assert_eq!(on_the_server(scene).size, 8192);
    });
}

#[test]
fn what_a_program_reads_with_o_direct_is_what_the_server_has() {
    const PIECE: u64 = 32 << 10;
    served(64 << 20, |kernel, scene| {
        let (node, file) = kernel.create();
        scene.runtime.block_on(appended_elsewhere(scene, &[1; 8 << 20]));
        let read = |offset, flags| {
            kernel.ask(READ, node, &parts(&[file, offset, PIECE, 0, flags]));
            kernel.answer()
        };
        kernel.ask(GETATTR, node, &parts(&[0, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        // What follows is fetched ahead.
        (0..64).for_each(|piece| assert!(read(piece * PIECE, 0).iter().all(|byte| *byte == 1)));
        scene.runtime.block_on(async {
            let who = own();
            let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
            let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
            open.write(2 << 20, &[2; 1 << 20]).await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
        });
        assert!(read(2 << 20, O_DIRECT).iter().all(|byte| *byte == 2));
    });
}

#[test]
fn a_kernel_that_writes_back_learns_where_the_file_ends_before_it_appends() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(O_APPEND);
        assert_eq!(kernel.notice().0, INVAL);
        let created = kernel.answer();
        let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
        assert_eq!(u64_at(&created, 24), 0, "its attributes are not good for any time");
        kernel.write((node, file), CACHED, 0, b"ours");
        kernel.answer();
        kernel.ask(FSYNC, node, &parts(&[file, 0]));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, u64::MAX, 0])), "attributes, no data");
        kernel.answer();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        // As it asks before a write: by the open file.
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 4, 0])));
        let (code, notified) = kernel.notice();
        assert_eq!(
            (code, u64_at(&notified, 0), u64_at(&notified, 8)),
            (STORE, node, 9),
            "the last byte"
        );
        let attributes = kernel.answer();
        assert_eq!(u64_at(&attributes, 16 + 8), 10);
        assert_eq!(u64_at(&attributes, 0), 0, "another may append before we do");
        assert!(u64_at(&attributes, 8) > 0, "who appends line by line does not ask for each");
        kernel.write((node, file), CACHED, 10, b"ours");
        kernel.answer();
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        let attributes = kernel.answer();
        assert!(u64_at(&attributes, 0) > 0, "until it is stable it may append as it likes");
    });
}

/// As `open(name, 'a')` of Python does: to find the end, and to append later.
#[test]
fn an_lseek_before_another_client_appends_is_not_where_our_append_goes() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(O_APPEND);
        assert_eq!(kernel.notice().0, INVAL);
        let created = kernel.answer();
        let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 0);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice().0, INVAL);
        let (code, notified) = kernel.notice();
        assert_eq!(
            (code, u64_at(&notified, 0), u64_at(&notified, 8)),
            (STORE, node, 5),
            "the last byte"
        );
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 6);
    });
}

/// Made, opened to append, with `ours` in it that is stable: node and open file.
fn log_with_a_record(kernel: &Kernel) -> (u64, u64) {
    kernel.ask_create(O_APPEND);
    assert_eq!(kernel.notice().0, INVAL);
    let created = kernel.answer();
    let (node, file) = (u64_at(&created, 0), u64_at(&created, 128));
    kernel.write((node, file), CACHED, 0, b"ours");
    kernel.answer();
    kernel.ask(FSYNC, node, &parts(&[file, 0]));
    assert_eq!(kernel.notice().0, INVAL);
    kernel.answer();
    (node, file)
}

/// By two nodes the kernel would have two ends, and two records at one of them.
#[test]
fn who_appends_beside_a_program_of_this_host_has_its_node_whatever_another_client_has_changed() {
    /// As the kernel does, which has the name at hand.
    fn opened(kernel: &Kernel, node: u64) -> u64 {
        let open = || {
            kernel.ask(OPEN, node, &parts(&[1 | u64::from(O_APPEND)]));
            kernel.ended(7)
        };
        let mut answer = open();
        if answer.0 == Errno::STALE.raw_os_error() {
            kernel.ask(LOOKUP, 1, b"file\0");
            assert_eq!(u64_at(&kernel.ended(7).1, 0), node);
            answer = open();
        }
        assert_eq!(answer.0, 0);
        assert_eq!(u64_at(&answer.1, 8) & DIRECT_IO, 0, "through the same pages");
        u64_at(&answer.1, 0)
    }
    let mode = Sattr3::of_mode(0o600);
    let time = Sattr3 { mtime: wire::nfs3::SetTime::ServerTime, ..Sattr3::default() };
    served(1 << 20, move |kernel, scene| {
        let (node, file) = log_with_a_record(kernel);
        let (mut size, mut opens) = (4, vec![file]);
        for (what, is_looked_up) in (0..3).flat_map(|what| [(what, false), (what, true)]) {
            match what {
                0 => scene.runtime.block_on(set_elsewhere(scene, mode)),
                1 => scene.runtime.block_on(set_elsewhere(scene, time)),
                _ => scene.runtime.block_on(appended_elsewhere(scene, b"theirs")),
            }
            size += if what == 2 { 6 } else { 0 };
            if is_looked_up {
                scene.runtime.block_on(heard(scene));
                kernel.ask(LOOKUP, 1, b"file\0");
                assert_eq!(u64_at(&kernel.ended(7).1, 0), node, "{what}");
            }
            opens.push(opened(kernel, node));
            assert_eq!(scene.system.nodes.lock().find(node).unwrap().size, size, "{what}");
        }
        for file in opens {
            kernel.ask(RELEASE, node, &parts(&[file, 0, 0]));
            assert_eq!(kernel.ended(7).0, 0);
        }
        kernel.ask(LOOKUP, 1, b"file\0");
        assert_ne!(u64_at(&kernel.ended(7).1, 0), node, "no time of before stays");
    });
}

/// Nothing makes the kernel's file shorter, so that it gets a second node.
#[test]
fn what_is_written_to_a_file_that_others_have_cut_is_forgotten_where_it_was_longer() {
    served(1 << 20, |kernel, scene| {
        let [first, second] = twice(kernel, scene);
        let write = parts(&[second.1, 2, DIRECT | 4, 0, 0]);
        kernel.ask(WRITE, second.0, &[&write[..], b"ours"].concat());
        for _ in 0..2 {
            assert_eq!(kernel.notice(), (INVAL, parts(&[first.0, 0, 0])), "before and after");
        }
        assert_eq!(kernel.ended(7).0, 0);
    });
}

/// It takes the file to end where it takes its own record to be.
#[test]
fn a_kernel_learns_the_end_where_its_append_has_gone_further() {
    served(1 << 20, |kernel, scene| {
        let [_, (node, _)] = twice(kernel, scene);
        kernel.ask(OPEN, node, &parts(&[1 | u64::from(O_APPEND)]));
        let file = u64_at(&kernel.ended(7).1, 0);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let write = parts(&[file, 6, DIRECT | 4, 0, u64::from(O_APPEND)]);
        kernel.ask(WRITE, node, &[&write[..], b"ours"].concat());
        assert_eq!(kernel.ended(7).0, 0);
        let stored = loop {
            let (code, notified) = kernel.notice();
            if code == STORE {
                break notified;
            }
        };
        assert_eq!((u64_at(&stored, 0), u64_at(&stored, 8)), (node, 15), "a byte at its end");
    });
}

/// A third program writes to the log in place, and neither syncs nor closes it.
#[test]
fn an_append_follows_another_clients_though_other_programs_have_written_in_place() {
    served(1 << 20, |kernel, scene| {
        let (node, file) = log_with_a_record(kernel);
        kernel.ask(OPEN, node, &parts(&[2]));
        let third = u64_at(&kernel.answer(), 0);
        kernel.write((node, third), DIRECT, 0, b"O");
        kernel.answer();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask(GETATTR, node, &parts(&[1, file]));
        assert_eq!(kernel.notice().0, INVAL);
        let (code, notified) = kernel.notice();
        assert_eq!(
            (code, u64_at(&notified, 0), u64_at(&notified, 8)),
            (STORE, node, 9),
            "the last byte"
        );
        assert_eq!(u64_at(&kernel.answer(), 16 + 8), 10);
    });
}

/// The same, and its next write comes while the end is requested of the server.
#[test]
fn an_append_follows_another_clients_though_other_programs_go_on_writing() {
    let latency = Nanos::from_millis(20);
    let links = LinkPair::symmetric(Link { latency, ..Link::default() });
    let how = (files::Options::default(), KernelCache::Writeback, links);
    served_by(notifications, how, 1 << 20, |kernel, scene| {
        let (node, file) = log_with_a_record(kernel);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask_as(8, GETATTR, node, &parts(&[1, file]));
        kernel.write((node, file), CACHED, 0, b"o");
        kernel.answer();
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 4, 0])));
        let (code, notified) = kernel.notice();
        assert_eq!(
            (code, u64_at(&notified, 0), u64_at(&notified, 8)),
            (STORE, node, 9),
            "the last byte"
        );
        assert_eq!(u64_at(&kernel.ended(8).1, 16 + 8), 10);
    });
}

#[test]
fn what_is_written_through_goes_to_the_end_that_the_server_knows_of() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, move |kernel, scene| {
            kernel.ask_create(O_APPEND);
            let created = kernel.answer();
            let file = (u64_at(&created, 0), u64_at(&created, 128));
            let append = |offset: u64, data: &[u8]| {
                let flags = u64::from(O_APPEND);
                let head = parts(&[file.1, offset, data.len() as u64, 0, flags]);
                kernel.ask(WRITE, file.0, &[&head, data].concat());
                kernel.answer();
            };
            append(0, b"ours ");
            kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
            kernel.answer();
            scene.runtime.block_on(appended_elsewhere(scene, b"theirs "));
            append(5, b"ours ");
            assert_eq!(kernel.notice(), (INVAL, parts(&[file.0, 5, 0])), "it is not there");
            // The kernel has not requested the size meanwhile.
            append(10, b"again");
            assert_eq!(kernel.notice().0, INVAL);
            kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
            kernel.answer();
            let (who, root) = (own(), scene.other.root());
            let read = async {
                let found = scene.other.lookup(&who, root, b"file").await.unwrap();
                let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
                let data = open.read(0, 100).await.unwrap();
                open.close().await;
                data
            };
            assert_eq!(scene.runtime.block_on(read), &b"ours theirs ours again"[..], "{cache:?}");
        });
    }
}

/// As logrotate(8) does (`copytruncate`).
#[test]
fn what_is_written_through_goes_to_the_end_of_a_file_that_another_client_has_cut() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, move |kernel, scene| {
            kernel.ask_create(O_APPEND);
            let created = kernel.answer();
            let file = (u64_at(&created, 0), u64_at(&created, 128));
            let append = |offset: u64, data: &[u8]| {
                let head = parts(&[file.1, offset, data.len() as u64, 0, u64::from(O_APPEND)]);
                kernel.ask(WRITE, file.0, &[&head, data].concat());
                assert_eq!(kernel.ended(7).0, 0);
            };
            let fsync = || {
                kernel.ask(FSYNC, file.0, &parts(&[file.1, 0]));
                assert_eq!(kernel.ended(7).0, 0);
            };
            append(0, &[b'x'; 10_000]);
            fsync();
            scene.runtime.block_on(async {
                let (who, other) = (own(), &scene.other);
                let found = other.lookup(&who, other.root(), b"file").await.unwrap();
                let cut = Sattr3 { size: Some(0), ..Sattr3::default() };
                other.setattr(&who, found.handle, cut).await.unwrap();
            });
            // The kernel has not requested the size meanwhile.
            append(10_000, b"after ");
            append(10_006, b"that");
            fsync();
            assert_eq!(on_the_server(scene).size, 10, "{cache:?}");
        });
    }
}
