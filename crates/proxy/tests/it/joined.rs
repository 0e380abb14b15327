//! SETATTRs that follow one another go to the origin as one, and those that set nothing new wait
//! for nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use server::store::Store;
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, SetTime, Stability, Status, Time,
};

use crate::conflicts::find;
use crate::origin::Requested;
use crate::stage::{Life, Stage, play, root};

const fn mode(mode: u32) -> SetAttr {
    SetAttr {
        mode: Some(mode),
        uid: None,
        gid: None,
        size: None,
        accessed: SetTime::Keep,
        modified: SetTime::Keep,
    }
}

const LONG_AGO: Time = Time { secs: 1_000_000, nanos: 7 };

/// Makes a file that the origin does not have yet.
async fn made(life: &Life, name: &[u8]) -> Handle {
    let (proxy, top) = (&life.proxy, life.proxy.root());
    // The first one is made by the origin while its caller waits.
    for name in [&b"first"[..], name] {
        let how = CreateHow::Guarded(mode(0o600));
        proxy.create(&root(), &top, name, how).await.result.ok();
    }
    assert!(proxy.pending() > 0);
    find(proxy, &top, std::str::from_utf8(name).unwrap()).await
}

async fn set(life: &Life, file: &Handle, set: SetAttr) -> Attr {
    let changed = life.proxy.set_attr(&root(), file, set, None).await;
    changed.result.unwrap();
    changed.wcc.after.unwrap()
}

/// As tar sets them of each file.
async fn written_and_set(life: &Life, file: &Handle) {
    let data = Bytes::from_static(b"bytes");
    life.proxy.write(&root(), file, 0, data, Stability::FileSync).await.result.unwrap();
    let time = SetAttr { modified: SetTime::To(LONG_AGO), ..SetAttr::default() };
    set(life, file, time).await;
    set(life, file, SetAttr { uid: Some(7), gid: Some(8), ..SetAttr::default() }).await;
    set(life, file, mode(0o644)).await;
}

async fn assert_is_set(stage: &Stage, name: &str) {
    let files = &*stage.origin.files;
    let there = find(files, &files.root(), name).await;
    let attr = files.attr(&root(), &there).await.unwrap();
    let seen = (attr.mode, attr.uid, attr.gid, attr.modified, attr.size);
    assert_eq!(seen, (0o644, 7, 8, LONG_AGO, 5));
}

#[test]
fn attributes_that_are_set_one_after_the_other_are_set_by_one_call_at_the_origin() {
    play(1, None, async |stage| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        stage.origin.refuse(move |requested| {
            counted
                .fetch_add(usize::from(matches!(requested, Requested::Set(_))), Ordering::Relaxed);
            None
        });
        let life = stage.begin().await;
        let file = made(&life, b"file").await;
        set(&life, &file, mode(0o600)).await;
        written_and_set(&life, &file).await;
        assert_eq!(life.proxy.drained(Some(Nanos::from_secs(10))).await, 0);
        assert_is_set(&stage, "file").await;
        assert_eq!(calls.load(Ordering::Relaxed), 2, "one before the WRITE, and one after it");
    });
}

#[test]
fn what_the_origin_refuses_as_one_call_it_gets_one_by_one() {
    play(1, None, async |stage| {
        stage.origin.refuse(|requested| match requested {
            Requested::Set(set) if set.mode.is_some() && set.uid.is_some() => Some(Status::Access),
            _ => None,
        });
        let life = stage.begin().await;
        let file = made(&life, b"file").await;
        written_and_set(&life, &file).await;
        assert_eq!(life.proxy.drained(Some(Nanos::from_secs(10))).await, 0);
        assert_is_set(&stage, "file").await;
        assert!(stage.events.lock().is_empty(), "none of them alone is refused");
    });
}

#[test]
fn a_proxy_that_is_killed_sets_what_was_joined_as_it_was_answered() {
    for millis in 0..80 {
        play(1, None, async move |stage| {
            let life = stage.begin().await;
            let file = made(&life, b"file").await;
            written_and_set(&life, &file).await;
            stage.clock.sleep(Nanos::from_millis(millis)).await;
            life.kill();
            let life = stage.begin().await;
            assert_eq!(life.proxy.drained(Some(Nanos::from_secs(10))).await, 0);
            assert_is_set(&stage, "file").await;
            assert!(stage.events.lock().is_empty(), "{:?}", stage.events.lock());
        });
    }
}

#[test]
fn what_is_set_already_waits_for_no_frame_and_is_so_after_a_kill() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let file = made(&life, b"file").await;
        let took = async |set_to| {
            let began = stage.clock.now();
            let attr = set(&life, &file, set_to).await;
            (stage.clock.now().since(began), attr)
        };
        let (first, _) = took(mode(0o640)).await;
        assert!(first >= Nanos::from_micros(100), "a frame takes as long: {first:?}");
        let (again, answered) = took(mode(0o640)).await;
        assert_eq!(again, Nanos::ZERO);
        life.kill();
        stage.clock.sleep(Nanos::from_millis(1)).await;
        let life = stage.begin().await;
        let seen = life.proxy.attr(&root(), &file).await.unwrap();
        assert_eq!((seen.mode, seen.modified), (answered.mode, answered.modified));
        assert!(seen.changed >= answered.changed, "{seen:?} {answered:?}");
    });
}

