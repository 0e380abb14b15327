//! Modification times at the origin are those that clients saw.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use perf::units::Nanos;
use server::store::Store;
use server::types::{
    Attr, Caller, CreateHow, Handle, SetAttr, SetTime, Special, Stability, Status, Time,
};

use crate::conflicts::{find, make, make_dir, write};
use crate::origin::Requested;
use crate::stage::{Life, Proxy, Stage, names, play, root};

/// Once as the proxy tells it, and once as the origin has it a minute later.
async fn seen(stage: &Stage, life: &Life, name: &str) -> [Time; 2] {
    let file = find(&life.proxy, &life.proxy.root(), name).await;
    let shown = life.proxy.attr(&root(), &file).await.unwrap().modified;
    stage.clock.sleep(Nanos::from_secs(60)).await;
    assert_eq!(life.proxy.pending(), 0);
    let files = &*stage.origin.files;
    let there = find(files, &files.root(), name).await;
    [shown, files.attr(&root(), &there).await.unwrap().modified]
}

#[test]
fn a_file_that_nobody_writes_has_the_time_of_its_making() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        // The first is made by the origin while its caller waits.
        for name in [&b"first"[..], b"second"] {
            let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
            proxy.create(&root(), &top, name, how).await.result.unwrap();
        }
        assert!(proxy.pending() > 0);
        let [shown, there] = seen(&stage, &life, "second").await;
        assert_eq!(shown, there);
    });
}

#[test]
fn a_file_that_another_than_its_owner_writes_has_the_time_of_the_write() {
    play(1, None, async |stage| {
        let files = &*stage.origin.files;
        let open = SetAttr { mode: Some(0o666), uid: Some(7), ..SetAttr::default() };
        let how = CreateHow::Guarded(open);
        files.create(&root(), &files.root(), b"file", how).await.result.unwrap();
        let life = stage.begin().await;
        let file = find(&life.proxy, &life.proxy.root(), "file").await;
        let other = Caller { uid: 8, gid: 8, gids: Vec::new() };
        life.proxy.attr(&other, &file).await.unwrap();
        for _ in 0..2 {
            let data = Bytes::from_static(b"bytes");
            let done = life.proxy.write(&other, &file, 0, data, Stability::FileSync).await;
            done.result.unwrap();
        }
        assert!(life.proxy.pending() > 0);
        let [shown, there] = seen(&stage, &life, "file").await;
        assert_eq!(shown, there);
    });
}

#[test]
fn a_change_of_rights_that_the_origin_decides_leaves_the_time_of_the_write() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        for name in [&b"first"[..], b"file"] {
            let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
            let made = proxy.create(&root(), &top, name, how).await.result.unwrap();
            let data = Bytes::from_static(b"bytes");
            let done = proxy.write(&root(), &made.handle, 0, data, Stability::FileSync).await;
            done.result.unwrap();
        }
        let file = find(proxy, &top, "file").await;
        let written = proxy.attr(&root(), &file).await.unwrap().modified;
        let other = Caller { uid: 8, gid: 8, gids: Vec::new() };
        let mode = SetAttr { mode: Some(0o666), ..SetAttr::default() };
        proxy.set_attr(&other, &file, mode, None).await.result.unwrap_err();
        let [shown, there] = seen(&stage, &life, "file").await;
        assert_eq!([shown, there], [written; 2]);
    });
}

