//! The origin is away, the log is full, or it cannot be written.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::join;
use perf::units::Nanos;
use proxy::write_back::Event;
use server::store::{Entry, ListFrom, Store};
use server::types::{CreateHow, SetAttr, Stability, Status};

use crate::conflicts::{find, make, make_dir, read, show_modes, test, write};
use crate::origin::Requested;
use crate::stage::{Life, Proxy, Stage, names, play, root};

#[test]
fn while_the_origin_is_away_work_goes_on_and_comes_there_later() {
    play(2, None, async |stage| {
        let mut life = stage.begin().await;
        let top = life.proxy.root();
        make(&life.proxy, &top, "first").await;
        show_modes(&life.proxy, &top).await;
        let dir = make_dir(&life.proxy, &top, "dir").await;
        let old = make(&life.proxy, &dir, "old").await;
        life.proxy.drained(None).await;
        // What was made here is reported as it is known.
        stage.clock.sleep(Nanos::from_secs(600)).await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        write(&life.proxy, &old, 0, "more").await;
        let new = make(&life.proxy, &dir, "new").await;
        let begun = stage.clock.now();
        write(&life.proxy, &new, 0, "ours").await;
        life.proxy.rename(&root(), &dir, b"new", &dir, b"moved").await.result.unwrap();
        let took = stage.clock.now().since(begun);
        assert!(took < Nanos::from_millis(5), "{took:?}");
        assert_eq!(names(&life.proxy, &dir).await, ["moved", "old"]);
        assert_eq!(read(&life.proxy, &dir, "moved").await, "ours");
        let number = life.proxy.attr(&root(), &new).await.unwrap().fileid;
        stage.origin.is_away.store(false, Ordering::Relaxed);
        // The next proxy has all of it, and says the same.
        life.kill();
        life = stage.begin().await;
        assert_eq!(life.proxy.attr(&root(), &new).await.unwrap().fileid, number);
        life.proxy.drained(None).await;
        assert_eq!(life.proxy.attr(&root(), &new).await.unwrap().fileid, number);
        let files = &*stage.origin.files;
        let there = find(files, &files.root(), "dir").await;
        assert_eq!(read(files, &there, "old").await, "more");
        assert_eq!(read(files, &there, "moved").await, "ours");
        assert_eq!(*stage.events.lock(), []);
    });
}

#[test]
fn when_the_log_is_full_callers_wait_until_the_origin_has_taken_something() {
    play(3, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let file = make(proxy, &top, "file").await;
        proxy.drained(None).await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        let (origin, clock) = (stage.origin.clone(), stage.clock.clone());
        stage.clock.spawn(async move {
            clock.sleep(Nanos::from_secs(100)).await;
            origin.is_away.store(false, Ordering::Relaxed);
        });
        let data = Bytes::from(vec![7; 1 << 20]);
        let mut waited = Vec::new();
        for at in 0..20_u64 {
            let begun = stage.clock.now();
            let stable = Stability::FileSync;
            let written = proxy.write(&root(), &file, at << 20, data.clone(), stable).await;
            assert_eq!(written.result.unwrap().count, 1 << 20);
            waited.push(stage.clock.now().since(begun));
        }
        let long = waited.iter().filter(|took| **took > Nanos::from_secs(1)).count();
        assert!((1..10).contains(&long), "{waited:?}");
        assert!(waited[..5].iter().all(|took| *took < Nanos::from_secs(1)), "{waited:?}");
        proxy.drained(None).await;
        let there = find(&*stage.origin.files, &stage.origin.files.root(), "file").await;
        let attr = stage.origin.files.attr(&root(), &there).await.unwrap();
        assert_eq!(attr.size, 20 << 20);
        let held_back = reading(proxy, "nfskit_writeback_held_back_total");
        assert!(held_back >= 1.0);
        assert_eq!(reading(proxy, "nfskit_writeback_pending"), 0.0);
    });
}

fn reading<S: Store>(store: &S, name: &str) -> f64 {
    store.readings().iter().filter(|reading| reading.name == name).map(|of| of.value).sum()
}

