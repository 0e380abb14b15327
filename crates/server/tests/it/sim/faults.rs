//! Failures are reported to those whom they concern.

use std::sync::Arc;

use server::durable::Committed;
use server::store::Store;
use server::store::sim::{AfterFailedSync, SimOptions, SimStore};
use server::types::{SetAttr, Stability, Status};

use super::{ROOT, Timeline, Work, commit, make, options, write};

async fn contents(store: &SimStore, name: &[u8]) -> Vec<u8> {
    let found = store.lookup(&ROOT, &store.root(), name).await.result.unwrap();
    store.read(&ROOT, &found.handle, 0, 100_000).await.result.unwrap().data.to_vec()
}

#[test]
fn a_failed_sync_fails_all_it_covers_and_changes_the_verifier() {
    for (rule, left) in [(AfterFailedSync::Lose, &b""[..]), (AfterFailedSync::KeepDirty, b"data")] {
        let timeline = Timeline::default();
        let options = SimOptions { after_failed_sync: rule, ..options("hdd") };
        let store = timeline.store(options);
        timeline.finish(async move {
            let file = make(&store, b"a").await.unwrap();
            write(&store, &file, 0, b"data", Stability::Unstable).await.unwrap();
            let before = store.verifier();
            store.faults().set(|switches| switches.failing_syncs = 1);
            assert_eq!(commit(&store, &file).await, Err(Status::Io));
            assert_ne!(store.verifier(), before);
            assert_eq!(store.sync_failures(), 1);
            // The next one is right, and says by which verifier it may be believed.
            assert_eq!(commit(&store, &file).await, Ok(store.verifier()));
            assert_eq!(contents(&store, b"a").await, b"data");
            let after = store.crash(1);
            assert_eq!(contents(&after, b"a").await, left);
            assert_eq!(after.stats().divergences, 0);
        });
    }
}

#[test]
fn what_failed_of_a_file_that_is_gone_or_shorter_by_now_is_not_dirty_again() {
    for (size, left_bytes) in [(None, 0), (Some(5), 5)] {
        let timeline = Timeline::default();
        let rule = AfterFailedSync::KeepDirty;
        let store = timeline.store(SimOptions { after_failed_sync: rule, ..options("hdd") });
        let own = Arc::clone(&store);
        let file = timeline.finish(async move {
            let file = make(&own, b"a").await.unwrap();
            write(&own, &file, 0, &[1; 20_000], Stability::Unstable).await.unwrap();
            own.faults().set(|switches| switches.failing_syncs = 1);
            file
        });
        let (one, other) = (Arc::clone(&store), Arc::clone(&store));
        let committing: Work = Box::pin(async move {
            assert_eq!(commit(&one, &file).await, Err(Status::Io));
        });
        let changing: Work = Box::pin(async move {
            let changed = match size {
                None => other.remove(&ROOT, &other.root(), b"a").await,
                Some(_) => {
                    let changes = SetAttr { size, ..SetAttr::default() };
                    other.set_attr(&ROOT, &file.handle, changes, None).await
                }
            };
            changed.result.unwrap();
        });
        timeline.run(vec![committing, changing], u64::MAX);
        assert_eq!(store.stats().unstable_bytes, left_bytes);
    }
}

#[test]
fn a_commit_that_is_early_may_be_lost_until_the_disk_has_it() {
    let timeline = Timeline::default();
    let store = timeline.store(options("hdd"));
    timeline.finish(async move {
        store.faults().set(|switches| switches.committing_early = true);
        let file = make(&store, b"a").await.unwrap();
        write(&store, &file, 0, b"data", Stability::Unstable).await.unwrap();
        commit(&store, &file).await.unwrap();
        let mut survived = 0;
        for seed in 0..20 {
            survived += u32::from(contents(&store.crash(seed), b"a").await == b"data");
        }
        assert!((1..20).contains(&survived), "{survived}");
        // It is on its way, and comes there.
        store.settle(&file.handle).await.unwrap();
        assert_eq!(contents(&store.crash(1), b"a").await, b"data");
    });
}

