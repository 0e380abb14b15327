//! Files that are being made: which calls that takes, and who sees when what was set of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::Credential;
use futures_util::future::join_all;
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::Site;
use testkit::lies::Lie;
use wire::nfs3::{Fattr3, FileHandle, NfsStat3, NfsTime, Sattr3, SetTime};

fn me() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}

/// Calls by procedure.
type Calls = Arc<Mutex<BTreeMap<&'static str, u32>>>;

/// A client whose calls are counted, and another one.
struct Scene {
    clock: Clock,
    site: Site<MemStore>,
    ours: Files,
    theirs: Files,
    calls: Calls,
}

impl Scene {
    /// The calls since the last look.
    fn take_calls(&self) -> Vec<(&'static str, u32)> {
        std::mem::take(&mut *self.calls.lock().unwrap()).into_iter().collect()
    }

    /// What the server has, as another client that remembers nothing sees it.
    async fn on_the_server(&self, dir: FileHandle, name: &[u8]) -> Fattr3 {
        let session = self.site.connect().await.unwrap();
        let found = session.lookup(dir, name).await.unwrap();
        session.getattr(found.object).await.unwrap()
    }
}

fn world<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Scene) -> F + Send + 'static) {
    let world = World::new();
    let clock = world.clock();
    let link = Link { latency: Nanos::from_micros(100), ..Link::default() };
    let run = async move {
        let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
        let calls = Calls::default();
        let counted = Arc::clone(&calls);
        let rpc = site.rpc_late(move |procedure| {
            *counted.lock().unwrap().entry(procedure.name()).or_default() += 1;
            Nanos::ZERO
        });
        let ours = Files::new(&clock, site.session(rpc).await.unwrap(), Options::default());
        let theirs = Files::new(&clock, site.connect().await.unwrap(), Options::default());
        // The world begins on a whole second, within which other changes would not show.
        clock.sleep(Nanos::from_millis(1_500)).await;
        test(Scene { clock, site, ours, theirs, calls }).await;
    };
    world.run(run).unwrap();
}

const LONG_AGO: NfsTime = NfsTime { seconds: 1_000_000, nseconds: 5 };

fn times() -> Sattr3 {
    let at = SetTime::ClientTime(LONG_AGO);
    Sattr3 { atime: at, mtime: at, ..Sattr3::default() }
}

fn owner(uid: u32) -> Sattr3 {
    Sattr3 { uid: Some(uid), gid: Some(uid), ..Sattr3::default() }
}

/// As tar(1) does it, seen from below the kernel.
async fn unpack(files: &Files, dir: FileHandle, name: &[u8]) {
    let me = me();
    let missing = files.lookup(&me, dir, name).await.unwrap_err();
    assert_eq!(missing.status(), Some(NfsStat3::NoEnt));
    let mode = Sattr3::of_mode(0o644);
    let (made, open) = files.create_open(&me, dir, name, mode, true).await.unwrap();
    open.write(0, &[7; 5000]).await.unwrap();
    for new in [times(), owner(4001), Sattr3::of_mode(0o755)] {
        files.setattr(&me, made.handle, new).await.unwrap();
    }
    let shown = files.getattr(&me, made.handle).await.unwrap();
    let (mode, uid, size, mtime) = (shown.mode & 0o7777, shown.uid, shown.size, shown.mtime);
    assert_eq!((mode, uid, size, mtime), (0o755, 4001, 5000, LONG_AGO), "before it is closed");
    open.flush_at_close().await.unwrap();
    open.close().await;
}

#[test]
fn a_tree_is_unpacked_with_three_calls_a_file() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let mode = Sattr3::of_mode(0o755);
        ours.mkdir(&me, ours.root(), b"first", mode).await.unwrap();
        scene.take_calls();
        for number in 0..10 {
            let name = format!("d{number}");
            let dir = ours.mkdir(&me, ours.root(), name.as_bytes(), mode).await.unwrap().handle;
            for file in 0..10 {
                unpack(ours, dir, format!("f{file}").as_bytes()).await;
            }
            let made = scene.on_the_server(dir, b"f9").await;
            let is = (made.mode & 0o7777, made.uid, made.gid, made.size, made.mtime);
            assert_eq!(is, (0o755, 4001, 4001, 5000, LONG_AGO));
        }
        let expected = [("CREATE", 100), ("MKDIR", 10), ("SETATTR", 100), ("WRITE", 100)];
        assert_eq!(scene.take_calls(), expected);
        // What one WRITE does not hold is committed, and what is only read costs nothing more.
        let root = ours.root();
        let (made, open) = ours.create_open(&me, root, b"large", mode, false).await.unwrap();
        open.write(0, &vec![7; 3 << 20]).await.unwrap();
        open.flush().await.unwrap();
        assert_eq!(ours.getattr(&me, made.handle).await.unwrap().size, 3 << 20);
        open.close().await;
        let expected = [("COMMIT", 1), ("CREATE", 1), ("WRITE", 3)];
        assert_eq!(scene.take_calls(), expected);
    });
}

