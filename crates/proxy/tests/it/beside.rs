//! The clients' version beside somebody else's: whose it is, where, and what it is called.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::FutureExt;
use perf::units::Nanos;
use proxy::write_back::{Conflict, Event, Gone};
use server::store::{Entry, ListFrom, Store};
use server::types::{Attr, Caller, CreateHow, Handle, SetAttr, SetTime, Stability, Time};

use crate::conflicts::{Set, find, make, make_dir, read, test, write};
use crate::origin::Requested;
use crate::stage::{names, root};

/// User 7, whose files they are; somebody else; and one of the group 7 whose own group is another.
const USER: Caller = Caller { uid: 7, gid: 7, gids: Vec::new() };
const OTHER: Caller = Caller { uid: 9, gid: 9, gids: Vec::new() };

fn member() -> Caller {
    Caller { uid: 8, gid: 100, gids: vec![7] }
}

/// The file is user 7's, with this mode, in a directory of everybody, and clients see that.
async fn gives(set: &Set, mode: u32) -> Handle {
    set.settled().await;
    let (uid, gid) = (Some(USER.uid), Some(USER.gid));
    let owner = SetAttr { uid, gid, mode: Some(mode), ..SetAttr::default() };
    let open = SetAttr { mode: Some(0o777), ..SetAttr::default() };
    for (file, attrs) in [(&set.file, owner), (&set.dir, open)] {
        set.life.proxy.set_attr(&root(), file, attrs, None).await.result.unwrap();
    }
    assert_eq!(set.settled().await, []);
    find(set.origin(), &set.there, "file").await
}

async fn writes(set: &Set, caller: &Caller, text: &'static str) {
    writes_at(set, caller, 20, text).await;
}

async fn writes_at(set: &Set, caller: &Caller, offset: u64, text: &'static str) {
    let (proxy, data) = (&set.life.proxy, Bytes::from_static(text.as_bytes()));
    let written = proxy.write(caller, &set.file, offset, data, Stability::FileSync).await;
    written.result.unwrap();
    assert!(proxy.pending() > 0, "it is on its way");
}

/// The one copy that there is.
async fn copy(set: &Set) -> Attr {
    let all = names(set.origin(), &set.there).await;
    let copy = all.iter().find(|name| name.contains(".nfskit-conflict-")).expect("a copy");
    let copy = find(set.origin(), &set.there, copy).await;
    set.origin().attr(&root(), &copy).await.unwrap()
}

#[test]
fn a_copy_that_root_has_made_of_somebodys_program_does_not_act_as_root() {
    test(async |set| {
        let theirs = gives(&set, 0o4755).await;
        writes(&set, &root(), "ours").await;
        write(set.origin(), &theirs, 0, "THEIRS").await;
        // Nor does it when that was what root has set meanwhile.
        let mode = SetAttr { mode: Some(0o6755), ..SetAttr::default() };
        set.life.proxy.set_attr(&root(), &set.file, mode, None).await.result.unwrap();
        set.settled().await;
        let copy = copy(&set).await;
        assert_eq!((copy.uid, copy.mode), (0, 0o755));
    });
}

#[test]
fn what_a_group_may_read_is_not_for_the_group_of_who_has_written_to_it() {
    test(async |set| {
        let theirs = gives(&set, 0o660).await;
        writes(&set, &member(), "ours").await;
        write(set.origin(), &theirs, 0, "THEIRS").await;
        set.settled().await;
        let copy = copy(&set).await;
        assert_eq!((copy.uid, copy.gid, copy.mode), (8, 100, 0o600));
    });
}

#[test]
fn a_setattr_of_what_somebody_else_has_changed_is_for_that_but_for_its_time() {
    test(async |set| {
        let theirs = gives(&set, 0o4755).await;
        let (mode, time) = (Some(0o4700), Time { secs: 7, nanos: 0 });
        let times = SetAttr { mode, accessed: SetTime::To(time), ..SetAttr::default() };
        let times = SetAttr { modified: SetTime::To(time), ..times };
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        set.life.proxy.set_attr(&root(), &set.file, times, None).await.result.unwrap();
        write(set.origin(), &theirs, 0, "THEIRS").await;
        let written = set.origin().attr(&root(), &theirs).await.unwrap().modified;
        let change = "SETATTR mode 4700 mtime 7".to_owned();
        assert_eq!(set.settled().await, [Event::NotMade { change, why: Gone::Changed }]);
        let there = set.origin().attr(&root(), &theirs).await.unwrap();
        assert_eq!((there.mode, there.accessed, there.modified), (0o700, time, written));
        assert_eq!(names(set.origin(), &set.there).await, ["file"], "no copy");
        assert_eq!(read(&set.life.proxy, &set.dir, "file").await, "THEIRSby us, ");
        assert_eq!(set.life.proxy.attr(&root(), &set.file).await.unwrap().modified, written);
    });
}

