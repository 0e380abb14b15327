//! Many worlds, each of a seed: a client changes files and names, proxies are killed at any moment,
//! the origin is away now and then. At every time files look as they would on a store that nobody
//! kills; in the end, the origin has them so.

use std::pin::pin;
use std::sync::atomic::Ordering;

use net::clock::Elapsed;
use perf::units::Nanos;
use proxy::write_back::Mistake;
use testkit::seeds::seeds;

use crate::stage::{Stage, play, tree};
use crate::steps::Client;

/// `STEPS=1` in the environment prints what is done.
const STEPS: usize = 60;

async fn live(stage: Stage, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut life = stage.begin().await;
    let mut client = Client::new(testkit::memory_store(&stage.clock), &life.proxy).await;
    for _ in 0..STEPS {
        let step = client.draw(&mut random);
        if std::env::var_os("STEPS").is_some() {
            println!("{step:?}");
        }
        assert_eq!(*stage.events.lock(), [], "seed {seed}: nobody else was there");
        let mut is_again = false;
        let outcome = loop {
            let fate = Nanos::from_micros(random.u64(1..40_000));
            let outcome = {
                let acts = pin!(client.act(&life.proxy, &step));
                match random.u8(..6) {
                    0 => stage.clock.within(fate, acts).await,
                    _ => Ok(acts.await),
                }
            };
            match outcome {
                Ok(outcome) => break outcome,
                Err(Elapsed { .. }) => {
                    if std::env::var_os("STEPS").is_some() {
                        println!("killed; again");
                    }
                    life.kill();
                    life = stage.begin().await;
                    is_again = true;
                }
            }
        };
        client.note(&life.proxy, &step, outcome, is_again, seed).await;
        match random.u8(..20) {
            0..6 => {
                let at = random.usize(..client.known.len());
                client.compare(&life.proxy, at, seed).await;
            }
            6..8 => stage.clock.sleep(Nanos::from_millis(random.u64(1..200))).await,
            8 => stage.clock.sleep(Nanos::from_secs(4)).await,
            9 => {
                let (origin, clock) = (stage.origin.clone(), stage.clock.clone());
                let span = Nanos::from_millis(random.u64(1..5000));
                origin.is_away.store(true, Ordering::Relaxed);
                stage.clock.spawn(async move {
                    clock.sleep(span).await;
                    origin.is_away.store(false, Ordering::Relaxed);
                });
            }
            10 => {
                if std::env::var_os("STEPS").is_some() {
                    println!("killed");
                }
                life.kill();
                life = stage.begin().await;
            }
            _ => {}
        }
    }
    assert_eq!(life.proxy.drained(Some(Nanos::from_secs(300))).await, 0, "seed {seed}");
    for at in 0..client.known.len() {
        client.compare(&life.proxy, at, seed).await;
    }
    let (there, right) = (tree(&*stage.origin.files).await, tree(&client.model).await);
    assert_eq!(there, right, "seed {seed}: at the origin");
    assert_eq!(*stage.events.lock(), [], "seed {seed}: nobody else was there");
}

fn worlds(seeds: std::ops::Range<u64>, mistake: Option<Mistake>) {
    for seed in seeds {
        play(seed, mistake, move |stage| live(stage, seed));
    }
}

#[test]
fn what_was_answered_is_seen_at_once_and_comes_to_the_origin_whatever_is_killed() {
    worlds(seeds(4), None);
}

#[test]
fn mistakes_are_found() {
    // The last one needs changes that follow one another on a name within a note's time.
    let mistakes = [
        (Mistake::AnswerEarly, 0),
        (Mistake::AnyOrder, 0),
        (Mistake::ForgetNames, 0),
        (Mistake::FollowEarly, 260),
    ];
    for (mistake, first) in mistakes {
        let found = std::panic::catch_unwind(|| worlds(first..first + 100, Some(mistake)));
        assert!(found.is_err(), "{mistake:?}");
    }
}
