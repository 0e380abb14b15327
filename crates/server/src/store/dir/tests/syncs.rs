//! What is synced when, who shares a sync, and who hears of its failure. The syncs themselves are
//! stand-ins that count, wait and fail on demand.

use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};

use futures_util::future::join_all;
use parking_lot::Mutex;

use super::*;
use crate::store::dir::sync::group::Need;

/// The disk's side: says that a sync began and with which need, and waits for its outcome.
struct Disk {
    began: Receiver<Need>,
    outcome: Sender<Result<(), Errno>>,
}

fn fixture(options: &DirOptions) -> (Fixture, Disk) {
    let mut fixture = Fixture::new(options.clone());
    let (begin, began) = mpsc::channel();
    let (outcome, outcomes) = mpsc::channel();
    let outcomes = Mutex::new(outcomes);
    let call = Box::new(move |_: BorrowedFd<'_>, need| {
        // A test that has ended wants nothing more to wait.
        let _ = begin.send(need);
        outcomes.lock().recv().unwrap_or(Ok(()))
    });
    fixture.store = DirStore::open_with(&fixture.path(""), options, call).unwrap();
    (fixture, Disk { began, outcome })
}

fn no_metadata_sync() -> DirOptions {
    DirOptions { metadata_sync: MetadataSync::Never, ..DirOptions::default() }
}

/// Lets a future do what it does at once; whoever is the first to ask for a sync has a second turn.
fn start<F: Future>(future: &mut Pin<Box<F>>) {
    (0..2).for_each(|_| begin(future));
}

fn begin<F: Future>(future: &mut Pin<Box<F>>) {
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

#[test]
fn commits_that_come_during_a_sync_share_the_next() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;

    let commit = || Box::pin(at.store.commit(&ME, &file, 0, 0));
    let mut first = commit();
    start(&mut first);
    assert_eq!(disk.began.recv().unwrap(), Need::File);
    let mut others: Vec<_> = (0..5).map(|_| commit()).collect();
    others.iter_mut().for_each(start);
    disk.outcome.send(Ok(())).unwrap();
    assert!(block_on(first).result.is_ok());
    disk.outcome.send(Ok(())).unwrap();
    for other in block_on(join_all(others)) {
        assert!(other.result.is_ok());
    }
    assert_eq!(disk.began.try_iter().count(), 1, "one sync for all five");
}

/// A client would take it for its own doing, and keep what it has cached.
#[test]
fn what_others_write_during_a_commit_is_not_between_its_before_and_after() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;
    let mut commit = Box::pin(at.store.commit(&ME, &file, 0, 0));
    start(&mut commit);
    disk.began.recv().unwrap();
    at.write(&file, 0, b"theirs").unwrap();
    disk.outcome.send(Ok(())).unwrap();
    let Wcc { before, after } = block_on(commit).wcc;
    assert_eq!(after.map(|attr| attr.size), Some(6));
    assert!(before.is_none() || before == after.as_ref().map(Before::from), "{before:?}");
}

/// Sixteen callers who write on as soon as they are answered, on one thread as a connection has it.
/// A sync ends when all of them wait, so that it takes at most two of them to answer all.
#[test]
fn writes_that_are_at_hand_are_gathered_into_one_sync() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;
    let caller = |index: u64| {
        let (store, file) = (&at.store, &file);
        async move {
            for round in 0..10 {
                let data = Bytes::from(vec![7; 4096]);
                let offset = (round * 16 + index) * 4096;
                let write = store.write(&ME, file, offset, data, Stability::FileSync);
                assert_eq!(write.await.result.unwrap().count, 4096);
            }
        }
    };
    let mut all = Box::pin(join_all((0..16).map(caller)));
    let mut is_done = || all.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    let mut syncs = 0;
    while !is_done() {
        if disk.began.try_recv().is_err() {
            thread::yield_now();
            continue;
        }
        syncs += 1;
        assert!(!is_done() && !is_done(), "a write was answered before its sync");
        disk.outcome.send(Ok(())).unwrap();
    }
    assert!(syncs <= 21, "{syncs} syncs for 160 writes of 16 callers");
    assert!(syncs >= 10, "{syncs} syncs: each round needs one");
}

#[test]
fn a_first_caller_who_gives_up_leaves_nobody_waiting() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;
    disk.outcome.send(Ok(())).unwrap();
    let commit = || Box::pin(at.store.commit(&ME, &file, 0, 0));
    let (mut first, mut second) = (commit(), commit());
    begin(&mut first);
    begin(&mut second);
    drop(first);
    assert!(block_on(second).result.is_ok());
}