#[test]
fn what_an_exclusive_create_gives_a_file_is_not_known_but_its_owner() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        made(&life, b"second").await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let how = CreateHow::Exclusive([7; 8]);
        let file = proxy.create(&root(), &top, b"file", how).await.result.unwrap();
        let seen = proxy.attr(&root(), &file.handle).await.unwrap();
        let owner = SetAttr { uid: Some(seen.uid), gid: Some(seen.gid), ..SetAttr::default() };
        for (to, waits) in [(owner, false), (mode(seen.mode), true), (owner, false)] {
            let began = stage.clock.now();
            set(&life, &file.handle, to).await;
            assert_eq!(stage.clock.now() > began, waits, "{to:?}");
        }
    });
}

#[test]
fn what_is_set_already_waits_while_that_is_not_stable() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let file = made(&life, b"file").await;
        let began = stage.clock.now();
        let both = [0; 2].map(|_| async {
            let answered = set(&life, &file, mode(0o640)).await.changed;
            (answered, stage.clock.now().since(began))
        });
        let both = futures_util::future::join_all(both).await;
        let frame = Nanos::from_micros(100);
        assert!(both.iter().all(|(_, took)| *took >= frame), "{both:?}");
        let answered = both.iter().map(|(answered, _)| *answered).max().unwrap();
        // A file of the origin's may be otherwise there by now.
        assert_eq!(life.proxy.drained(None).await, 0);
        let began = stage.clock.now();
        let attr = set(&life, &file, mode(0o640)).await;
        assert!(attr.changed > answered && stage.clock.now() > began);
    });
}

/// With this seed, clients count as idle after 100 ms, and changes rest for 5 seconds at most.
const IDLE_100_MS: u64 = 7;

/// Writes on, every 50 milliseconds, as long as `goes_on` says.
async fn write_on(stage: &Stage, life: &Life, file: &Handle, goes_on: impl Fn() -> bool) {
    while goes_on() {
        let data = Bytes::from_static(b"bytes");
        life.proxy.write(&root(), file, 0, data, Stability::FileSync).await.result.unwrap();
        stage.clock.sleep(Nanos::from_millis(50)).await;
    }
}

#[test]
fn changes_are_sent_when_clients_are_idle_or_when_they_have_rested_long_enough() {
    play(IDLE_100_MS, None, async |stage| {
        let life = stage.begin().await;
        let file = made(&life, b"file").await;
        assert_eq!(life.proxy.drained(None).await, 0);
        let (began, clock) = (stage.clock.now(), stage.clock.clone());
        let busy = |secs| move |now: Instant| now.since(began) < Nanos::from_secs(secs);
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&sent);
        stage.origin.refuse(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            None
        });
        let is_busy = busy(4);
        write_on(&stage, &life, &file, || is_busy(clock.now())).await;
        assert_eq!(sent.load(Ordering::Relaxed), 0, "while they write");
        stage.clock.sleep(Nanos::from_millis(101)).await;
        assert!(sent.load(Ordering::Relaxed) > 0, "when they do not");
        life.proxy.drained(None).await;
        sent.store(0, Ordering::Relaxed);
        let began = stage.clock.now();
        let is_busy = || clock.now().since(began) < Nanos::from_millis(5_100);
        write_on(&stage, &life, &file, || is_busy() && sent.load(Ordering::Relaxed) == 0).await;
        let waited = clock.now().since(began);
        assert!(waited >= Nanos::from_secs(5) && is_busy(), "{waited:?}");
    });
}

#[test]
fn who_needs_the_origin_does_not_wait_until_other_clients_are_idle() {
    play(IDLE_100_MS, None, async |stage| {
        let life = stage.begin().await;
        let other = made(&life, b"other").await;
        let file = made(&life, b"file").await;
        let is_over = AtomicUsize::new(0);
        let others = write_on(&stage, &life, &other, || is_over.load(Ordering::Relaxed) == 0);
        let asks = async {
            stage.clock.sleep(Nanos::from_millis(500)).await;
            let began = stage.clock.now();
            let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
            life.proxy.access(&user, &file, Access(Access::READ)).await.result.unwrap();
            let (proxy, top) = (&life.proxy, life.proxy.root());
            proxy.link(&root(), &file, &top, b"link").await.result.unwrap();
            is_over.store(1, Ordering::Relaxed);
            stage.clock.now().since(began)
        };
        let ((), took) = futures_util::future::join(others, asks).await;
        assert!(took < Nanos::from_millis(1000), "{took:?}");
    });
}
