//! What other clients change, and what the kernel keeps of it: attributes, names, pages.

use std::task::Poll;

use perf::model::loggp::Link;
use perf::units::Nanos;
use wire::nfs3::SetTime;

use super::*;

#[test]
fn a_time_that_a_program_sets_is_set_whether_the_file_is_open_or_not() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        let answer = set_time(kernel, file.0, None, 2000, 0);
        assert_eq!(u64_at(&answer, 16 + 32), 2000);
        assert_eq!(on_the_server(scene).mtime.seconds, 2000, "while it is open");
        kernel.release(file);
        set_time(kernel, file.0, None, 1000, 0);
        assert_eq!(on_the_server(scene).mtime.seconds, 1000, "on the server, too");
    });
}

/// A kernel that writes back tells the time that it has whenever a name of the file is changed.
#[test]
fn a_time_that_the_kernel_has_cached_does_not_replace_what_another_client_has_left() {
    served(1 << 20, |kernel, scene| {
        kernel.ask_create(0);
        let created = kernel.answer();
        let file = (u64_at(&created, 0), u64_at(&created, 128));
        // Behind the entry's head: number, size, blocks, times; and their fractions.
        let secs = u64_at(&created, 40 + 32);
        let nanos = u32::from_ne_bytes(created[40 + 52..40 + 56].try_into().unwrap());
        kernel.release(file);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let theirs = on_the_server(scene).mtime;
        assert_ne!((u64::from(theirs.seconds), theirs.nseconds), (secs, nanos));
        kernel.ask(LINK, 1, &[&parts(&[file.0])[..], b"link\0"].concat());
        kernel.answer();
        set_time(kernel, file.0, None, secs, nanos);
        assert_eq!(on_the_server(scene).mtime, theirs);
        set_time(kernel, file.0, None, secs, nanos);
        assert_eq!(u64::from(on_the_server(scene).mtime.seconds), secs, "that is a program's");
    });
}

/// `touch -m -d` of the same time, twice.
#[test]
fn a_time_that_a_program_sets_is_set_though_another_client_has_set_one_since() {
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        kernel.release(file);
        set_time(kernel, file.0, None, 1000, 0);
        scene.runtime.block_on(async {
            let (who, other) = (own(), &scene.other);
            let found = other.lookup(&who, other.root(), b"file").await.unwrap();
            let time = wire::nfs3::NfsTime { seconds: 2000, nseconds: 0 };
            let mtime = SetTime::ClientTime(time);
            let new = Sattr3 { mtime, ..Sattr3::default() };
            other.setattr(&who, found.handle, new).await.unwrap();
        });
        set_time(kernel, file.0, None, 1000, 0);
        assert_eq!(on_the_server(scene).mtime.seconds, 1000);
    });
}

/// It tells a file's time when the last name of it is gone, too, and does not look at the answer.
#[test]
fn a_time_that_the_kernel_has_of_a_file_that_is_gone_costs_no_call() {
    served(1 << 20, |kernel, scene| {
        let (who, root) = (own(), scene.files.root());
        scene.runtime.block_on(scene.files.getattr(&who, root)).unwrap();
        kernel.ask_create(0);
        let created = kernel.answer();
        let file = (u64_at(&created, 0), u64_at(&created, 128));
        let secs = u64_at(&created, 40 + 32);
        let nanos = u32::from_ne_bytes(created[40 + 52..40 + 56].try_into().unwrap());
        kernel.release(file);
        kernel.ask(UNLINK, 1, b"file\0");
        kernel.answer();
        // Had the server been called, it would have been of a stale handle.
        let answer = set_time(kernel, file.0, None, secs, nanos);
        let valid = (u64_at(&answer, 0), u32::from_ne_bytes(answer[8..12].try_into().unwrap()));
        assert_eq!(valid, (0, 0), "who wants to know more asks");
    });
}

