//! What came of a run, and of which place.

use harness::exit::Failure;
use load::basic as tests;
use load::basic::{Ended, Failed, Measured, Plan, Test};
use perf::record::Durability;

/// A run, whatever came of it.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(super) started: String,
    pub(super) measured: Vec<Measured>,
    /// Tests that were not begun, and the one that an interrupt has ended.
    pub(super) left: Vec<Test>,
    pub(super) place: Described,
    /// What is wrong with the place, or the way to it.
    pub(super) failure: Option<Failure>,
    /// The interrupt that ended it.
    pub(super) interrupted: Option<Failure>,
}

impl Ran {
    /// What was whole when it was interrupted, and nothing if no test was.
    pub(super) fn until(
        interrupted: Failure,
        started: String,
        mut measured: Vec<Measured>,
        (plan, place): (&Plan, Described),
    ) -> Result<Self, Failure> {
        measured.retain(|one| !matches!(one.ended, Some(Ended::Stopped | Ended::Broken { .. })));
        if measured.is_empty() {
            return Err(interrupted);
        }
        let is_left = |test: &&Test| measured.iter().all(|one| one.test != **test);
        let left = plan.tests.iter().filter(is_left).copied().collect();
        let failure = failed(&measured);
        Ok(Self { started, measured, left, place, failure, interrupted: Some(interrupted) })
    }
}

/// What was measured, for the record and for people.
#[derive(Clone, Debug, Default)]
pub(super) struct Described {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) file_system: String,
    pub(super) mount_options: Option<String>,
    pub(super) durability: Option<Durability>,
    /// What was answered survives that, in words, and why it is thought so.
    pub(super) survives: String,
    pub(super) cache: &'static str,
    pub(super) version: Option<u32>,
    pub(super) proto: Option<&'static str>,
    /// Calls that were retransmitted.
    pub(super) retransmissions: Option<u64>,
    pub(super) link: Option<String>,
}

/// What has ended the tests before their end, if it was no failed test: the way or the target.
pub(super) fn broken(outcome: &mut tests::Outcome, plan: &Plan, place: &str) -> Option<Failure> {
    let last = outcome.measured.last_mut()?;
    let number = last.test.number();
    match last.ended.replace(Ended::Stopped) {
        Some(Ended::Broken { error, is_alive }) => {
            let failure =
                Failure::from(error).and(format!("test {number} did not come to its end"));
            Some(match plan.in_place && !is_alive {
                true => failure.and(format!("its files may be left in {place}")),
                false => failure,
            })
        }
        Some(Ended::Stopped) => Some(Failure::interrupted()),
        ended => {
            last.ended = ended;
            None
        }
    }
}

/// The failure of those tests that failed.
pub(super) fn failed(measured: &[Measured]) -> Option<Failure> {
    let mut failed = measured.iter().filter_map(|one| match &one.ended {
        Some(Ended::Failed(failed)) => Some(failed),
        _ => None,
    });
    let first: &Failed = failed.next()?;
    let others: Vec<String> = failed.map(|other| other.test.number().to_string()).collect();
    let failure = Failure::check(first, advice(first));
    Some(match others.is_empty() {
        true => failure,
        false => failure.and(format!("tests {} failed, too", others.join(", "))),
    })
}

pub(super) fn advice(failed: &Failed) -> String {
    format!("the same test alone, --test {} -f, with a capture of it", failed.test.number())
}