#[test]
fn what_is_set_of_a_file_that_is_made_is_seen_by_who_opens_it_after_the_close() {
    world(async |scene| {
        let root = scene.ours.root();
        unpack(&scene.ours, root, b"f").await;
        let found = scene.theirs.lookup(&me(), root, b"f").await.unwrap();
        let them = found.attributes;
        assert_eq!((them.mode & 0o7777, them.uid, them.mtime), (0o755, 4001, LONG_AGO));
        let mine = scene.ours.lookup(&me(), root, b"f").await.unwrap().attributes;
        assert_eq!(mine, them);
    });
}

#[test]
fn what_cannot_be_set_later_is_reported_by_the_close() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let mode = Sattr3::of_mode(0o644);
        let (made, open) = ours.create_open(&me, ours.root(), b"f", mode, true).await.unwrap();
        ours.setattr(&me, made.handle, times()).await.unwrap();
        scene.site.become_read_only();
        let failed = open.flush_at_close().await.unwrap_err();
        assert_eq!(failed.status(), Some(NfsStat3::RoFs));
        open.close().await;
        let left = ours.getattr(&me, made.handle).await.unwrap();
        assert_eq!(left, scene.on_the_server(ours.root(), b"f").await);
        let refused = ours.setattr(&me, made.handle, times()).await.unwrap_err();
        assert_eq!(refused.status(), Some(NfsStat3::RoFs), "at once, when nobody makes it");
    });
}

#[test]
fn a_file_that_is_not_closed_has_what_was_set_soon() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let mode = Sattr3::of_mode(0o666);
        let (made, open) = ours.create_open(&me, ours.root(), b"f", mode, true).await.unwrap();
        ours.setattr(&me, made.handle, owner(8)).await.unwrap();
        assert_eq!(scene.on_the_server(ours.root(), b"f").await.uid, 0);
        scene.clock.sleep(Nanos::from_millis(200)).await;
        let is = scene.on_the_server(ours.root(), b"f").await;
        assert_eq!((is.mode & 0o7777, is.uid), (0o666, 8));
        scene.take_calls();
        ours.setattr(&me, made.handle, times()).await.unwrap();
        assert_eq!(scene.take_calls(), [("SETATTR", 1)], "it is a file like others");
        open.close().await;
    });
}

#[test]
fn who_depends_on_what_was_set_waits_for_it() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let root = ours.root();
        for (name, new_name) in [(&b"f"[..], &b"g"[..]), (b"h", b"i")] {
            let mode = Sattr3::of_mode(0o666);
            let (made, open) = ours.create_open(&me, root, name, mode, true).await.unwrap();
            ours.setattr(&me, made.handle, owner(8)).await.unwrap();
            match name {
                b"f" => ours.rename(&me, (root, name), (root, new_name)).await.unwrap(),
                _ => drop(ours.link(&me, made.handle, root, new_name).await.unwrap()),
            }
            let is = scene.on_the_server(root, new_name).await;
            assert_eq!((is.mode & 0o7777, is.uid), (0o666, 8));
            open.close().await;
        }
        // Another program here opens it.
        let mode = Sattr3::of_mode(0o666);
        let (made, open) = ours.create_open(&me, root, b"j", mode, true).await.unwrap();
        let second = ours.open(&me, made.handle, Mode::default()).await;
        second.unwrap().close().await;
        assert_eq!(scene.on_the_server(root, b"j").await.mode & 0o7777, 0o666);
        open.close().await;
    });
}

#[test]
fn a_file_that_nobody_may_read_is_its_makers_until_it_is_closed() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let root = ours.root();
        let mode = Sattr3::of_mode(0);
        let (made, open) = ours.create_open(&me, root, b"secret", mode, true).await.unwrap();
        assert_eq!(made.attributes.mode & 0o7777, 0, "as it is shown here");
        assert_eq!(scene.on_the_server(root, b"secret").await.mode & 0o077, 0);
        // As a package manager does it: more is set before the close, and goes with it.
        ours.setattr(&me, made.handle, Sattr3::of_mode(0o640)).await.unwrap();
        scene.take_calls();
        open.flush_at_close().await.unwrap();
        assert_eq!(scene.take_calls(), [("SETATTR", 1)]);
        open.close().await;
        assert_eq!(scene.on_the_server(root, b"secret").await.mode & 0o7777, 0o640);
    });
}

