//! Servers that write short, lose their memory, ask to come back later, or refuse.

use std::sync::Arc;

use client::write_behind::{Options, PolicyName, WriteBehind};
use futures_util::future::join_all;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use testkit::in_world;
use wire::nfs3::NfsStat3;

use super::fake::{Fake, Whims, handle};
use super::{Random, write_somewhere};

fn link() -> LinkPair {
    LinkPair::symmetric(Link { latency: Nanos::from_micros(200), ..Link::default() })
}

fn options(policy: PolicyName) -> Options {
    Options { policy, wsize: 16 << 10, dirty_bytes_max: 512 << 10, ..Options::default() }
}

#[test]
fn no_byte_is_lost_to_servers_that_restart_write_short_and_ask_to_come_back() {
    for policy in PolicyName::ALL {
        for seed in 1..=8 {
            in_world(async move |clock| {
                let whims = Whims {
                    short: 100,
                    stable: 100,
                    jukebox: 30,
                    restart: 20,
                    busy_max: Nanos::from_millis(2),
                    keeps: true,
                    ..Whims::default()
                };
                let server = Fake::new(&clock, whims, seed);
                let session = server.session(link()).await;
                let behind = WriteBehind::new(&clock, options(policy), Arc::new(()));
                let writers = (0..4).map(|number| {
                    let (session, behind) = (session.clone(), behind.clone());
                    let server = server.clone();
                    async move {
                        let file = handle(&format!("f{number}"));
                        let mut random = Random(seed * 1_000 + number);
                        let mut model = Vec::new();
                        for _ in 0..60 {
                            let (session, model) = (&session, &mut model);
                            write_somewhere(&behind, session, file, &mut random, model).await;
                        }
                        behind.commit(file).await.unwrap();
                        let on_disk = server.on_disk(file);
                        assert!(on_disk == model, "{policy} {seed} {number}");
                    }
                });
                join_all(writers).await;
                let counters = behind.counters();
                assert!(counters.short_writes > 0 && counters.jukebox_waits > 0);
                assert!(counters.lost_bytes > 0, "{policy} {seed}: {counters:?}");
                assert_eq!(counters.dropped_bytes, 0);
            });
        }
    }
}

#[test]
fn a_server_that_never_keeps_its_memory_gets_stable_writes() {
    for policy in PolicyName::ALL {
        in_world(async move |clock| {
            let whims = Whims { restart: 1_000, keeps: true, ..Whims::default() };
            let server = Fake::new(&clock, whims, 7);
            let session = server.session(link()).await;
            let behind = WriteBehind::new(&clock, options(policy), Arc::new(()));
            let file = handle("f");
            behind.take(&session, file, 0, &[7; 100_000]).await.unwrap();
            behind.commit(file).await.unwrap();
            assert!(server.on_disk(file) == [7; 100_000], "{policy}");
        });
    }
}

#[test]
fn what_is_refused_is_reported_once_dropped_and_counted() {
    for policy in PolicyName::ALL {
        in_world(async move |clock| {
            let whims = Whims { fail: 1_000, ..Whims::default() };
            let server = Fake::new(&clock, whims, 3);
            let session = server.session(link()).await;
            let behind = WriteBehind::new(&clock, options(policy), Arc::new(()));
            let file = handle("f");
            behind.take(&session, file, 0, &[7; 40_000]).await.unwrap();
            let error = behind.flush(file, None).await.unwrap_err();
            assert_eq!(error.status(), Some(NfsStat3::NoSpc));
            assert_eq!(behind.counters().dropped_bytes, server.refused_bytes());
            assert!(!behind.is_dirty(file));
            behind.commit(file).await.unwrap();
            // And to a descriptor by the write that comes next, or by the end.
            let (other, heard) = (handle("other"), behind.opened(file));
            behind.take(&session, file, 0, &[7; 40_000]).await.unwrap();
            behind.take(&session, other, 0, &[7; 1]).await.unwrap();
            clock.sleep(Nanos::from_secs(1)).await;
            assert!(behind.tell(file, &heard).is_err());
            server.behave();
            behind.tell(file, &heard).unwrap();
            behind.take(&session, file, 0, &[9; 10]).await.unwrap();
            let lost: Vec<_> = behind.drain().await.into_iter().map(|(file, _)| file).collect();
            assert_eq!(lost, [other], "{policy}");
            assert!(server.on_disk(file) == [9; 10], "{policy}");
        });
    }
}

#[test]
fn what_is_discarded_is_not_written_again() {
    for policy in PolicyName::ALL {
        in_world(async move |clock| {
            let whims = Whims { keeps: true, ..Whims::default() };
            let server = Fake::new(&clock, whims, 3);
            let session = server.session(link()).await;
            let behind = WriteBehind::new(&clock, options(policy), Arc::new(()));
            let file = handle("f");
            behind.take(&session, file, 0, &[1; 5_000]).await.unwrap();
            behind.discard(file, 1_000);
            behind.commit(file).await.unwrap();
            assert!(server.on_disk(file) == [1; 1_000], "{policy}");
            behind.discard(file, 0);
            assert_eq!(behind.own_end(file), None);
        });
    }
}

#[test]
fn a_writer_that_goes_away_while_it_waits_gives_its_room_back() {
    in_world(async move |clock| {
        let whims = Whims { busy_max: Nanos::from_millis(5), ..Whims::default() };
        let session = Fake::new(&clock, whims, 3).session(link()).await;
        let behind = WriteBehind::new(&clock, options(PolicyName::Adaptive), Arc::new(()));
        let file = handle("f");
        for at in 0..200 {
            let writing = behind.take(&session, file, at * 50_000, &[1; 50_000]);
            clock.within(Nanos::from_micros(100 * at), writing).await.ok();
        }
        behind.commit(file).await.unwrap();
        // Nothing is left that would make anybody wait.
        let waits = behind.counters().writer_waits;
        behind.take(&session, file, 0, &[1; 200_000]).await.unwrap();
        assert_eq!(behind.counters().writer_waits, waits);
        assert!(waits > 0);
    });
}

/// What it takes to know of a piece counts: of single bytes far more than themselves.
#[test]
fn single_bytes_at_scattered_places_are_written_and_committed_before_they_fill_the_memory() {
    in_world(async move |clock| {
        let server = Fake::new(&clock, Whims { keeps: true, ..Whims::default() }, 3);
        let session = server.session(link()).await;
        let behind = WriteBehind::new(&clock, options(PolicyName::Adaptive), Arc::new(()));
        let file = handle("f");
        for at in 0..5_000 {
            behind.take(&session, file, at * 100, &[1]).await.unwrap();
            let held = behind.counters();
            let pieces = held.dirty_bytes + held.uncommitted_bytes;
            assert!(pieces * 256 <= 512 << 10, "{pieces} pieces in memory");
        }
        assert!(behind.counters().commits_sent > 1);
        behind.commit(file).await.unwrap();
        assert_eq!(server.on_disk(file).iter().map(|&byte| u64::from(byte)).sum::<u64>(), 5_000);
    });
}
