//! Calls that go through to the origin, and changes of the same files and names without pause.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::{join, join_all};
use perf::units::Nanos;
use server::store::Store;
use server::types::{Caller, CreateHow, Handle, SetAttr, SetTime, Special, Stability, Status};

use crate::conflicts::{find, make, make_dir, show_modes, write};
use crate::origin::Requested;
use crate::stage::{Life, Proxy, Stage, names, play, root, tree};

/// What some clients do without pause.
#[derive(Clone, Copy)]
enum Busy {
    /// They write to this file.
    Write(Handle),
    /// They make names in this directory.
    Make(Handle),
    /// They set its attributes, and remove `name` from it.
    Set(Handle),
}

async fn change(proxy: &Proxy, busy: Busy, number: u64) {
    match busy {
        Busy::Write(file) => {
            let (data, at) = (Bytes::from_static(b"ours"), number % 64 * 4);
            proxy.write(&root(), &file, at, data, Stability::FileSync).await.result.ok();
        }
        Busy::Make(dir) => drop(make(proxy, &dir, &format!("n{number}")).await),
        Busy::Set(dir) => {
            proxy.remove(&root(), &dir, b"name").await.result.ok();
            proxy.set_attr(&root(), &dir, timed(7), None).await.result.unwrap();
        }
    }
}

/// A call that is to be answered soon all the same.
async fn answered<T>(stage: &Stage, life: &Life, busy: Busy, call: impl Future<Output = T>) -> T {
    let is_over = Arc::new(AtomicBool::new(false));
    for client in 0..4 {
        let (proxy, is_over) = (life.proxy.clone(), Arc::clone(&is_over));
        let clock = stage.clock.clone();
        stage.clock.spawn(async move {
            for number in (client..).step_by(4) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let begun = clock.now();
                change(&proxy, busy, number).await;
                // What fails at once would keep the world from going on.
                if clock.now() == begun {
                    clock.sleep(Nanos::from_micros(50)).await;
                }
            }
        });
    }
    stage.clock.sleep(Nanos::from_millis(100)).await;
    let begun = stage.clock.now();
    let outcome = stage.clock.within(Nanos::from_secs(30), pin!(call)).await;
    is_over.store(true, Ordering::Relaxed);
    let outcome = outcome.unwrap_or_else(|_| panic!("nobody has answered it"));
    let took = stage.clock.now().since(begun);
    assert!(took < Nanos::from_secs(2), "{took:?}");
    outcome
}

fn timed(secs: i64) -> SetAttr {
    let modified = SetTime::To(server::types::Time { secs, nanos: 0 });
    SetAttr { modified, ..SetAttr::default() }
}

/// A directory with a file in it, made through the proxy; on their way or not.
async fn begun(stage: &Stage) -> (Life, Handle, Handle) {
    let life = stage.begin().await;
    make(&life.proxy, &life.proxy.root(), "first").await;
    show_modes(&life.proxy, &life.proxy.root()).await;
    let dir = make_dir(&life.proxy, &life.proxy.root(), "dir").await;
    let file = make(&life.proxy, &dir, "file").await;
    (life, dir, file)
}

#[test]
fn a_call_that_passes_is_answered_though_its_file_is_written_without_pause() {
    for seed in 0..9 {
        play(seed, None, async |stage| {
            let (life, dir, file) = begun(&stage).await;
            let (proxy, root) = (&life.proxy, root());
            let link = proxy.link(&root, &file, &dir, b"link");
            answered(&stage, &life, Busy::Write(file), link).await.result.unwrap();
            let guard = proxy.attr(&root, &file).await.unwrap().changed;
            let guarded = proxy.set_attr(&root, &file, timed(7), Some(guard));
            let outcome = answered(&stage, &life, Busy::Write(file), guarded).await.result;
            assert_eq!(outcome, Err(Status::NotSync), "it was written meanwhile");
            proxy.drained(None).await;
            assert_eq!(names(proxy, &dir).await, ["file", "link"]);
        });
    }
}

#[test]
fn a_call_that_passes_is_answered_though_names_of_its_directory_change_without_pause() {
    for seed in 0..9 {
        play(seed, None, async |stage| {
            let (life, dir, _) = begun(&stage).await;
            let (proxy, root, top) = (&life.proxy, root(), life.proxy.root());
            let rename = proxy.rename(&root, &top, b"dir", &top, b"moved");
            answered(&stage, &life, Busy::Make(dir), rename).await.result.unwrap();
            assert_eq!(names(proxy, &top).await, ["first", "moved"]);
            let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
            let special = proxy.make_node(&root, &dir, b"name", Special::Fifo, set);
            answered(&stage, &life, Busy::Set(dir), special).await.result.unwrap();
            proxy.drained(None).await;
        });
    }
}

#[test]
fn a_removal_from_a_sticky_directory_is_answered_though_the_file_is_written() {
    for seed in 0..9 {
        play(seed, None, async |stage| {
            let (life, dir, file) = begun(&stage).await;
            let proxy = &life.proxy;
            let user = Caller { uid: 7, gid: 7, gids: Vec::new() };
            let sticky = SetAttr { mode: Some(0o1777), ..SetAttr::default() };
            proxy.set_attr(&root(), &dir, sticky, None).await.result.unwrap();
            let owned = SetAttr { uid: Some(7), ..SetAttr::default() };
            proxy.set_attr(&root(), &file, owned, None).await.result.unwrap();
            let remove = proxy.remove(&user, &dir, b"file");
            answered(&stage, &life, Busy::Write(file), remove).await.result.unwrap();
        });
    }
}

