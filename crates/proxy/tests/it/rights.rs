//! Who may do what, as the origin would say.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use perf::units::Nanos;
use server::store::{ListFrom, Store};
use server::types::{Access, Caller, CreateHow, Handle, SetAttr, Stability, Status};

use crate::conflicts::{find, read};
use crate::stage::{Life, Proxy, Stage, play, root, tree};

fn user(uid: u32) -> Caller {
    Caller { uid, gid: uid, gids: Vec::new() }
}

fn of_mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

/// A proxy before an origin that takes root for nobody, in whose directory of everybody user 7 has
/// made a file, by which the proxy knows him.
async fn squashed(stage: &Stage) -> (Life, Handle) {
    let files = &*stage.origin.files;
    let made = files.make_dir(&root(), &files.root(), b"dir", of_mode(0o777)).await;
    let dir = made.result.unwrap().handle;
    files.create(&user(7), &dir, b"old", CreateHow::Guarded(of_mode(0o644))).await.result.unwrap();
    let old = find(files, &dir, "old").await;
    let data = Bytes::from_static(b"what everybody may read");
    files.write(&user(7), &old, 0, data, Stability::FileSync).await.result.unwrap();
    stage.origin.squashes_root.store(true, Ordering::Relaxed);
    let life = stage.begin().await;
    let dir = find(&life.proxy, &life.proxy.root(), "dir").await;
    create(&life.proxy, &dir, b"first", 0o644).await;
    // The first directory shows its mode.
    let shows = life.proxy.make_dir(&user(7), &dir, b"shows", of_mode(0o777)).await;
    shows.result.unwrap();
    life.proxy.remove_dir(&user(7), &dir, b"shows").await.result.unwrap();
    life.proxy.drained(None).await;
    (life, dir)
}

/// User 7 makes a file.
async fn create(proxy: &Proxy, dir: &Handle, name: &[u8], mode: u32) -> Handle {
    let made = proxy.create(&user(7), dir, name, CreateHow::Guarded(of_mode(mode))).await;
    made.result.unwrap().handle
}

async fn fill(proxy: &Proxy, file: &Handle, with: &'static str) {
    let data = Bytes::from_static(with.as_bytes());
    proxy.write(&user(7), file, 0, data, Stability::FileSync).await.result.unwrap();
}

/// The names that a listing from this cookie on tells a caller.
async fn listed(
    proxy: &Proxy,
    caller: &Caller,
    dir: &Handle,
    cookie: u64,
) -> Result<usize, Status> {
    let mut count = 0;
    let mut take = |_: server::store::Entry<'_>| {
        count += 1;
        true
    };
    let from = ListFrom { cookie, verifier: [0; 8], with_nodes: false, bytes: 4096 };
    proxy.list(caller, dir, from, &mut take).await.result?;
    Ok(count)
}

#[test]
fn root_whom_the_origin_takes_for_nobody_does_nothing_as_root_with_what_is_on_its_way() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        let secret = create(proxy, &dir, b"secret", 0o600).await;
        fill(proxy, &secret, "secret").await;
        let made = proxy.make_dir(&user(7), &dir, b"private", of_mode(0o700)).await;
        let private = made.result.unwrap().handle;
        create(proxy, &private, b"inner", 0o644).await;
        assert!(proxy.pending() >= 4);
        let read = proxy.read(&root(), &secret, 0, 100).await.result;
        assert_eq!(read.map(|read| read.data).unwrap_err(), Status::Access);
        let rewritten = create(proxy, &dir, b"other", 0o600).await;
        fill(proxy, &rewritten, "other").await;
        assert!(proxy.pending() > 0);
        let data = Bytes::from_static(b"root's");
        let written = proxy.write(&root(), &rewritten, 0, data, Stability::FileSync).await;
        assert_eq!(written.result.map(|_| ()), Err(Status::Access));
        for (cause, file) in [("made", &secret), ("on its way", &rewritten)] {
            let granted = proxy.access(&root(), file, Access(0x3f)).await.result.unwrap();
            assert_eq!(granted, Access(0), "{cause}");
        }
        let looked = proxy.lookup(&root(), &private, b"inner").await.result;
        assert_eq!(looked.map(|_| ()), Err(Status::Access));
        assert_eq!(listed(proxy, &root(), &private, 0).await, Err(Status::Access));
        let taken = proxy.set_attr(&root(), &rewritten, of_mode(0o777), None).await;
        assert!(taken.result.is_err());
        proxy.drained(None).await;
        assert_eq!(*stage.events.lock(), [], "nothing was refused after it was answered");
    });
}