#[test]
fn a_failed_sync_reaches_all_it_covers_and_changes_the_verifier() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;

    let old = at.store.verifier();
    let commit = || Box::pin(at.store.commit(&ME, &file, 0, 0));
    let data = Bytes::from_static(b"data");
    let mut first = commit();
    start(&mut first);
    disk.began.recv().unwrap();
    let mut write = Box::pin(at.store.write(&ME, &file, 0, data, Stability::FileSync));
    start(&mut write);
    let mut others: Vec<_> = (0..3).map(|_| commit()).collect();
    others.iter_mut().for_each(start);

    disk.outcome.send(Ok(())).unwrap();
    assert_eq!(block_on(first).result.unwrap().verifier(), old);
    disk.began.recv().unwrap();
    let mut late = commit();
    start(&mut late);
    disk.outcome.send(Err(Errno::IO)).unwrap();
    assert_eq!(block_on(write).result.unwrap_err(), Status::Io);
    for other in block_on(join_all(others)) {
        assert_eq!(other.result.unwrap_err(), Status::Io);
    }
    let new = at.store.verifier();
    assert_ne!(new, old);

    // Whoever came during the failing sync is reported that data were lost before its own.
    disk.outcome.send(Ok(())).unwrap();
    assert_eq!(block_on(late).result.unwrap().verifier(), new);
}

#[test]
fn a_disk_that_was_full_at_the_sync_is_reported_as_such() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;
    disk.outcome.send(Err(Errno::NOSPC)).unwrap();
    let commit = block_on(at.store.commit(&ME, &file, 0, 0));
    assert_eq!(commit.result.unwrap_err(), Status::NoSpace);
}

#[test]
fn each_stability_syncs_as_much_as_it_promises() {
    let (at, disk) = fixture(&no_metadata_sync());
    let file = at.create(&at.root(), "file").handle;
    let write = |stability| {
        let data = Bytes::from_static(b"data");
        let written = block_on(at.store.write(&ME, &file, 0, data, stability));
        let needs: Vec<_> = disk.began.try_iter().collect();
        (written.result.unwrap().committed, needs)
    };
    disk.outcome.send(Ok(())).unwrap();
    disk.outcome.send(Ok(())).unwrap();
    let (committed, needs) = write(Stability::Unstable);
    assert_eq!(committed, Committed::Unstable(at.store.verifier()));
    assert_eq!(needs, []);
    let (committed, needs) = write(Stability::DataSync);
    assert!(matches!(committed, Committed::Stable(Stability::DataSync, _)));
    assert_eq!(needs, [Need::Data]);
    let (committed, needs) = write(Stability::FileSync);
    assert!(matches!(committed, Committed::Stable(Stability::FileSync, _)));
    assert_eq!(needs, [Need::File]);
}

#[test]
fn changes_of_names_and_attributes_are_stable_when_answered() {
    let (at, disk) = fixture(&DirOptions::default());
    (0..100).for_each(|_| disk.outcome.send(Ok(())).unwrap());
    let syncs = || disk.began.try_iter().count();
    let root = at.root();
    let how = CreateHow::Guarded(mode(0o600));
    let file = block_on(at.store.create(&ME, &root, b"file", how));
    let file = file.result.unwrap().handle;
    assert_eq!(syncs(), 1, "the directory");
    let how = CreateHow::Exclusive([1; 8]);
    block_on(at.store.create(&ME, &root, b"exclusive", how)).result.unwrap();
    assert_eq!(syncs(), 2, "and the file, whose times hold the verifier");
    at.set_attr(&file, mode(0o640)).unwrap();
    assert_eq!(syncs(), 1);
    let dir = at.make_dir(&root, "dir").handle;
    assert_eq!(syncs(), 1);
    at.rename(&root, "file", &dir, "moved").unwrap();
    assert_eq!(syncs(), 2, "both directories");
    at.rename(&dir, "moved", &dir, "again").unwrap();
    assert_eq!(syncs(), 1);
    block_on(at.store.link(&ME, &file, &root, b"link")).result.unwrap();
    at.remove(&root, "link").unwrap();
    assert_eq!(syncs(), 2);
    assert!(at.remove(&root, "none").is_err());
    assert_eq!(syncs(), 0, "what failed changed nothing");

    let link = block_on(at.store.symlink(&ME, &root, b"symlink", b"x", SetAttr::default()));
    assert_eq!(syncs(), 1);
    let times = SetAttr { modified: SetTime::ToServer, ..SetAttr::default() };
    at.set_attr(&link.result.unwrap().handle, times).unwrap();
    let needs: Vec<_> = disk.began.try_iter().collect();
    assert_eq!(needs, [Need::FileSystem], "a link cannot be opened");
}

