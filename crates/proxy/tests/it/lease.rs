//! One proxy with a log at a time.

use std::sync::Arc;

use perf::units::Nanos;
use proxy::write_back::{Aliases, Event, LeaseError, Log, OpenError, Options, Owner, WriteBack};
use server::store::Store;
use server::store::dir::write_log::Alone;
use server::types::Status;

use crate::conflicts::{find, make, make_dir, write};
use crate::origin::Requested;
use crate::stage::{Stage, names, play, root};

const NAME: &[u8] = b".nfskit-write-back";

fn owner(log: u8, boot: u8) -> Owner {
    let host = format!("host-{log}");
    Owner { log: [log; 16], host, process: 100 + u32::from(log), boot: [boot; 16], caller: root() }
}

async fn refused(stage: &Stage, owner: Owner) -> LeaseError {
    match stage.begin_as(Some(owner)).await {
        Err(OpenError::Lease(error)) => error,
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn a_lease_is_refused_while_another_has_it_and_when_that_is_dead() {
    play(5, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let (host, process) = ("host-1".to_owned(), 101);
        let error = refused(&stage, owner(2, 2)).await;
        assert_eq!(error, LeaseError::Alive { host: host.clone(), process });
        life.kill();
        let error = refused(&stage, owner(2, 2)).await;
        let log = "01".repeat(16);
        assert_eq!(error, LeaseError::Dead { host, process, log });
    });
}

#[test]
fn a_proxy_takes_its_own_lease_back_at_once_and_after_a_reboot_when_it_is_dead() {
    play(6, None, async |stage| {
        stage.begin_as(Some(owner(1, 1))).await.unwrap().kill();
        let begun = stage.clock.now();
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        assert!(stage.clock.now().since(begun) < Nanos::from_secs(1));
        // A copy of the log elsewhere.
        assert!(matches!(refused(&stage, owner(1, 2)).await, LeaseError::Alive { .. }));
        life.kill();
        let begun = stage.clock.now();
        stage.begin_as(Some(owner(1, 2))).await.unwrap();
        assert!(stage.clock.now().since(begun) > Nanos::from_secs(12));
    });
}

#[test]
fn an_origin_that_is_away_keeps_nobody_from_ending() {
    play(8, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        stage.origin.is_away.store(true, std::sync::atomic::Ordering::Relaxed);
        let begun = stage.clock.now();
        assert!(!life.proxy.end().await, "the lease is there still");
        assert!(stage.clock.now().since(begun) < Nanos::from_secs(6));
        stage.origin.is_away.store(false, std::sync::atomic::Ordering::Relaxed);
        life.kill();
        stage.begin_as(Some(owner(1, 1))).await.unwrap();
    });
}

#[test]
fn who_ends_in_order_leaves_no_lease_and_clients_never_see_one() {
    play(7, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        make(proxy, &top, "file").await;
        assert_eq!(names(proxy, &top).await, ["file", "first"]);
        let there = proxy.lookup(&root(), &top, NAME).await.result;
        assert_eq!(there.map(drop), Err(Status::NoEntry));
        let removed = proxy.remove(&root(), &top, NAME).await.result;
        assert_eq!(removed, Err(Status::Access));
        make(proxy, &top, "new").await;
        assert!(!proxy.end().await, "something is on its way");
        proxy.drained(None).await;
        assert!(proxy.end().await);
        let files = &*stage.origin.files;
        assert_eq!(names(files, &files.root()).await, ["file", "first", "new"]);
        life.kill();
        stage.begin_as(Some(owner(2, 2))).await.unwrap();
    });
}

#[test]
fn what_is_no_lease_is_not_taken_for_one() {
    play(8, None, async |stage| {
        let files = &*stage.origin.files;
        let file = make(files, &files.root(), ".nfskit-write-back").await;
        write(files, &file, 0, "a user's").await;
        assert_eq!(refused(&stage, owner(1, 1)).await, LeaseError::Foreign);
    });
}

#[test]
fn a_lease_that_says_nothing_is_for_one_of_those_who_come() {
    play(8, None, async |stage| {
        make(&*stage.origin.files, &stage.origin.files.root(), ".nfskit-write-back").await;
        let begun = stage.clock.now();
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        assert!(stage.clock.now().since(begun) > Nanos::from_secs(12), "one may be making it");
        assert!(matches!(refused(&stage, owner(2, 2)).await, LeaseError::Alive { .. }));
        life.kill();
        stage.begin_as(Some(owner(1, 1))).await.unwrap();
    });
    play(8, None, async |stage| {
        make(&*stage.origin.files, &stage.origin.files.root(), ".nfskit-write-back").await;
        let begin = |number| stage.begin_as(Some(owner(number, number)));
        let (one, other) = futures_util::future::join(begin(1), begin(2)).await;
        let refused = [one, other].into_iter().filter_map(Result::err).collect::<Vec<_>>();
        assert!(matches!(refused[..], [OpenError::Lease(_)]), "{refused:?}");
    });
}

#[test]
fn who_has_lost_the_lease_sends_nothing_until_it_is_his_again() {
    play(9, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let (proxy, top, files) = (&life.proxy, life.proxy.root(), &*stage.origin.files);
        make(proxy, &top, "first").await;
        files.remove(&root(), &files.root(), NAME).await.result.unwrap();
        make(files, &files.root(), ".nfskit-write-back").await;
        stage.clock.sleep(Nanos::from_secs(5)).await;
        assert!(matches!(stage.events.lock()[..], [Event::Fenced { .. }]));
        make(proxy, &top, "file").await;
        assert_eq!(proxy.drained(Some(Nanos::from_secs(60))).await, 1);
        files.remove(&root(), &files.root(), NAME).await.result.unwrap();
        assert_eq!(proxy.drained(Some(Nanos::from_secs(60))).await, 0);
        assert_eq!(names(files, &files.root()).await, [".nfskit-write-back", "file", "first"]);
    });
}