/// As the origin answers him.
#[test]
fn whom_a_mode_keeps_out_is_refused_a_lookup_of_the_directory_itself_and_a_commit() {
    play(1, None, async |stage| {
        let files = &*stage.origin.files;
        let made = files.make_dir(&root(), &files.root(), b"dir", of_mode(0o777)).await;
        let dir = made.result.unwrap().handle;
        files.make_dir(&user(7), &dir, b"there", of_mode(0o700)).await.result.unwrap();
        let guarded = CreateHow::Guarded(of_mode(0o600));
        files.create(&user(7), &dir, b"theirs", guarded).await.result.unwrap();
        let life = stage.begin().await;
        let proxy = &life.proxy;
        let dir = find(proxy, &proxy.root(), "dir").await;
        let made = proxy.make_dir(&user(7), &dir, b"here", of_mode(0o700)).await;
        let secret = create(proxy, &dir, b"secret", 0o600).await;
        fill(proxy, &secret, "secret").await;
        let there = find(proxy, &dir, "there").await;
        for private in [there, made.result.unwrap().handle] {
            let looked = proxy.lookup(&user(8), &private, b".").await.result;
            assert_eq!(looked.map(drop), Err(Status::Access));
            assert_eq!(
                proxy.lookup(&user(7), &private, b".").await.result.unwrap().handle,
                private
            );
        }
        let file = proxy.lookup(&user(7), &secret, b".").await.result;
        assert_eq!(file.map(drop), Err(Status::NotDirectory));
        for file in [secret, find(proxy, &dir, "theirs").await] {
            let commit = async |who| proxy.commit(&who, &file, 0, 0).await.result.map(drop);
            assert_eq!(commit(user(8)).await, Err(Status::Access));
            assert_eq!(commit(user(7)).await, Ok(()));
        }
    });
}

/// The same before an origin of version 2, which has no ACCESS.
#[test]
fn what_a_mode_gives_to_root_counts_for_nothing_where_the_origin_may_take_him_for_nobody() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        stage.origin.guesses_rights.store(true, Ordering::Relaxed);
        let secret = create(proxy, &dir, b"secret", 0o600).await;
        let open = create(proxy, &dir, b"open", 0o644).await;
        let made = proxy.make_dir(&user(7), &dir, b"private", of_mode(0o700)).await;
        let private = made.result.unwrap().handle;
        proxy.drained(None).await;
        // What is on its way has come to files and directories that the origin has.
        create(proxy, &private, b"inner", 0o644).await;
        fill(proxy, &secret, "secret").await;
        fill(proxy, &open, "for all").await;
        assert!(proxy.pending() >= 3);
        let read = proxy.read(&root(), &secret, 0, 100).await.result;
        assert_eq!(read.map(|read| read.data), Err(Status::Access));
        assert_eq!(proxy.read(&root(), &open, 0, 100).await.result.unwrap().data, "for all");
        let looked = proxy.lookup(&root(), &private, b"inner").await.result;
        assert_eq!(looked.map(drop), Err(Status::Access));
        fill(proxy, &secret, "secrets").await;
        fill(proxy, &open, "for everybody").await;
        for file in [&secret, &open] {
            let data = Bytes::from_static(b"root's");
            let written = proxy.write(&root(), file, 0, data, Stability::FileSync).await;
            assert_eq!(written.result.map(drop), Err(Status::Access));
            let cut = SetAttr { size: Some(0), ..SetAttr::default() };
            let cut = proxy.set_attr(&root(), file, cut, None).await;
            assert_eq!(cut.result, Err(Status::Access));
        }
        proxy.drained(None).await;
        assert_eq!(*stage.events.lock(), [], "nothing was refused after it was answered");
    });
}

