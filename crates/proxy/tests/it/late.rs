//! What happens at the origin between two lives of a proxy: a call is executed late, or somebody
//! else changes what the proxy was about to change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use perf::units::Nanos;
use proxy::write_back::{Conflict, Event};
use server::store::Store;
use server::types::CreateHow;

use crate::conflicts::{Set, find, make, read, test, write};
use crate::stage::{Life, Stage, names, play, root};

#[test]
fn a_write_that_the_origin_executes_late_is_done_before_what_the_next_proxy_sends() {
    play(1, None, async |stage| {
        let life = stage.begin().await;
        let top = life.proxy.root();
        make(&life.proxy, &top, "first").await;
        let file = make(&life.proxy, &top, "file").await;
        life.proxy.drained(None).await;
        write(&life.proxy, &file, 0, "older").await;
        life.kill();
        // The call was sent, and the origin has not begun with it.
        let (clock, files) = (stage.clock.clone(), Arc::clone(&stage.origin.files));
        stage.clock.spawn(async move {
            clock.sleep(Nanos::from_secs(1)).await;
            let there = find(&*files, &files.root(), "file").await;
            write(&*files, &there, 0, "older").await;
        });
        let life = stage.begin().await;
        write(&life.proxy, &file, 0, "newer").await;
        life.proxy.drained(None).await;
        stage.clock.sleep(Nanos::from_secs(5)).await;
        let files = &*stage.origin.files;
        assert_eq!(read(files, &files.root(), "file").await, "newer");
        assert_eq!(*stage.events.lock(), []);
    });
}

/// A file of 2,000 bytes, `a` and `b` by WRITEs that were answered so long before a kill, the
/// origin being away; the first `there` of them are at the origin then.
async fn killed(stage: &Stage, there: usize, away: Nanos) {
    let life = stage.begin().await;
    let top = life.proxy.root();
    make(&life.proxy, &top, "first").await;
    let file = make(&life.proxy, &top, "file").await;
    write(&life.proxy, &file, 0, &"old.".repeat(500)).await;
    life.proxy.drained(None).await;
    stage.origin.is_away.store(true, Ordering::Relaxed);
    for (at, fill) in [(0, "a"), (1000, "b")] {
        write(&life.proxy, &file, at, &fill.repeat(900)).await;
    }
    stage.clock.sleep(away).await;
    life.kill();
    stage.origin.is_away.store(false, Ordering::Relaxed);
    let files = &*stage.origin.files;
    let sent = find(files, &files.root(), "file").await;
    for (at, fill) in [(0, "a"), (1000, "b")].into_iter().take(there) {
        write(files, &sent, at, &fill.repeat(900)).await;
    }
}

/// The next life; the files that the origin has then.
async fn after(stage: &Stage) -> Vec<String> {
    let life = stage.begin().await;
    assert_eq!(life.proxy.drained(None).await, 0);
    let files = &*stage.origin.files;
    let mut all = names(files, &files.root()).await;
    all.retain(|name| name != "first");
    all
}

/// Somebody else does.
async fn writes_meanwhile(stage: &Stage, offset: u64, theirs: &str) {
    let files = &*stage.origin.files;
    let file = find(files, &files.root(), "file").await;
    write(files, &file, offset, theirs).await;
}

/// His bytes and ours are there after the next life.
async fn both_stay(stage: &Stage, offset: u64, theirs: &str, seed: u64) {
    let files = &*stage.origin.files;
    let all = after(stage).await;
    let right = read(files, &files.root(), "file").await;
    let offset = usize::try_from(offset).unwrap();
    assert_eq!(right[offset..offset + theirs.len()], *theirs, "seed {seed}");
    let is_copy = |name: &&String| name.contains(".nfskit-conflict-");
    let Some(copy) = all.iter().find(is_copy) else { panic!("seed {seed}: {all:?}") };
    let ours = read(files, &files.root(), copy).await;
    let [a, b] = ["a", "b"].map(|fill| fill.repeat(900));
    assert!(ours.starts_with(&a) && ours[1000..].starts_with(&b), "seed {seed}: {ours}");
    let events = stage.events.lock();
    let is_one = matches!(&events[..], [Event::Beside { why: Conflict::Changed, .. }]);
    assert!(is_one, "seed {seed}: {events:?}");
}

