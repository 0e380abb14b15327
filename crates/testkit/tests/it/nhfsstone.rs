//! nhfsstone against the production server in a world: rate, mix and validity.

use load::mix::table::{MIXES, Sureness};
use load::mix::{Mix, Operation};
use std::future::pending;

use load::nhfsstone::{Outcome, Place, Plan, prepare, run};
use load::scratch::Scratch;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use testkit::Site;

fn outcome(plan: Plan, latency: Nanos) -> Outcome {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let link = LinkPair::symmetric(Link { latency, ..Link::default() });
        let site = Site::in_memory(&clock, link, CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let first = Scratch::create(&session, &Scratch::name_for("a")).await.unwrap();
        let second = Scratch::create(&session, &Scratch::name_for("b")).await.unwrap();
        let places =
            [&first, &second].map(|dir| Place { session: session.clone(), dir: dir.dir() });
        let prepared = prepare(&places, &plan, |_| {}).await.unwrap();
        let mut heard = 0;
        let mut observe = |outcome: &Outcome| heard = outcome.calls();
        let (outcome, broken) = run(&clock, prepared, &plan, &mut observe, pending()).await;
        assert!(broken.is_none(), "{broken:?}");
        assert_eq!(heard, outcome.calls());
        first.remove(&session).await.unwrap();
        second.remove(&session).await.unwrap();
        outcome
    };
    world.run(run).unwrap()
}

#[test]
fn who_stops_a_run_has_what_came_until_then() {
    let world = World::new();
    let clock = world.clock();
    let plan = plan(MIXES[0]);
    let ran = async move {
        let site = Site::in_memory(&clock, LinkPair::default(), CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let dir = Scratch::create(&session, &Scratch::name_for("a")).await.unwrap();
        let place = Place { session: session.clone(), dir: dir.dir() };
        let prepared = prepare(&[place], &plan, |_| {}).await.unwrap();
        let stopped = clock.sleep(Nanos::from_secs(5));
        run(&clock, prepared, &plan, &mut |_| {}, stopped).await
    };
    let (outcome, broken) = world.run(ran).unwrap();
    assert!(broken.is_none() && (400..600).contains(&outcome.calls()), "{}", outcome.calls());
}

fn plan(mix: Mix) -> Plan {
    Plan { mix, load_per_s: 100.0, calls: 5_000, tasks: 7, seed: 1 }
}

#[test]
fn the_default_run_has_its_mix_and_its_rate() {
    let outcome = outcome(plan(MIXES[0]), Nanos::from_micros(500));
    assert_eq!((outcome.failed(), &outcome.first_failure), (0, &None));
    assert!(outcome.is_valid() && outcome.off_percent() < 5.0, "{}", outcome.off_percent());
    let rate = outcome.calls_per_s();
    assert!((rate / 100.0 - 1.0).abs() < 0.03, "{rate}");
    // Every call is one round trip of 1 ms.
    let mean = outcome.mean().unwrap();
    assert!((mean.as_millis_f64() - 1.0).abs() < 0.01, "{mean:?}");
}

#[test]
fn every_operation_of_version_3_is_answered_as_expected() {
    let all = Operation::ALL.map(|operation| (operation, 1.0));
    let mix = Mix::leaked("all".to_owned(), &all, Sureness::Given, String::new());
    let outcome = outcome(plan(mix), Nanos::from_micros(100));
    assert_eq!((outcome.failed(), &outcome.first_failure), (0, &None));
    assert_eq!(outcome.operations.len(), Operation::ALL.len());
    assert!(outcome.is_valid(), "{}", outcome.off_percent());
}

#[test]
fn one_operation_by_itself_is_nothing_else() {
    for operation in Operation::ALL {
        let mix =
            Mix::leaked("one".to_owned(), &[(operation, 1.0)], Sureness::Given, String::new());
        let plan = Plan { calls: 300, ..plan(mix) };
        let outcome = outcome(plan, Nanos::from_micros(100));
        assert_eq!((outcome.failed(), outcome.off_percent()), (0, 0.0), "{operation}");
    }
}

#[test]
fn a_server_that_cannot_keep_up_shows_in_the_rate() {
    // Seven tasks and 200 ms: 35 calls a second.
    let outcome = outcome(plan(MIXES[0]), Nanos::from_millis(100));
    let rate = outcome.calls_per_s();
    assert!((30.0..=35.0).contains(&rate), "{rate}");
    assert!(outcome.behind_max > 50.0, "{}", outcome.behind_max);
    assert!(outcome.is_valid());
}
