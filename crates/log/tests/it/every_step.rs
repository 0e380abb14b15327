//! The power is cut after every single step of a machine, with the write on its way torn, and once
//! more in the middle of what the first steps after the recovery do.

use crate::simulated::{Machine, Mistake};

const SEEDS: u64 = 3;
const STEPS: usize = 250;

fn cut_after(seed: u64, steps: usize, mistake: Mistake) -> Result<(), String> {
    let mut machine = Machine::new(seed, mistake);
    for steps in [steps, steps % 40] {
        (0..steps).for_each(|_| machine.step());
        machine.restart(false).map_err(|error| error.to_string())?;
        machine.check()?;
    }
    Ok(())
}

#[test]
fn a_cut_after_any_step_loses_nothing() {
    for (seed, steps) in (0..SEEDS).flat_map(|seed| (1..=STEPS).map(move |steps| (seed, steps))) {
        if let Err(why) = cut_after(seed, steps, Mistake::None) {
            panic!("seed {seed}, step {steps}: {why}");
        }
    }
}

#[test]
fn an_answer_before_its_frame_is_found_by_cuts_after_every_step() {
    let found = (0..SEEDS).any(|seed| {
        (1..=STEPS).any(|steps| cut_after(seed, steps, Mistake::AnswersEarly).is_err())
    });
    assert!(found, "{SEEDS} seeds, {STEPS} steps each");
}
