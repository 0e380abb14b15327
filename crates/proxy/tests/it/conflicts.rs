//! Somebody else changes files at the origin while changes of them are on their way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use perf::units::Nanos;
use proxy::write_back::{Conflict, Event, Gone};
use server::store::Store;
use server::store::mem::MemStore;
use server::types::{CreateHow, Handle, SetAttr, Stability};

use crate::origin::Requested;
use crate::stage::{Life, Stage, names, play, root};

const MODE: SetAttr = SetAttr {
    mode: Some(0o644),
    uid: None,
    gid: None,
    size: None,
    accessed: server::types::SetTime::Keep,
    modified: server::types::SetTime::Keep,
};

pub(crate) async fn make<S: Store>(store: &S, dir: &Handle, name: &str) -> Handle {
    let made = store.create(&root(), dir, name.as_bytes(), CreateHow::Guarded(MODE)).await;
    made.result.unwrap().handle
}

pub(crate) async fn make_dir<S: Store>(store: &S, dir: &Handle, name: &str) -> Handle {
    let mode = SetAttr { mode: Some(0o755), ..MODE };
    store.make_dir(&root(), dir, name.as_bytes(), mode).await.result.unwrap().handle
}

pub(crate) async fn write<S: Store>(store: &S, file: &Handle, offset: u64, text: &str) {
    let data = Bytes::copy_from_slice(text.as_bytes());
    let written = store.write(&root(), file, offset, data, Stability::FileSync).await;
    assert_eq!(written.result.unwrap().count as usize, text.len());
}

pub(crate) async fn read<S: Store>(store: &S, dir: &Handle, name: &str) -> String {
    let found = store.lookup(&root(), dir, name.as_bytes()).await.result.unwrap();
    let read = store.read(&root(), &found.handle, 0, 1 << 16).await.result.unwrap();
    String::from_utf8(read.data.to_vec()).unwrap()
}

pub(crate) async fn find<S: Store>(store: &S, dir: &Handle, name: &str) -> Handle {
    store.lookup(&root(), dir, name.as_bytes()).await.result.unwrap().handle
}

/// The origin makes a directory, and shows which mode it has.
pub(crate) async fn show_modes<S: Store>(proxy: &S, dir: &Handle) {
    let all = SetAttr { mode: Some(0o777), ..MODE };
    proxy.make_dir(&root(), dir, b"shows its mode", all).await.result.unwrap();
    proxy.remove_dir(&root(), dir, b"shows its mode").await.result.unwrap();
}

/// A directory with a file, made through a proxy and at the origin by now; then the origin is away.
pub(crate) struct Set {
    pub(crate) stage: Stage,
    pub(crate) life: Life,
    pub(crate) dir: Handle,
    pub(crate) file: Handle,
    /// The same at the origin.
    pub(crate) there: Handle,
}

impl Set {
    async fn up(stage: Stage) -> Self {
        let life = stage.begin().await;
        let proxy = &life.proxy;
        // The first that a caller makes is made while he waits, and so is the first directory.
        make(proxy, &proxy.root(), "first").await;
        show_modes(proxy, &proxy.root()).await;
        let dir = make_dir(proxy, &proxy.root(), "dir").await;
        let file = make(proxy, &dir, "file").await;
        write(proxy, &file, 0, "begun by us, ").await;
        assert_eq!(proxy.drained(None).await, 0);
        let there = find(&*stage.origin.files, &stage.origin.files.root(), "dir").await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        Self { stage, life, dir, file, there }
    }

    pub(crate) fn origin(&self) -> &MemStore {
        &self.stage.origin.files
    }

    /// The origin is back, and everything there.
    pub(crate) async fn settled(&self) -> Vec<Event> {
        self.stage.origin.is_away.store(false, Ordering::Relaxed);
        assert_eq!(self.life.proxy.drained(None).await, 0);
        self.stage.events.lock().clone()
    }

    pub(crate) async fn at(&self, name: &str) -> String {
        read(self.origin(), &self.there, name).await
    }

    /// The name of ours beside theirs, after one conflict.
    pub(crate) fn beside(&self, events: &[Event], name: &str, why: Conflict) -> String {
        let [Event::Beside { name: reported, copy, why: because }] = events else {
            panic!("{events:?}");
        };
        assert_eq!((reported.as_str(), *because), (name, why));
        assert!(copy.contains(".nfskit-conflict-"), "{copy}");
        copy.rsplit('/').next().unwrap().to_owned()
    }
}

pub(crate) fn test<F: Future<Output = ()> + Send + 'static>(
    run: impl FnOnce(Set) -> F + Send + 'static,
) {
    play(1, None, async move |stage| run(Set::up(stage).await).await);
}