/// As `cp -p`, and touch(1), then rm(1).
#[test]
fn a_time_that_a_program_has_set_of_a_file_that_is_gone_costs_no_call() {
    for valid in [ATIME | MTIME, ATIME | ATIME_NOW | MTIME] {
        served(1 << 20, move |kernel, scene| {
            let (who, root) = (own(), scene.files.root());
            scene.runtime.block_on(scene.files.getattr(&who, root)).unwrap();
            let file = kernel.create();
            kernel.release(file);
            let now = scene.system.clock.since_1970();
            let time = (now.as_secs(), now.subsec_nanos());
            ask_times(kernel, valid, (file.0, None), time);
            kernel.answer();
            kernel.ask(UNLINK, 1, b"file\0");
            kernel.answer();
            // Had the server been called, it would have been of a stale handle.
            set_time(kernel, file.0, None, time.0, time.1);
        });
    }
}

/// A kernel that writes back has the time that the program has set.
#[test]
fn a_time_that_nfs_cannot_say_is_seen_as_the_server_has_it() {
    served(1 << 20, |kernel, _| {
        let file = kernel.create();
        kernel.release(file);
        for (secs, server_secs) in [(-1_i64, 0), (1 << 32, u64::from(u32::MAX))] {
            kernel.ask(LOOKUP, 1, b"file\0");
            let node = u64_at(&kernel.answer(), 0);
            set_time(kernel, node, None, secs.cast_unsigned(), 0);
            kernel.ask(LOOKUP, 1, b"file\0");
            let found = kernel.answer();
            assert_ne!(u64_at(&found, 0), node);
            assert_eq!(u64_at(&found, 40 + 32), server_secs);
        }
    });
}

#[test]
fn a_descriptor_is_opened_anew_though_another_client_has_changed_the_file() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        let open = |flags| {
            kernel.ask(OPEN, first.0, &parts(&[flags]));
            kernel.ended(7)
        };
        assert_eq!(open(0).0, 0);
        kernel.release(first);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        // By a name the kernel would look it up again; /proc/self/fd always leads to this node.
        let open = || open(2);
        assert_eq!(open().0, Errno::STALE.raw_os_error());
        let (code, opened) = open();
        assert_eq!((code, u64_at(&opened, 8)), (0, 1), "past the kernel's cache");
        kernel.ask(READ, first.0, &parts(&[u64_at(&opened, 0), 0, 100, 0, 0]));
        assert_eq!(kernel.answer(), b"theirs");
    });
}

/// As long as the attributes are good, nobody asks.
#[test]
fn who_keeps_a_file_open_gets_what_another_client_has_written_in_place() {
    use client::cache::attributes::Times;
    use perf::units::Nanos;

    let times = Times::all(Nanos::ZERO);
    let options = files::Options { times, ..files::Options::default() };
    served_as(options, KernelCache::Writeback, 1 << 20, |kernel, scene| {
        scene.runtime.block_on(async {
            let (who, other) = (own(), &scene.other);
            let mode = Sattr3::of_mode(0o644);
            other.create(&who, other.root(), b"file", mode, true).await.unwrap();
            appended_elsewhere(scene, b"old").await;
        });
        kernel.ask(LOOKUP, 1, b"file\0");
        let node = u64_at(&kernel.answer(), 0);
        kernel.ask(OPEN, node, &parts(&[2]));
        let file = u64_at(&kernel.answer(), 0);
        let read = || {
            kernel.ask(READ, node, &parts(&[file, 0, 4096, 0, 0]));
            kernel.answer()
        };
        assert_eq!(read(), b"old");
        scene.runtime.block_on(async {
            let (who, other) = (own(), &scene.other);
            let found = other.lookup(&who, other.root(), b"file").await.unwrap();
            let open = other.open(&who, found.handle, ALL).await.unwrap();
            open.write(0, b"new").await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
        });
        let ask = || kernel.ask(GETATTR, node, &parts(&[1, file]));
        ask();
        assert_eq!(kernel.notice(), (INVAL, parts(&[node, 0, 0])), "all of its data");
        kernel.answer();
        assert_eq!(read(), b"new");
        ask();
        kernel.answer();
        // What programs here write is not taken for another's.
        kernel.write((node, file), CACHED, 0, b"our");
        kernel.answer();
        ask();
        kernel.answer();
        kernel.release((node, file));
    });
}