#[test]
fn a_directory_is_not_set_to_what_it_is() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let mode = Sattr3::of_mode(0o755);
        let dir = ours.mkdir(&me, ours.root(), b"d", mode).await.unwrap();
        scene.take_calls();
        ours.setattr(&me, dir.handle, owner(dir.attributes.uid)).await.unwrap();
        ours.setattr(&me, dir.handle, mode).await.unwrap();
        assert!(scene.take_calls().is_empty(), "it belongs to who asks, and is so");
        ours.setattr(&me, dir.handle, Sattr3::of_mode(0o700)).await.unwrap();
        ours.setattr(&me, dir.handle, times()).await.unwrap();
        scene.clock.sleep(Nanos::from_millis(100)).await;
        assert_eq!(scene.take_calls(), [("SETATTR", 2)]);
        // Somebody else may have changed it when what is known is old.
        scene.clock.sleep(Nanos::from_secs(61)).await;
        ours.setattr(&me, dir.handle, Sattr3::of_mode(0o700)).await.unwrap();
        assert_eq!(scene.take_calls(), [("SETATTR", 1)]);
    });
}

#[test]
fn the_times_of_a_directory_that_was_made_are_set_with_what_is_set_next() {
    world(async |scene| {
        let (ours, me, root) = (&scene.ours, me(), scene.ours.root());
        let made = ours.mkdir(&me, root, b"d", Sattr3::of_mode(0o700)).await.unwrap();
        let dir = made.handle;
        ours.create(&me, dir, b"f", Sattr3::of_mode(0o600), false).await.unwrap();
        scene.take_calls();
        // As cp -a and tar do.
        let shown = ours.setattr(&me, dir, times()).await.unwrap();
        assert_eq!((shown.mtime, shown.mode), (LONG_AGO, 0o700));
        assert_eq!(ours.getattr(&me, dir).await.unwrap().mtime, LONG_AGO);
        let same = ours.setattr(&me, dir, owner(made.attributes.uid)).await.unwrap();
        assert_eq!(same.mtime, LONG_AGO);
        assert!(scene.take_calls().is_empty());
        ours.setattr(&me, dir, Sattr3::of_mode(0o755)).await.unwrap();
        assert_eq!(scene.take_calls(), [("SETATTR", 1)]);
        let attributes = scene.on_the_server(root, b"d").await;
        assert_eq!(
            (attributes.atime, attributes.mtime, attributes.mode),
            (LONG_AGO, LONG_AGO, 0o755)
        );
        // Where nothing follows they are set soon.
        let later = NfsTime { seconds: LONG_AGO.seconds + 1, ..LONG_AGO };
        let at = SetTime::ClientTime(later);
        ours.setattr(&me, dir, Sattr3 { mtime: at, ..Sattr3::default() }).await.unwrap();
        scene.clock.sleep(Nanos::from_millis(100)).await;
        assert_eq!(scene.take_calls(), [("SETATTR", 1)]);
        assert_eq!(scene.on_the_server(root, b"d").await.mtime, later);
        // What changes the directory comes after them.
        ours.setattr(&me, dir, times()).await.unwrap();
        ours.remove(&me, dir, b"f").await.unwrap();
        assert_eq!(scene.take_calls(), [("REMOVE", 1), ("SETATTR", 1)]);
        scene.clock.sleep(Nanos::from_millis(100)).await;
        assert!(scene.on_the_server(root, b"d").await.mtime > later);
        ours.setattr(&me, dir, times()).await.unwrap();
        ours.rmdir(&me, root, b"d").await.unwrap();
        scene.clock.sleep(Nanos::from_millis(100)).await;
        assert_eq!(scene.take_calls(), [("RMDIR", 1), ("SETATTR", 1)]);
        assert!(ours.shut_down().await.is_empty());
    });
}