#[test]
fn bytes_behind_a_setattr_of_what_somebody_else_has_changed_go_beside_it() {
    test(async |set| {
        let theirs = gives(&set, 0o644).await;
        let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        set.life.proxy.set_attr(&root(), &set.file, mode, None).await.result.unwrap();
        writes(&set, &root(), "ours").await;
        write(set.origin(), &theirs, 0, "THEIRS").await;
        let events = set.settled().await;
        let [Event::Beside { why: Conflict::Changed, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(set.at("file").await, "THEIRSby us, ");
        assert_eq!(set.origin().attr(&root(), &theirs).await.unwrap().mode, 0o600);
        assert_eq!(copy(&set).await.size, 24);
    });
}

#[test]
fn a_directory_in_which_somebody_else_has_made_something_takes_its_mode_and_time() {
    test(async |set| {
        set.settled().await;
        let time = Time { secs: 7, nanos: 0 };
        let times =
            SetAttr { mode: Some(0o700), modified: SetTime::To(time), ..SetAttr::default() };
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        set.life.proxy.set_attr(&root(), &set.dir, times, None).await.result.unwrap();
        make(set.origin(), &set.there, "theirs").await;
        assert_eq!(set.settled().await, []);
        let there = set.origin().attr(&root(), &set.there).await.unwrap();
        assert_eq!((there.mode, there.modified), (0o700, time));
        assert_eq!(names(&set.life.proxy, &set.dir).await, ["file", "theirs"]);
        assert_eq!(names(set.origin(), &set.origin().root()).await, ["dir", "first"]);
    });
}

#[test]
fn what_somebody_else_has_under_the_name_of_a_copy_is_left_as_it_is() {
    test(async |set| {
        let theirs = gives(&set, 0o600).await;
        writes(&set, &USER, "ours").await;
        write(set.origin(), &theirs, 0, "THEIRS").await;
        // Whoever may make names in the directory is as fast as can be, three times.
        let (files, dir) = (Arc::clone(&set.stage.origin.files), set.there);
        let left = AtomicUsize::new(3);
        set.stage.origin.refuse(move |requested| {
            if let Requested::Make(name) = requested
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                    .is_ok()
            {
                let how = CreateHow::Guarded(SetAttr { mode: Some(0o666), ..SetAttr::default() });
                files.create(&OTHER, &dir, name, how).now_or_never().unwrap().result.unwrap();
            }
            None
        });
        let events = set.settled().await;
        let [Event::Beside { copy, .. }] = &events[..] else { panic!("{events:?}") };
        let copy = copy.rsplit('/').next().unwrap();
        assert!(copy.ends_with(".4"), "{copy}");
        for name in names(set.origin(), &set.there).await {
            let found = find(set.origin(), &set.there, &name).await;
            let attr = set.origin().attr(&root(), &found).await.unwrap();
            let right = match name == "file" || name == copy {
                true => (USER.uid, 0o600),
                false => (OTHER.uid, 0o666),
            };
            assert_eq!((attr.uid, attr.mode), right, "{name}");
            assert_eq!(attr.size == 0, attr.uid == OTHER.uid, "{name}");
        }
    });
}

#[test]
fn a_copy_that_a_killed_proxy_has_begun_is_gone_on_with() {
    for millis in (0..300).step_by(10) {
        test(async move |mut set| {
            let theirs = gives(&set, 0o644).await;
            let (proxy, dir) = (&set.life.proxy, &set.dir);
            writes_at(&set, &USER, 3 << 20, "ours").await;
            set.stage.origin.is_away.store(true, Ordering::Relaxed);
            // By this the next proxy knows where the file is.
            proxy.rename(&root(), dir, b"file", dir, b"moved").await.result.unwrap();
            write(set.origin(), &theirs, 0, "THEIRS").await;
            set.stage.origin.is_away.store(false, Ordering::Relaxed);
            set.stage.clock.sleep(Nanos::from_millis(millis)).await;
            set.life.kill();
            set.life = set.stage.begin().await;
            set.settled().await;
            let copies = names(set.origin(), &set.there).await.len() - 1;
            let copy = copy(&set).await;
            assert_eq!((copies, copy.size, copy.mode), (1, (3 << 20) + 4, 0o644), "{millis} ms");
        });
    }
}

/// It was there before the proxy, and clients have seen its name once.
#[test]
fn a_copy_of_a_file_that_was_only_looked_up_is_beside_it() {
    for (is_listed, is_gone) in [(false, false), (true, false), (false, true)] {
        test(async move |set| {
            set.settled().await;
            // The directory is served from here for a while.
            set.stage.clock.sleep(Nanos::from_secs(4)).await;
            let within = make_dir(set.origin(), &set.there, "within").await;
            let theirs = make(set.origin(), &within, "old").await;
            let proxy = &set.life.proxy;
            let dir = find(proxy, &set.dir, "within").await;
            let old = match is_listed {
                true => handles(proxy, &dir).await[0],
                false => find(proxy, &dir, "old").await,
            };
            write(proxy, &old, 0, "ours").await;
            match is_gone {
                true => set.origin().remove(&root(), &within, b"old").await.result.unwrap(),
                false => write(set.origin(), &theirs, 0, "theirs").await,
            }
            let why = if is_gone { Conflict::Gone } else { Conflict::Changed };
            let copy = set.beside(&set.settled().await, "/dir/within/old", why);
            assert_eq!(&read(set.origin(), &within, &copy).await[..4], "ours");
        });
    }
}

async fn handles<S: Store>(store: &S, dir: &Handle) -> Vec<Handle> {
    let mut all = Vec::new();
    let mut take = |entry: Entry<'_>| {
        let node = entry.node.filter(|_| !entry.name.starts_with(b"."));
        all.extend(node.map(|node| node.handle));
        true
    };
    let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 4096 };
    store.list(&root(), dir, from, &mut take).await.result.unwrap();
    all
}

