//! Names, links and listings of the client that a local disk keeps: what is requested after a
//! restart, and that what others have changed is seen.

use cache::medium::Memory;
use client::files::Files;
use client::session::Credential;
use net::clock::Clock;
use perf::units::Nanos;
use server::store::mem::MemStore;
use testkit::Site;
use wire::nfs3::{FileHandle, NfsStat3, Procedure, Sattr3};

use crate::files::world;
use crate::on_disk::{mounted, user, write};

const DIRS: usize = 4;
const FILES: usize = 20;

fn calls(files: &Files, procedures: &[Procedure]) -> u64 {
    let counters = files.session().rpc().counters();
    let of = |procedure: &Procedure| {
        counters.procedures.get(*procedure as usize).map_or(0, |one| one.ops)
    };
    procedures.iter().map(of).sum()
}

const NAMES: [Procedure; 4] =
    [Procedure::Lookup, Procedure::Readdir, Procedure::Readdirplus, Procedure::Readlink];

async fn dir(files: &Files, name: &str) -> FileHandle {
    let mode = Sattr3::of_mode(0o755);
    files.mkdir(&user(0), files.root(), name.as_bytes(), mode).await.unwrap().handle
}

/// Directories with files, and a link in each.
async fn planted(files: &Files) {
    for number in 0..DIRS {
        let dir = dir(files, &format!("d{number}")).await;
        for file in 0..FILES {
            let (name, mode) = (format!("f{file}"), Sattr3::of_mode(0o644));
            files.create(&user(0), dir, name.as_bytes(), mode, false).await.unwrap();
        }
        let (me, to) = (user(0), format!("to/{number}"));
        let link = files.symlink(&me, dir, b"link", Sattr3::default(), to.as_bytes());
        link.await.unwrap();
    }
}

/// The names of a directory.
async fn list(files: &Files, who: &Credential, dir: FileHandle) -> Vec<String> {
    let (listing, mut cookie, mut names) = (files.listing(who, dir), 0, Vec::new());
    loop {
        let page = listing.page(cookie).await.unwrap();
        for entry in &page.entries {
            cookie = entry.cookie;
            names.push(String::from_utf8(entry.name.clone()).unwrap());
        }
        if page.eof {
            names.retain(|name| name != "." && name != "..");
            names.sort();
            return names;
        }
    }
}

/// Looks at everything, as `find` and a compiler would.
async fn walk(files: &Files) -> Vec<String> {
    let (me, mut seen) = (user(0), Vec::new());
    files.lookup(&me, files.root(), b"later").await.unwrap();
    for number in 0..DIRS {
        let dir = files.lookup(&me, files.root(), format!("d{number}").as_bytes()).await.unwrap();
        let names = list(files, &me, dir.handle).await;
        for name in &names {
            let found = files.lookup(&me, dir.handle, name.as_bytes()).await.unwrap();
            seen.push(format!("{number} {name} {:?}", found.handle));
        }
        let link = files.lookup(&me, dir.handle, b"link").await.unwrap().handle;
        seen.push(String::from_utf8(files.readlink(&me, link).await.unwrap()).unwrap());
        for name in [&b"stdio.h"[..], b"absent"] {
            let error = files.lookup(&me, dir.handle, name).await.unwrap_err();
            assert_eq!(error.status(), Some(NfsStat3::NoEnt));
        }
    }
    seen
}

async fn wait(clock: &Clock, seconds: u64) {
    clock.sleep(Nanos::from_secs(seconds)).await;
}

async fn with_tree(site: &Site<MemStore>, clock: &Clock) -> (Files, Memory) {
    let theirs = mounted(site, clock, None).await;
    planted(&theirs).await;
    // What has changed later shows the server's clock.
    let later = dir(&theirs, "later").await;
    wait(clock, 1).await;
    write_in(&theirs, later, b"f").await;
    wait(clock, 100).await;
    (theirs, Memory::default())
}

