//! `..`: it leads to the directory above, never out of the export, and costs little however deep.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use rustix::fs::openat;

use super::*;

/// Deeper than any path that the kernel takes, and than what is climbed inline.
const DEEP: usize = 3000;

#[test]
fn the_parent_of_the_root_is_the_root() {
    each_kind(|at| {
        let root = at.attr(&at.root()).unwrap();
        for name in [".", ".."] {
            let node = at.lookup(&at.root(), name).unwrap();
            assert_eq!((node.handle, node.attr.fileid), (at.root(), root.fileid));
        }
        let dir = at.make_dir(&at.root(), "dir");
        let inner = at.make_dir(&dir.handle, "inner");
        assert_eq!(at.lookup(&inner.handle, "..").unwrap().handle, dir.handle);
        assert_eq!(at.lookup(&dir.handle, "..").unwrap().handle, at.root());
    });
}

#[test]
fn a_directory_moved_out_has_no_way_up() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let inner = at.make_dir(&dir.handle, "inner");
        fs::rename(at.path("dir"), at.outside("dir")).unwrap();
        assert_eq!(at.lookup(&dir.handle, "..").unwrap_err(), Status::Stale);
        assert_eq!(at.lookup(&inner.handle, "..").unwrap_err(), Status::Stale);
    });
}

/// Makes directories below one another as another process would, and gives the lowest by its
/// handle; each is looked up, so that the table knows it.
fn deep(at: &Fixture, levels: usize) -> Vec<Node> {
    let mut fd: OwnedFd = rustix::fs::open(at.path(""), OFlags::PATH, Mode::empty()).unwrap();
    let mut way = vec![Node { handle: at.root(), attr: at.attr(&at.root()).unwrap() }];
    for _ in 0..levels {
        rustix::fs::mkdirat(&fd, c"d", Mode::RWXU).unwrap();
        fd = openat(&fd, c"d", OFlags::PATH, Mode::empty()).unwrap();
        way.push(at.lookup(&way.last().unwrap().handle, "d").unwrap());
    }
    way
}

/// Takes away what a recursive removal by path cannot.
fn remove_deep(at: &Fixture, way: &[Node]) {
    for node in way[..way.len() - 1].iter().rev() {
        let removed = block_on(at.store.remove_dir(&ME, &node.handle, b"d"));
        removed.result.unwrap();
    }
}

#[test]
fn a_deep_directory_has_the_one_above_and_the_serving_thread_does_not_climb() {
    // The table knows paths of up to 2,048 names.
    if !kernel_handles_work() {
        not_tested("`..` of deep directories: no kernel handles");
        return;
    }
    let at = Fixture::new(DirOptions {
        handles: HandleChoice::Kernel,
        metadata_sync: MetadataSync::Never,
        ..DirOptions::default()
    });
    let way = deep(&at, DEEP);
    let [.., above, lowest] = &way[..] else { unreachable!("3,000 levels") };
    let (release, held) = mpsc::channel::<()>();
    at.store.tree.seeker.run(Box::new(move || held.recv().unwrap()));
    let mut looked = pin!(at.store.lookup(&ME, &lowest.handle, b".."));
    let first = looked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "the thread climbs that has something else to do");
    release.send(()).unwrap();
    assert_eq!(block_on(looked).result.unwrap().handle, above.handle);
    // A listing gives no node of it: none is owed, and every page would climb anew.
    let mut nodes = Vec::new();
    let mut sink = |entry: Entry<'_>| {
        nodes.push((entry.name.to_vec(), entry.node.is_some()));
        true
    };
    let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 1 << 16 };
    block_on(at.store.list(&ME, &lowest.handle, from, &mut sink)).result.unwrap();
    nodes.sort();
    assert_eq!(nodes, [(b".".to_vec(), true), (b"..".to_vec(), false)]);
    // What is near is climbed at once.
    let mut looked = pin!(at.store.lookup(&ME, &way[25].handle, b".."));
    let first = looked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(found) = first else { panic!("25 levels are few") };
    assert_eq!(found.result.unwrap().handle, way[24].handle);
    // Moved out with all that is below, none has a way up.
    fs::rename(at.path("d"), at.outside("d")).unwrap();
    for level in [1, 2, 200, DEEP] {
        let status = at.lookup(&way[level].handle, "..").unwrap_err();
        assert_eq!(status, Status::Stale, "{level}");
    }
    fs::rename(at.outside("d"), at.path("d")).unwrap();
    assert_eq!(at.lookup(&lowest.handle, "..").unwrap().handle, above.handle);
    remove_deep(&at, &way);
}

/// Another process moves a directory out and in again all the time. Whenever it is resolved, `..`
/// never leads to a directory that was never inside.
#[test]
fn while_a_directory_is_moved_out_and_in_nothing_outside_is_met() {
    each_kind(|at| {
        let dir = at.make_dir(&at.root(), "dir");
        let below = at.make_dir(&dir.handle, "below");
        let lowest = at.make_dir(&below.handle, "lowest");
        let fileid = |handle| at.attr(&handle).unwrap().fileid;
        let [root, dir_id, below_id] = [at.root(), dir.handle, below.handle].map(fileid);
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            // A failure below ends the thread, too.
            let _end = AtEnd(|| ends.store(true, Ordering::Relaxed));
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    fs::rename(at.path("dir"), at.outside("dir")).unwrap();
                    fs::rename(at.outside("dir"), at.path("dir")).unwrap();
                }
            });
            for round in 0..999 {
                let (from, above) = match round % 3 {
                    0 => (dir.handle, root),
                    1 => (below.handle, dir_id),
                    _ => (lowest.handle, below_id),
                };
                match at.lookup(&from, "..") {
                    // With the table what was away may have another handle when it is back.
                    Ok(found) => assert_eq!(found.attr.fileid, above),
                    Err(status) => assert!(
                        matches!(status, Status::Stale | Status::NoEntry | Status::Jukebox),
                        "{status:?}"
                    ),
                }
            }
        });
    });
}

/// Does it when it is dropped.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