/// A CREATE that takes what is there says nothing of who the caller is.
#[test]
fn who_creates_what_is_there_already_is_not_taken_for_its_owner() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let (proxy, files) = (&life.proxy, &*stage.origin.files);
        let exclusive = CreateHow::Exclusive([9; 8]);
        for (name, how) in [
            ("old, unchecked", CreateHow::Unchecked(SetAttr::default())),
            ("old, exclusive", exclusive),
        ] {
            let there = find(files, &files.root(), "dir").await;
            let first = if how == exclusive { how } else { CreateHow::Guarded(of_mode(0o644)) };
            files.create(&root(), &there, name.as_bytes(), first).await.result.unwrap();
            match proxy.create(&root(), &dir, name.as_bytes(), how).await.result {
                Ok(found) => assert_eq!(found.attr.uid, 0),
                // It is somebody else's, and our server says so; others do not.
                Err(status) => assert_eq!((status, how), (Status::Exists, exclusive)),
            }
            let secret = create(proxy, &dir, format!("secret, {name}").as_bytes(), 0o600).await;
            fill(proxy, &secret, "secret").await;
            assert!(proxy.pending() > 0);
            let read = proxy.read(&root(), &secret, 0, 100).await.result;
            assert_eq!(read.map(|read| read.data).unwrap_err(), Status::Access, "{name}");
        }
        assert_eq!(*stage.events.lock(), []);
    });
}

#[test]
fn who_creates_what_is_new_is_known_however_he_does() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        let hows = [CreateHow::Unchecked(of_mode(0o644)), CreateHow::Exclusive([3; 8])];
        for (uid, how) in (20..).zip(hows) {
            let name = |count: u32| format!("{uid} {count}").into_bytes();
            proxy.drained(None).await;
            let made = proxy.create(&user(uid), &dir, &name(1), how).await.result.unwrap();
            assert_eq!((made.attr.uid, proxy.pending()), (uid, 0), "the first is the origin's");
            proxy.create(&user(uid), &dir, &name(2), how).await.result.unwrap();
            assert_eq!(proxy.pending(), 1, "{how:?}");
        }
    });
}

#[test]
fn root_whom_the_origin_takes_for_nobody_reads_what_everybody_may() {
    play(2, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let file = create(&life.proxy, &dir, b"open", 0o644).await;
        fill(&life.proxy, &file, "for all").await;
        assert!(life.proxy.pending() > 0);
        assert_eq!(read(&life.proxy, &dir, "open").await, "for all");
    });
}

#[test]
fn a_file_is_shut_to_others_at_once_also_where_the_origin_has_it_open_still() {
    play(3, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        let old = find(proxy, &dir, "old").await;
        let others = [user(8), root()];
        for other in &others {
            let read = proxy.read(other, &old, 0, 100).await.result.unwrap();
            assert_eq!(&read.data[..], b"what everybody may read");
        }
        proxy.set_attr(&user(7), &old, of_mode(0o600), None).await.result.unwrap();
        fill(proxy, &old, "secret").await;
        for other in &others {
            for count in [6, 100] {
                let read = proxy.read(other, &old, 0, count).await.result;
                assert_eq!(read.map(|read| read.data).unwrap_err(), Status::Access);
            }
        }
        let own = proxy.read(&user(7), &old, 0, 6).await.result.unwrap();
        assert_eq!(&own.data[..], b"secret");
    });
}