#[test]
fn after_a_restart_a_tree_needs_no_lookup_no_listing_and_no_readlink() {
    world(async |clock, site| {
        let (_theirs, memory) = with_tree(&site, &clock).await;
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let seen = walk(&ours).await;
        let first = calls(&ours, Procedure::ALL);
        wait(&clock, 10).await;
        // It has crashed: it was not ended.
        std::mem::forget(ours);
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(walk(&restarted).await, seen);
        let by_name = NAMES.map(|procedure| calls(&restarted, &[procedure]));
        // One listing has the attributes of all files of a directory, and of the root's.
        assert_eq!(by_name, [0, 0, DIRS as u64 + 1, 0]);
        let again = calls(&restarted, Procedure::ALL);
        assert!(again < first, "{again} {first}");
        let statistics = restarted.disk().unwrap().statistics();
        assert_eq!(statistics.catalog_hits, DIRS as u64 + 1);
        // Names alone.
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        for number in 0..DIRS {
            let name = format!("d{number}");
            let dir = restarted.lookup(&user(0), restarted.root(), name.as_bytes()).await.unwrap();
            assert_eq!(list(&restarted, &user(0), dir.handle).await.len(), FILES + 1);
        }
        assert_eq!(calls(&restarted, &NAMES), 1, "the attributes of the root's");
    });
}

/// A name is looked up before it is made, and what was requested then may be of a state that looks
/// as the next. A listing is of the last, and has all names.
#[test]
fn a_directory_that_was_filled_here_is_stored_as_it_was_listed_later() {
    world(async |clock, site| {
        let (memory, me) = (Memory::default(), user(0));
        let ours = mounted(&site, &clock, Some(&memory)).await;
        // No two changes so near that they show whether the server tells such apart.
        let made = dir(&ours, "made").await;
        for name in [&b"one"[..], b"two"] {
            wait(&clock, 1).await;
            ours.lookup(&me, made, name).await.unwrap_err();
            ours.create(&me, made, name, Sattr3::of_mode(0o644), false).await.unwrap();
        }
        wait(&clock, 1).await;
        assert_eq!(list(&ours, &me, made).await, ["one", "two"]);
        wait(&clock, 10).await;
        std::mem::forget(ours);
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        restarted.getattr(&me, made).await.unwrap();
        assert_eq!(list(&restarted, &me, made).await, ["one", "two"]);
        assert_eq!(calls(&restarted, &NAMES), 0);
    });
}

#[test]
fn what_others_change_while_a_client_is_away_is_seen_when_it_is_back() {
    world(async |clock, site| {
        let (theirs, memory) = with_tree(&site, &clock).await;
        let mut ours = mounted(&site, &clock, Some(&memory)).await;
        let me = user(0);
        for round in 0..12_usize {
            let names = walk(&ours).await;
            // Written, or not; within one tick of the disk's writing.
            wait(&clock, round as u64).await;
            std::mem::forget(ours);
            let dir = format!("d{}", round % DIRS);
            let dir = theirs.lookup(&me, theirs.root(), dir.as_bytes()).await.unwrap().handle;
            match round % 3 {
                0 => drop(write_in(&theirs, dir, format!("new{round}").as_bytes()).await),
                1 => theirs.remove(&me, dir, format!("f{round}").as_bytes()).await.unwrap(),
                _ => {
                    let to = format!("g{round}");
                    theirs.rename(&me, (dir, b"f0"), (dir, to.as_bytes())).await.unwrap();
                    write_in(&theirs, dir, b"f0").await;
                }
            }
            ours = mounted(&site, &clock, Some(&memory)).await;
            let now = walk(&ours).await;
            assert_ne!(now, names, "round {round}");
            let fresh = mounted(&site, &clock, None).await;
            assert_eq!(now, walk(&fresh).await, "round {round}");
        }
    });
}

async fn write_in(files: &Files, dir: FileHandle, name: &[u8]) -> FileHandle {
    let mode = Sattr3::of_mode(0o644);
    files.create(&user(0), dir, name, mode, false).await.unwrap().handle
}

