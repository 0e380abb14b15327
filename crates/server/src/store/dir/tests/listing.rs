//! READDIR and READDIRPLUS.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

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
    let from = ListFrom { cookie, verifier: [0; 8], with_nodes };
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
        let kept = seen.iter().filter(|name| name.starts_with("keep-"));
        assert_eq!(kept.count(), 3_000);
        assert!(round >= 30, "in pieces");
    });
}

/// Clients that walk through large directories leave the thread to others between portions.
#[test]
fn a_long_listing_gives_way_to_others_and_is_whole() {
    each_kind(|at| {
        for index in 0..100 {
            fs::write(at.path(&format!("file-{index}")), "").unwrap();
        }
        let mut seen = BTreeSet::new();
        let mut sink = |entry: Entry<'_>| seen.insert(entry.name.to_vec());
        let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true };
        let root = at.root();
        let (listed, gave_way) = {
            let mut listing = pin!(at.store.list(&ME, &root, from, &mut sink));
            let mut cx = Context::from_waker(Waker::noop());
            let mut gave_way = 0;
            loop {
                match listing.as_mut().poll(&mut cx) {
                    Poll::Ready(listed) => break (listed, gave_way),
                    Poll::Pending => gave_way += 1,
                }
            }
        };
        assert!(listed.result.unwrap().eof);
        assert_eq!(seen.len(), 102, "with the dots, and none twice");
        assert!(!at.store.tree.file_system.has_lasting_cookies() || gave_way >= 5, "{gave_way}");
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
        let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true };
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
            let from = ListFrom { cookie, verifier: [0; 8], with_nodes: false };
            let mut sink = |_: Entry<'_>| true;
            block_on(at.store.list(&ME, handle, from, &mut sink)).result
        };
        assert_eq!(list(&file.handle, 0).unwrap_err(), Status::NotDirectory);
        assert_eq!(list(&at.root(), u64::MAX).unwrap_err(), Status::BadCookie);
    });
}
