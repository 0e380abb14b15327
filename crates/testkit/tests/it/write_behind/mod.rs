//! The write-behind of the client in worlds: every policy against a server on a memory store.

mod convergence;
mod fake;
mod hostile;

use std::sync::Arc;

use client::session::Session;
use client::write_behind::{Options, PolicyName, WriteBehind};
use load::study::Subject;
use net::clock::Clock;
use net::clock::world::World;
use net::shape::profile::Profile;
use server::CommitMode;
use testkit::{Site, in_world};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, Sattr3};

/// Numbers without a pattern, the same for the same seed (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

async fn file(session: &Session, name: &str) -> FileHandle {
    let how = CreateHow::Unchecked(Sattr3::of_mode(0o600));
    session.create(session.root(), name.as_bytes(), how).await.unwrap().obj.unwrap()
}

async fn contents(session: &Session, file: FileHandle) -> Vec<u8> {
    let mut contents = Vec::new();
    loop {
        let part = session.read(file, contents.len() as u64, 1 << 20).await.unwrap();
        contents.extend_from_slice(&part.data);
        if part.eof {
            return contents;
        }
    }
}

/// A site over a link, and its clock.
async fn site(clock: &Clock, link: &str) -> (Session, impl Send + use<>) {
    let profile: Profile = link.parse().unwrap();
    let site = Site::in_memory(clock, profile.links(), CommitMode::Concurrent);
    (site.connect().await.unwrap(), site)
}

#[test]
fn a_sequential_file_arrives_whole_under_every_policy() {
    for policy in PolicyName::ALL {
        in_world(async move |clock| {
            let (session, _site) = site(&clock, "lan-1g").await;
            let file = file(&session, "f").await;
            let options = Options { policy, wsize: 8192, ..Options::default() };
            let behind = WriteBehind::new(&clock, options, Arc::new(()));
            let data: Vec<u8> = (0..3_000_001_u32).map(|at| (at % 251) as u8).collect();
            for (at, call) in data.chunks(8192).enumerate() {
                behind.take(&session, file, at as u64 * 8192, call).await.unwrap();
            }
            behind.commit(file).await.unwrap();
            assert!(!behind.is_dirty(file));
            assert!(contents(&session, file).await == data, "{policy}");
            let counters = behind.counters();
            // A flush that is forced after the first page of a call sends that page alone.
            let whole = 3_000_001_u64.div_ceil(8192);
            let sent = whole..=whole + counters.forced_flushes;
            assert!(sent.contains(&counters.writes_sent), "{policy}: {counters:?}");
            assert_eq!(counters.forced_flushes > 0, policy == PolicyName::Linux244);
            assert_eq!(counters.dropped_bytes + counters.lost_bytes, 0);
        });
    }
}

#[test]
fn writes_in_any_order_to_many_files_arrive_under_every_policy() {
    for (seed, policy) in PolicyName::ALL.into_iter().enumerate() {
        in_world(async move |clock| {
            let (session, _site) = site(&clock, "wan-10ms").await;
            let dirty_bytes_max = 1 << 20;
            let options =
                Options { policy, wsize: 32 << 10, dirty_bytes_max, ..Options::default() };
            let behind = WriteBehind::new(&clock, options, Arc::new(()));
            let writers = (0..6).map(|number| {
                let (session, behind) = (session.clone(), behind.clone());
                async move {
                    let file = file(&session, &format!("f{number}")).await;
                    let mut random = Random(1 + seed as u64 * 1_000 + number);
                    let mut model = Vec::new();
                    for _ in 0..120 {
                        write_somewhere(&behind, &session, file, &mut random, &mut model).await;
                    }
                    behind.commit(file).await.unwrap();
                    assert!(contents(&session, file).await == model, "{policy} {number}");
                }
            });
            futures_util::future::join_all(writers).await;
            assert!(behind.drain().await.is_empty());
        });
    }
}

async fn write_somewhere(
    behind: &WriteBehind,
    session: &Session,
    file: FileHandle,
    random: &mut Random,
    model: &mut Vec<u8>,
) {
    let len = usize::try_from(1 + random.below(40_000)).unwrap();
    let offset = match random.below(3) {
        0 => model.len(),
        _ => usize::try_from(random.below(model.len() as u64 + 1)).unwrap(),
    };
    let byte = u8::try_from(1 + random.below(255)).unwrap();
    let data = vec![byte; len];
    model.resize(model.len().max(offset + len), 0);
    model[offset..offset + len].copy_from_slice(&data);
    if random.below(2) == 0 {
        behind.take(session, file, offset as u64, &data).await.unwrap();
    } else {
        behind.take_bytes(session, file, offset as u64, data.into()).await.unwrap();
    }
    match random.below(30) {
        0 => behind.commit(file).await.unwrap(),
        1 => behind.flush(file, None).await.unwrap(),
        2 => behind.flush(file, Some(offset as u64..(offset + len) as u64)).await.unwrap(),
        _ => return,
    }
    let range = offset as u64..(offset + len) as u64;
    assert!(!behind.overlaps(file, range), "flushed");
}

