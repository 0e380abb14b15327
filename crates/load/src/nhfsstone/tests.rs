use super::outcome::{Breach, Pace};
use super::*;
use crate::mix::Mix;
use crate::mix::table::{MIXES, Sureness};

/// Chooses, and counts what operations of several calls make of it.
fn chosen(mix: Mix, calls: u64) -> Outcome {
    let plan = Plan { mix, load_per_s: 30.0, calls, tasks: 7, seed: 1 };
    let choice = Choice::new(&mix);
    let mut outcome = Outcome::new(&plan);
    let mut random = Rng::with_seed(9);
    while outcome.calls() < calls {
        let operation = choice.next(&outcome, &mut random);
        let mut count = |operation| {
            outcome.count(&Call { operation, took: Nanos::from_micros(1), failure: None });
        };
        match operation {
            Operation::Read => {
                count(Operation::Getattr);
                (0..random.u32(1..6)).for_each(|_| count(operation));
            }
            Operation::Write => {
                count(Operation::Lookup);
                count(Operation::Getattr);
                (0..random.u32(1..6)).for_each(|_| count(operation));
            }
            other => count(other),
        }
    }
    outcome
}

#[test]
fn the_calls_come_to_be_the_mix_although_operations_are_of_several() {
    for mix in MIXES {
        let outcome = chosen(mix, 5_000);
        assert!(outcome.off_percent() < 3.0, "{mix}: {}", outcome.off_percent());
        assert_eq!(outcome.breach(), None);
    }
    // What brings calls with it that nobody wants comes to be another mix.
    let only =
        Mix::leaked("read".to_owned(), &[(Operation::Read, 100.0)], Sureness::Given, String::new());
    let outcome = chosen(only, 1_000);
    assert_eq!(outcome.breach(), Some(Breach::OtherMix), "{}", outcome.off_percent());
}

#[test]
fn calls_that_fail_have_no_time_and_more_than_one_in_a_hundred_do_not_count() {
    let of = |failed: u64| {
        let mut outcome = Outcome::new(&Plan {
            mix: Mix::leaked(
                "null".to_owned(),
                &[(Operation::Null, 100.0)],
                Sureness::Given,
                String::new(),
            ),
            load_per_s: 30.0,
            calls: 1_000,
            tasks: 1,
            seed: 1,
        });
        for number in 0..1_000 {
            let failure = (number < failed).then(|| "NFS3ERR_IO".to_owned());
            let took = Nanos::from_millis(if failure.is_some() { 1 } else { 5 });
            outcome.count(&Call { operation: Operation::Null, took, failure });
        }
        outcome
    };
    let five = Some(Nanos::from_millis(5));
    assert_eq!((of(10).breach(), of(10).mean(), of(10).failed()), (None, five, 10));
    assert_eq!((of(11).breach(), of(11).mean()), (Some(Breach::Failed), five));
    assert_eq!(of(11).operations[&Operation::Null].times.count(), 989);
    assert_eq!((of(1_000).breach(), of(1_000).mean()), (Some(Breach::Failed), None));
}

#[test]
fn operations_have_the_numbers_of_version_2() {
    assert_eq!(outcome::operation(0), Some(Operation::Null));
    assert_eq!(outcome::operation(3), None);
    assert_eq!(outcome::operation(17), Some(Operation::Fsstat));
    assert_eq!(outcome::operation(18), Some(Operation::Access));
    assert_eq!(outcome::operation(24), None);
    assert_eq!(chosen(MIXES[0], 10).in_order().count(), 16);
    assert_eq!(chosen(MIXES[2], 10).in_order().last(), Some(Operation::Commit));
}

#[test]
fn a_rate_is_the_offered_one_but_for_a_sleep_of_the_tasks() {
    let pace = |calls, seconds| {
        let mut outcome = chosen(MIXES[0], calls);
        outcome.elapsed = Nanos::from_secs_f64(seconds * outcome.calls() as f64 / 30.0);
        outcome.pace()
    };
    assert!([0.96, 1.0, 1.05].into_iter().all(|seconds| pace(5_000, seconds) == Pace::AsOffered));
    assert_eq!([pace(5_000, 1.1), pace(200, 2.0)], [Pace::Below; 2]);
    assert_eq!([pace(5_000, 0.9), pace(120, 0.54)], [Pace::Above; 2]);
    // One call may be as late as a task sleeps, or as early.
    assert_eq!([pace(1, 5.0), pace(1, 0.0)], [Pace::AsOffered; 2]);
}