#[test]
fn of_a_file_that_somebody_else_has_changed_both_versions_stay() {
    test(async |set| {
        let theirs = find(set.origin(), &set.there, "file").await;
        write(&set.life.proxy, &set.file, 13, "ended by us").await;
        write(set.origin(), &theirs, 0, "THEIRS").await;
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/file", Conflict::Changed);
        assert_eq!(set.at("file").await, "THEIRSby us, ");
        // What was written before it was changed is in theirs alone.
        assert_eq!(set.at(&copy).await, "THEIRSby us, ended by us");
        assert_eq!(read(&set.life.proxy, &set.dir, "file").await, "THEIRSby us, ");
        write(&set.life.proxy, &set.file, 0, "again").await;
        assert_eq!(set.settled().await.len(), 1, "no more than one conflict");
        assert_eq!(set.at("file").await, "againSby us, ");
    });
}

#[test]
fn of_a_file_that_somebody_else_has_removed_ours_stays() {
    test(async |set| {
        write(&set.life.proxy, &set.file, 0, "ours").await;
        let set_mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        set.life.proxy.set_attr(&root(), &set.file, set_mode, None).await.result.unwrap();
        set.origin().remove(&root(), &set.there, b"file").await.result.unwrap();
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/file", Conflict::Gone);
        assert_eq!(&set.at(&copy).await[..4], "ours");
        assert_eq!(names(set.origin(), &set.there).await, [copy]);
    });
}

#[test]
fn of_a_file_that_is_removed_under_many_writes_one_copy_is_made() {
    test(async |set| {
        let (proxy, is_away) = (&set.life.proxy, Arc::clone(&set.stage.origin.is_away));
        set.settled().await;
        // The WRITEs are sent, and none of them is there when the file goes.
        set.stage.origin.refuse(move |requested| {
            is_away.fetch_or(matches!(requested, Requested::Write(..)), Ordering::Relaxed);
            None
        });
        for number in 0..8 {
            write(proxy, &set.file, number * 4, "ours").await;
        }
        set.stage.clock.sleep(Nanos::from_secs(1)).await;
        assert_eq!((proxy.pending(), set.stage.origin.is_away.load(Ordering::Relaxed)), (8, true));
        set.stage.origin.refuse(|_| None);
        set.origin().remove(&root(), &set.there, b"file").await.result.unwrap();
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/file", Conflict::Gone);
        assert_eq!(set.at(&copy).await, "ours".repeat(8));
        assert_eq!(names(set.origin(), &set.there).await, [copy]);
    });
}

/// Its own bytes stay unless ours were under way to them.
#[test]
fn what_somebody_else_changes_while_many_writes_are_on_their_way_is_found() {
    test(async |set| {
        let (proxy, is_away) = (&set.life.proxy, Arc::clone(&set.stage.origin.is_away));
        const LAST: u32 = 199 * 16;
        set.settled().await;
        write(proxy, &set.file, 0, &"old".repeat(1100)).await;
        set.settled().await;
        set.stage.origin.refuse(move |requested| {
            is_away.fetch_or(matches!(requested, Requested::Write(..)), Ordering::Relaxed);
            None
        });
        for number in 0..200 {
            write(proxy, &set.file, number * 16, "what we have put").await;
        }
        set.stage.clock.sleep(Nanos::from_secs(20)).await;
        set.stage.origin.refuse(|_| None);
        let theirs = find(set.origin(), &set.there, "file").await;
        write(set.origin(), &theirs, LAST.into(), "what they have p").await;
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/file", Conflict::Changed);
        let last = LAST as usize..LAST as usize + 16;
        assert_eq!(&set.at("file").await[last.clone()], "what they have p");
        assert_eq!(&set.at(&copy).await[last], "what we have put");
        assert_eq!(read(proxy, &set.dir, "file").await, set.at("file").await);
    });
}

#[test]
fn what_somebody_else_writes_before_a_file_gets_its_time_is_seen() {
    test(async |set| {
        let (proxy, is_away) = (&set.life.proxy, Arc::clone(&set.stage.origin.is_away));
        set.settled().await;
        set.stage.origin.refuse(move |requested| {
            is_away.fetch_or(matches!(requested, Requested::Set(..)), Ordering::Relaxed);
            None
        });
        write(proxy, &set.file, 0, "OURS").await;
        set.stage.clock.sleep(Nanos::from_secs(1)).await;
        set.stage.origin.refuse(|_| None);
        let theirs = find(set.origin(), &set.there, "file").await;
        assert_eq!(set.at("file").await, "OURSn by us, ");
        write(set.origin(), &theirs, 5, "THEIRS").await;
        let there = set.origin().attr(&root(), &theirs).await.unwrap();
        assert_eq!(set.settled().await, []);
        let seen = proxy.attr(&root(), &set.file).await.unwrap();
        assert_eq!((seen.modified, seen.changed), (there.modified, there.changed));
        assert_eq!(read(proxy, &set.dir, "file").await, "OURSnTHEIRS, ");
        // It has its time.
        assert_eq!(set.origin().attr(&root(), &theirs).await.unwrap().modified, there.modified);
        write(proxy, &set.file, 0, "more").await;
        assert_eq!(set.settled().await, []);
        assert_eq!(set.at("file").await, "morenTHEIRS, ");
    });
}

