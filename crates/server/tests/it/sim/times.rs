//! How long things take.

use std::sync::Arc;

use server::store::Store;
use server::store::sim::{SimOptions, WriteBack};
use server::types::Stability;

use super::{ROOT, Timeline, commit, make, options, write};

const BLOCK: [u8; 8192] = [7; 8192];

/// The disk of the thesis: 8 KiB in 175.98 us.
const THESIS: &str = "rate=46.55MB/s,seek=0";
const BLOCK_NS: u64 = 175_980;

#[test]
fn stable_writes_take_the_disks_time_one_after_the_other_and_unstable_ones_none() {
    let timeline = Timeline::default();
    let store = timeline.store(options(THESIS));
    let (own, clock) = (Arc::clone(&store), timeline.clone());
    timeline.finish(async move {
        let file = make(&own, b"a").await.unwrap();
        let begun = clock.nanos();
        write(&own, &file, 0, &BLOCK, Stability::Unstable).await.unwrap();
        assert_eq!(clock.nanos(), begun);
        commit(&own, &file).await.unwrap();
        assert_eq!(clock.nanos() - begun, BLOCK_NS);
        write(&own, &file, 8192, &BLOCK, Stability::FileSync).await.unwrap();
        assert_eq!(clock.nanos() - begun, 2 * BLOCK_NS);
        // There is nothing left to do.
        commit(&own, &file).await.unwrap();
        assert_eq!(clock.nanos() - begun, 2 * BLOCK_NS);
    });
}

/// When each of so many stable writes at once was answered.
fn ends(disk: &str, files: u64, writes: u64) -> Vec<u64> {
    let timeline = Timeline::default();
    let store = timeline.store(options(disk));
    let own = Arc::clone(&store);
    let nodes = timeline.finish(async move {
        let mut nodes = Vec::new();
        for number in 0..files {
            nodes.push(make(&own, &[b'a' + u8::try_from(number).unwrap()]).await.unwrap());
        }
        nodes
    });
    let begun = timeline.nanos();
    let ends = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let works = (0..writes).map(|number| {
        let (store, clock, ends) = (Arc::clone(&store), timeline.clone(), ends.clone());
        let node = nodes[usize::try_from(number % files).unwrap()];
        let work = async move {
            write(&store, &node, number * 8192, &BLOCK, Stability::FileSync).await.unwrap();
            ends.borrow_mut().push(clock.nanos() - begun);
        };
        Box::pin(work) as super::Work
    });
    timeline.run(works.collect(), u64::MAX);
    ends.take()
}

#[test]
fn without_a_sync_each_write_is_stable_when_it_is_written() {
    assert_eq!(ends(THESIS, 2, 4), [1, 2, 3, 4].map(|n| n * BLOCK_NS));
}

#[test]
fn those_who_come_during_a_sync_share_the_next() {
    let disk = "rate=46.55MB/s,seek=0,sync=5ms";
    let sync = 5_000_000;
    // The first one's data, its sync; the data of the others came before it on the disk.
    let first = BLOCK_NS + sync;
    let ends = ends(disk, 1, 5);
    assert_eq!(ends[0], first);
    assert!(ends[1..].iter().all(|end| *end == ends[1]), "{ends:?}");
    // Their data waited for the sync, and then there is one more.
    assert_eq!(ends[1], first + 4 * BLOCK_NS + sync);
}

#[test]
fn early_write_back_leaves_a_commit_little_to_do() {
    let commit_ns = |write_back| {
        let timeline = Timeline::default();
        let store = timeline.store(SimOptions { write_back, ..options(THESIS) });
        let (own, clock) = (Arc::clone(&store), timeline.clone());
        timeline.finish(async move {
            let file = make(&own, b"a").await.unwrap();
            for number in 0..64 {
                write(&own, &file, number * 8192, &BLOCK, Stability::Unstable).await.unwrap();
                // As slow as the network is.
                let at = perf::units::Instant::from_nanos(clock.nanos() + BLOCK_NS);
                server::store::sim::Machine::until(&clock, at).await;
            }
            let begun = clock.nanos();
            commit(&own, &file).await.unwrap();
            clock.nanos() - begun
        })
    };
    assert_eq!(commit_ns(WriteBack::OnDemand), 64 * 8192 * 21_482 / 1_000);
    assert!(commit_ns(WriteBack::Early { bytes: 4 * 8192 }) <= 5 * BLOCK_NS);
}

#[test]
fn too_much_that_is_dirty_has_the_writer_wait() {
    let timeline = Timeline::default();
    let options = SimOptions {
        dirty_bytes_max: 10 * 8192,
        write_back: WriteBack::OnDemand,
        ..options(THESIS)
    };
    let store = timeline.store(options);
    let (own, clock) = (Arc::clone(&store), timeline.clone());
    timeline.finish(async move {
        let file = make(&own, b"a").await.unwrap();
        for number in 0..100 {
            write(&own, &file, number * 8192, &BLOCK, Stability::Unstable).await.unwrap();
            assert!(own.stats().unstable_bytes <= 11 * 8192);
        }
        assert!(clock.nanos() >= 89 * BLOCK_NS);
    });
}

#[test]
fn reads_wait_for_what_the_cache_has_not() {
    let timeline = Timeline::default();
    let store = timeline.store(SimOptions { cache_bytes_max: 16 * 4096, ..options(THESIS) });
    let (own, clock) = (Arc::clone(&store), timeline.clone());
    timeline.finish(async move {
        let file = make(&own, b"a").await.unwrap();
        for number in 0..16 {
            write(&own, &file, number * 8192, &BLOCK, Stability::FileSync).await.unwrap();
        }
        let read = async |block: u64| {
            let begun = clock.nanos();
            let found = own.read(&ROOT, &file.handle, block * 8192, 8192).await;
            assert_eq!(found.result.unwrap().data, &BLOCK[..]);
            clock.nanos() - begun
        };
        // The last eight blocks are in the cache.
        assert_eq!(read(15).await, 0);
        assert_eq!(read(0).await, BLOCK_NS);
        assert_eq!(read(0).await, 0);
        assert_eq!(read(8).await, BLOCK_NS);
        // A hole is not on the disk.
        write(&own, &file, 1 << 40, b"end", Stability::FileSync).await.unwrap();
        let begun = clock.nanos();
        own.read(&ROOT, &file.handle, 1 << 30, 8192).await.result.unwrap();
        assert_eq!(clock.nanos(), begun);
        assert_eq!((own.stats().cache_misses, own.stats().disk.reads), (6, 2));
    });
}