#[test]
fn a_listing_that_goes_on_with_names_on_their_way_is_for_who_may_read_the_directory() {
    play(4, None, async |stage| {
        let files = &*stage.origin.files;
        let private = SetAttr { uid: Some(7), ..of_mode(0o700) };
        files.make_dir(&root(), &files.root(), b"dir", private).await.result.unwrap();
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let dir = find(proxy, &top, "dir").await;
        create(proxy, &dir, b"first", 0o644).await;
        create(proxy, &dir, b"second", 0o644).await;
        assert!(proxy.pending() > 0);
        // The first of the cookies that are the proxy's own.
        let cookie = 0xfffc << 48;
        assert_eq!(listed(proxy, &user(7), &dir, cookie).await, Ok(1));
        assert_eq!(listed(proxy, &user(8), &dir, cookie).await, Err(Status::Access));
    });
}

#[test]
fn while_the_origin_is_away_names_are_for_who_may_pass_through_their_directory() {
    play(5, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let files = &*stage.origin.files;
        let shut = SetAttr { uid: Some(7), ..of_mode(0o755) };
        files.set_attr(&root(), &files.root(), shut, None).await.result.unwrap();
        create(proxy, &top, b"first", 0o644).await;
        proxy.make_dir(&user(7), &top, b"shows its mode", of_mode(0o700)).await.result.unwrap();
        let made = proxy.make_dir(&user(7), &top, b"dir", of_mode(0o700)).await;
        let dir = made.result.unwrap().handle;
        create(proxy, &dir, b"inner", 0o644).await;
        proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(600)).await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        let other = user(8);
        let looked = std::pin::pin!(proxy.lookup(&other, &dir, b"inner"));
        let looked = stage.clock.within(Nanos::from_secs(60), looked).await;
        assert!(!looked.is_ok_and(|looked| looked.result.is_ok()));
        proxy.lookup(&user(7), &dir, b"inner").await.result.unwrap();
    });
}

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

#[test]
fn what_is_made_in_a_set_group_id_directory_is_answered_from_the_log_with_its_group() {
    play(1, None, async |stage| {
        let files = &*stage.origin.files;
        let shared = SetAttr { mode: Some(0o2777), gid: Some(50), ..SetAttr::default() };
        let made = files.make_dir(&root(), &files.root(), b"shared", shared).await.result.unwrap();
        files.make_dir(&root(), &files.root(), b"own", of_mode(0o777)).await.result.unwrap();
        let life = stage.begin().await;
        let proxy = &life.proxy;
        let dir = find(proxy, &proxy.root(), "shared").await;
        // By the first of each the origin shows what it does.
        for (is_first, name) in [(true, "a"), (false, "b")] {
            let file = create(proxy, &dir, name.as_bytes(), 0o664).await;
            assert_eq!(proxy.pending() == 0, is_first, "{name}");
            assert_eq!(proxy.attr(&user(7), &file).await.unwrap().gid, 50);
            proxy.drained(None).await;
            let below = format!("dir {name}");
            let below = proxy.make_dir(&user(7), &dir, below.as_bytes(), of_mode(0o775)).await;
            assert_eq!(proxy.pending() == 0, is_first, "directory {name}");
            let below = below.result.unwrap();
            assert_eq!((below.attr.mode, below.attr.gid), (0o2775, 50));
            let inner = create(proxy, &below.handle, b"inner", 0o600).await;
            assert_eq!(proxy.attr(&user(7), &inner).await.unwrap().gid, 50);
            proxy.drained(None).await;
        }
        let own = find(proxy, &proxy.root(), "own").await;
        create(proxy, &own, b"shows its mode", 0o600).await;
        let file = create(proxy, &own, b"file", 0o600).await;
        assert!(proxy.pending() > 0, "it is known who he is");
        assert_eq!(proxy.attr(&user(7), &file).await.unwrap().gid, 7);
        proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(4)).await;
        for (path, seen) in tree(proxy).await {
            assert_eq!(Some(&seen), tree(files).await.get(&path), "{path}");
        }
        let there = find(files, &made.handle, "dir b").await;
        let attr = files.attr(&root(), &there).await.unwrap();
        assert_eq!((attr.mode, attr.gid), (0o2775, 50));
    });
}

