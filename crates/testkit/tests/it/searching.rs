//! Names that one user of a mount has requested, and another may not see.

use cache::medium::Memory;
use client::error::Error;
use client::files::{Files, Found, Options};
use net::clock::Clock;
use perf::units::Nanos;
use server::store::mem::MemStore;
use testkit::Site;
use wire::nfs3::{FileHandle, NfsStat3, Procedure, Sattr3};

use crate::files::{me, mounted, world};
use crate::on_disk::{self, user};

fn calls(files: &Files, procedure: Procedure) -> u64 {
    let counters = files.session().rpc().counters();
    counters.procedures.get(procedure as usize).map_or(0, |one| one.ops)
}

fn status(result: Result<Found, Error>) -> Option<NfsStat3> {
    result.err().and_then(|error| error.status())
}

/// A mount of several users, and a directory of it with this mode, in which root has looked for a
/// file that is there and for one that is not.
async fn known_to_root(site: &Site<MemStore>, clock: &Clock, mode: u32) -> (Files, FileHandle) {
    site.believe_callers();
    let files = mounted(site, clock, Options::default()).await;
    let (root, mode) = (files.root(), Sattr3::of_mode(mode));
    let dir = files.mkdir(&me(), root, b"d", mode).await.unwrap().handle;
    files.create(&me(), dir, b"there", Sattr3::of_mode(0o644), true).await.unwrap();
    files.lookup(&me(), dir, b"there").await.unwrap();
    assert_eq!(status(files.lookup(&me(), dir, b"nowhere").await), Some(NfsStat3::NoEnt));
    (files, dir)
}

#[test]
fn whoever_may_not_search_a_directory_is_not_given_what_others_have_found_in_it() {
    world(async |clock, site| {
        let (files, dir) = known_to_root(&site, &clock, 0o700).await;
        for name in [&b"there"[..], b"nowhere"] {
            let refused = status(files.lookup(&user(7), dir, name).await);
            assert_eq!(refused, Some(NfsStat3::Acces), "{}", name.escape_ascii());
        }
        assert!(files.refuses_some(&dir));
        files.lookup(&me(), dir, b"there").await.unwrap();
    });
}

#[test]
fn a_refusal_by_the_server_counts_though_no_name_was_known_yet() {
    world(async |clock, site| {
        let (_, dir) = known_to_root(&site, &clock, 0o700).await;
        for call in 0..3 {
            let files = mounted(&site, &clock, Options::default()).await;
            let other = user(7);
            let refused = match call {
                0 => files.lookup(&other, dir, b"there").await.err(),
                1 => files.listing(&other, dir).page(0).await.err(),
                _ => files.mkdir(&other, dir, b"new", Sattr3::of_mode(0o755)).await.err(),
            };
            assert_eq!(refused.unwrap().status(), Some(NfsStat3::Acces), "{call}");
            files.lookup(&me(), dir, b"there").await.unwrap();
            assert!(files.refuses_some(&dir), "{call}: names are for those who may search it");
        }
    });
}

#[test]
fn who_may_not_list_a_directory_may_search_it_all_the_same() {
    world(async |clock, site| {
        let (_, dir) = known_to_root(&site, &clock, 0o711).await;
        let files = mounted(&site, &clock, Options::default()).await;
        let refused = files.listing(&user(7), dir).page(0).await.err().unwrap();
        assert_eq!(refused.status(), Some(NfsStat3::Acces));
        files.lookup(&me(), dir, b"there").await.unwrap();
        assert!(!files.refuses_some(&dir));
        files.lookup(&user(7), dir, b"there").await.unwrap();
    });
}

#[test]
fn whoever_waits_for_the_listing_of_another_is_not_given_what_that_tells() {
    world(async |clock, site| {
        let (filling, dir) = known_to_root(&site, &clock, 0o700).await;
        filling.create(&me(), dir, b"more", Sattr3::of_mode(0o644), true).await.unwrap();
        let files = mounted(&site, &clock, Options::default()).await;
        files.lookup(&me(), dir, b"there").await.unwrap();
        let (root, other) = (me(), user(7));
        let (found, refused) =
            tokio::join!(files.lookup(&root, dir, b"more"), files.lookup(&other, dir, b"more"));
        found.unwrap();
        assert_eq!(status(refused), Some(NfsStat3::Acces));
    });
}