#[test]
fn when_the_log_cannot_be_written_callers_wait_for_the_origin_and_lose_nothing() {
    play(4, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let file = make(proxy, &top, "file").await;
        write(proxy, &file, 0, "before ").await;
        stage.log.break_down();
        write(proxy, &file, 7, "during ").await;
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "file").await, "before during ");
        write(proxy, &file, 14, "after").await;
        assert_eq!(read(files, &files.root(), "file").await, "before during after");
        let other = make(proxy, &top, "other").await;
        write(proxy, &other, 0, "too").await;
        assert_eq!(read(files, &files.root(), "other").await, "too");
        assert_eq!(names(proxy, &top).await, ["file", "first", "other"]);
        let why = "it is broken".to_owned();
        assert_eq!(*stage.events.lock(), [Event::LogFailed { why }]);
        assert_eq!(reading(proxy, "nfskit_writeback_log_failed"), 1.0);
    });
}

/// A part of a listing: two names, and where it goes on.
async fn page(proxy: &Proxy, from: ListFrom) -> Result<(Vec<String>, ListFrom), Status> {
    let (mut names, mut last) = (Vec::new(), from.cookie);
    let mut take = |entry: Entry<'_>| {
        let is_taken = names.len() < 2;
        if is_taken {
            names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            last = entry.cookie;
        }
        is_taken
    };
    let listed = proxy.list(&root(), &proxy.root(), from, &mut take).await.result?;
    Ok((names, ListFrom { cookie: last, verifier: listed.verifier, ..from }))
}

const FIRST: ListFrom = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: false, bytes: 4096 };

/// A directory with some old names, and a new one that has come to the origin just now.
async fn with_a_new_name(stage: &Stage) -> Life {
    let life = stage.begin().await;
    let (proxy, top) = (&life.proxy, life.proxy.root());
    for name in ["a", "b", "c", "d", "e", "f"] {
        make(proxy, &top, name).await;
    }
    proxy.drained(None).await;
    stage.clock.sleep(Nanos::from_secs(60)).await;
    make(proxy, &top, "new").await;
    proxy.drained(None).await;
    life
}

/// Linux takes BAD_COOKIE for the end of a directory where it finds its place no more.
#[test]
fn a_listing_that_has_passed_a_new_name_by_has_it_when_the_origin_tells_it_to_others() {
    play(5, None, async |stage| {
        let life = with_a_new_name(&stage).await;
        let proxy = &life.proxy;
        let (mut seen, mut from) = (Vec::new(), FIRST);
        loop {
            let (part, next) = page(proxy, from).await.unwrap();
            if part.is_empty() {
                break;
            }
            seen.extend(part);
            from = next;
            // Longer than it lingers. Others list it meanwhile, by the origin, and go on later.
            stage.clock.sleep(Nanos::from_secs(5)).await;
            proxy.tend(stage.clock.now()).await;
            let all = names(proxy, &proxy.root()).await;
            assert_eq!(all, ["a", "b", "c", "d", "e", "f", "new"]);
        }
        seen.retain(|name| name != "." && name != "..");
        seen.sort_unstable();
        assert_eq!(seen, ["a", "b", "c", "d", "e", "f", "new"], "each once");
    });
}

#[test]
fn a_listing_goes_on_though_calls_for_names_of_its_directory_fail() {
    play(5, None, async |stage| {
        let life = with_a_new_name(&stage).await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        let (_, mut from) = page(proxy, FIRST).await.unwrap();
        let a = find(proxy, &top, "a").await;
        for is_quiet in [false, true] {
            let guarded = CreateHow::Guarded(SetAttr::default());
            let made = proxy.create(&root(), &top, b"b", guarded).await.result;
            assert_eq!(made.map(|_| ()), Err(Status::Exists));
            let linked = proxy.link(&root(), &a, &top, b"c").await.result;
            assert_eq!(linked, Err(Status::Exists));
            let removed = proxy.remove(&root(), &top, b"missing").await.result;
            assert_eq!(removed, Err(Status::NoEntry));
            let moved = proxy.rename(&root(), &top, b"missing", &top, b"a").await.result;
            assert_eq!(moved, Err(Status::NoEntry));
            (_, from) = page(proxy, from).await.unwrap_or_else(|_| panic!("quiet: {is_quiet}"));
            stage.clock.sleep(Nanos::from_secs(5)).await;
        }
    });
}

