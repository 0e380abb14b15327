//! A client that stays, over datagrams that get lost whole or in part, in worlds.

use std::sync::Arc;

use bytes::Bytes;
use client::files::open::Mode;
use client::files::{self, Files};
use client::session::{Credential, Session};
use net::call::{Bulk, Event, Events, Options, Recovery, Traits};
use net::clock::Clock;
use net::clock::world::World;
use net::transport::lossy::{Impairments, SharedImpairments};
use parking_lot::Mutex;
use perf::units::Nanos;
use server::CommitMode;
use testkit::{Site, in_world};
use wire::nfs3::create::CreateHow;
use wire::nfs3::{FileHandle, StableHow};

const SECOND: Nanos = Nanos::from_secs(1);
const MS: Nanos = Nanos::from_millis(1);

/// Packets as an Ethernet carries them.
const CALM: Impairments = Impairments {
    seed: 1,
    lost: 0,
    fragment_bytes: Some(1472),
    duplicated: 0,
    latency: MS,
    jitter: Nanos::ZERO,
};

/// READ and WRITE of version 3 move data and are estimated together with nothing else.
const TRAITS: Traits = Traits {
    class: Some,
    bulk: |procedure| match procedure {
        6 => Some(Bulk::Read),
        7 => Some(Bulk::Write),
        _ => None,
    },
    is_idempotent: |_| false,
};

fn shared(impairments: Impairments) -> SharedImpairments {
    Arc::new(Mutex::new(impairments))
}

async fn session(clock: &Clock, shared: &SharedImpairments, options: Options) -> Session {
    let site = Site::in_memory(clock, Default::default(), CommitMode::Concurrent);
    let options = Options { traits: TRAITS, ..options };
    let rpc = site.datagrams(shared, &options);
    site.session(rpc).await.unwrap()
}

async fn file(session: &Session) -> FileHandle {
    let how = CreateHow::Guarded(Default::default());
    session.create(session.root(), b"file", how).await.unwrap().obj.unwrap()
}

/// Writes `total` bytes in calls of the size that is right at the time, 16 at once.
async fn write(session: &Session, file: FileHandle, total: u64) {
    let (at, pattern) = (Mutex::new(0), pattern());
    let writer = || async {
        loop {
            let (offset, size) = {
                let mut at = at.lock();
                let size = u64::from(session.sizes_now().write_bytes_max).min(total - *at);
                *at += size;
                (*at - size, size)
            };
            if size == 0 {
                return;
            }
            let data = data_at(&pattern, offset, size);
            let written = session.write(file, offset, data, StableHow::Unstable).await.unwrap();
            assert_eq!(u64::from(written.reply.count), size);
        }
    };
    futures_util::future::join_all((0..16).map(|_| writer())).await;
}

/// Bytes that tell where they belong.
fn pattern() -> Bytes {
    (0..251 + (32 << 10)).map(|offset: u64| (offset % 251).to_le_bytes()[0]).collect()
}

fn data_at(pattern: &Bytes, offset: u64, size: u64) -> Bytes {
    let begin = usize::try_from(offset % 251).unwrap();
    pattern.slice(begin..begin + usize::try_from(size).unwrap())
}

async fn check(session: &Session, file: FileHandle, total: u64) {
    let (mut offset, pattern) = (0, pattern());
    while offset < total {
        let count = session.sizes_now().read_bytes_max;
        let read = session.read(file, offset, count).await.unwrap();
        assert!(!read.data.is_empty());
        let size = read.data.len() as u64;
        assert!(read.data == data_at(&pattern, offset, size), "at {offset}");
        offset += size;
    }
}

#[test]
fn where_one_packet_in_a_hundred_is_lost_transfers_shrink_and_everything_arrives() {
    for seed in 1..=2 {
        let (before, during, after, counters) = in_world(async move |clock| {
            let shared = shared(Impairments { seed, ..CALM });
            let session = session(&clock, &shared, Options::datagrams()).await;
            let file = file(&session).await;
            let before = session.sizes_now();
            shared.lock().lost = 10;
            write(&session, file, 4 << 20).await;
            check(&session, file, 4 << 20).await;
            let during = session.sizes_now();
            shared.lock().lost = 0;
            for _ in 0..12 {
                clock.sleep(SECOND).await;
                write(&session, file, 2 << 20).await;
                check(&session, file, 2 << 20).await;
            }
            (before, during, session.sizes_now(), session.rpc().counters())
        });
        assert_eq!((before.read_bytes_max, before.write_bytes_max), (32 << 10, 32 << 10));
        let small = 1 << 10..=8 << 10;
        assert!(small.contains(&during.write_bytes_max), "seed {seed}: {during:?}");
        assert!(small.contains(&during.read_bytes_max), "seed {seed}: {during:?}");
        assert_eq!((after, counters.procedures[7].errors), (before, 0), "seed {seed}");
        assert!(counters.retransmissions() > 0);
    }
}