#[test]
fn what_nobody_waits_for_is_written_and_committed_after_a_while() {
    in_world(async move |clock| {
        let (session, _site) = site(&clock, "lan-1g").await;
        let file = file(&session, "f").await;
        let behind = WriteBehind::new(&clock, Options::default(), Arc::new(()));
        // The flusher has nothing to do, and does nothing, for a while.
        clock.sleep(perf::units::Nanos::from_secs(60)).await;
        behind.take(&session, file, 10, b"a line").await.unwrap();
        assert_eq!(behind.own_end(file), Some(16));
        assert_eq!(behind.dirty_files(), [(file, 6)]);
        clock.sleep(perf::units::Nanos::from_millis(500)).await;
        assert_eq!((behind.own_end(file), behind.is_dirty(file)), (Some(16), true));
        clock.sleep(perf::units::Nanos::from_secs(2)).await;
        assert!(!behind.is_dirty(file));
        let counters = behind.counters();
        assert_eq!((counters.writes_sent, counters.commits_sent, counters.files), (1, 1, 0));
    });
}

#[test]
fn a_writer_that_is_too_fast_waits_often_and_little() {
    let (calls, held_max) = in_world(async move |clock| {
        let (session, _site) = site(&clock, "lan-1g").await;
        let file = file(&session, "f").await;
        let (wsize, dirty_bytes_max) = (64 << 10, 8 << 20);
        let options = Options { wsize, dirty_bytes_max, ..Options::default() };
        let behind = WriteBehind::new(&clock, options, Arc::new(()));
        let (mut calls, mut held_max) = (Vec::new(), 0);
        for at in 0..6_000_u64 {
            let begun = clock.now();
            behind.take(&session, file, at * 8192, &[7; 8192]).await.unwrap();
            calls.push(clock.now().since(begun).as_micros_f64());
            let counters = behind.counters();
            held_max = held_max.max(counters.dirty_bytes + counters.uncommitted_bytes);
        }
        behind.commit(file).await.unwrap();
        (calls, held_max)
    });
    assert!(held_max <= 8 << 20, "{held_max}");
    // The link takes 66 us for 8 KiB, and 524 us for a WRITE of 64 KiB.
    let steady = &calls[2_000..];
    let mean = steady.iter().sum::<f64>() / steady.len() as f64;
    let longest = steady.iter().copied().fold(0.0, f64::max);
    assert!((60.0..75.0).contains(&mean), "{mean}");
    assert!(longest <= 4.0 * 524.0, "{longest}");
}

#[test]
fn a_writer_of_one_file_does_not_keep_another_from_being_sent() {
    in_world(async move |clock| {
        let (session, _site) = site(&clock, "lan-1g").await;
        let (large, small) = (file(&session, "large").await, file(&session, "small").await);
        let options = Options { wsize: 64 << 10, ..Options::default() };
        let behind = WriteBehind::new(&clock, options, Arc::new(()));
        behind.take(&session, large, 0, &vec![1; 32 << 20]).await.unwrap();
        let begun = clock.now();
        behind.take(&session, small, 0, &[2; 10]).await.unwrap();
        behind.commit(small).await.unwrap();
        // 32 MiB take 280 ms; the small file waits for what is outstanding, and its turn.
        let took = clock.now().since(begun);
        assert!(took < perf::units::Nanos::from_millis(20), "{took}");
        behind.commit(large).await.unwrap();
    });
}

#[test]
fn what_fits_into_one_write_needs_no_commit() {
    for policy in PolicyName::ALL {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let (session, _site) = site(&clock, "lan-1g").await;
            let file = file(&session, "f").await;
            let options = Options { policy, wsize: 8192, ..Options::default() };
            let behind = WriteBehind::new(&clock, options, Arc::new(()));
            let sent = async |writes: &[(u64, usize)]| {
                let before = behind.counters();
                for (offset, len) in writes {
                    behind.take(&session, file, *offset, &vec![7; *len]).await.unwrap();
                }
                behind.commit(file).await.unwrap();
                assert!(!behind.is_dirty(file));
                let after = behind.counters();
                let commits = after.commits_sent - before.commits_sent;
                (after.writes_sent - before.writes_sent, commits)
            };
            let is_ours = u64::from(policy != PolicyName::Adaptive);
            assert_eq!(sent(&[(0, 4000)]).await, (1, is_ours), "{policy}");
            assert_eq!(sent(&[(0, 100), (100, 8092)]).await, (1, is_ours), "{policy}");
            assert_eq!(sent(&[(0, 8192), (8192, 8192)]).await, (2, 1), "{policy}: two of them");
            assert_eq!(sent(&[(0, 10), (70_000, 10)]).await, (2, 1), "{policy}: apart");
            // What was acknowledged before is to be committed.
            behind.take(&session, file, 0, &[7; 8192]).await.unwrap();
            behind.flush(file, None).await.unwrap();
            assert_eq!(sent(&[(8192, 100)]).await, (1, 1), "{policy}");
        };
        world.run(run).unwrap();
    }
}