#[test]
fn a_name_whose_sync_failed_is_tried_again_with_the_next() {
    let timeline = Timeline::default();
    let store = timeline.store(options("ssd-sata"));
    timeline.finish(async move {
        store.faults().set(|switches| switches.failing_syncs = 1);
        assert_eq!(make(&store, b"a").await.map(drop), Err(Status::Io));
        make(&store, b"b").await.unwrap();
        let after = store.crash(5);
        for name in [b"a", b"b"] {
            after.lookup(&ROOT, &after.root(), name).await.result.unwrap();
        }
    });
}

#[test]
fn a_write_that_fails_writes_nothing() {
    let timeline = Timeline::default();
    let store = timeline.store(options("nvme"));
    timeline.finish(async move {
        let file = make(&store, b"a").await.unwrap();
        store.faults().set(|switches| switches.failing_writes = 1);
        let failed = write(&store, &file, 0, b"data", Stability::FileSync).await;
        assert_eq!(failed, Err(Status::Io));
        assert_eq!(contents(&store, b"a").await, b"");
        write(&store, &file, 0, b"data", Stability::FileSync).await.unwrap();
    });
}

#[test]
fn a_full_disk_takes_nothing_new_and_lets_old_things_change() {
    let timeline = Timeline::default();
    let store = timeline.store(options("nvme"));
    timeline.finish(async move {
        let file = make(&store, b"a").await.unwrap();
        write(&store, &file, 0, b"data", Stability::FileSync).await.unwrap();
        store.faults().set(|switches| switches.full = true);
        assert_eq!(make(&store, b"b").await.map(drop), Err(Status::NoSpace));
        let longer = write(&store, &file, 2, b"data", Stability::Unstable).await;
        assert_eq!(longer, Err(Status::NoSpace));
        write(&store, &file, 0, b"DATA", Stability::FileSync).await.unwrap();
        store.remove(&ROOT, &store.root(), b"a").await.result.unwrap();
        let space = store.space(&ROOT, &store.root()).await.result.unwrap();
        assert_eq!(space.bytes_free, 0);
        store.faults().set(|switches| switches.full = false);
        make(&store, b"b").await.unwrap();
    });
}

#[test]
fn a_slow_disk_takes_longer() {
    let timeline = Timeline::default();
    let store = timeline.store(options("nvram"));
    let clock = timeline.clone();
    timeline.finish(async move {
        let begun = clock.nanos();
        make(&store, b"a").await.unwrap();
        let usual = clock.nanos() - begun;
        store.faults().set(|switches| switches.slow_percent = 10_000);
        let begun = clock.nanos();
        make(&store, b"b").await.unwrap();
        assert_eq!(clock.nanos() - begun, 100 * usual);
    });
}

#[test]
fn a_drive_that_lies_loses_what_was_answered_as_stable() {
    let lost = |lying| {
        let timeline = Timeline::default();
        let store = timeline.store(options("hdd"));
        timeline.finish(async move {
            make(&store, b"first").await.unwrap();
            store.faults().set(|switches| switches.lying = lying);
            for number in 0..50_u8 {
                let file = make(&store, &[b'f', 128 + number]).await.unwrap();
                let written = store
                    .write(&ROOT, &file.handle, 0, vec![number; 8192].into(), Stability::FileSync)
                    .await;
                assert!(matches!(written.result.unwrap().committed, Committed::Stable(..)));
            }
            let after = Arc::new(store.crash(3));
            after.lookup(&ROOT, &after.root(), b"first").await.result.unwrap();
            let mut lost = 0;
            for number in 0..50_u8 {
                let found = after.lookup(&ROOT, &after.root(), &[b'f', 128 + number]).await.result;
                lost += u32::from(found.is_err());
            }
            lost
        })
    };
    assert_eq!(lost(false), 0);
    assert!(lost(true) > 30);
}