#[test]
fn a_right_is_requested_once_and_not_by_who_alone_uses_a_directory() {
    world(async |clock, site| {
        let (files, dir) = known_to_root(&site, &clock, 0o755).await;
        assert_eq!(calls(&files, Procedure::Access), 0);
        let lookups = calls(&files, Procedure::Lookup);
        for _ in 0..5 {
            files.lookup(&user(7), dir, b"there").await.unwrap();
            assert_eq!(
                status(files.lookup(&user(7), dir, b"nowhere").await),
                Some(NfsStat3::NoEnt)
            );
        }
        assert_eq!(
            (calls(&files, Procedure::Access), calls(&files, Procedure::Lookup)),
            (1, lookups)
        );
        for _ in 0..5 {
            files.lookup(&me(), dir, b"there").await.unwrap();
        }
        assert_eq!(calls(&files, Procedure::Access), 1, "user 7 has brought nothing");
        clock.sleep(Nanos::from_secs(61)).await;
        files.lookup(&user(7), dir, b"there").await.unwrap();
    });
}

#[test]
fn whoever_makes_a_directory_and_changes_it_needs_no_right_for_that() {
    world(async |clock, site| {
        let (files, dir) = known_to_root(&site, &clock, 0o777).await;
        let made = files.mkdir(&user(7), dir, b"made", Sattr3::of_mode(0o755)).await.unwrap();
        let absent = status(files.lookup(&user(7), made.handle, b"new").await);
        assert_eq!((absent, calls(&files, Procedure::Access)), (Some(NfsStat3::NoEnt), 0));
        // Of the directory above two have names, and each change leaves another state.
        for name in [&b"one"[..], b"two", b"three"] {
            files.create(&user(7), dir, name, Sattr3::of_mode(0o644), true).await.unwrap();
            files.lookup(&user(7), dir, name).await.unwrap();
            files.rename(&user(7), (dir, name), (dir, b"other")).await.unwrap();
            files.lookup(&user(7), dir, b"there").await.unwrap();
            files.remove(&user(7), dir, b"other").await.unwrap();
            assert_eq!(status(files.lookup(&user(7), dir, b"other").await), Some(NfsStat3::NoEnt));
        }
        assert_eq!(calls(&files, Procedure::Access), 0);
    });
}

/// The server may know users as no mode tells (`root_squash`, ACLs).
#[test]
fn names_of_a_disk_are_for_whom_the_server_lets_search_the_directory() {
    world(async |clock, site| {
        site.believe_callers();
        let theirs = mounted(&site, &clock, Options::default()).await;
        let mode = Sattr3::of_mode(0o700);
        let dir = theirs.mkdir(&me(), theirs.root(), b"d", mode).await.unwrap().handle;
        theirs.create(&me(), dir, b"there", Sattr3::of_mode(0o644), true).await.unwrap();
        let memory = Memory::default();
        let filling = on_disk::mounted(&site, &clock, Some(&memory)).await;
        filling.getattr(&me(), dir).await.unwrap();
        clock.sleep(Nanos::from_secs(1)).await;
        filling.lookup(&me(), dir, b"there").await.unwrap();
        assert_eq!(status(filling.lookup(&me(), dir, b"nowhere").await), Some(NfsStat3::NoEnt));
        filling.shut_down().await;
        for (who, may) in [(user(7), false), (me(), true)] {
            let files = on_disk::mounted(&site, &clock, Some(&memory)).await;
            for (name, then) in [(&b"there"[..], None), (b"nowhere", Some(NfsStat3::NoEnt))] {
                let refused = Some(NfsStat3::Acces);
                let found = status(files.lookup(&who, dir, name).await);
                assert_eq!(found, if may { then } else { refused }, "{}", name.escape_ascii());
            }
            if may {
                // Of the directory, and of the file in place of its GETATTR.
                assert_eq!(calls(&files, Procedure::Access), 2);
                assert_eq!(calls(&files, Procedure::Lookup), 0, "the disk has them");
            }
        }
    });
}