#[test]
fn times_of_a_directory_that_are_refused_are_reported_by_what_is_set_next_or_at_the_end() {
    world(async |scene| {
        let (ours, me, root) = (&scene.ours, me(), scene.ours.root());
        let mode = Sattr3::of_mode(0o700);
        let dir = ours.mkdir(&me, root, b"d", mode).await.unwrap().handle;
        let other = scene.theirs.mkdir(&me, root, b"theirs", mode).await.unwrap().handle;
        ours.lookup(&me, root, b"theirs").await.unwrap();
        scene.site.become_read_only();
        let refused = Some(NfsStat3::RoFs);
        ours.setattr(&me, dir, times()).await.unwrap();
        let error = ours.setattr(&me, dir, Sattr3::of_mode(0o755)).await.unwrap_err();
        assert_eq!(error.status(), refused);
        let error = ours.setattr(&me, other, times()).await.unwrap_err();
        assert_eq!(error.status(), refused, "one that another client has made is set at once");
        ours.setattr(&me, dir, times()).await.unwrap();
        let lost = ours.shut_down().await;
        let lost: Vec<_> = lost.iter().map(|lost| (lost.file, lost.error.status())).collect();
        assert_eq!(lost, [(dir, refused)]);
    });
}

#[test]
fn whose_names_are_looked_up_one_by_one_is_listed() {
    world(async |scene| {
        let (ours, theirs, me) = (&scene.ours, &scene.theirs, me());
        let mode = Sattr3::of_mode(0o755);
        let dir = theirs.mkdir(&me, theirs.root(), b"d", mode).await.unwrap().handle;
        for n in 0..50 {
            let name = format!("f{n}");
            theirs.create(&me, dir, name.as_bytes(), mode, true).await.unwrap();
        }
        ours.lookup(&me, ours.root(), b"d").await.unwrap();
        scene.take_calls();
        for n in 0..50 {
            ours.lookup(&me, dir, format!("f{n}").as_bytes()).await.unwrap();
        }
        assert_eq!(scene.take_calls(), [("LOOKUP", 1), ("READDIRPLUS", 1)]);
        // What a listing does not tell is looked up, and it is not listed for that again.
        for n in 50..60 {
            ours.lookup(&me, dir, format!("f{n}").as_bytes()).await.unwrap_err();
        }
        assert_eq!(scene.take_calls(), [("LOOKUP", 10), ("READDIRPLUS", 1)]);
        // Another client's change is another state.
        theirs.create(&me, dir, b"f50", mode, true).await.unwrap();
        scene.clock.sleep(Nanos::from_secs(61)).await;
        ours.lookup(&me, dir, b"f50").await.unwrap();
        ours.lookup(&me, dir, b"f0").await.unwrap();
        ours.lookup(&me, dir, b"f1").await.unwrap();
        let calls = scene.take_calls();
        assert_eq!(calls, [("GETATTR", 1), ("LOOKUP", 1), ("READDIRPLUS", 1)]);
    });
}

#[test]
fn what_several_look_for_at_the_same_time_is_requested_once() {
    world(async |scene| {
        let (ours, theirs, me) = (&scene.ours, &scene.theirs, me());
        let mode = Sattr3::of_mode(0o755);
        let dir = theirs.mkdir(&me, theirs.root(), b"d", mode).await.unwrap().handle;
        let names = ["f0", "f1", "f2", "f3"];
        for name in names {
            theirs.create(&me, dir, name.as_bytes(), mode, true).await.unwrap();
        }
        ours.lookup(&me, ours.root(), b"d").await.unwrap();
        let look_up = || join_all(names.map(|name| ours.lookup(&me, dir, name.as_bytes())));
        let all = async |what: &str| {
            let found = look_up().await;
            assert!(found.iter().all(Result::is_ok), "{what}: {found:?}");
            scene.take_calls()
        };
        scene.take_calls();
        assert_eq!(all("new").await, [("LOOKUP", 1), ("READDIRPLUS", 1)]);
        assert!(all("known").await.is_empty());
        scene.clock.sleep(Nanos::from_secs(61)).await;
        let calls = all("old").await;
        assert_eq!(calls, [("GETATTR", 1), ("LOOKUP", 1), ("READDIRPLUS", 1)]);
        scene.clock.sleep(Nanos::from_secs(61)).await;
        let handle = theirs.lookup(&me, dir, b"f0").await.unwrap().handle;
        scene.take_calls();
        let answers = join_all(names.map(|_| ours.getattr(&me, handle))).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(scene.take_calls(), [("GETATTR", 1)]);
    });
}