/// What was listed in between is gone as well.
#[test]
fn a_name_that_has_led_to_a_stale_handle_is_looked_up_at_the_server() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        kernel.release(first);
        let root = scene.other.root();
        let replace = || {
            scene.runtime.block_on(scene.other.remove(&own(), root, b"file")).unwrap();
            let (who, mode) = (own(), Sattr3::of_mode(0o644));
            scene.runtime.block_on(scene.other.create(&who, root, b"file", mode, true)).unwrap();
        };
        replace();
        // The first shows that names have changed.
        for _ in 0..2 {
            kernel.ask(OPENDIR, 1, &parts(&[0]));
            let dir = u64_at(&kernel.answer(), 0);
            kernel.ask(READDIRPLUS, 1, &parts(&[dir, 0, 4096, 0, 0]));
            kernel.answer();
        }
        replace();
        let open = |node| {
            kernel.ask(OPEN, node, &parts(&[2]));
            kernel.ended(7).0
        };
        assert_eq!(open(first.0), Errno::STALE.raw_os_error());
        kernel.ask(LOOKUP, 1, b"file\0");
        let third = u64_at(&kernel.answer(), 0);
        assert_eq!(open(third), 0, "the kernel does not come a third time");
    });
}

/// A file that somebody has open on the other client lives on when another takes its name.
#[test]
fn a_name_is_looked_up_at_the_server_where_it_led_to_a_file_that_was_refused() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        kernel.release(first);
        let (who, root, other) = (own(), scene.other.root(), &scene.other);
        let replace = || {
            scene.runtime.block_on(async {
                let found = other.lookup(&who, root, b"file").await.unwrap();
                let held = other.open(&who, found.handle, ALL).await.unwrap();
                let mode = Sattr3::of_mode(0o644);
                other.create(&who, root, b"new", mode, true).await.unwrap();
                other.rename(&who, (root, b"new"), (root, b"file")).await.unwrap();
                held
            })
        };
        let one = replace();
        // The first shows that names have changed.
        for _ in 0..2 {
            kernel.ask(OPENDIR, 1, &parts(&[0]));
            let dir = u64_at(&kernel.answer(), 0);
            kernel.ask(READDIRPLUS, 1, &parts(&[dir, 0, 4096, 0, 0]));
            kernel.answer();
        }
        let two = replace();
        let open = |node| {
            kernel.ask(OPEN, node, &parts(&[0]));
            kernel.ended(7).0
        };
        assert_eq!(open(first.0), Errno::STALE.raw_os_error());
        kernel.ask(LOOKUP, 1, b"file\0");
        let third = u64_at(&kernel.ended(7).1, 0);
        let there = scene.runtime.block_on(other.lookup(&who, root, b"file")).unwrap();
        assert_eq!(scene.system.nodes.lock().find(third).unwrap().file, there.handle);
        assert_eq!(open(third), 0, "the kernel does not come a third time");
        scene.runtime.block_on(async { (one.close().await, two.close().await) });
    });
}

/// The kernel makes no further call then, and the thread's next open is of another file.
#[test]
fn a_thread_whose_name_leads_nowhere_when_it_is_looked_up_again_does_not_come_again() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        kernel.release(first);
        let (who, root, other) = (own(), scene.other.root(), &scene.other);
        let mode = Sattr3::of_mode(0o644);
        let second = other.create(&who, root, b"second", mode, true);
        let second = scene.runtime.block_on(second).unwrap().handle;
        kernel.ask(LOOKUP, 1, b"second\0");
        let node = u64_at(&kernel.answer(), 0);
        let changed = async |file| {
            let open = other.open(&who, file, ALL).await.unwrap();
            open.write(0, b"theirs").await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
        };
        let refused = |node| {
            kernel.ask(OPEN, node, &parts(&[2]));
            assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        };
        scene.runtime.block_on(async {
            let found = other.lookup(&who, root, b"file").await.unwrap();
            changed(found.handle).await;
        });
        refused(first.0);
        scene.runtime.block_on(async {
            other.remove(&who, root, b"file").await.unwrap();
            changed(second).await;
        });
        kernel.ask(LOOKUP, 1, b"file\0");
        let (code, found) = kernel.ended(7);
        assert!(code == Errno::NOENT.raw_os_error() || u64_at(&found, 0) == 0);
        refused(node);
    });
}