#[test]
fn a_copy_has_the_holes_of_its_file() {
    for is_gone in [false, true] {
        test(async move |set| {
            let theirs = find(set.origin(), &set.there, "file").await;
            write(&set.life.proxy, &set.file, 96 << 20, "ours").await;
            let why = if is_gone {
                set.origin().remove(&root(), &set.there, b"file").await.result.unwrap();
                Conflict::Gone
            } else {
                write(set.origin(), &theirs, 64 << 20, "theirs").await;
                Conflict::Changed
            };
            let calls = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&calls);
            set.stage.origin.refuse(move |requested| {
                count.fetch_add(
                    usize::from(matches!(requested, Requested::Write(..))),
                    Ordering::Relaxed,
                );
                None
            });
            let events = set.settled().await;
            let copy = find(set.origin(), &set.there, &set.beside(&events, "/dir/file", why)).await;
            let size = set.origin().attr(&root(), &copy).await.unwrap().size;
            assert_eq!(size, (96 << 20) + 4);
            let mut pieces = vec![(96 << 20, "ours")];
            pieces.extend(
                (!is_gone).then_some([(0, "begun"), (64 << 20, "theirs")]).iter().flatten(),
            );
            for (at, text) in pieces {
                let count = u32::try_from(text.len()).unwrap();
                let read = set.origin().read(&root(), &copy, at, count).await.result.unwrap();
                assert_eq!(read.data, text);
            }
            // The pieces, and the change itself.
            assert!(calls.load(Ordering::Relaxed) <= 4, "{calls:?}");
        });
    }
}

#[test]
fn of_a_file_that_somebody_else_has_made_both_stay_and_of_a_directory_one() {
    test(async |set| {
        let proxy = &set.life.proxy;
        let ours = make(proxy, &set.dir, "new").await;
        write(proxy, &ours, 0, "ours").await;
        let own = make_dir(proxy, &set.dir, "both").await;
        make(proxy, &own, "a").await;
        let theirs = make(set.origin(), &set.there, "new").await;
        write(set.origin(), &theirs, 0, "theirs").await;
        let both = make_dir(set.origin(), &set.there, "both").await;
        make(set.origin(), &both, "b").await;
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/new", Conflict::Replaced);
        assert_eq!(
            (set.at("new").await.as_str(), set.at(&copy).await.as_str()),
            ("theirs", "ours")
        );
        assert_eq!(names(set.origin(), &both).await, ["a", "b"]);
        set.stage.clock.sleep(Nanos::from_secs(4)).await;
        assert_eq!(names(proxy, &own).await, ["a", "b"]);
        assert_eq!(names(proxy, &set.dir).await, ["both", "file", "new", &copy]);
        // Who has it open writes on in his own.
        write(proxy, &ours, 4, "!").await;
        set.settled().await;
        assert_eq!(set.at(&copy).await, "ours!");
    });
}

#[test]
fn what_somebody_else_has_changed_or_replaced_is_not_removed() {
    test(async |set| {
        let theirs = find(set.origin(), &set.there, "file").await;
        set.life.proxy.remove(&root(), &set.dir, b"file").await.result.unwrap();
        write(set.origin(), &theirs, 0, "THEIRS").await;
        let change = "REMOVE of file".to_owned();
        assert_eq!(set.settled().await, [Event::NotMade { change, why: Gone::Changed }]);
        assert_eq!(set.at("file").await, "THEIRSby us, ");
        assert_eq!(read(&set.life.proxy, &set.dir, "file").await, "THEIRSby us, ", "at once");
    });
    test(async |set| {
        set.life.proxy.remove(&root(), &set.dir, b"file").await.result.unwrap();
        set.origin().remove(&root(), &set.there, b"file").await.result.unwrap();
        make(set.origin(), &set.there, "file").await;
        let change = "REMOVE of file".to_owned();
        assert_eq!(set.settled().await, [Event::NotMade { change, why: Gone::Replaced }]);
        assert_eq!(set.at("file").await, "");
        assert_eq!(names(&set.life.proxy, &set.dir).await, ["file"], "at once");
    });
}

