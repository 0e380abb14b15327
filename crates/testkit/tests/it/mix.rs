//! A mix of operations against the production server in a world: exact, and the same in every run.

use load::fileset::{self, Layout};
use load::mix::outcome::Outcome;
use load::mix::table::MIXES;
use load::mix::{Arrivals, Load, Mix, Operation, Plan, run, run_partly};
use load::scratch::Scratch;
use net::clock::world::World;
use net::shape::LinkPair;
use perf::model::loggp::Link;
use perf::units::Nanos;
use server::CommitMode;
use testkit::Site;

const LATENCY: Nanos = Nanos::from_micros(500);

const OPEN: Load =
    Load::Open { arrivals: Arrivals::Poisson, per_s: 1_000.0, phase: 0.0, outstanding_max: 1_000 };

fn plan(mix: Mix, load: Load) -> Plan {
    let (warm_up, time) = (Nanos::from_millis(100), Nanos::from_secs(2));
    Plan { mix, load, warm_up, time, seed: 7 }
}

fn layout() -> Layout {
    Layout { accessed: 0.5, ..Layout::of_bytes(8 << 20, 7) }
}

/// On two connections, behind a link with this latency and nothing else.
fn outcome(plan: Plan, link: Link) -> Outcome {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let site = Site::in_memory(&clock, LinkPair::symmetric(link), CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let sessions = [session.clone(), session.over(site.rpc())];
        let scratch = Scratch::create(&session, &Scratch::name_for("mix")).await.unwrap();
        let mut files = fileset::build(&session, scratch.dir(), &layout()).await.unwrap();
        let outcome = run(&clock, &sessions, &mut files, &plan).await.unwrap();
        scratch.remove(&session).await.unwrap();
        let left = session.readdir(session.root(), 0, [0; 8], 4096).await.unwrap().entries;
        assert!(left.iter().all(|entry| entry.name.starts_with(b".")), "{left:?}");
        outcome
    };
    world.run(run).unwrap()
}

fn behind_latency() -> Link {
    Link { latency: LATENCY, ..Link::default() }
}

