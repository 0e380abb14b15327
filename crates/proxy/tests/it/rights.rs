//! Who may do what, as the origin would say.

use bytes::Bytes;
use perf::units::Nanos;
use server::store::Store;
use server::types::{Caller, CreateHow, SetAttr, Stability, Status};

use crate::conflicts::find;
use crate::stage::{play, root};

const PROGRAM: SetAttr = SetAttr {
    mode: Some(0o4775),
    uid: None,
    gid: Some(100),
    size: None,
    accessed: server::types::SetTime::Keep,
    modified: server::types::SetTime::Keep,
};

#[test]
fn what_comes_into_a_set_id_program_is_never_seen_with_these_bits() {
    play(1, None, async |stage| {
        let files = &*stage.origin.files;
        let how = CreateHow::Guarded(PROGRAM);
        for name in [&b"written"[..], b"given"] {
            files.create(&root(), &files.root(), name, how).await.result.unwrap();
        }
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let written = find(proxy, &top, "written").await;
        let member = Caller { uid: 7, gid: 100, gids: Vec::new() };
        assert_eq!(proxy.attr(&member, &written).await.unwrap().mode, 0o4775);
        let data = Bytes::from_static(b"another program");
        let done = proxy.write(&member, &written, 0, data, Stability::FileSync).await;
        done.result.unwrap();
        assert_eq!(proxy.attr(&root(), &written).await.unwrap().mode, 0o775);
        // Root is known by what it has made.
        let how = CreateHow::Guarded(SetAttr::default());
        proxy.create(&root(), &top, b"made", how).await.result.unwrap();
        let given = find(proxy, &top, "given").await;
        let owner = SetAttr { uid: Some(7), ..SetAttr::default() };
        proxy.set_attr(&root(), &given, owner, None).await.result.unwrap();
        let now = proxy.attr(&root(), &given).await.unwrap().mode;
        stage.clock.sleep(Nanos::from_secs(10)).await;
        let later = proxy.attr(&root(), &given).await.unwrap().mode;
        assert_eq!(now, later, "as the origin has it");
    });
}

#[test]
fn who_may_not_pass_through_a_directory_finds_nothing_in_it_that_is_on_its_way() {
    play(1, None, async |stage| {
        let files = &*stage.origin.files;
        let private = SetAttr { mode: Some(0o700), uid: Some(7), ..SetAttr::default() };
        let dir = files.make_dir(&root(), &files.root(), b"dir", private).await;
        dir.result.unwrap();
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let dir = find(proxy, &top, "dir").await;
        let [owner, other] = [7, 8].map(|uid| Caller { uid, gid: uid, gids: Vec::new() });
        let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
        // The first is made by the origin while its caller waits.
        for name in [&b"first"[..], b"second"] {
            proxy.create(&owner, &dir, name, how).await.result.unwrap();
        }
        assert!(proxy.pending() > 0);
        proxy.lookup(&owner, &dir, b"second").await.result.unwrap();
        for name in [&b"second"[..], b"none"] {
            let found = proxy.lookup(&other, &dir, name).await.result;
            assert_eq!(found.map(|_| ()), Err(Status::Access));
        }
    });
}