#[test]
fn a_directory_that_cannot_be_synced_fails_the_change() {
    let (at, disk) = fixture(&DirOptions::default());
    let old = at.store.verifier();
    disk.outcome.send(Err(Errno::IO)).unwrap();
    let made = block_on(at.store.make_dir(&ME, &at.root(), b"dir", mode(0o755)));
    assert_eq!(made.result.unwrap_err(), Status::Io);
    assert!(made.wcc.after.is_some());
    assert_ne!(at.store.verifier(), old);
}

#[test]
fn unsynced_data_are_synced_before_their_last_descriptor_is_closed() {
    let (at, disk) = fixture(&DirOptions {
        open_files_max: Some(3),
        // One after the other, so that the second tells that the first is over.
        sync_threads: 1,
        ..no_metadata_sync()
    });
    let old = at.store.verifier();
    let first = at.create(&at.root(), "first").handle;
    at.write(&first, 0, b"data").unwrap();
    let second = at.create(&at.root(), "second").handle;
    // Nobody waits for this sync: the verifier must tell that it failed.
    disk.outcome.send(Err(Errno::IO)).unwrap();
    disk.outcome.send(Ok(())).unwrap();
    let commit = block_on(at.store.commit(&ME, &second, 0, 0));
    assert_ne!(commit.result.unwrap().verifier(), old);
    let needs: Vec<_> = disk.began.try_iter().collect();
    assert_eq!(needs, [Need::Data, Need::File]);
}

/// The kernel tells of an error once: to the descriptor that is being closed. A COMMIT that comes
/// while it is must not open the file anew and hear of nothing.
#[test]
fn a_commit_that_comes_while_a_descriptor_is_closed_hears_of_its_error() {
    let (at, disk) = fixture(&DirOptions { open_files_max: Some(3), ..no_metadata_sync() });
    let old = at.store.verifier();
    let first = at.create(&at.root(), "first").handle;
    at.write(&first, 0, b"data").unwrap();
    at.create(&at.root(), "second");
    assert_eq!(disk.began.recv().unwrap(), Need::Data, "the first leaves the cache");
    let mut commit = Box::pin(at.store.commit(&ME, &first, 0, 0));
    start(&mut commit);
    assert_eq!(disk.began.try_iter().count(), 0, "it waits for the sync that is under way");
    disk.outcome.send(Err(Errno::IO)).unwrap();
    disk.outcome.send(Ok(())).unwrap();
    assert_ne!(block_on(commit).result.unwrap().verifier(), old);
    assert_eq!(disk.began.try_iter().count(), 1);
}

/// The kernel may forget what it could not write with the last descriptor: nobody commits, and the
/// verifier tells all the same.
#[test]
fn data_that_nobody_commits_are_synced_before_their_idle_file_is_closed() {
    let (at, disk) = fixture(&no_metadata_sync());
    let cached = || at.store.tree.objects.readings()[0].value;
    at.tend(1);
    let old = at.store.verifier();
    let file = at.create(&at.root(), "file").handle;
    at.write(&file, 0, b"data").unwrap();
    at.tend(4);
    assert_eq!(disk.began.try_iter().count(), 0, "the client may commit it");
    at.tend(5);
    assert_eq!(disk.began.recv().unwrap(), Need::Data);
    at.tend(6);
    assert_eq!(cached(), 1.0, "its sync is under way");
    disk.outcome.send(Err(Errno::IO)).unwrap();
    disk.outcome.send(Ok(())).unwrap();
    // Joins the next sync, which begins when that one is over.
    let commit = block_on(at.store.commit(&ME, &file, 0, 0));
    assert_ne!(commit.result.unwrap().verifier(), old);
    at.tend(9);
    assert_eq!(cached(), 1.0);
    // The thread that has synced it may hold it for a moment more.
    while cached() > 0.0 {
        at.tend(10);
    }
    assert_eq!(disk.began.try_iter().count(), 1, "there was nothing left to sync");
}

#[test]
fn many_callers_on_many_threads_are_all_served() {
    let options = DirOptions { sync_threads: 2, ..DirOptions::default() };
    let at = Fixture::new(options);
    let files: Vec<_> =
        (0..4).map(|index| at.create(&at.root(), &format!("file-{index}")).handle).collect();
    thread::scope(|scope| {
        for caller in 0..8_usize {
            let (store, files) = (&at.store, &files);
            scope.spawn(move || {
                for round in 0..20_usize {
                    let file = &files[(caller + round) % files.len()];
                    let data = Bytes::from(vec![0; 8192]);
                    let offset = (caller * 20 + round) as u64 * 8192;
                    let write = store.write(&ME, file, offset, data, Stability::FileSync);
                    assert_eq!(block_on(write).result.unwrap().count, 8192);
                    let commit = block_on(store.commit(&ME, file, 0, 0));
                    assert!(commit.result.is_ok());
                }
            });
        }
    });
}
