//! Seeded machines whose power is cut again and again: nothing that was answered is lost, and the
//! mistakes that a server could make are found.

use crate::seeds::{are_found, seeds};
use crate::simulated::{Machine, Mistake};

/// In the gate: see [`seeds`].
const SEEDS: u64 = 150;

fn live(seed: u64, mistake: Mistake) -> Result<Machine, String> {
    let mut machine = Machine::new(seed, mistake);
    let mut rng = fastrand::Rng::with_seed(!seed);
    for _ in 0..rng.u32(2..6) {
        (0..rng.u32(1..600)).for_each(|_| machine.step());
        let has_power = rng.u32(0..4) == 0 && !machine.has_unrecorded_doubt();
        machine.restart(has_power).map_err(|error| error.to_string())?;
        // What is read is there; a second cut shows whether it is also stable.
        machine.check()?;
    }
    machine.restart(false).map_err(|error| error.to_string())?;
    machine.check()?;
    Ok(machine)
}

#[test]
fn what_was_answered_survives_every_power_cut() {
    let (mut logged, mut replayed, mut failures) = (0, 0, 0);
    let (mut committed, mut truncated) = (0, 0);
    for seed in 0..seeds(SEEDS) {
        match live(seed, Mistake::None) {
            Ok(machine) => {
                logged += machine.logged;
                committed += machine.committed;
                truncated += machine.truncated;
                replayed += machine.replayed;
                failures += machine.failures;
            }
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    let counts = format!("{logged} logged, {replayed} replayed, {failures} logs failed");
    assert!(logged > 0 && replayed > 0 && failures > 0, "{counts}");
    assert!(committed > 0 && truncated > 0, "{committed} COMMITs and {truncated} truncations");
}

#[test]
fn mistakes_are_found() {
    let mistakes = [
        Mistake::AnswersEarly,
        Mistake::AnswersOutOfOrder,
        Mistake::TrimsUnsynced,
        Mistake::NoBarrier,
        Mistake::ForgetsDoubt,
        Mistake::KeepsFailedLog,
        Mistake::ForgetsLogEarly,
        Mistake::CommitsOlder,
        Mistake::CommitsBehindSync,
    ];
    are_found(&mistakes, live);
}