#[test]
fn whom_the_origin_takes_for_another_is_not_known_by_a_set_group_id_directory() {
    play(1, None, async |stage| {
        let (life, _) = squashed(&stage).await;
        let files = &*stage.origin.files;
        let shared = SetAttr { mode: Some(0o2777), gid: Some(50), ..SetAttr::default() };
        files.make_dir(&root(), &files.root(), b"shared", shared).await.result.unwrap();
        let dir = find(&life.proxy, &life.proxy.root(), "shared").await;
        for name in [&b"a"[..], b"b"] {
            let how = CreateHow::Guarded(of_mode(0o600));
            life.proxy.create(&root(), &dir, name, how).await.result.unwrap();
            assert_eq!(life.proxy.pending(), 0);
        }
    });
}

#[test]
fn what_is_made_without_a_mode_has_the_origins() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let (proxy, files) = (&life.proxy, &*stage.origin.files);
        let how = CreateHow::Unchecked(SetAttr::default());
        proxy.create(&user(7), &dir, b"file", how).await.result.unwrap();
        proxy.make_dir(&user(7), &dir, b"below", SetAttr::default()).await.result.unwrap();
        let there = find(files, &files.root(), "dir").await;
        for name in ["file", "below"] {
            let seen = proxy.lookup(&user(7), &dir, name.as_bytes()).await.result.unwrap();
            proxy.drained(None).await;
            let made = find(files, &there, name).await;
            assert_eq!(seen.attr.mode, files.attr(&root(), &made).await.unwrap().mode, "{name}");
        }
    });
}

#[test]
fn who_may_list_and_not_search_a_directory_that_was_made_here_gets_no_handles() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        let made = proxy.make_dir(&user(7), &dir, b"listed", of_mode(0o744)).await;
        let listed = made.result.unwrap().handle;
        create(proxy, &listed, b"inner", 0o644).await;
        for (caller, with_handle) in [(user(7), true), (user(9), false)] {
            let mut given = None;
            let mut take = |entry: server::store::Entry<'_>| {
                given = given.or_else(|| (entry.name == b"inner").then_some(entry.node.is_some()));
                true
            };
            let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 4096 };
            proxy.list(&caller, &listed, from, &mut take).await.result.unwrap();
            assert_eq!(given, Some(with_handle), "uid {}", caller.uid);
            let found = proxy.lookup(&caller, &listed, b"inner").await.result;
            assert_eq!(found.is_ok(), with_handle, "as a look-up");
        }
    });
}

/// A private directory, by `setfacl -d`: what is made in it is its maker's alone.
#[test]
fn what_a_default_acl_withholds_nobody_has_of_what_is_on_its_way() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        create(proxy, &dir, b"all bits are given", 0o777).await;
        proxy.drained(None).await;
        create(proxy, &dir, b"open", 0o666).await;
        assert!(proxy.pending() > 0, "the mode is certain");
        stage.origin.withholds.store(0o077, Ordering::Relaxed);
        let private = of_mode(0o700);
        let files = &*stage.origin.files;
        files.make_dir(&root(), &files.root(), b"private", private).await.result.unwrap();
        let made = find(files, &files.root(), "private").await;
        let owner = SetAttr { uid: Some(7), mode: Some(0o777), ..SetAttr::default() };
        files.set_attr(&root(), &made, owner, None).await.result.unwrap();
        let dir = find(proxy, &proxy.root(), "private").await;
        for name in ["a", "b"] {
            let file = create(proxy, &dir, name.as_bytes(), 0o666).await;
            assert_eq!(proxy.attr(&user(7), &file).await.unwrap().mode, 0o600, "{name}");
            fill(proxy, &file, "secret").await;
            let read = proxy.read(&user(8), &file, 0, 100).await.result;
            assert_eq!(read.map(|read| read.data).unwrap_err(), Status::Access);
            let name = format!("dir {name}");
            let below = proxy.make_dir(&user(7), &dir, name.as_bytes(), of_mode(0o777)).await;
            let below = below.result.unwrap();
            assert_eq!(below.attr.mode, 0o700);
            let how = CreateHow::Guarded(of_mode(0o666));
            let made = proxy.create(&user(8), &below.handle, b"theirs", how).await.result;
            assert_eq!(made.map(drop), Err(Status::Access));
            assert_eq!(listed(proxy, &user(8), &below.handle, 0).await, Err(Status::Access));
        }
        proxy.drained(None).await;
        assert_eq!(*stage.events.lock(), [], "nothing was refused after it was answered");
    });
}

