//! READDIR and READDIRPLUS.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;

use super::*;
use crate::store::dir::listing::State;

/// What a listing gave of one entry.
#[derive(Debug)]
struct Listing {
    name: String,
    fileid: u64,
    cookie: u64,
    node: Option<Node>,
}

/// At most `count` entries after `cookie`.
fn piece(
    at: &Fixture,
    dir: &Handle,
    cookie: u64,
    with_nodes: bool,
    count: usize,
) -> (Vec<Listing>, bool) {
    let mut taken = Vec::new();
    let mut sink = |entry: Entry<'_>| {
        if taken.len() == count {
            return false;
        }
        taken.push(Listing {
            name: String::from_utf8(entry.name.to_vec()).unwrap(),
            fileid: entry.fileid,
            cookie: entry.cookie,
            node: entry.node,
        });
        true
    };
    let from = ListFrom { cookie, verifier: [0; 8], with_nodes, bytes: 1 << 16 };
    let listed = block_on(at.store.list(&ME, dir, from, &mut sink));
    let eof = listed.result.unwrap().eof;
    (taken, eof)
}

#[test]
fn a_listing_has_the_dots_and_those_of_the_root_stay_inside() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let root = at.attr(&at.root()).unwrap();
        let (entries, eof) = piece(&at, &at.root(), 0, true, 100);
        let by_name: BTreeMap<_, _> =
            entries.iter().map(|entry| (&entry.name[..], entry)).collect();
        assert!(eof && by_name.keys().eq([".", "..", "dir"].iter()));
        assert_eq!(by_name[".."].fileid, root.fileid);
        assert_eq!(by_name[".."].node.unwrap().handle, at.root());
        assert_eq!(by_name["."].node.unwrap().attr.fileid, root.fileid);
        assert_eq!(by_name["dir"].node.unwrap().handle, dir.handle);
        let (entries, _) = piece(&at, &dir.handle, 0, true, 100);
        let up = entries.iter().find(|entry| entry.name == "..").unwrap();
        assert_eq!(up.node.unwrap().handle, at.root());
        assert_eq!(up.fileid, root.fileid);
    });
}

/// Files, directories and links that nobody has met, some of them replaced in between.
#[test]
fn a_listing_has_the_handles_and_attributes_that_lookups_have() {
    each_kind(|at| {
        let make = |name: &str| match name.len() % 3 {
            0 => fs::write(at.path(name), name).unwrap(),
            1 => fs::create_dir(at.path(name)).unwrap(),
            _ => std::os::unix::fs::symlink("nowhere", at.path(name)).unwrap(),
        };
        let names = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff", &"g".repeat(255)[..]];
        names.iter().for_each(|name| make(name));
        for _ in 0..2 {
            let (entries, eof) = piece(&at, &at.root(), 0, true, 100);
            assert!(eof);
            for name in names {
                let entry = entries.iter().find(|entry| entry.name == name).unwrap();
                let node = entry.node.unwrap();
                let looked_up = at.lookup(&at.root(), name).unwrap();
                assert_eq!(node.handle, looked_up.handle, "{name}");
                assert_eq!((node.attr, entry.fileid), (looked_up.attr, looked_up.attr.fileid));
            }
            fs::rename(at.path("ccc"), at.path("ffffff")).unwrap();
            make("ccc");
        }
    });
}

/// 3,000 entries in pieces of 97, while others are made and removed: what exists throughout
/// comes exactly once, nothing comes twice.
#[test]
fn entries_that_exist_throughout_come_exactly_once() {
    each_kind(|at| {
        for index in 0..3_000 {
            fs::write(at.path(&format!("keep-{index}")), "").unwrap();
        }
        for index in 0..200 {
            fs::write(at.path(&format!("gone-{index}")), "").unwrap();
        }
        let mut seen = BTreeSet::new();
        let (mut cookie, mut round) = (0, 0);
        loop {
            let (entries, eof) = piece(&at, &at.root(), cookie, false, 97);
            for entry in entries {
                cookie = entry.cookie;
                assert!(seen.insert(entry.name.clone()), "twice: {}", entry.name);
            }
            if eof {
                break;
            }
            if round < 200 {
                at.remove(&at.root(), &format!("gone-{round}")).unwrap();
            }
            fs::write(at.path(&format!("new-{round}")), "").unwrap();
            round += 1;
        }
        let listed = seen.iter().filter(|name| name.starts_with("keep-"));
        assert_eq!(listed.count(), 3_000);
        assert!(round >= 30, "in pieces");
    });
}