/// A kernel that revalidates a name forgets the node that it gets, and asks once more; then it
/// opens the file for the last time.
#[test]
fn an_open_is_refused_once_though_the_file_changes_again_and_nodes_are_forgotten() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        kernel.release(first);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let open = |node| {
            kernel.ask(OPEN, node, &parts(&[2]));
            kernel.ended(7)
        };
        let look = || {
            kernel.ask(LOOKUP, 1, b"file\0");
            u64_at(&kernel.answer(), 0)
        };
        assert_eq!(open(first.0).0, Errno::STALE.raw_os_error());
        kernel.ask(FORGET, look(), &parts(&[1]));
        kernel.ask(FORGET, first.0, &parts(&[1]));
        let again = look();
        scene.runtime.block_on(appended_elsewhere(scene, b" again"));
        let (code, opened) = open(again);
        assert_eq!((code, u64_at(&opened, 8)), (0, 1), "past the kernel's cache");
    });
}

/// The kernel looks at the mode, which is not all that a server looks at.
#[test]
fn who_runs_a_file_is_let_by_the_server() {
    const RUN: u64 = 0x20;
    served(1 << 20, |kernel, scene| {
        let (node, file) = kernel.create();
        kernel.release((node, file));
        let run = || {
            kernel.ask(OPEN, node, &parts(&[RUN]));
            kernel.ended(7)
        };
        assert_eq!(run().0, Errno::ACCESS.raw_os_error());
        scene.runtime.block_on(async {
            let who = own();
            let found = scene.files.lookup(&who, scene.files.root(), b"file").await.unwrap();
            scene.files.setattr(&who, found.handle, Sattr3::of_mode(0o711)).await.unwrap();
        });
        let (code, opened) = run();
        assert_eq!(code, 0);
        kernel.release((node, u64_at(&opened, 0)));
    });
}

#[test]
fn set_id_bits_that_a_write_takes_are_gone_when_it_is_answered() {
    const KILL: u64 = 4 << 32;
    served(1 << 20, |kernel, scene| {
        let file = kernel.create();
        let setuid = async {
            let who = own();
            let found = scene.files.lookup(&who, scene.files.root(), b"file").await.unwrap();
            scene.files.setattr(&who, found.handle, Sattr3::of_mode(0o4755)).await.unwrap();
        };
        scene.runtime.block_on(setuid);
        kernel.write(file, 0, 0, b"kept");
        kernel.answer();
        assert_eq!(on_the_server(scene).size, 0, "there is no hurry");
        kernel.write(file, KILL, 4, b"sent");
        kernel.answer();
        assert_eq!(on_the_server(scene).size, 8, "the server has it, and its reply tells the mode");
    });
}

/// A page of a listing is older than the rest of it by the time the kernel gets that.
#[test]
fn a_page_that_is_cached_names_no_file_with_the_size_it_had() {
    served(1 << 20, |kernel, scene| {
        let (runtime, who) = (&scene.runtime, own());
        let file = kernel.create();
        kernel.release(file);
        kernel.ask(FORGET, file.0, &parts(&[1]));
        kernel.ask(OPENDIR, 1, &parts(&[0]));
        let dir = u64_at(&kernel.answer(), 0);
        let list = |offset| {
            // Room for one entry.
            kernel.ask(READDIRPLUS, 1, &parts(&[dir, offset, 200, 0, 0]));
            kernel.answer()
        };
        let mut listed = list(0);
        let written = async {
            let found = scene.other.lookup(&who, scene.other.root(), b"file").await.unwrap();
            let open = scene.other.open(&who, found.handle, ALL).await.unwrap();
            open.write(0, b"theirs").await.unwrap();
            open.flush().await.unwrap();
            open.close().await;
            // We have heard of it meanwhile.
            scene.files.open(&who, found.handle, ALL).await.unwrap().close().await;
        };
        runtime.block_on(written);
        // An entry is 128 bytes and what READDIR has: number, where to go on, length, name.
        while !listed.is_empty() && !listed[128 + 24..].starts_with(b"file") {
            listed = list(u64_at(&listed, 128 + 8));
        }
        // Node, generation, two times of 8 bytes, their fractions; number and size.
        let (node, size) = (u64_at(&listed, 0), u64_at(&listed, 40 + 8));
        assert!(node == 0 || size == 6, "node {node} of {size} bytes");
    });
}

