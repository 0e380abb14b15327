//! The tests in their order, and what came of them.

use std::sync::atomic::AtomicBool;

use net::clock::Clock;

use super::check::Ended;
use super::clean::sweep;
use super::place::Place;
use super::site::{Measured, Site};
use super::{Plan, Test, attributes, data, lookups, names, readdir, statfs, symlinks, tree};

/// What happened, in order of time.
#[derive(Debug)]
pub struct Outcome {
    pub measured: Vec<Measured>,
    /// Tests that were planned and not begun.
    pub left: Vec<Test>,
}

/// What an observer sees.
#[derive(Debug)]
pub enum Event<'a> {
    Begins(Test),
    Ended(&'a Measured),
}

/// Runs the tests in `dir`, which is empty, or in which with [`Plan::in_place`] there is nothing
/// of the suite's names. They end with the first that does not pass, or with the last.
pub async fn run<P: Place>(
    clock: &Clock,
    place: &P,
    dir: &P::Dir,
    plan: &Plan,
    stop: &AtomicBool,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
) -> Outcome {
    let mut measured = Vec::new();
    let mut left = plan.tests.as_slice();
    // Test 2 removes what test 1 has made.
    let mut made_before = None;
    while let Some((&test, rest)) = left.split_first() {
        left = rest;
        observe(Event::Begins(test));
        let mut site = Site::new(clock, place, plan, test, stop);
        let made = made_before.take().filter(|_| test == Test::Remove);
        let keeps = test == Test::Create && left.first() == Some(&Test::Remove);
        let ended = site.in_ground(dir, made, keeps, &mut made_before).await.err();
        let one = site.measured(ended);
        observe(Event::Ended(&one));
        let goes_on = match one.ended {
            None | Some(Ended::Unsupported(_)) => true,
            Some(Ended::Failed(_)) => plan.keep_going,
            Some(Ended::Broken { .. } | Ended::Stopped) => false,
        };
        measured.push(one);
        if !goes_on {
            break;
        }
    }
    Outcome { measured, left: left.to_vec() }
}