/// A tmpfs before Linux 6.6: its listing is made from names, and one that is cached is the same.
#[test]
fn what_is_cached_where_cookies_do_not_last_is_what_is_read() {
    each_kind(|mut at| {
        Arc::get_mut(&mut at.store.tree).unwrap().file_system.be_an_older_tmpfs();
        for index in 0..100 {
            fs::write(at.path(&format!("file-{index}")), "").unwrap();
        }
        let root = at.root();
        let listed = |cookie, count| {
            let (entries, eof) = piece(&at, &root, cookie, true, count);
            let plain = entries.into_iter().map(|Listing { name, fileid, cookie, node }| {
                (name, fileid, cookie, node.map(|node| node.handle))
            });
            (plain.collect::<Vec<_>>(), eof)
        };
        let (read, eof) = listed(0, 200);
        assert!(eof && read.len() == 102 && !at.store.tree.listings.has(&root));
        let dir = at.store.tree.object(&root).unwrap();
        let (tree, state) = (&at.store.tree, State::of(&dir.stat().unwrap()));
        let whole = tree.read_whole(&dir, tree.open_at(&dir, 0).unwrap(), state).unwrap();
        tree.listings.keep(root, whole);
        let (mut seen, mut cookie, mut eof) = (Vec::new(), 0, false);
        while !eof {
            let some;
            (some, eof) = listed(cookie, 7);
            cookie = some.last().map_or(cookie, |&(_, _, cookie, _)| cookie);
            seen.extend(some);
        }
        assert_eq!(seen, read);
        // Its entry is gone.
        let between = read[50].2 - 1;
        assert_eq!(listed(between, 200).0, read[50..]);
    });
}

/// Clients that walk through large directories leave the thread that serves to others: it looks at
/// a few entries, and the rest is looked at elsewhere.
#[test]
fn a_long_listing_gives_way_to_others_and_is_whole() {
    each_kind(|at| gives_way(&at, "file", 32));
}

/// The thread that serves would read for long before it had the first entry.
#[test]
fn a_large_directory_is_read_elsewhere_from_the_beginning() {
    each_kind(|at| {
        // A directory of tmpfs has 20 bytes for each name, however long.
        let served_max = if at.store.tree.file_system.is_memory() { 32 } else { 0 };
        gives_way(&at, &"f".repeat(250), served_max);
    });
}

/// Lists 300 files, of which at most so many are looked at by the thread that serves.
fn gives_way(at: &Fixture, prefix: &str, served_max: usize) {
    for index in 0..300 {
        fs::write(at.path(&format!("{prefix}-{index}")), "").unwrap();
    }
    let seen = Mutex::new(BTreeSet::new());
    let mut sink =
        |entry: Entry<'_>| seen.lock().unwrap().insert((entry.name.to_vec(), entry.node.is_some()));
    let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
    let root = at.root();
    // The threads for the rest have something else to do.
    let (busy, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    for _ in 0..thread::available_parallelism().unwrap().get() {
        let held = Arc::clone(&held);
        at.store.tree.listers.run_next(Box::new(move || {
            let ended = held.lock().unwrap().recv();
            assert!(ended.is_err(), "nothing is sent");
        }));
    }
    let mut listing = pin!(at.store.list(&ME, &root, from, &mut sink));
    let begun = listing.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(begun.is_pending() && seen.lock().unwrap().len() <= served_max);
    drop(busy);
    assert!(block_on(listing).result.unwrap().eof);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 302, "with the dots, and none twice");
    assert!(seen.iter().all(|(_, has_node)| *has_node));
}

/// A reply that is full within what was looked at elsewhere goes on behind its last entry.
#[test]
fn pieces_of_any_length_join_without_a_gap() {
    each_kind(|at| {
        for index in 0..300 {
            fs::write(at.path(&format!("file-{index}")), "").unwrap();
        }
        for count in [33, 96, 97, 302] {
            let (mut seen, mut cookie) = (BTreeSet::new(), 0);
            loop {
                let (entries, eof) = piece(&at, &at.root(), cookie, true, count);
                for entry in entries {
                    cookie = entry.cookie;
                    assert!(seen.insert(entry.name), "twice, {count} at a time");
                }
                if eof {
                    break;
                }
            }
            assert_eq!(seen.len(), 302, "{count} at a time");
        }
    });
}

#[test]
fn an_entry_that_vanishes_while_listed_has_no_node() {
    each_kind(|at| {
        for index in 0..10 {
            fs::write(at.path(&format!("file-{index}")), "").unwrap();
        }
        let mut nodes = Vec::new();
        let mut sink = |entry: Entry<'_>| {
            // The names after this one are in the buffer already.
            let name = str::from_utf8(entry.name).unwrap();
            if name.starts_with("file-") {
                nodes.push((name.to_owned(), entry.node.is_some()));
                for index in 0..10 {
                    let _ = fs::remove_file(at.path(&format!("file-{index}")));
                }
            }
            true
        };
        let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
        let listed = block_on(at.store.list(&ME, &at.root(), from, &mut sink));
        assert!(listed.result.unwrap().eof);
        let first = nodes.first().unwrap();
        assert!(first.1);
        assert!(nodes[1..].iter().all(|(_, has_node)| !has_node));
    });
}

#[test]
fn what_cannot_be_listed_says_why() {
    each_kind(|at| {
        let file = at.create(&at.root(), "file");
        let list = |handle: &Handle, cookie| {
            let from = ListFrom { cookie, verifier: [0; 8], with_nodes: false, bytes: 1 << 16 };
            let mut sink = |_: Entry<'_>| true;
            block_on(at.store.list(&ME, handle, from, &mut sink)).result
        };
        assert_eq!(list(&file.handle, 0).unwrap_err(), Status::NotDirectory);
        assert_eq!(list(&at.root(), u64::MAX).unwrap_err(), Status::BadCookie);
    });
}