/// The names of files that the proxy has not met are changed at the origin, at once, while new ones
/// are on their way there.
#[test]
fn a_listing_goes_on_while_clients_of_the_proxy_make_and_move_files() {
    for seed in 0..8 {
        play(seed, None, async |stage| {
            let files = Arc::clone(&stage.origin.files);
            let old = |group: &str, n: usize| format!("{group}{n:02}");
            for name in (0..12).flat_map(|n| [old("moves", n), old("stays", n)]) {
                make(&*files, &files.root(), &name).await;
            }
            let life = stage.begin().await;
            let (proxy, top) = (&life.proxy, life.proxy.root());
            let (mut seen, mut from, mut n) = (Vec::new(), FIRST, 0);
            loop {
                let (part, next) = page(proxy, from).await.unwrap();
                if part.is_empty() {
                    break;
                }
                seen.extend(part);
                from = next;
                if n < 12 {
                    let (new, name, moved) =
                        (format!("new{n:02}"), old("moves", n), format!("moved{n:02}"));
                    let (name, moved) = (name.as_bytes(), moved.as_bytes());
                    let caller = root();
                    let renames = proxy.rename(&caller, &top, name, &top, moved);
                    let (renamed, _) = join(renames, make(proxy, &top, &new)).await;
                    renamed.result.unwrap();
                    proxy.drained(None).await;
                    n += 1;
                }
            }
            seen.retain(|name| name.starts_with("stays"));
            seen.sort_unstable();
            assert_eq!(seen, (0..12).map(|n| old("stays", n)).collect::<Vec<_>>(), "each once");
        });
    }
}

#[test]
fn a_listing_that_nobody_has_gone_on_with_for_long_begins_again() {
    play(5, None, async |stage| {
        let life = with_a_new_name(&stage).await;
        let proxy = &life.proxy;
        let (_, second) = page(proxy, FIRST).await.unwrap();
        let (_, third) = page(proxy, second).await.unwrap();
        for (seconds, may_go_on) in [(55, true), (65, false)] {
            stage.clock.sleep(Nanos::from_secs(seconds)).await;
            proxy.tend(stage.clock.now()).await;
            assert_eq!(page(proxy, third).await.is_ok(), may_go_on, "{seconds}");
        }
        assert_eq!(page(proxy, third).await.unwrap_err(), Status::BadCookie);
        // One in which nothing was passed by goes on whenever it likes.
        let (_, second) = page(proxy, FIRST).await.unwrap();
        stage.clock.sleep(Nanos::from_secs(600)).await;
        proxy.tend(stage.clock.now()).await;
        page(proxy, second).await.unwrap();
    });
}

/// What it has passed by is the origin's by now, and nothing of it is known here.
#[test]
fn a_listing_that_has_passed_a_new_name_by_begins_again_when_the_proxy_was_restarted() {
    for ends_in_order in [false, true] {
        play(5, None, async move |stage| {
            let files = Arc::clone(&stage.origin.files);
            for name in ["a", "b", "c", "d", "e", "f"] {
                make(&*files, &files.root(), name).await;
            }
            let life = stage.begin().await;
            make(&life.proxy, &life.proxy.root(), "first").await;
            make(&life.proxy, &life.proxy.root(), "new").await;
            life.proxy.drained(None).await;
            let (_, second) = page(&life.proxy, FIRST).await.unwrap();
            let (_, third) = page(&life.proxy, second).await.unwrap();
            // The log has noted that the name is there.
            stage.clock.sleep(Nanos::from_secs(1)).await;
            if ends_in_order {
                assert!(life.proxy.end().await);
            }
            life.kill();
            let life = stage.begin().await;
            let proxy = &life.proxy;
            for from in [second, third] {
                assert_eq!(page(proxy, from).await.unwrap_err(), Status::BadCookie);
            }
            // One that has begun since goes on, and so does one with nothing to pass by.
            let (_, second) = page(proxy, FIRST).await.unwrap();
            page(proxy, second).await.unwrap();
            life.kill();
            let life = stage.begin().await;
            page(&life.proxy, second).await.unwrap();
        });
    }
}

#[test]
fn a_listing_has_all_names_however_large_the_origins_cookies_are() {
    for (bits, is_listed) in [(1 << 63, true), (0xfffb << 48, true), (0xffff << 48, false)] {
        play(5, None, async move |stage| {
            let life = with_a_new_name(&stage).await;
            let proxy = &life.proxy;
            make(proxy, &proxy.root(), "newer").await;
            stage.origin.cookie_bits.store(bits, Ordering::Relaxed);
            if is_listed {
                let all = names(proxy, &proxy.root()).await;
                assert_eq!(all, ["a", "b", "c", "d", "e", "f", "new", "newer"]);
            } else {
                assert_eq!(page(proxy, FIRST).await.unwrap_err(), Status::ServerFault);
            }
        });
    }
}