/// Over what was executed, or in the place of what was not: who looks sees no difference.
#[test]
fn what_somebody_else_writes_between_a_kill_and_the_next_life_stays_beside_ours() {
    for seed in 0..24 {
        play(seed, None, async move |stage| {
            let mut random = fastrand::Rng::with_seed(seed);
            let there = 1 + usize::from(random.bool());
            killed(&stage, there, Nanos::ZERO).await;
            stage.clock.sleep(Nanos::from_millis(random.u64(500..5000))).await;
            // `a`, or where `b` is to be; all of it or a part.
            let offset = if there == 2 && random.bool() { 0 } else { 1000 };
            let theirs = "x".repeat(random.usize(100..=900));
            writes_meanwhile(&stage, offset, &theirs).await;
            both_stay(&stage, offset, &theirs, seed).await;
        });
    }
}

/// As long as calls are under way, it is known how long the proxy has lived.
#[test]
fn what_somebody_else_writes_after_a_proxy_was_killed_whose_origin_was_away_stays_beside_ours() {
    for seed in 0..6 {
        play(seed, None, async move |stage| {
            killed(&stage, 1, Nanos::from_secs(60)).await;
            stage.clock.sleep(Nanos::from_secs(15)).await;
            writes_meanwhile(&stage, 1000, "theirs").await;
            both_stay(&stage, 1000, "theirs", seed).await;
        });
    }
}

/// The second life has seen neither file when it is killed.
#[test]
fn what_somebody_else_writes_between_two_lives_is_his_also_in_the_third() {
    for seed in 0..6 {
        play(seed, None, async move |stage| {
            killed(&stage, 1, Nanos::ZERO).await;
            stage.clock.sleep(Nanos::from_secs(5)).await;
            writes_meanwhile(&stage, 1000, "theirs").await;
            let second = stage.begin().await;
            stage.clock.sleep(Nanos::from_micros(200)).await;
            second.kill();
            both_stay(&stage, 1000, "theirs", seed).await;
        });
    }
}

#[test]
fn what_a_killed_proxy_has_brought_in_part_is_its_own() {
    let times = [0, 0, 70, 2000, 60_000].into_iter().cycle();
    for (seed, (there, away)) in (0..30).zip([1, 2].into_iter().cycle().zip(times)) {
        play(seed, None, async move |stage| {
            killed(&stage, there, Nanos::from_millis(away)).await;
            stage.clock.sleep(Nanos::from_secs(20)).await;
            assert_eq!(after(&stage).await, ["file"], "seed {seed}");
            assert_eq!(*stage.events.lock(), [], "seed {seed}");
        });
    }
}

/// All that is to be done is done: nobody loses anything by it.
#[test]
fn what_somebody_else_writes_elsewhere_in_a_file_is_no_conflict() {
    play(1, None, async |stage| {
        killed(&stage, 2, Nanos::ZERO).await;
        stage.clock.sleep(Nanos::from_secs(20)).await;
        let files = &*stage.origin.files;
        let file = find(files, &files.root(), "file").await;
        write(files, &file, 950, "theirs").await;
        assert_eq!(after(&stage).await, ["file"]);
        assert_eq!(&read(files, &files.root(), "file").await[950..956], "theirs");
        assert_eq!(*stage.events.lock(), []);
    });
}

/// After the kill, or while the proxy lived and had not sent its own yet: a lock has one holder.
#[test]
fn what_somebody_else_has_made_under_a_name_that_a_killed_proxy_was_making_is_his() {
    const NAMES: [&str; 2] = ["exclusive", "guarded"];
    for is_after in [true, false] {
        test(async move |Set { stage, life, dir, there, .. }| {
            let how = CreateHow::Exclusive([7; 8]);
            life.proxy.create(&root(), &dir, b"exclusive", how).await.result.unwrap();
            make(&life.proxy, &dir, "guarded").await;
            let mut life = Some(life);
            if is_after {
                life.take().into_iter().for_each(Life::kill);
                stage.clock.sleep(Nanos::from_secs(2)).await;
            }
            for name in NAMES {
                make(&*stage.origin.files, &there, name).await;
            }
            life.into_iter().for_each(Life::kill);
            stage.origin.is_away.store(false, Ordering::Relaxed);
            let life = stage.begin().await;
            assert_eq!(life.proxy.drained(None).await, 0);
            let all = names(&*stage.origin.files, &there).await;
            let is_copy = |name: &&str| {
                let copy = format!("{name}.nfskit-conflict-");
                all.iter().any(|found| found.starts_with(&copy))
            };
            assert_eq!(NAMES.iter().copied().filter(is_copy).count(), 2, "{is_after}: {all:?}");
            let events = stage.events.lock();
            let is_made =
                |event: &Event| matches!(event, Event::Beside { why: Conflict::Replaced, .. });
            assert!(events.len() == 2 && events.iter().all(is_made), "{is_after}: {events:?}");
        });
    }
}