#[test]
fn a_directory_that_somebody_else_has_put_something_into_is_not_removed() {
    test(async |set| {
        let own = make_dir(&set.life.proxy, &set.dir, "own").await;
        set.settled().await;
        let there = find(set.origin(), &set.there, "own").await;
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        assert_eq!(names(&set.life.proxy, &own).await, [""; 0]);
        set.life.proxy.remove_dir(&root(), &set.dir, b"own").await.result.unwrap();
        make(set.origin(), &there, "theirs").await;
        let change = "RMDIR of own".to_owned();
        assert_eq!(set.settled().await, [Event::NotMade { change, why: Gone::NotEmpty }]);
        assert_eq!(names(set.origin(), &there).await, ["theirs"]);
        assert_eq!(names(&set.life.proxy, &set.dir).await, ["file", "own"]);
        assert_eq!(names(&set.life.proxy, &own).await, ["theirs"]);
    });
}

#[test]
fn what_is_moved_to_where_somebody_else_has_something_gets_a_name_beside_it() {
    test(async |set| {
        let (proxy, dir) = (&set.life.proxy, &set.dir);
        proxy.rename(&root(), dir, b"file", dir, b"moved").await.result.unwrap();
        let theirs = make(set.origin(), &set.there, "moved").await;
        write(set.origin(), &theirs, 0, "theirs").await;
        let events = set.settled().await;
        let copy = set.beside(&events, "/dir/moved", Conflict::Replaced);
        assert_eq!(set.at("moved").await, "theirs");
        assert_eq!(set.at(&copy).await, "begun by us, ");
        let both = ["moved", &copy];
        assert_eq!(names(set.origin(), &set.there).await, both);
        assert_eq!(names(proxy, dir).await, both, "at once");
    });
}

/// Its parts are records of their own, and the log has no room for all of them at once.
#[test]
fn around_a_large_write_nobody_elses_change_is_hidden() {
    test(async |set| {
        let proxy = &set.life.proxy;
        let root = root();
        let large = |bytes| proxy.write(&root, &set.file, 0, bytes, Stability::FileSync);
        // What is left of the log when the next one waits is too little for a part of it.
        let alone = large(Bytes::from(vec![1; (1 << 20) - (64 << 10)])).await;
        assert_eq!(alone.wcc.before.unwrap().size, 13);
        let mut around = std::pin::pin!(large(Bytes::from(vec![2; 14 << 20])));
        let second = Nanos::from_secs(1);
        let clock = &set.stage.clock;
        assert!(clock.within(second, around.as_mut()).await.is_err(), "it waits for room");
        let other = std::pin::pin!(write(proxy, &set.file, 1 << 24, "other"));
        clock.within(second, other).await.unwrap();
        set.stage.origin.is_away.store(false, Ordering::Relaxed);
        let around = around.await;
        assert_eq!((around.wcc.before, around.result.is_ok()), (None, true));
        assert_eq!(around.wcc.after.unwrap().size, (1 << 24) + 5);
        assert_eq!(set.settled().await, []);
    });
}

/// Three times within the time for which a directory that was made here is served from here.
#[test]
fn who_lists_a_directory_again_and_again_sees_what_somebody_else_has_made_there() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        let own = make_dir(proxy, &set.dir, "own").await;
        make(proxy, &own, "ours").await;
        set.settled().await;
        let there = find(set.origin(), &set.there, "own").await;
        make(set.origin(), &there, "theirs").await;
        // Its change of the directory is in what the origin tells after the next of ours.
        make(proxy, &own, "more").await;
        set.settled().await;
        for _ in 0..3 {
            set.stage.clock.sleep(Nanos::from_secs(2)).await;
            names(proxy, &own).await;
        }
        assert_eq!(names(proxy, &own).await, ["more", "ours", "theirs"]);
        find(proxy, &own, "theirs").await;
    });
}

#[test]
fn a_file_that_was_moved_has_the_name_that_it_has_at_the_origin() {
    test(async |set| {
        let proxy = &set.life.proxy;
        set.settled().await;
        let own = make_dir(proxy, &set.dir, "own").await;
        make(proxy, &own, "moved").await;
        set.settled().await;
        set.stage.origin.refuse(|requested| match requested {
            Requested::Remove(b"moved") => Some(server::types::Status::Access),
            _ => None,
        });
        proxy.remove(&root(), &own, b"moved").await.result.unwrap();
        proxy.rename(&root(), &set.dir, b"file", &own, b"moved").await.result.unwrap();
        // More comes into the directory after that, whose state is known here then.
        make(proxy, &own, "more").await;
        set.settled().await;
        let there = find(set.origin(), &set.there, "own").await;
        let right = names(set.origin(), &there).await;
        assert!(right[2].starts_with("moved.nfskit-conflict-"), "{right:?}");
        assert_eq!(names(proxy, &own).await, right, "at once");
        assert_eq!(read(proxy, &own, &right[2]).await, "begun by us, ");
        assert_eq!(read(proxy, &own, "moved").await, "");
        assert_eq!(names(proxy, &set.dir).await, ["own"]);
    });
}