/// sendfile(2), splice(2) and mappings take the size that the kernel has.
#[test]
fn a_kernel_that_does_not_write_back_has_the_end_of_a_file_that_has_grown_at_its_open() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, |kernel, scene| {
            let (node, file) = kernel.create();
            kernel.release((node, file));
            // What the opening of the file stores in the kernel: where, and which bytes.
            let stored = || {
                let mut stored = None;
                kernel.ask(OPEN, node, &parts(&[0]));
                loop {
                    match kernel.hear() {
                        (0, STORE, notified) => {
                            stored = Some((u64_at(&notified, 8), notified[24..].to_vec()));
                        }
                        (0, ..) => {}
                        (_, code, _) if -code == Errno::STALE.raw_os_error() => {
                            kernel.ask(LOOKUP, 1, b"file\0");
                            assert_eq!(kernel.ended(7).0, 0);
                            kernel.ask(OPEN, node, &parts(&[0]));
                        }
                        (_, code, opened) => {
                            assert_eq!(code, 0);
                            kernel.release((node, u64_at(&opened, 0)));
                            return stored;
                        }
                    }
                }
            };
            assert_eq!(stored(), None, "it has this end");
            let append = |data| scene.runtime.block_on(appended_elsewhere(scene, data));
            append(b"theirs");
            assert_eq!(stored(), Some((5, b"s".to_vec())));
            assert_eq!(stored(), None, "once is enough");
            // Shorter it finds it by itself.
            let cut = Sattr3 { size: Some(2), ..Sattr3::default() };
            scene.runtime.block_on(set_elsewhere(scene, cut));
            assert_eq!(stored(), None);
            append(b"+");
            assert_eq!(stored(), Some((2, b"+".to_vec())));
        });
    }
}

/// Two programs open a file that another client has changed.
#[test]
fn who_opens_a_file_before_the_kernel_has_forgotten_its_pages_waits_for_that() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        let held = |_: &Arc<Device>| Notifier::to();
        let how = (files::Options::default(), cache, LinkPair::default());
        served_by(held, how, 1 << 20, move |kernel, scene| {
            let (node, file) = kernel.create();
            kernel.release((node, file));
            let time = Sattr3 { mtime: SetTime::ServerTime, ..Sattr3::default() };
            scene.runtime.block_on(set_elsewhere(scene, time));
            let open = |unique| kernel.ask_as(unique, OPEN, node, &parts(&[0]));
            open(8);
            let first = scene.held.recv_timeout(LONG).unwrap();
            open(9);
            let second = scene.held.recv_timeout(LONG).expect("it waits, too");
            for (_, done) in [first, second] {
                done.send(true).unwrap();
            }
            for _ in 0..2 {
                assert_ne!(u64_at(&kernel.hear().2, 8) & KEEP_CACHE, KEEP_CACHE);
            }
            // Once is enough.
            open(10);
            let (code, opened) = kernel.ended(10);
            let keeps = u64_at(&opened, 8) & KEEP_CACHE;
            assert!(code == 0 && (cache == KernelCache::None || keeps == KEEP_CACHE));
        });
    }
}

#[test]
fn what_an_older_node_has_not_written_is_written_before_there_is_another() {
    served(1 << 20, |kernel, scene| {
        let [first, second] = twice(kernel, scene);
        // The newest of the two is forgotten; the older one can still be written through.
        kernel.release(second);
        kernel.ask(FORGET, second.0, &parts(&[1]));
        kernel.ask(LOOKUP, 1, b"file\0");
        assert_eq!(kernel.notice(), (INVAL, parts(&[first.0, 0, 0])));
        let (code, third) = kernel.ended(7);
        assert_eq!(code, 0);
        assert!(![first.0, second.0].contains(&u64_at(&third, 0)));
    });
}