impl<P: Place> Site<'_, P> {
    /// Runs the test in a directory of its own in `dir`, or in the one that the test before has
    /// `made` and left, or in `dir` itself; and cleans up. The next test gets what is `left`.
    async fn in_ground(
        &mut self,
        dir: &P::Dir,
        made: Option<P::Dir>,
        keeps: bool,
        left: &mut Option<P::Dir>,
    ) -> Result<(), Ended> {
        let place = self.place;
        let is_made = made.is_some();
        let number = if is_made { Test::Create.number() } else { self.test.number() };
        let name = format!("test{number}");
        let ground = match made {
            Some(ground) => ground,
            None if self.plan.in_place => dir.clone(),
            None => {
                self.above = Some(self.must("stat", ".", place.stat_dir(dir)).await?.fileid);
                self.must("mkdir", &name, place.make_dir(dir, &name)).await?;
                self.must("chdir", &name, place.enter(dir, &name)).await?.value
            }
        };
        let ended = self.run(&ground, is_made).await;
        if ended.is_ok() && keeps {
            *left = Some(ground);
            return ended;
        }
        if !matches!(ended, Err(Ended::Broken { is_alive: false, .. })) {
            // Of what cannot be removed the one who has made `dir` tells.
            sweep(place, &ground, self.plan, &[self.test]).await;
            if !self.plan.in_place {
                place.remove_dir(dir, &name).await.ok();
            }
        }
        ended
    }

    async fn run(&mut self, dir: &P::Dir, is_made: bool) -> Result<(), Ended> {
        match self.test {
            Test::Create => tree::create(self, dir).await,
            Test::Remove => tree::remove(self, dir, is_made).await,
            Test::Lookup => lookups::run(self, dir).await,
            Test::Attributes => attributes::run(self, dir).await,
            Test::Data => data::run(self, dir).await,
            Test::Readdir => readdir::run(self, dir).await,
            Test::Rename => names::run(self, dir).await,
            Test::Symlink => symlinks::run(self, dir).await,
            Test::Statfs => statfs::run(self, dir).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use perf::units::Nanos;

    use super::*;
    use crate::basic::Mode;
    use crate::basic::lines::Line;
    use crate::basic::local::Local;

    fn run_in(dir: &Path, plan: &Plan, stop: bool) -> (Outcome, Vec<Test>) {
        let (place, stop) = (Local::open(dir, plan.sync).unwrap(), AtomicBool::new(stop));
        let mut begun = Vec::new();
        let mut observe = |event: Event<'_>| {
            if let Event::Begins(test) = event {
                begun.push(test);
            }
        };
        let clock = Clock::real();
        let root = place.root();
        let run = run(&clock, &place, &root, plan, &stop, &mut observe);
        let outcome = net::runtime::block_on(run).unwrap();
        (outcome, begun)
    }

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn all_tests_pass_on_this_machines_file_system_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for (mode, in_place) in [(Mode::Functional, false), (Mode::Timed, true)] {
            // A file is a file and a pass a pass: fewer of them are done here.
            let count = (mode == Mode::Timed).then_some(3);
            let plan = Plan { mode, in_place, count, ..Plan::default() };
            let (outcome, begun) = run_in(dir.path(), &plan, false);
            let ended: Vec<_> = outcome.measured.iter().map(|one| &one.ended).collect();
            assert!(ended.iter().all(|ended| ended.is_none()), "{ended:?}");
            assert_eq!((begun.as_slice(), outcome.left.len()), (&Test::ALL[..], 0));
            let lines = outcome.measured.iter().flat_map(|one| &one.lines);
            assert_eq!(lines.count(), 10);
            assert_eq!(names(dir.path()), 0);
        }
    }

    #[test]
    fn what_is_waited_for_and_what_is_our_own_is_all_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { tests: vec![Test::Attributes], ..Plan::default() };
        let (outcome, _) = run_in(dir.path(), &plan, false);
        let one = &outcome.measured[0];
        assert_eq!(one.operations.count(), 2000, "a chmod and a stat, 1000 times");
        assert!(one.waited > Nanos::ZERO && one.own() > Nanos::ZERO);
        assert_eq!(one.waited + one.own(), one.elapsed);
        assert_eq!(one.lines[0].elapsed, one.elapsed);
    }

    #[test]
    fn a_run_that_is_stopped_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (outcome, _) = run_in(dir.path(), &Plan::default(), true);
        assert!(matches!(outcome.measured[0].ended, Some(Ended::Stopped)));
        assert_eq!((outcome.left.len(), names(dir.path())), (8, 0));
    }

    #[test]
    fn what_somebody_else_has_put_there_fails_test_6_unless_it_does_not_matter() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("precious"), "data").unwrap();
        let tests = vec![Test::Readdir];
        let mut plan = Plan { tests, in_place: true, count: Some(2), ..Plan::default() };
        let (outcome, _) = run_in(dir.path(), &plan, false);
        let Some(Ended::Failed(failed)) = &outcome.measured[0].ended else { panic!("{outcome:?}") };
        assert!(failed.to_string().contains("seen \"precious\""), "{failed}");
        plan.ignore_others = true;
        let (outcome, _) = run_in(dir.path(), &plan, false);
        assert!(outcome.measured[0].ended.is_none(), "{outcome:?}");
        assert_eq!(names(dir.path()), 1);
    }

    #[test]
    fn a_tree_of_one_level_without_directories_is_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        let tests = vec![Test::Create, Test::Remove];
        let (levels, dirs, files) = (Some(1), Some(0), Some(3));
        let plan = Plan { tests, levels, dirs, files, ..Plan::default() };
        let (outcome, _) = run_in(dir.path(), &plan, false);
        let lines: Vec<String> =
            outcome.measured.iter().flat_map(|one| &one.lines).map(Line::untimed).collect();
        assert_eq!(lines[0], "created 3 files 0 directories 1 levels deep");
        assert_eq!(lines[1], "removed 3 files 0 directories 1 levels deep");
        assert!(outcome.measured.iter().all(|one| one.ended.is_none()), "{outcome:?}");
    }
}