/// The next proxy knows of it only what is in the log.
#[test]
fn a_copy_of_a_file_whose_name_is_not_known_is_its_owners_in_the_root_with_its_number() {
    test(async |mut set| {
        set.settled().await;
        set.stage.clock.sleep(Nanos::from_secs(4)).await;
        let theirs = make(set.origin(), &set.there, "old").await;
        let old = find(&set.life.proxy, &set.dir, "old").await;
        write(&set.life.proxy, &old, 0, "ours").await;
        let files = Arc::clone(&set.stage.origin.files);
        set.life.kill();
        write(&*files, &theirs, 0, "theirs, longer").await;
        set.life = set.stage.begin().await;
        let events = set.settled().await;
        let fileid = set.origin().attr(&root(), &theirs).await.unwrap().fileid;
        let copy = set.beside(&events, &format!("/.unnamed-{fileid}"), Conflict::Changed);
        let copy = find(set.origin(), &set.origin().root(), &copy).await;
        assert_eq!(set.origin().attr(&root(), &copy).await.unwrap().mode, 0o600);
    });
}

/// Who may make names in a directory may make one in which he has what others put there.
#[test]
fn a_directory_that_somebody_else_has_made_is_not_taken_for_ours() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        let private = SetAttr { mode: Some(0o700), ..SetAttr::default() };
        let ours = proxy.make_dir(&root(), &set.dir, b"private", private).await;
        make(proxy, &ours.result.unwrap().handle, "diary").await;
        let open = SetAttr { mode: Some(0o777), uid: Some(OTHER.uid), ..SetAttr::default() };
        let theirs = set.origin().make_dir(&root(), &set.there, b"private", open).await;
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/private", Conflict::Replaced);
        assert_eq!(names(set.origin(), &theirs.result.unwrap().handle).await, [""; 0]);
        let copy = find(set.origin(), &set.there, &copy).await;
        assert_eq!(names(set.origin(), &copy).await, ["diary"]);
        assert_eq!(set.origin().attr(&root(), &copy).await.unwrap().mode, 0o700);
    });
}