#[test]
fn what_we_have_made_and_removed_ourselves_is_known_after_a_restart() {
    world(async |clock, site| {
        let (_theirs, memory) = with_tree(&site, &clock).await;
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let me = user(0);
        walk(&ours).await;
        let one = ours.lookup(&me, ours.root(), b"d1").await.unwrap().handle;
        for number in 0..50 {
            write_in(&ours, one, format!("made{number}").as_bytes()).await;
        }
        for number in 0..10 {
            ours.remove(&me, one, format!("f{number}").as_bytes()).await.unwrap();
        }
        ours.rename(&me, (one, b"made1"), (one, b"moved")).await.unwrap();
        let names = list(&ours, &me, one).await;
        ours.shut_down().await;
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(list(&restarted, &me, one).await, names);
        for gone in [&b"f3"[..], b"made1"] {
            let error = restarted.lookup(&me, one, gone).await.unwrap_err();
            assert_eq!(error.status(), Some(NfsStat3::NoEnt));
        }
        restarted.lookup(&me, one, b"moved").await.unwrap();
        let handle = write(&restarted, b"elsewhere", &bytes::Bytes::from_static(b"x")).await;
        assert_eq!(
            restarted.lookup(&me, restarted.root(), b"elsewhere").await.unwrap().handle,
            handle
        );
    });
}

#[test]
fn a_directory_and_what_its_name_leads_to_are_confirmed_in_one_round_trip() {
    world(async |clock, site| {
        let (_, memory) = with_tree(&site, &clock).await;
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let (me, root) = (user(0), ours.root());
        let d0 = ours.lookup(&me, root, b"d0").await.unwrap().handle;
        ours.lookup(&me, root, b"d1").await.unwrap();
        wait(&clock, 10).await;
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        restarted.getattr(&me, root).await.unwrap();
        for files in [&ours, &restarted] {
            wait(&clock, 61).await;
            let begun = clock.now();
            files.ask_attributes(&me, d0).await.unwrap();
            let round_trip = clock.now().since(begun);
            wait(&clock, 61).await;
            let (begun, before) = (clock.now(), calls(files, Procedure::ALL));
            assert_eq!(files.lookup(&me, root, b"d0").await.unwrap().handle, d0);
            assert!(clock.now().since(begun) < round_trip * 3 / 2, "one after the other");
            assert_eq!(calls(files, Procedure::ALL), before + 2, "no call that was not needed");
            // The second name is listed, as ever.
            files.lookup(&me, root, b"d1").await.unwrap();
            files.lookup(&me, root, b"d2").await.unwrap();
            assert_eq!(calls(files, Procedure::ALL), before + 3);
        }
        // What others have changed is seen.
        let theirs = mounted(&site, &clock, None).await;
        theirs.rename(&me, (root, b"d0"), (root, b"moved")).await.unwrap();
        let new = dir(&theirs, "d0").await;
        wait(&clock, 61).await;
        for files in [&ours, &restarted] {
            assert_eq!(files.lookup(&me, root, b"d0").await.unwrap().handle, new);
        }
    });
}

#[test]
fn a_damaged_catalog_is_missed() {
    world(async |clock, site| {
        let (_theirs, memory) = with_tree(&site, &clock).await;
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let seen = walk(&ours).await;
        ours.shut_down().await;
        for (number, name) in memory.names().into_iter().enumerate() {
            memory.change(name, |bytes| {
                let at = number * 97 % bytes.len();
                bytes[at] ^= 1 << (number % 8);
            });
        }
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(walk(&restarted).await, seen);
        let statistics = restarted.disk().unwrap().statistics();
        let damaged = statistics.catalog_misses[cache::Cause::Damaged as usize];
        assert_eq!((statistics.catalog_hits, damaged), (0, DIRS as u64 + 1));
    });
}

#[test]
fn what_one_caller_has_listed_is_shown_to_others_as_the_server_lets_them() {
    world(async |clock, site| {
        let (_theirs, memory) = with_tree(&site, &clock).await;
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let dir = ours.lookup(&user(0), ours.root(), b"d0").await.unwrap().handle;
        let names = list(&ours, &user(0), dir).await;
        let (listings, rights) = ([Procedure::Readdirplus], [Procedure::Access]);
        let before = (calls(&ours, &listings), calls(&ours, &rights));
        assert_eq!(list(&ours, &user(7), dir).await, names);
        let after = (calls(&ours, &listings), calls(&ours, &rights));
        assert_eq!(after, (before.0, before.1 + 1), "not listed again, and not without a question");
    });
}