#[test]
fn every_mix_is_answered_as_expected_in_its_shares_and_one_round_trip() {
    for mix in MIXES {
        let outcome = outcome(plan(mix, OPEN), behind_latency());
        assert_eq!((outcome.failed(), &outcome.first_failure), (0, &None), "{mix}");
        assert!((outcome.offered_per_s() - 1_000.0).abs() < 100.0, "{mix}: {outcome:?}");
        assert!((outcome.achieved_per_s() - outcome.offered_per_s()).abs() < 5.0, "{mix}");
        assert!(outcome.mix_error_points(&mix) < 0.5, "{mix}");
        assert_eq!((outcome.late, outcome.lateness.max()), (0, Nanos::ZERO), "{mix}");
        for (operation, tally) in &outcome.operations {
            let median = tally.response_time.quantile(0.5).as_micros_f64();
            assert!((median - 1_000.0).abs() < 1.0, "{mix} {operation}: {median}");
        }
        assert!(outcome.read_bytes > 1_000_000 && outcome.written_bytes > 200_000, "{mix}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let slow = Link { gap_per_byte_ps: 400_000, ..behind_latency() };
    let mix = plan(Mix::SFS97_V3, OPEN);
    let mean = |plan| outcome(plan, slow).response_mean().unwrap();
    assert_eq!(mean(mix), mean(mix));
    assert_ne!(mean(mix), mean(Plan { seed: 8, ..mix }));
}

#[test]
fn a_closed_loop_keeps_its_number_outstanding() {
    let load = Load::Closed { outstanding: 8 };
    let outcome = outcome(plan(Mix::SFS97_V3, load), behind_latency());
    assert_eq!(outcome.outstanding_max, 8);
    let expected = 8.0 / (2.0 * LATENCY.as_secs_f64());
    let achieved = outcome.achieved_per_s();
    assert!((achieved / expected - 1.0).abs() < 0.001, "{achieved}");
}

#[test]
fn an_open_loop_counts_the_wait_of_operations_that_could_not_start() {
    // Two at a time on a way of 1 ms make 2,000 a second; 3,000 are requested.
    let load =
        Load::Open { arrivals: Arrivals::Fixed, per_s: 3_000.0, phase: 0.0, outstanding_max: 2 };
    let outcome = outcome(plan(Mix::SFS97_V3, load), behind_latency());
    assert!((outcome.achieved_per_s() - 2_000.0).abs() < 5.0);
    assert!((outcome.offered_per_s() - 3_000.0).abs() < 5.0);
    // Bytes are those of the answers that came in that time, and not of all that was meant to.
    let calm = self::outcome(plan(Mix::SFS97_V3, OPEN), behind_latency());
    let bytes_per_answer = |outcome: &Outcome| outcome.read_bytes as f64 / outcome.answered as f64;
    let ratio = bytes_per_answer(&outcome) / bytes_per_answer(&calm);
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
    // They waited for an answer, which is not the generator's fault.
    assert!(outcome.held > 5_900 && outcome.late == 0, "{} {}", outcome.held, outcome.late);
    // What is meant to start at t is answered at 3/2 t; t goes from 0.1 s to 2.1 s.
    let mean = outcome.response_mean().unwrap().as_millis_f64();
    assert!((mean - 551.0).abs() < 2.0, "{mean}");
    let getattr = &outcome.operations[&Operation::Getattr];
    assert!(getattr.response_time.max() > Nanos::from_millis(1_040));
}

#[test]
fn what_fails_is_no_throughput() {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let link = LinkPair::symmetric(behind_latency());
        let site = Site::in_memory(&clock, link, CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let scratch = Scratch::create(&session, &Scratch::name_for("mix")).await.unwrap();
        let mut files = fileset::build(&session, scratch.dir(), &layout()).await.unwrap();
        scratch.remove(&session).await.unwrap();
        let load = Load::Closed { outstanding: 8 };
        run(&clock, &[session], &mut files, &plan(Mix::SFS97_V3, load)).await.unwrap()
    };
    let outcome = world.run(run).unwrap();
    // All handles are stale; what does not ask about a file is answered all the same.
    let all = (outcome.answered + outcome.unexpected) as f64;
    assert!((all / 16_000.0 - 1.0).abs() < 0.001, "{outcome:?}");
    assert!(outcome.unexpected as f64 > 0.9 * all, "{outcome:?}");
    assert_eq!((outcome.read_bytes, outcome.written_bytes), (0, 0));
    assert!(outcome.failed().abs_diff(outcome.unexpected) <= 16, "{outcome:?}");
    assert!(outcome.first_failure.is_some());
}

#[test]
fn what_came_before_a_call_had_no_answer_stays() {
    let world = World::new();
    let clock = world.clock();
    let run = async move {
        let (doomed, group) = clock.group();
        let link = LinkPair::symmetric(behind_latency());
        let site = Site::in_memory(&doomed, link, CommitMode::Concurrent);
        let session = site.session(site.rpc()).await.unwrap();
        let mut files = fileset::build(&session, session.root(), &layout()).await.unwrap();
        let own = clock.clone();
        clock.spawn(async move {
            own.sleep(Nanos::from_millis(1_100)).await;
            group.kill();
        });
        let plan = plan(Mix::SFS97_V3, OPEN);
        let ran = run_partly(&clock, &[session], &mut files, &plan).await.unwrap();
        assert!(ran.broken.is_some());
        ran.outcome
    };
    let outcome = world.run(run).unwrap();
    assert!(outcome.broken.is_some());
    // A second of it was measured.
    let span = outcome.span.as_secs_f64();
    assert!((span - 1.0).abs() < 0.02, "{span}");
    assert!((outcome.achieved_per_s() - 1_000.0).abs() < 100.0, "{}", outcome.achieved_per_s());
    assert!(outcome.response_mean().is_some());
}