/// A change that the origin does not take for a long time; nor does it take a part of it.
fn refuse_in_full(stage: &Stage, is_full: &Arc<AtomicBool>) {
    let is_full = Arc::clone(is_full);
    stage.origin.refuse(move |requested| match requested {
        Requested::Write(_, 0) if is_full.load(Ordering::Relaxed) => Some(Status::Quota),
        _ => None,
    });
}

#[test]
fn a_change_that_waits_for_long_does_not_keep_the_log_from_others() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let [stuck, other] = [make(proxy, &top, "stuck").await, make(proxy, &top, "other").await];
        proxy.drained(None).await;
        let is_full = Arc::new(AtomicBool::new(true));
        refuse_in_full(&stage, &is_full);
        write(proxy, &stuck, 0, "waits").await;
        write(proxy, &stuck, 0, "W").await;
        proxy.rename(&root(), &top, b"stuck", &top, b"moved").await.result.unwrap();
        // Three times the log.
        let data = Bytes::from(vec![7; 1 << 20]);
        for at in 1..48_u64 {
            let begun = stage.clock.now();
            let (caller, stable) = (root(), Stability::FileSync);
            let call = pin!(proxy.write(&caller, &other, at, data.clone(), stable));
            let outcome = stage.clock.within(Nanos::from_secs(100), call).await;
            outcome.expect("there is room").result.unwrap();
            let took = stage.clock.now().since(begun);
            assert!(took < Nanos::from_secs(1), "{at}: {took:?}");
        }
        assert_eq!(read(proxy, &top, "moved").await, "Waits");
        is_full.store(false, Ordering::Relaxed);
        assert_eq!(proxy.drained(Some(Nanos::from_secs(100))).await, 0);
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "moved").await, "Waits");
        assert_eq!(reading(proxy, "nfskit_writeback_pending"), 0.0);
    });
}

#[test]
fn what_was_written_again_is_done_once_and_in_its_order_whenever_the_proxy_is_killed() {
    for millis in (0..1200).step_by(111) {
        let content = format!("Waits{}more", "\0".repeat(8192 - 5));
        play(1, None, async move |stage| {
            let mut life = stage.begin().await;
            let top = life.proxy.root();
            make(&life.proxy, &top, "first").await;
            let is_full = Arc::new(AtomicBool::new(true));
            refuse_in_full(&stage, &is_full);
            let stuck = make(&life.proxy, &top, "stuck").await;
            write(&life.proxy, &stuck, 0, "waits").await;
            write(&life.proxy, &stuck, 0, "W").await;
            // It comes to the origin, and changes the file that the others wait for.
            write(&life.proxy, &stuck, 8192, "more").await;
            let other = make(&life.proxy, &top, "other").await;
            life.proxy.rename(&root(), &top, b"stuck", &top, b"moved").await.result.unwrap();
            for _ in 0..3 {
                let writes = async {
                    let data = Bytes::from(vec![7; 1 << 20]);
                    for at in 1..40_u64 {
                        let stable = Stability::FileSync;
                        life.proxy
                            .write(&root(), &other, at, data.clone(), stable)
                            .await
                            .result
                            .unwrap();
                    }
                };
                stage.clock.within(Nanos::from_millis(300 + millis), pin!(writes)).await.ok();
                life.kill();
                life = stage.begin().await;
                assert_eq!(read(&life.proxy, &top, "moved").await, content);
                assert_eq!(
                    life.proxy.lookup(&root(), &top, b"moved").await.result.unwrap().handle,
                    stuck
                );
            }
            is_full.store(false, Ordering::Relaxed);
            assert_eq!(life.proxy.drained(Some(Nanos::from_secs(100))).await, 0);
            let files = &*stage.origin.files;
            assert_eq!(read(files, &files.root(), "moved").await, content);
            assert_eq!(names(files, &files.root()).await, ["first", "moved", "other"]);
            let outcome =
                stage.events.lock().iter().all(|event| matches!(event, Event::Refused { .. }));
            assert!(outcome, "{:?}", stage.events.lock());
        });
    }
}