/// Another client gives a file that is open here another name, of which the kernel knows that it is
/// free.
#[test]
fn what_an_older_node_has_not_written_is_written_before_a_create_leads_to_its_file() {
    served(1 << 20, |kernel, scene| {
        let first = kernel.create();
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        kernel.ask_create(0);
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.ask(LOOKUP, 1, b"file\0");
        assert_eq!(kernel.notice(), (INVAL, parts(&[first.0, 0, 0])));
        let (code, second) = kernel.ended(7);
        assert_eq!((code, u64_at(&second, 0)), (0, first.0), "by its node");
    });
}

/// The kernel takes what a CREATE has opened to be new, and to belong to its maker.
#[test]
fn a_file_that_another_client_has_made_meanwhile_is_opened_by_its_name_and_not_by_a_create() {
    const O_EXCL: u32 = 0o200;
    const O_TRUNC: u32 = 0o1000;
    served(1 << 20, |kernel, scene| {
        kernel.ask(LOOKUP, 1, b"file\0");
        kernel.ended(7);
        scene.runtime.block_on(async {
            let (who, root, mode) = (own(), scene.other.root(), Sattr3::of_mode(0o600));
            scene.other.create(&who, root, b"file", mode, true).await.unwrap();
            appended_elsewhere(scene, b"theirs").await;
        });
        kernel.ask_create(O_EXCL);
        assert_eq!(kernel.ended(7).0, Errno::EXIST.raw_os_error());
        kernel.ask_create(O_TRUNC);
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        assert_eq!(on_the_server(scene).size, 6, "nothing was cut");
        kernel.ask(LOOKUP, 1, b"file\0");
        let node = u64_at(&kernel.ended(7).1, 0);
        kernel.ask(OPEN, node, &parts(&[u64::from(2 | O_TRUNC)]));
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(on_the_server(scene).size, 0);
        // There is no third time.
        kernel.ask_create(0);
        assert_eq!(kernel.ended(7).0, Errno::STALE.raw_os_error());
        kernel.ask_create(0);
        assert_eq!(kernel.ended(7).0, Errno::EXIST.raw_os_error());
    });
}

#[test]
fn attributes_are_good_for_as_long_as_the_options_say() {
    use client::cache::attributes::Times;
    use perf::units::Nanos;

    /// Of a file that another client changes, as it is reported before and after: for how many
    /// seconds it is good, and its size; and the seconds of its directory.
    fn reported(kernel: &Kernel, scene: &Scene) -> ([(u64, u64); 2], u64) {
        let file = kernel.create();
        kernel.release(file);
        let attributes = |node| {
            kernel.ask(GETATTR, node, &parts(&[0, 0]));
            let answer = kernel.answer();
            (u64_at(&answer, 0), u64_at(&answer, 16 + 8))
        };
        let before = attributes(file.0);
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        ([before, attributes(file.0)], attributes(1).0)
    }

    let with = |times| files::Options { times, ..files::Options::default() };
    let never = with(Times::all(Nanos::ZERO));
    served_as(never, KernelCache::Writethrough, 1 << 20, |kernel, scene| {
        assert_eq!(reported(kernel, scene), ([(0, 0), (0, 6)], 0));
    });
    let hour = Times { dir_min: Nanos::from_secs(7_200), ..Times::all(Nanos::from_secs(3_600)) };
    served_as(with(hour), KernelCache::Writethrough, 1 << 20, |kernel, scene| {
        let ([(before, none), (after, still_none)], dir) = reported(kernel, scene);
        assert_eq!((none, still_none), (0, 0), "there was no call");
        assert!([before, after].iter().all(|secs| (1_800..=3_600).contains(secs)));
        assert!((3_601..=7_200).contains(&dir));
    });
}