#[test]
fn a_name_that_another_client_has_given_to_another_file_is_looked_up_again_after_an_open() {
    world(async |scene| {
        let (ours, theirs, me) = (&scene.ours, &scene.theirs, me());
        let (mode, root) = (Sattr3::of_mode(0o644), theirs.root());
        let (old, held) = theirs.create_open(&me, root, b"f", mode, true).await.unwrap();
        held.write(0, b"old").await.unwrap();
        held.flush_at_close().await.unwrap();
        scene.clock.sleep(Nanos::from_secs(1)).await;
        assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, old.handle);
        let reads = Mode { read: true, ..Mode::default() };
        ours.open(&me, old.handle, reads).await.unwrap().close().await;
        assert!(!ours.may_have_moved(&old.handle));
        // It lives on under a name that stands for it: its handle is good.
        let new = theirs.create(&me, root, b"new", mode, true).await.unwrap();
        theirs.rename(&me, (root, b"new"), (root, b"f")).await.unwrap();
        ours.open(&me, old.handle, reads).await.unwrap().close().await;
        assert!(ours.may_have_moved(&old.handle));
        assert_eq!(ours.lookup(&me, root, b"f").await.unwrap().handle, new.handle);
        // A file that was only written to is not looked up again, nor one that we change.
        held.write(0, b"more").await.unwrap();
        held.close().await;
        ours.open(&me, new.handle, reads).await.unwrap().close().await;
        let mut written = theirs.open(&me, new.handle, Mode { write: true, ..reads }).await;
        written.as_mut().unwrap().write(0, b"x").await.unwrap();
        written.as_mut().unwrap().flush_at_close().await.unwrap();
        written.unwrap().close().await;
        ours.open(&me, new.handle, reads).await.unwrap().close().await;
        assert!(!ours.may_have_moved(&new.handle));
        ours.setattr(&me, new.handle, Sattr3::of_mode(0o600)).await.unwrap();
        ours.open(&me, new.handle, reads).await.unwrap().close().await;
        assert!(!ours.may_have_moved(&new.handle));
    });
}

#[test]
fn a_time_that_was_set_before_a_write_is_not_that_of_the_file() {
    world(async |scene| {
        let (ours, me) = (&scene.ours, me());
        let mode = Sattr3::of_mode(0o666);
        let (made, open) = ours.create_open(&me, ours.root(), b"f", mode, true).await.unwrap();
        ours.setattr(&me, made.handle, times()).await.unwrap();
        open.write(0, b"later").await.unwrap();
        open.flush_at_close().await.unwrap();
        open.close().await;
        let is = scene.on_the_server(ours.root(), b"f").await;
        assert_eq!((is.atime, is.size), (LONG_AGO, 5));
        assert!(is.mtime.seconds > LONG_AGO.seconds && is.mtime <= is.ctime);
    });
}

#[test]
fn names_of_a_directory_that_we_have_made_are_known() {
    world(async |scene| {
        let (ours, theirs, me) = (&scene.ours, &scene.theirs, me());
        let mode = Sattr3::of_mode(0o755);
        let dir = ours.mkdir(&me, ours.root(), b"d", mode).await.unwrap().handle;
        scene.take_calls();
        let missing = async |name: &[u8]| {
            let missing = ours.lookup(&me, dir, name).await.unwrap_err();
            assert_eq!(missing.status(), Some(NfsStat3::NoEnt));
        };
        missing(b"a").await;
        assert_eq!(ours.missing_for(&dir, b"a"), Nanos::ZERO, "a kernel must not remember it");
        assert!(scene.take_calls().is_empty(), "there was no call");
        // Servers do not list all that they have, and take some letters for others.
        missing(b".snapshot").await;
        missing("\u{e9}".as_bytes()).await;
        assert_eq!(scene.take_calls(), [("LOOKUP", 2)]);
        let made = theirs.create(&me, dir, b"b", mode, true).await.unwrap().handle;
        scene.clock.sleep(Nanos::from_secs(1)).await;
        assert_eq!(ours.lookup(&me, dir, b"b").await.unwrap().handle, made, "a second later");
        ours.create(&me, dir, b"c", mode, true).await.unwrap();
        theirs.create(&me, dir, b"e", mode, true).await.unwrap();
        scene.take_calls();
        ours.lookup(&me, dir, b"e").await.unwrap();
        assert_eq!(scene.take_calls(), [("LOOKUP", 1)], "others make names there, too");
    });
}

#[test]
fn a_server_that_folds_case_gets_a_lookup_for_every_name() {
    world(async |scene| {
        let rpc = scene.site.rpc_lying(Lie::FoldsCase);
        let session = scene.site.session(rpc).await.unwrap();
        let ours = Files::new(&scene.clock, session, Options::default());
        let mode = Sattr3::of_mode(0o755);
        let dir = ours.mkdir(&me(), ours.root(), b"d", mode).await.unwrap().handle;
        let made = scene.theirs.create(&me(), dir, b"a", mode, true).await.unwrap().handle;
        assert_eq!(ours.lookup(&me(), dir, b"a").await.unwrap().handle, made);
    });
}