#[test]
fn beside_a_change_that_the_origin_refuses_other_calls_have_their_turn() {
    for seed in 0..9 {
        play(seed, None, async |stage| {
            let (life, dir, file) = begun(&stage).await;
            let (proxy, root) = (&life.proxy, root());
            let full = make(proxy, &dir, "full").await;
            proxy.drained(None).await;
            stage.origin.refuse(|requested| {
                let is_refused = matches!(requested, Requested::Write(_, at) if at > 9000);
                is_refused.then_some(Status::NoSpace)
            });
            write(proxy, &full, 10_000, "ours").await;
            stage.clock.sleep(Nanos::from_secs(2)).await;
            let link = proxy.link(&root, &file, &dir, b"link");
            answered(&stage, &life, Busy::Write(file), link).await.result.unwrap();
            // Behind a call that has to follow what is refused nobody waits.
            let link = async {
                proxy.link(&root, &full, &dir, b"other").await.result.unwrap();
            };
            let others = async {
                stage.clock.sleep(Nanos::from_millis(100)).await;
                let begun = stage.clock.now();
                for number in 0..100 {
                    write(proxy, &full, number * 4, "ours").await;
                    make(proxy, &dir, &format!("n{number}")).await;
                }
                let took = stage.clock.now().since(begun);
                assert!(took < Nanos::from_secs(1), "{took:?}");
                stage.origin.refuse(|_| None);
            };
            join(link, others).await;
            proxy.drained(None).await;
        });
    }
}

/// Of some files all that there is to do with them, by many at the same time.
#[test]
fn everybody_is_answered_whatever_waits_for_what() {
    for seed in testkit::seeds::seeds(20) {
        play(seed, None, move |stage| async move {
            let (life, dir, _) = begun(&stage).await;
            let proxy = &life.proxy;
            let dirs = [dir, make_dir(proxy, &dir, "below").await];
            let all = (0..24_u64).map(|client| work(proxy, dirs, seed * 100 + client));
            let all = pin!(join_all(all));
            let outcome = stage.clock.within(Nanos::from_secs(600), all).await;
            assert!(outcome.is_ok(), "seed {seed}: somebody waits for ever");
            assert_eq!(proxy.drained(Some(Nanos::from_secs(60))).await, 0, "seed {seed}");
            assert_eq!(tree(proxy).await, tree(&*stage.origin.files).await, "seed {seed}");
        });
    }
}

/// What fails fails: nobody waits for ever.
async fn work(proxy: &Proxy, dirs: [Handle; 2], seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20 {
        let mut place = || (dirs[random.usize(..2)], [b"a", b"b", b"c"][random.usize(..3)]);
        let ((dir, name), (to_dir, to_name)) = (place(), place());
        let found = proxy.lookup(&root(), &dir, name).await.result.map(|node| node.handle);
        let data = Bytes::from_static(b"ours");
        match (random.u8(..9), found) {
            (0 | 1, Err(_)) => {
                let set = SetAttr { mode: Some(0o644), size: Some(0), ..timed(9) };
                let how = CreateHow::Unchecked(set);
                proxy.create(&root(), &dir, name, how).await.result.ok();
            }
            (2, Err(_)) => {
                let set = SetAttr { mode: Some(0o755), ..timed(9) };
                proxy.make_dir(&root(), &dir, name, set).await.result.ok();
            }
            (0..3, Ok(file)) => {
                let at = random.u64(..9000);
                proxy.write(&root(), &file, at, data, Stability::FileSync).await.result.ok();
            }
            (3, Ok(file)) => {
                proxy.link(&root(), &file, &to_dir, to_name).await.result.ok();
            }
            (4, Ok(file)) => {
                let guard = proxy.attr(&root(), &file).await.ok().map(|attr| attr.changed);
                proxy.set_attr(&root(), &file, timed(8), guard).await.result.ok();
            }
            (5 | 6, _) => {
                proxy.rename(&root(), &dir, name, &to_dir, to_name).await.result.ok();
            }
            (7, _) => {
                proxy.remove(&root(), &dir, name).await.result.ok();
            }
            _ => {
                proxy.remove_dir(&root(), &dir, name).await.result.ok();
            }
        }
    }
}

#[test]
fn while_the_origin_is_away_changes_do_not_wait_behind_a_call_that_is_for_it() {
    play(1, None, async |stage| {
        let (life, dir, file) = begun(&stage).await;
        let proxy = &life.proxy;
        proxy.drained(None).await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        write(proxy, &file, 0, "ours").await;
        let link = async {
            proxy.link(&root(), &file, &dir, b"link").await.result.unwrap();
        };
        let others = async {
            stage.clock.sleep(Nanos::from_millis(100)).await;
            let begun = stage.clock.now();
            for number in 0..100 {
                write(proxy, &file, number * 4, "ours").await;
            }
            let took = stage.clock.now().since(begun);
            assert!(took < Nanos::from_secs(3), "{took:?}");
            stage.origin.is_away.store(false, Ordering::Relaxed);
        };
        join(link, others).await;
        assert_eq!(find(proxy, &dir, "link").await, file);
    });
}
