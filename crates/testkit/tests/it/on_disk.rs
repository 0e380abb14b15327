//! Files of the client whose blocks a local disk keeps: what it is requested instead of the server,
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

const READ: Mode = Mode { read: true, write: false };
const WRITE: Mode = Mode { read: true, write: true };
const SIZE: u32 = 3 << 20;

pub(crate) fn user(uid: u32) -> Credential {
    Credential { machine_name: "world".to_owned(), uid, gid: uid, gids: Vec::new() }
}

/// A mount whose disk keeps what `memory` holds; another one with the same goes on with it.
pub(crate) async fn mounted(
    site: &Site<MemStore>,
    clock: &Clock,
    memory: Option<&Memory>,
) -> Files {
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
pub(crate) async fn write(files: &Files, name: &[u8], data: &Bytes) -> FileHandle {
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

async fn read_at(files: &Files, file: FileHandle, at: u64, count: u32) -> Bytes {
    let open = files.open(&user(0), file, READ).await.unwrap();
    let data = open.read(at, count).await.unwrap();
    open.close().await;
    data
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
        // The first look at a file: which states are distinguished is not known yet.
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
        let statistics = restarted.disk().unwrap().statistics();
        assert_eq!((statistics.hit_bytes, statistics.misses_all()), (u64::from(SIZE), 0));
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
        let statistics = ours.disk().unwrap().statistics();
        assert!(statistics.hits > 0 && statistics.misses_of(Cause::Changed) > 0, "{statistics:?}");
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
fn what_we_have_written_is_read_again_without_a_read_also_after_a_restart() {
    world(async |clock, site| {
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let file = write(&ours, b"f", &content(1)).await;
        // In place, over the ends of blocks, behind the end and in the first write of a hole.
        let mut expected = content(1).to_vec();
        let open = ours.open(&user(0), file, WRITE).await.unwrap();
        for at in [0_usize, 65_534, (3 << 20) - 2, (3 << 20) + 70_000] {
            open.write(at as u64, b"ours!").await.unwrap();
            expected.resize(expected.len().max(at + 5), 0);
            expected[at..][..5].copy_from_slice(b"ours!");
            open.flush().await.unwrap();
        }
        open.close().await;
        ours.setattr(&user(0), file, Sattr3::of_mode(0o640)).await.unwrap();
        assert!(read_at(&ours, file, 0, 4 << 20).await == expected);
        assert_eq!(calls(&ours).0, 0);
        // Cut, and longer again.
        for size in [(2_usize << 20) + 100, (2 << 20) + 105] {
            let cut = Sattr3 { size: Some(size as u64), ..Sattr3::default() };
            ours.setattr(&user(0), file, cut).await.unwrap();
            expected.resize(size, 0);
        }
        let restarted = mounted(&site, &clock, Some(&memory)).await;
        assert!(read_at(&restarted, file, 0, 4 << 20).await == expected);
        assert_eq!(calls(&restarted).0, 0);
    });
}

#[test]
fn a_large_file_of_ours_goes_to_the_disk_while_it_is_written() {
    world(async |clock, site| {
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let made = ours.create(&user(0), ours.root(), b"f", Sattr3::of_mode(0o600), false).await;
        let file = made.unwrap().handle;
        let open = ours.open(&user(0), file, WRITE).await.unwrap();
        let at = |number| u64::from(number) * u64::from(SIZE);
        for number in 0..10_u8 {
            open.write(at(number), &content(number)).await.unwrap();
        }
        open.flush().await.unwrap();
        for number in 0..10_u8 {
            let data = open.read(at(number), SIZE).await.unwrap();
            assert!(data == content(number), "{number}");
        }
        open.close().await;
        assert_eq!(calls(&ours).0, 0);
    });
}

#[test]
fn what_others_write_beside_us_is_not_taken_for_ours() {
    world(async |clock, site| {
        let memory = Memory::default();
        let ours = mounted(&site, &clock, Some(&memory)).await;
        let theirs = mounted(&site, &clock, None).await;
        let file = write(&ours, b"f", &content(1)).await;
        let mut expected = content(1).to_vec();
        for round in 0..6_u8 {
            let (one, other) = (
                ours.open(&user(0), file, WRITE).await.unwrap(),
                theirs.open(&user(0), file, WRITE).await.unwrap(),
            );
            let (at, beside) = (usize::from(round) * 100, 500_000 + usize::from(round) * 100);
            one.write(at as u64, &[round; 50]).await.unwrap();
            other.write(beside as u64, &[round; 50]).await.unwrap();
            // Before, between and after.
            match round % 3 {
                0 => (one.flush().await.unwrap(), other.flush().await.unwrap()),
                1 => (other.flush().await.unwrap(), one.flush().await.unwrap()),
                _ => {
                    one.flush().await.unwrap();
                    other.flush().await.unwrap();
                    one.write(at as u64 + 50, &[round; 50]).await.unwrap();
                    expected[at + 50..][..50].fill(round);
                    (one.flush().await.unwrap(), ())
                }
            };
            expected[at..][..50].fill(round);
            expected[beside..][..50].fill(round);
            one.close().await;
            other.close().await;
            assert!(read(&ours, file).await == expected, "round {round}");
        }
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