#[test]
fn whom_an_acl_denies_a_file_he_is_refused_it_while_it_is_on_its_way() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let proxy = &life.proxy;
        let how = CreateHow::Guarded(of_mode(0o644));
        proxy.create(&user(8), &dir, b"by him", how).await.result.unwrap();
        *stage.origin.denied.lock() = Some(8);
        let new = create(proxy, &dir, b"new", 0o666).await;
        // A change of the mode is on its way to one that was there.
        let old = find(proxy, &dir, "old").await;
        proxy.set_attr(&user(7), &old, of_mode(0o666), None).await.result.unwrap();
        let made = proxy.make_dir(&user(7), &dir, b"below", of_mode(0o777)).await;
        let below = made.result.unwrap().handle;
        for file in [new, old] {
            fill(proxy, &file, "secret").await;
            assert!(proxy.pending() > 0);
            let read = proxy.read(&user(8), &file, 0, 100).await.result;
            assert_eq!(read.map(|read| read.data).unwrap_err(), Status::Access);
            fill(proxy, &file, "secrets").await;
            let data = Bytes::from_static(b"his");
            let written = proxy.write(&user(8), &file, 0, data, Stability::FileSync).await;
            assert_eq!(written.result.map(drop), Err(Status::Access));
            let granted = proxy.access(&user(8), &file, Access(0x3f)).await.result.unwrap();
            assert_eq!(granted, Access(0));
            let own = proxy.read(&user(7), &file, 0, 1).await.result.unwrap();
            assert_eq!(own.data.len(), 1);
        }
        assert_eq!(listed(proxy, &user(8), &below, 0).await, Err(Status::Access));
        let found = proxy.lookup(&user(8), &below, b"none").await.result;
        assert_eq!(found.map(drop), Err(Status::Access));
    });
}

/// Only the first of a kind and a mode waits for the origin, in all directories of a new tree.
#[test]
fn a_tree_is_made_with_a_few_calls_that_wait_for_the_origin() {
    play(1, None, async |stage| {
        let (life, dir) = squashed(&stage).await;
        let (proxy, mut waited) = (&life.proxy, 0);
        let mut since = stage.clock.now();
        let mut count = || {
            let now = stage.clock.now();
            waited += u32::from(now.since(since) > Nanos::from_millis(1));
            since = now;
        };
        for outer in 0..10 {
            let name = format!("dir {outer}");
            let made = proxy.make_dir(&user(7), &dir, name.as_bytes(), of_mode(0o755)).await;
            let outer = made.result.unwrap().handle;
            count();
            for inner in 0..10 {
                let name = format!("file {inner}");
                let mode = if inner == 5 { 0o755 } else { 0o644 };
                let file = create(proxy, &outer, name.as_bytes(), mode).await;
                count();
                fill(proxy, &file, "bytes").await;
                count();
                proxy.set_attr(&user(7), &file, of_mode(mode), None).await.result.unwrap();
                count();
            }
        }
        // In the directory that the origin has made, and in those that are made here beside it.
        assert!(waited <= 14, "{waited} of 310");
    });
}