#[test]
fn who_has_lost_the_lease_sends_nothing_though_it_cannot_be_looked_at_for_a_while() {
    play(9, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let (proxy, top, files) = (&life.proxy, life.proxy.root(), &*stage.origin.files);
        make(proxy, &top, "first").await;
        files.remove(&root(), &files.root(), NAME).await.result.unwrap();
        make(files, &files.root(), ".nfskit-write-back").await;
        stage.clock.sleep(Nanos::from_secs(5)).await;
        make(proxy, &top, "file").await;
        let is_stale = &stage.origin.is_stale;
        is_stale.store(true, std::sync::atomic::Ordering::Relaxed);
        stage.clock.sleep(Nanos::from_secs(5)).await;
        is_stale.store(false, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(proxy.drained(Some(Nanos::from_secs(60))).await, 1);
        assert!(matches!(stage.events.lock()[..], [Event::Fenced { .. }]), "once");
    });
}

#[test]
fn a_log_that_was_made_for_nothing_is_removed_and_no_other() {
    play(5, None, async |stage| {
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let refused = async || {
            let log = Alone::open_or_make(&path, 16 << 20, b"origin").unwrap();
            let log = Log::of_file(log, &path).unwrap();
            let options = Options { owner: Some(owner(2, 2)), ..Options::default() };
            let (store, aliases) = (stage.origin.clone(), Arc::new(Aliases::in_memory()));
            WriteBack::open(&stage.clock, store, aliases, log, options).await.map(drop)
        };
        assert!(matches!(refused().await, Err(OpenError::Lease(LeaseError::Alive { .. }))));
        assert!(!path.exists(), "it was made just now");
        drop(Alone::open_or_make(&path, 16 << 20, b"origin").unwrap());
        refused().await.unwrap_err();
        assert!(path.exists(), "it was there before");
        life.kill();
        std::fs::remove_file(&path).unwrap();
        let files = &*stage.origin.files;
        files.remove(&root(), &files.root(), NAME).await.result.unwrap();
        type Refuses = fn(Requested<'_>) -> bool;
        let all: [Refuses; 2] = [
            |requested| matches!(requested, Requested::Make(_)),
            |requested| matches!(requested, Requested::Write(..)),
        ];
        for refuses in all {
            stage.origin.refuse(move |requested| refuses(requested).then_some(Status::NoSpace));
            let error = LeaseError::Refused(Status::NoSpace);
            assert_eq!(refused().await, Err(OpenError::Lease(error)));
            assert!(!path.exists(), "the origin has no lease of it");
            assert!(names(files, &files.root()).await.is_empty());
        }
        // Of a lease that may say whose it is the log stays.
        stage.origin.refuse(|requested| {
            let is_refused = matches!(requested, Requested::Write(..) | Requested::Remove(_));
            is_refused.then_some(Status::Io)
        });
        let error = LeaseError::Unwritten(Status::Io);
        assert_eq!(refused().await, Err(OpenError::Lease(error)));
        assert!(path.exists());
    });
}

/// The origin with a directory, and a proxy's place that has this part of it.
async fn parted(stage: &Stage) -> Stage {
    let files = &*stage.origin.files;
    let part = make_dir(files, &files.root(), "part").await;
    let mut below = Stage::new(&stage.clock, 3, None);
    below.origin = stage.origin.clone();
    below.origin.part = Some(part);
    below
}

#[test]
fn a_lease_is_refused_of_a_part_of_what_another_has() {
    play(5, None, async |stage| {
        let below = parted(&stage).await;
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let (host, process) = ("host-1".to_owned(), 101);
        let alive = LeaseError::Alive { host: host.clone(), process };
        assert_eq!(refused(&below, owner(2, 2)).await, LeaseError::Upper(Box::new(alive)));
        life.kill();
        let dead = LeaseError::Dead { host, process, log: "01".repeat(16) };
        assert_eq!(refused(&below, owner(2, 2)).await, LeaseError::Upper(Box::new(dead)));
        assert!(names(&below.origin, &below.origin.root()).await.is_empty());
        let life = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        assert!(life.proxy.end().await);
        below.begin_as(Some(owner(2, 2))).await.unwrap();
    });
}

#[test]
fn who_has_a_part_sends_nothing_while_another_has_all_whose_clients_see_no_lease() {
    play(5, None, async |stage| {
        let below = parted(&stage).await;
        let part = below.begin_as(Some(owner(2, 2))).await.unwrap();
        make(&part.proxy, &part.proxy.root(), "first").await;
        let all = stage.begin_as(Some(owner(1, 1))).await.unwrap();
        let dir = find(&all.proxy, &all.proxy.root(), "part").await;
        assert_eq!(names(&all.proxy, &dir).await, ["first"]);
        let removed = all.proxy.remove(&root(), &dir, NAME).await.result;
        assert_eq!(removed, Err(Status::Access));
        stage.clock.sleep(Nanos::from_secs(5)).await;
        assert!(matches!(below.events.lock()[..], [Event::Fenced { .. }]), "it has another above");
        make(&part.proxy, &part.proxy.root(), "later").await;
        assert_eq!(part.proxy.drained(Some(Nanos::from_secs(60))).await, 1);
        assert!(all.proxy.end().await);
        all.kill();
        assert_eq!(part.proxy.drained(Some(Nanos::from_secs(60))).await, 0);
    });
}