#[test]
fn a_hard_client_outlasts_a_silence_and_says_so_once() {
    let world = World::new();
    let clock = world.clock();
    let events_seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&events_seen);
    let events = Events::new(move |event| own.lock().push(matches!(event, Event::Responding)));
    let (took, counters) = world
        .run(async move {
            let shared = shared(CALM);
            let session =
                session(&clock, &shared, Options { events, ..Options::datagrams() }).await;
            shared.lock().lost = 1000;
            let begun = clock.now();
            let returns = async {
                clock.sleep(SECOND * 600).await;
                shared.lock().lost = 0;
            };
            let calls = futures_util::future::join_all((0..40).map(|_| session.null()));
            let (answers, ()) = tokio::join!(calls, returns);
            assert!(answers.iter().all(Result::is_ok));
            (clock.now().since(begun), session.rpc().counters())
        })
        .unwrap();
    assert!((SECOND * 600..SECOND * 620).contains(&took), "{took}");
    assert_eq!(*events_seen.lock(), [false, true]);
    assert!(counters.procedures[0].major_timeouts > 100);
    assert!(
        counters.procedures[0].transmissions < 2_000,
        "{counters:?}: 8 calls at most 15 s apart"
    );
}

#[test]
fn a_soft_client_fails_after_timeo_times_retrans() {
    let (error, took) = in_world(async move |clock| {
        let shared = shared(CALM);
        let (recovery, timeo, retrans) = (Recovery::Soft, Nanos::from_millis(700), 4);
        let options = Options { recovery, timeo, retrans, ..Options::datagrams() };
        let session = session(&clock, &shared, options).await;
        shared.lock().lost = 1000;
        let begun = clock.now();
        (session.null().await.unwrap_err(), clock.now().since(begun))
    });
    assert_eq!(took, MS * 2_800);
    assert_eq!(error.to_string(), "NULL to 127.1.0.1:2049: no reply within 2.80 s");
}

#[test]
fn what_is_not_idempotent_is_done_once_however_often_it_is_sent() {
    for seed in 1..=20 {
        let (retransmissions, bad_xids) = in_world(async move |clock| {
            let shared =
                shared(Impairments { seed, lost: 250, duplicated: 250, jitter: MS * 300, ..CALM });
            let session = session(&clock, &shared, Options::datagrams()).await;
            let root = session.root();
            let storm = Impairments { lost: 250, duplicated: 250, jitter: MS * 300, ..CALM };
            *shared.lock() = storm;
            for round in 0..20 {
                let how = CreateHow::Guarded(Default::default());
                let name = format!("name {round}");
                session.create(root, name.as_bytes(), how).await.unwrap();
                session.rename((root, name.as_bytes()), (root, b"other")).await.unwrap();
                session.remove(root, b"other").await.unwrap();
            }
            (session.rpc().retransmissions(), session.rpc().bad_xids())
        });
        assert!(retransmissions > 10 && bad_xids > 5, "seed {seed}: {retransmissions} {bad_xids}");
    }
}

#[test]
fn a_file_system_works_where_one_packet_in_a_hundred_is_lost() {
    let (sizes, retransmissions) = in_world(async move |clock| {
        let shared = shared(CALM);
        let session = session(&clock, &shared, Options::datagrams()).await;
        shared.lock().lost = 10;
        let (root, who) = (session.root(), caller());
        let files = Files::new(&clock, session, files::Options::default());
        let data = data_at(&pattern(), 0, 32 << 10);
        for round in 0..4 {
            let name = format!("file {round}");
            let made = files.create(&who, root, name.as_bytes(), Default::default(), true);
            let made = made.await.unwrap();
            let open = files.open_made(&who, made.handle);
            for piece in 0..64 {
                open.write_bytes(piece << 15, data.clone()).await.unwrap();
            }
            open.flush().await.unwrap();
            open.close().await;
            let open = files
                .open(&who, made.handle, Mode { read: true, ..Mode::default() })
                .await
                .unwrap();
            for piece in 0..64 {
                assert!(open.read(piece << 15, 32 << 10).await.unwrap() == data);
            }
            open.close().await;
        }
        assert!(files.shut_down().await.is_empty());
        let session = files.session();
        (session.sizes_now(), session.rpc().retransmissions())
    });
    assert!(sizes.write_bytes_max <= 8 << 10, "{sizes:?}");
    assert!(retransmissions > 10);
}

fn caller() -> Credential {
    Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() }
}
