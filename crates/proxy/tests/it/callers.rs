//! Several users of a proxy.

use bytes::Bytes;
use perf::units::Nanos;
use server::store::Store;
use server::types::{Caller, CreateHow, SetAttr, Stability, Status};

use crate::conflicts::{find, make, make_dir, read, show_modes};
use crate::stage::{names, play, root};

#[test]
fn the_set_uid_bit_is_gone_when_somebody_else_has_written() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let file = make(proxy, &top, "file").await;
        let set = SetAttr { mode: Some(0o4777), ..SetAttr::default() };
        proxy.set_attr(&root(), &file, set, None).await.result.unwrap();
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().mode, 0o4777);
        let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
        let data = Bytes::from_static(b"other");
        let written = proxy.write(&user, &file, 0, data, Stability::Unstable).await;
        assert_eq!(written.result.unwrap().count, 5);
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().mode, 0o777);
        proxy.drained(None).await;
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "file").await, "other");
        let there = find(files, &files.root(), "file").await;
        assert_eq!(files.attr(&root(), &there).await.unwrap().mode, 0o777);
    });
}

/// creat(2) of what is there is a CREATE with a size.
#[test]
fn what_is_created_over_a_file_with_bytes_on_their_way_is_cut_after_them() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let file = make(proxy, &top, "file").await;
        let set = SetAttr { mode: Some(0o666), ..SetAttr::default() };
        proxy.set_attr(&root(), &file, set, None).await.result.unwrap();
        let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
        for (caller, by) in [(&user, "another, who may not make names there"), (&root(), "root")] {
            let data = Bytes::from_static(b"of before");
            proxy.write(&root(), &file, 0, data, Stability::FileSync).await.result.unwrap();
            assert!(proxy.pending() > 0);
            let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
            let made = proxy.create(caller, &top, b"file", how).await.result.unwrap();
            assert_eq!(made.attr.size, 0, "reported by {by}");
            assert_eq!(read(proxy, &top, "file").await, "", "seen by {by}");
            proxy.drained(None).await;
            let files = &*stage.origin.files;
            assert_eq!(read(files, &files.root(), "file").await, "", "at the origin, by {by}");
        }
        let shut = SetAttr { mode: Some(0o644), ..SetAttr::default() };
        proxy.set_attr(&root(), &file, shut, None).await.result.unwrap();
        let how = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
        let refused = proxy.create(&user, &top, b"file", how).await.result;
        assert_eq!(refused.unwrap_err(), Status::Access, "though there is nothing to cut");
    });
}

/// What the origin makes while its caller waits has the group that the directory has here, and
/// nobody makes anything where that is forbidden by now.
#[test]
fn what_the_origin_makes_in_a_directory_comes_after_changes_of_its_rights() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let dir = make_dir(proxy, &top, "dir").await;
        proxy.drained(None).await;
        let set = SetAttr { mode: Some(0o2777), gid: Some(5), ..SetAttr::default() };
        proxy.set_attr(&root(), &dir, set, None).await.result.unwrap();
        assert!(proxy.pending() > 0);
        // Set-id bits are the origin's to give.
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o2755), ..SetAttr::default() });
        let made = proxy.create(&root(), &dir, b"of its group", how).await.result.unwrap();
        assert_eq!(made.attr.gid, 5);
        let shut = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        proxy.set_attr(&root(), &dir, shut, None).await.result.unwrap();
        let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
        let refused = proxy.create(&user, &dir, b"refused", how).await.result;
        assert_eq!(refused.unwrap_err(), Status::Access);
    });
}

/// The next proxy makes a directory again whose making is not noted, and would take it for empty.
#[test]
fn what_the_origin_makes_in_a_new_directory_is_seen_after_a_loss_of_power() {
    // With this seed, a note waits for 200 ms.
    play(2, None, async |mut stage| {
        let mut life = stage.begin().await;
        let top = life.proxy.root();
        make(&life.proxy, &top, "first").await;
        show_modes(&life.proxy, &top).await;
        let open = SetAttr { mode: Some(0o777), ..SetAttr::default() };
        let dir = life.proxy.make_dir(&root(), &top, b"dir", open).await.result.unwrap().handle;
        while life.proxy.pending() > 0 {
            stage.clock.sleep(Nanos::from_millis(1)).await;
        }
        // Every caller's first CREATE is the origin's.
        let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
        let how = CreateHow::Guarded(SetAttr::default());
        life.proxy.create(&user, &dir, b"file", how).await.result.unwrap();
        life.kill();
        stage.lose_aliases();
        life = stage.begin().await;
        let dir = find(&life.proxy, &top, "dir").await;
        assert_eq!(names(&life.proxy, &dir).await, ["file"]);
        find(&life.proxy, &dir, "file").await;
    });
}