/// make, git and rsync go by them.
#[test]
fn attributes_of_a_file_that_is_not_yet_written_at_the_server_do_not_outlive_its_close() {
    for cache in [KernelCache::Writethrough, KernelCache::None] {
        served_with(cache, 1 << 20, |kernel, scene| {
            let (node, file) = kernel.create();
            set_time(kernel, node, None, 1000, 0);
            let attributes = || {
                kernel.ask(GETATTR, node, &parts(&[0, 0]));
                let answer = kernel.ended(7).1;
                // Seconds and nanoseconds for which they are good; the time of modification.
                ((u64_at(&answer, 0), u64_at(&answer, 8)), u64_at(&answer, 16 + 32))
            };
            assert_ne!(attributes().0, (0, 0));
            kernel.write((node, file), 0, 0, b"ours");
            assert_eq!(kernel.ended(7).0, 0);
            assert_eq!(attributes().0, (0, 0), "until it is at the server");
            kernel.ask(FLUSH, node, &parts(&[file, 0, 0]));
            assert_eq!(kernel.ended(7).0, 0);
            let (valid, modified) = attributes();
            assert_ne!(valid, (0, 0));
            assert_eq!(modified, u64::from(on_the_server(scene).mtime.seconds));
        });
    }
}

#[test]
fn a_reader_of_what_was_fetched_ahead_sees_what_was_written_meanwhile() {
    const PART: u64 = 32 << 10;
    served(64 << 20, |kernel, scene| {
        let (node, file) = kernel.create();
        scene.runtime.block_on(appended_elsewhere(scene, &[1; 8 << 20]));
        let read = |part: u64| {
            kernel.ask(READ, node, &parts(&[file, part * PART, PART, 0, 0]));
            kernel.ended(7).1
        };
        for part in 0..16 {
            assert!(read(part) == [1; 32 << 10], "part {part}");
        }
        assert!(scene.files.read_ahead_bytes() > 0, "there is something");
        kernel.write((node, file), 0, 16 * PART + 5, b"new");
        assert_eq!(kernel.ended(7).0, 0);
        assert_eq!(read(16)[4..9], *b"\x01new\x01");
    });
}

/// Names that stand for files which were removed while they were open.
async fn hidden(files: &Files) -> usize {
    let page = files.listing(&own(), files.root()).page(0).await.unwrap();
    page.entries.iter().filter(|entry| entry.name.starts_with(b".nfs")).count()
}

/// Its request is dropped while the last byte of a file that has grown is on its way.
#[test]
fn who_is_killed_while_a_file_is_followed_does_not_leave_it_open() {
    let link = Link { latency: Nanos::from_millis(10), ..Link::default() };
    let how = (files::Options::default(), KernelCache::Writeback, LinkPair::symmetric(link));
    served_by(notifications, how, 1 << 20, |kernel, scene| {
        // Who appends asks the server each time.
        kernel.ask_create(O_APPEND);
        let created = kernel.ended(7).1;
        let file = (u64_at(&created, 0), u64_at(&created, 128));
        scene.runtime.block_on(appended_elsewhere(scene, b"theirs"));
        let reads = || {
            let counters = scene.files.session().rpc().counters();
            counters.procedures.get(6).map_or(0, |read| read.transmissions)
        };
        let bytes = request(GETATTR, file.0, &parts(&[1, file.1]));
        let (header, operation) = parse(&bytes).unwrap();
        let reply = Reply::new(&scene.device, header.unique);
        let request = Incoming { header, operation, data: Bytes::new() };
        let mut work = scene.system.begin(request, reply).unwrap();
        scene.runtime.block_on(std::future::poll_fn(|cx| {
            assert!(work.as_mut().poll(cx).is_pending(), "a READ takes 20 ms");
            cx.waker().wake_by_ref();
            if reads() > 0 { Poll::Ready(()) } else { Poll::Pending }
        }));
        drop(work);
        assert_eq!(kernel.ended(7).0, Errno::IO.raw_os_error());
        kernel.ask(RELEASE, file.0, &parts(&[file.1, 0, 0]));
        assert_eq!(kernel.ended(7).0, 0);
        scene.runtime.block_on(async {
            scene.files.remove(&own(), scene.files.root(), b"file").await.unwrap();
            // The byte may still be on its way.
            let gone = async { while hidden(&scene.other).await > 0 {} };
            Clock::real().within(Nanos::from_secs(5), gone).await.unwrap();
        });
    });
}
