//! What is to be run: lengths, kinds of files and numbers of tasks, each with each.

use harness::exit::Failure;
use load::tasks::{Names, Workload};

use crate::tasks::args::{FileNames, Tasks};

/// Tasks at once, as the thesis had them.
const TASKS: [u32; 6] = [1, 2, 4, 8, 10, 20];
/// Of its sweep.
const SWEEP_TASKS: u32 = 8;
/// Written before what counts, to wake caches and clocks.
const WARM_UP_BYTES_MAX: u64 = 1 << 20;
/// Largest call: a buffer of it is in memory.
const CALL_BYTES_MAX: u64 = 1 << 30;

/// One point of the benchmark.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Case {
    /// On all targets together.
    pub(super) tasks: u32,
    pub(super) workload: Workload,
    /// Only the tasks of this target run.
    pub(super) only: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) cases: Vec<Case>,
    pub(super) targets: usize,
    pub(super) clients: usize,
    pub(super) repeats: usize,
    /// Lengths grow from case to case.
    pub(super) is_sweep: bool,
}

impl Plan {
    /// Targets and clients of the tasks of a case, in their order: targets in turn, and the tasks
    /// of a target over its clients in turn.
    pub(super) fn seats(&self, case: &Case) -> Vec<(usize, usize)> {
        let seats = (0..case.tasks as usize)
            .map(|task| (task % self.targets, task / self.targets % self.clients));
        seats.filter(|(target, _)| case.only.is_none_or(|only| only == *target)).collect()
    }

    /// A task on each client of each target, with little to do.
    pub(super) fn warm_up(&self) -> Case {
        let first = self.cases[0].workload;
        let file_bytes = first.file_bytes.min(WARM_UP_BYTES_MAX);
        let tasks = u32::try_from(self.targets * self.clients).unwrap_or(u32::MAX);
        Case { tasks, workload: Workload { file_bytes, times: 1, ..first }, only: None }
    }

    /// Bytes that `target` must have room for.
    pub(super) fn room_bytes(&self, target: usize) -> u64 {
        let rooms = self.cases.iter().map(|case| {
            let tasks = self.seats(case).iter().filter(|(of, _)| *of == target).count() as u64;
            case.workload.room_bytes().saturating_mul(tasks)
        });
        rooms.max().unwrap_or(0)
    }
}

/// What the arguments ask for.
pub(super) fn of(args: &Tasks) -> Result<Plan, Failure> {
    let call_bytes = u32::try_from(args.call)
        .ok()
        .filter(|bytes| u64::from(*bytes) <= CALL_BYTES_MAX)
        .ok_or_else(|| Failure::usage("--call is above 1G", "a smaller --call"))?;
    let targets = args.target.len() + args.dir.len();
    if args.alone && targets < 2 {
        let what = "--alone is of several targets, and there is one";
        return Err(Failure::usage(what, "--target or --dir again"));
    }
    let (sizes, usual) = match &args.sweep {
        Some(sweep) => (&sweep.0, &[SWEEP_TASKS][..]),
        None => (&args.size, &TASKS[..]),
    };
    let tasks = if args.tasks.is_empty() { usual } else { &args.tasks };
    if let Some(few) = tasks.iter().find(|tasks| (**tasks as usize) < targets) {
        // A target without a task would be one that is not measured.
        let what = format!("{few} tasks for {targets} targets: each takes one at least");
        return Err(Failure::usage(what, "--tasks with as many as there are targets, or more"));
    }
    let mut cases = cases(args, call_bytes, sizes, tasks, targets);
    cases.dedup();
    let (clients, repeats) = (args.clients as usize, args.repeats as usize);
    let is_sweep = args.sweep.is_some();
    Ok(Plan { cases, targets, clients, repeats, is_sweep })
}

fn cases(args: &Tasks, call_bytes: u32, sizes: &[u64], tasks: &[u32], targets: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for files in &args.files {
        let names = match files {
            FileNames::Same => Names::Same,
            FileNames::Ten => Names::Different,
        };
        for &file_bytes in sizes {
            let workload =
                Workload { file_bytes, call_bytes, times: args.times, names, sync: args.sync };
            for &tasks in tasks {
                let only = |only| Case { tasks, workload, only };
                cases.push(only(None));
                if args.alone {
                    cases.extend((0..targets).map(|target| only(Some(target))));
                }
            }
        }
    }
    cases
}

/// As a record and a CSV call it.
pub(super) const fn files(names: Names) -> &'static str {
    match names {
        Names::Same => "same",
        Names::Different => "different",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::tasks::args::Tasks;

    fn planned(words: &str) -> Result<Plan, Failure> {
        let words = format!("tasks {words}");
        of(&Tasks::try_parse_from(words.split_whitespace()).unwrap())
    }

    #[test]
    fn by_default_it_is_the_thesis_with_its_1_mb_file() {
        let plan = planned("--dir /tmp").unwrap();
        let tasks: Vec<u32> = plan.cases.iter().map(|case| case.tasks).collect();
        assert_eq!(tasks, [1, 2, 4, 8, 10, 20]);
        let work = plan.cases[0].workload;
        assert_eq!((work.file_bytes, work.call_bytes, work.times), (1 << 20, 8192, 10));
        assert_eq!(plan.room_bytes(0), 20 << 20);
        let ten = planned("--dir /tmp --files ten --size 32M").unwrap();
        assert_eq!(ten.room_bytes(0), 20 * 10 * (32 << 20));
    }

    #[test]
    fn tasks_go_to_targets_in_turn_and_then_to_their_clients() {
        let plan = planned("--target nfs://a/x --dir /b --clients 2 --tasks 5 --alone").unwrap();
        assert_eq!(plan.seats(&plan.cases[0]), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0)]);
        assert_eq!(plan.seats(&plan.cases[2]), [(1, 0), (1, 1)]);
        assert_eq!(plan.cases.len(), 3);
        assert_eq!((plan.room_bytes(0), plan.room_bytes(1)), (3 << 20, 2 << 20));
        assert_eq!(plan.warm_up().tasks, 4);
    }

    #[test]
    fn what_does_not_go_together_is_reported() {
        for (words, part) in [
            ("--dir /a --dir /b --tasks 1", "1 tasks for 2 targets"),
            ("--dir /a --alone", "--alone"),
            ("--dir /a --call 2G", "--call"),
        ] {
            assert!(planned(words).unwrap_err().what().contains(part), "{words}");
        }
        let sweep = planned("--dir /a --sweep --files same,ten").unwrap();
        assert_eq!((sweep.cases.len(), sweep.cases[0].tasks), (24, 8));
    }
}