#[test]
fn a_killed_proxy_knows_its_own_change_where_the_origins_times_are_coarse() {
    // The log's notes wait for 200 ms.
    play(2, None, async |stage| {
        stage.origin.is_coarse.store(true, Ordering::Relaxed);
        let mut life = stage.begin().await;
        let top = life.proxy.root();
        make(&life.proxy, &top, "first").await;
        let file = make(&life.proxy, &top, "file").await;
        life.proxy.drained(None).await;
        let time = Time { secs: 1_000_000_000, nanos: 123_456_789 };
        let modified = SetAttr { modified: SetTime::To(time), ..SetAttr::default() };
        write(&life.proxy, &file, 0, "bytes").await;
        life.proxy.set_attr(&root(), &file, modified, None).await.result.unwrap();
        let files = &*stage.origin.files;
        let there = find(files, &files.root(), "file").await;
        while files.attr(&root(), &there).await.unwrap().modified.secs != time.secs {
            stage.clock.sleep(Nanos::from_millis(1)).await;
        }
        life.kill();
        life = stage.begin().await;
        assert_eq!(life.proxy.drained(None).await, 0);
        assert_eq!(*stage.events.lock(), []);
        assert_eq!(names(files, &files.root()).await, ["file", "first"]);
    });
}

async fn attr(proxy: &Proxy, dir: &Handle) -> Attr {
    proxy.attr(&root(), dir).await.unwrap()
}

/// Clients that have looked before would go on without the new name.
#[test]
fn a_directorys_times_move_with_a_name_that_the_origin_changes_beside_one_on_its_way() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let first = make(proxy, &top, "first").await;
        proxy.drained(None).await;
        stage.origin.refuse(|requested| match requested {
            Requested::Make(b"held") => Some(Status::NoSpace),
            _ => None,
        });
        make(proxy, &top, "held").await;
        let mut last = attr(proxy, &top).await;
        for call in ["MKNOD", "LINK", "first CREATE of a user"] {
            match call {
                "MKNOD" => {
                    let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
                    let made = proxy.make_node(&root(), &top, b"fifo", Special::Fifo, set).await;
                    made.result.unwrap();
                }
                "LINK" => proxy.link(&root(), &first, &top, b"link").await.result.unwrap(),
                _ => {
                    let other = Caller { gids: vec![5], ..root() };
                    let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
                    let how = CreateHow::Guarded(set);
                    proxy.create(&other, &top, b"file", how).await.result.unwrap();
                }
            }
            let now = attr(proxy, &top).await;
            assert!(now.changed > last.changed && now.modified > last.modified, "{call}");
            last = now;
        }
        assert_eq!(proxy.pending(), 1, "it is held still");
    });
}

#[test]
fn a_directory_has_the_time_that_the_origin_has_set() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let dir = make_dir(proxy, &top, "dir").await;
        make(proxy, &dir, "file").await;
        proxy.drained(None).await;
        let time = Time { secs: 2_000_000, nanos: 0 };
        let modified = SetAttr { modified: SetTime::To(time), ..SetAttr::default() };
        let guard = attr(proxy, &dir).await.changed;
        // What has a guard is the origin's to decide.
        proxy.set_attr(&root(), &dir, modified, Some(guard)).await.result.unwrap();
        assert_eq!(attr(proxy, &dir).await.modified, time);
        let guard = attr(proxy, &dir).await.changed;
        let mode = SetAttr { mode: Some(0o700), ..SetAttr::default() };
        proxy.set_attr(&root(), &dir, mode, Some(guard)).await.result.unwrap();
        assert_eq!(attr(proxy, &dir).await.modified, time, "it stays");
        let [shown, there] = seen(&stage, &life, "dir").await;
        assert_eq!([shown, there], [time; 2]);
    });
}

/// A server that was killed knows by the directory's change time that a REMOVE was done before.
#[test]
fn a_name_that_was_removed_is_missing_with_its_directorys_attributes() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        make(proxy, &top, "gone").await;
        proxy.drained(None).await;
        let before = attr(proxy, &top).await.changed;
        proxy.remove(&root(), &top, b"gone").await.result.unwrap();
        for state in ["on its way", "done"] {
            let looked = proxy.lookup(&root(), &top, b"gone").await;
            assert_eq!(looked.result.unwrap_err(), Status::NoEntry);
            assert!(looked.attr.is_some_and(|attr| attr.changed > before), "{state}");
            proxy.drained(None).await;
        }
    });
}