/// Each call takes longer than one waits for while the origin is away.
#[test]
fn behind_a_long_path_what_others_have_changed_is_seen_once_the_origin_is_back() {
    play(1, None, async |mut stage| {
        stage.origin.latency = Nanos::from_millis(200);
        let life = stage.begin().await;
        let (proxy, top) = (&life.proxy, life.proxy.root());
        make(proxy, &top, "first").await;
        let files = &*stage.origin.files;
        let theirs = make(files, &files.root(), "theirs").await;
        let file = find(proxy, &top, "theirs").await;
        write(proxy, &file, 0, "ours").await;
        proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(10)).await;
        stage.origin.is_away.store(true, Ordering::Relaxed);
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().size, 4, "as it is cached");
        stage.origin.is_away.store(false, Ordering::Relaxed);
        write(files, &theirs, 4, ", theirs").await;
        stage.clock.sleep(Nanos::from_secs(1)).await;
        for _ in 0..3 {
            assert_eq!(proxy.attr(&root(), &file).await.unwrap().size, 12);
        }
        assert_eq!(read(proxy, &top, "theirs").await, "ours, theirs");
    });
}

/// As while the origin serves the directory on which its disk is to be mounted.
#[test]
fn while_the_whole_export_is_stale_changes_wait_and_none_is_taken_for_done() {
    test(async |set| {
        let (proxy, dir) = (&set.life.proxy, &set.dir);
        set.settled().await;
        for name in ["a", "b", "c"] {
            write(proxy, &make(proxy, dir, name).await, 0, name).await;
        }
        set.settled().await;
        set.stage.clock.sleep(Nanos::from_secs(10)).await;
        set.stage.origin.is_away.store(true, Ordering::Relaxed);
        let b = find(proxy, dir, "b").await;
        proxy.remove(&root(), dir, b"a").await.result.unwrap();
        let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
        proxy.set_attr(&root(), &b, mode, None).await.result.unwrap();
        proxy.rename(&root(), dir, b"c", dir, b"d").await.result.unwrap();
        write(proxy, &set.file, 0, "NEW").await;
        make(proxy, dir, "n").await;
        set.stage.origin.is_stale.store(true, Ordering::Relaxed);
        set.stage.origin.is_away.store(false, Ordering::Relaxed);
        set.stage.clock.sleep(Nanos::from_secs(100)).await;
        assert_eq!(proxy.pending(), 5);
        set.stage.origin.is_stale.store(false, Ordering::Relaxed);
        assert_eq!(set.settled().await, []);
        assert_eq!(names(set.origin(), &set.there).await, ["b", "d", "file", "n"]);
        assert_eq!(set.at("file").await, "NEWun by us, ");
        let b = find(set.origin(), &set.there, "b").await;
        assert_eq!(set.origin().attr(&root(), &b).await.unwrap().mode, 0o600);
    });
}

/// Linux replies so while another client that has newer bytes of the file is called back.
#[test]
fn an_origin_that_puts_one_file_off_is_not_away() {
    play(4, None, async |stage| {
        let life = stage.begin().await;
        let (proxy, files) = (&life.proxy, &*stage.origin.files);
        make(proxy, &proxy.root(), "first").await;
        let dir = make_dir(proxy, &proxy.root(), "dir").await;
        let file = make(proxy, &dir, "file").await;
        proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(600)).await;
        let dir_there = find(files, &files.root(), "dir").await;
        let there = find(files, &dir_there, "file").await;
        write(files, &there, 0, "by somebody else").await;
        make(files, &dir_there, "theirs").await;
        *stage.origin.puts_off.lock() = Some(there);
        assert_eq!(proxy.attr(&root(), &file).await.unwrap_err(), Status::Jukebox);
        find(proxy, &dir, "theirs").await;
        // A change of it waits, and no other.
        write(proxy, &file, 0, "BY").await;
        let other = make(proxy, &dir, "other").await;
        write(proxy, &other, 0, "other").await;
        stage.clock.sleep(Nanos::from_secs(10)).await;
        assert_eq!(read(files, &dir_there, "other").await, "other");
        make(files, &dir_there, "theirs, too").await;
        find(proxy, &dir, "theirs, too").await;
        *stage.origin.puts_off.lock() = None;
        proxy.drained(None).await;
        assert_eq!(proxy.attr(&root(), &file).await.unwrap().size, 16);
    });
}
