//! Files of the client whose blocks a local disk keeps: what it is asked for instead of the server,
//! and that nobody sees less than without it.

use bytes::Bytes;
use cache::medium::Memory;
use cache::{Cache, Cause, Geometry, Limits};
use client::files::open::Mode;
use client::files::{Files, Options};
use client::session::Credential;
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::Site;
use wire::nfs3::{FileHandle, Sattr3};

use crate::files::world;

const READ: Mode = Mode { read: true, write: false, truncate: false };
const WRITE: Mode = Mode { read: true, write: true, truncate: false };
const SIZE: u32 = 3 << 20;

fn user(uid: u32) -> Credential {
    Credential { machine_name: "world".to_owned(), uid, gid: uid, gids: Vec::new() }
}

/// A mount whose disk keeps what `memory` holds; another one with the same goes on with it.
async fn mounted(site: &Site<MemStore>, clock: &Clock, memory: Option<&Memory>) -> Files {
    let disk = memory.map(|memory| {
        Cache::in_memory(memory.clone(), Geometry::of_reads_of(1 << 16), Limits::default())
    });
    Files::on_disk(clock, site.connect().await.unwrap(), Options::default(), disk)
}

fn content(state: u8) -> Bytes {
    (0..SIZE)
        .map(|at| (at / 1000 % 251).try_into().unwrap_or(0_u8) ^ state)
        .collect::<Vec<_>>()
        .into()
}

/// Makes a file with this content, or writes it anew, and closes it.
async fn write(files: &Files, name: &[u8], data: &Bytes) -> FileHandle {
    let (me, root) = (user(0), files.root());
    let made = files.create(&me, root, name, Sattr3::of_mode(0o600), false).await.unwrap();
    let open = files.open(&me, made.handle, WRITE).await.unwrap();
    open.write(0, data).await.unwrap();
    open.flush().await.unwrap();
    open.close().await;
    made.handle
}

async fn read(files: &Files, file: FileHandle) -> Bytes {
    let open = files.open(&user(0), file, READ).await.unwrap();
    let mut whole = Vec::new();
    while whole.len() < SIZE as usize {
        let data = open.read(whole.len() as u64, 128 << 10).await.unwrap();
        whole.extend_from_slice(&data);
    }
    open.close().await;
    whole.into()
}

/// READs, and all calls.
fn calls(files: &Files) -> (u64, u64) {
    let counters = files.session().rpc().counters();
    let of = |number: usize| counters.procedures.get(number).map_or(0, |one| one.ops);
    (of(6), (0..22).map(of).sum())
}

#[test]
fn reading_again_sends_no_reads_also_after_a_restart() {
    world(async |clock, site| {
        let theirs = mounted(&site, &clock, None).await;
        let file = write(&theirs, b"f", &content(1)).await;
        clock.sleep(Nanos::from_secs(10)).await;
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        // The first look at a file: which states are told apart is not known yet.
        ours.getattr(&user(0), file).await.unwrap();
        clock.sleep(Nanos::from_secs(5)).await;
        assert_eq!(read(&ours, file).await, content(1));
        let (reads, all) = calls(&ours);
        assert!(reads > 0);
        for _ in 0..3 {
            assert_eq!(read(&ours, file).await, content(1));
            clock.sleep(Nanos::from_secs(100)).await;
        }
        assert_eq!(calls(&ours), (reads, all + 3), "an ACCESS for each open");
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(read(&restarted, file).await, content(1));
        assert_eq!(calls(&restarted).0, 0);
        let told = restarted.disk().unwrap().statistics();
        assert_eq!((told.hit_bytes, told.misses_all()), (u64::from(SIZE), 0));
    });
}

#[test]
fn what_another_client_has_written_and_closed_is_seen_by_who_opens() {
    world(async |clock, site| {
        let theirs = mounted(&site, &clock, None).await;
        let file = write(&theirs, b"f", &content(1)).await;
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        for state in 2..12_u8 {
            // Now and then within one tick of a coarse clock, and in between.
            clock.sleep(Nanos::from_millis(u64::from(state) * 300)).await;
            assert_eq!(read(&ours, file).await, content(state - 1));
            assert_eq!(read(&ours, file).await, content(state - 1));
            write(&theirs, b"f", &content(state)).await;
            assert_eq!(read(&ours, file).await, content(state));
        }
        let told = ours.disk().unwrap().statistics();
        assert!(told.hits > 0 && told.misses_of(Cause::Changed) > 0, "{told:?}");
        clock.sleep(Nanos::from_secs(10)).await;
        assert_eq!(read(&ours, file).await, content(11));
        // While it was away.
        write(&theirs, b"f", &content(99)).await;
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(read(&restarted, file).await, content(99));
    });
}

#[test]
fn what_we_have_written_ourselves_is_read_and_not_what_was_there_before() {
    world(async |clock, site| {
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let file = write(&ours, b"f", &content(1)).await;
        clock.sleep(Nanos::from_secs(10)).await;
        assert_eq!(read(&ours, file).await, content(1));
        let open = ours.open(&user(0), file, WRITE).await.unwrap();
        let mut expected = content(1).to_vec();
        for at in [0_usize, 65_535, 1 << 20, (3 << 20) - 5] {
            open.write(at as u64, b"ours!").await.unwrap();
            expected[at..][..5].copy_from_slice(b"ours!");
            let before = at.saturating_sub(10);
            let seen = open.read(before as u64, 20).await.unwrap();
            assert_eq!(seen, expected[before..][..seen.len()]);
            // Before and after it has become stable.
            if at > 65_535 {
                open.flush().await.unwrap();
                let seen = open.read(before as u64, 20).await.unwrap();
                assert_eq!(seen, expected[before..][..seen.len()]);
            }
        }
        open.close().await;
        assert_eq!(read(&ours, file).await, expected);
        clock.sleep(Nanos::from_secs(10)).await;
        assert_eq!(read(&ours, file).await, expected);
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert_eq!(read(&restarted, file).await, expected);
    });
}

#[test]
fn no_program_sends_more_calls_with_a_disk_than_without() {
    let all = |with_disk: bool| {
        let world = World::new();
        let clock = world.clock();
        let link = Link { latency: Nanos::from_micros(350), ..Link::default() };
        let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
        let counted = async move {
            let memory = Memory::default();
            let files = mounted(&site, &clock, with_disk.then_some(&memory)).await;
            let file = write(&files, b"f", &content(1)).await;
            let mut counted = Vec::new();
            for round in 0..4 {
                read(&files, file).await;
                counted.push(calls(&files));
                // Here and there, by a descriptor that is open for long.
                let open = files.open(&user(0), file, READ).await.unwrap();
                for step in 0..100_u64 {
                    let at = step * 7919 * 4096 % u64::from(SIZE);
                    assert!(!open.read(at, 4096).await.unwrap().is_empty());
                    clock.sleep(Nanos::from_millis(round * 100)).await;
                }
                open.close().await;
                counted.push(calls(&files));
                write(&files, b"g", &content(7)).await;
            }
            counted
        };
        world.run(counted).unwrap()
    };
    let (with, without) = (all(true), all(false));
    for (with, without) in with.iter().zip(&without) {
        assert!(with.0 <= without.0 && with.1 <= without.1, "{with:?} {without:?}");
    }
    assert!(with.last().unwrap().0 * 3 < without.last().unwrap().0, "{with:?} {without:?}");
}
