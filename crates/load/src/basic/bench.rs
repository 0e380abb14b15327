//! The tests in their order, and what each step of them takes.

use std::sync::atomic::{AtomicBool, Ordering};

use net::clock::Clock;
use perf::histogram::Histogram;
use perf::units::{Instant, Nanos};

use super::check::{Ended, Expect, Failed};
use super::clean::sweep;
use super::lines::{Line, Work};
use super::place::{Answer, Known, Place, Stat, Told};
use super::{Plan, Sizes, Test, attributes, data, lookups, names, readdir, space, symlinks, tree};
use crate::cpu::Usage;

/// A test that was run.
#[derive(Debug)]
pub struct Measured {
    pub test: Test,
    /// What the suite prints of it.
    pub lines: Vec<Line>,
    /// Times of the operations that count.
    pub operations: Histogram,
    /// The time that counts, and the part of it in which an operation was waited for.
    pub elapsed: Nanos,
    pub waited: Nanos,
    /// Processor time of this process from the beginning of the test to its end.
    pub cpu: Nanos,
    /// `None` when it passed.
    pub ended: Option<Ended>,
}

impl Measured {
    /// The time that counts and was neither the target's nor the way's, but ours.
    pub fn own(&self) -> Nanos {
        self.elapsed.saturating_sub(self.waited)
    }
}

/// What happened, in order of time.
#[derive(Debug)]
pub struct Outcome {
    pub measured: Vec<Measured>,
    /// Tests that were planned and not begun.
    pub left: Vec<Test>,
}

/// What an observer is told.
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
    let mut kept = None;
    while let Some((&test, rest)) = left.split_first() {
        left = rest;
        observe(Event::Begins(test));
        let mut site = Site::new(clock, place, plan, test, stop);
        let made = kept.take().filter(|_| test == Test::Remove);
        let keeps = test == Test::Create && left.first() == Some(&Test::Remove);
        let ended = site.in_ground(dir, made, keeps, &mut kept).await.err();
        let one = site.measured(ended);
        observe(Event::Ended(&one));
        let goes_on = match one.ended {
            None | Some(Ended::Unsupported(_)) => true,
            Some(Ended::Failed(_)) => plan.keep_going,
            Some(Ended::Broken(_) | Ended::Stopped) => false,
        };
        measured.push(one);
        if !goes_on {
            break;
        }
    }
    Outcome { measured, left: left.to_vec() }
}

/// A test at work: its numbers, its clocks, and where its results are compared.
pub(super) struct Site<'a, P> {
    pub(super) place: &'a P,
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    /// The number of the directory above the test's own, where there is one.
    pub(super) above: Option<u64>,
    clock: &'a Clock,
    test: Test,
    stop: &'a AtomicBool,
    cpu: Usage,
    /// When the clock was started; `None` while it stands.
    started: Option<Instant>,
    /// Since it was last started from zero.
    elapsed: Nanos,
    total: Nanos,
    waited: Nanos,
    operations: Histogram,
    lines: Vec<Line>,
}

impl<'a, P: Place> Site<'a, P> {
    fn new(
        clock: &'a Clock,
        place: &'a P,
        plan: &'a Plan,
        test: Test,
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            place,
            plan,
            sizes: plan.sizes(test),
            above: None,
            clock,
            test,
            stop,
            cpu: Usage::now(),
            started: None,
            elapsed: Nanos::ZERO,
            total: Nanos::ZERO,
            waited: Nanos::ZERO,
            operations: Histogram::new(),
            lines: Vec::new(),
        }
    }

    fn measured(self, ended: Option<Ended>) -> Measured {
        Measured {
            test: self.test,
            lines: self.lines,
            operations: self.operations,
            elapsed: self.total,
            waited: self.waited,
            cpu: Usage::now().since(self.cpu).process,
            ended,
        }
    }

    /// Runs the test in a directory of its own in `dir`, or in the one that the test before has
    /// `made` and left, or in `dir` itself; and cleans up. What the next test needs is `kept`.
    async fn in_ground(
        &mut self,
        dir: &P::Dir,
        made: Option<P::Dir>,
        keeps: bool,
        kept: &mut Option<P::Dir>,
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
            *kept = Some(ground);
            return ended;
        }
        if !matches!(ended, Err(Ended::Broken(_))) {
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
            Test::Statfs => space::run(self, dir).await,
        }
    }

    /// From here on it counts.
    pub(super) fn start(&mut self) {
        self.elapsed = Nanos::ZERO;
        self.started = Some(self.clock.now());
    }

    /// What follows does not count.
    pub(super) fn stop(&mut self) {
        if let Some(started) = self.started.take() {
            self.elapsed += self.clock.now().since(started);
            self.total += self.elapsed;
        }
    }

    /// This was done since the clock was started.
    pub(super) fn line(&mut self, work: Work, numbers: [u64; 3]) {
        self.lines.push(Line { work, numbers, elapsed: self.elapsed });
    }

    async fn call<T>(
        &mut self,
        call: impl Future<Output = Answer<T>> + Send,
    ) -> Result<Answer<T>, Ended> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Ended::Stopped);
        }
        if self.started.is_none() {
            return Ok(call.await);
        }
        let before = self.clock.now();
        let answer = call.await;
        let took = self.clock.now().since(before);
        self.waited += took;
        self.operations.record(took);
        Ok(answer)
    }

    /// An operation that must succeed.
    pub(super) async fn must<T>(
        &mut self,
        doing: &str,
        name: &str,
        call: impl Future<Output = Answer<T>> + Send,
    ) -> Result<T, Ended> {
        let refused = match self.call(call).await? {
            Ok(value) => return Ok(value),
            Err(refused) => refused,
        };
        match refused.known {
            None | Some(Known::Environment) => Err(refused.into()),
            Some(Known::NotSupp) => Err(Ended::Unsupported(refused.answer())),
            Some(_) => {
                let step = format!("{doing} {name}");
                Err(self.failed(step, "success", refused.answer()))
            }
        }
    }

    /// An operation that must fail, with one of these errors, the first of which has this name.
    pub(super) async fn must_fail<T>(
        &mut self,
        doing: &str,
        name: &str,
        call: impl Future<Output = Answer<T>> + Send,
        known: &[Known],
        error: &str,
    ) -> Result<(), Ended> {
        let step = || format!("{doing} {name}");
        match self.call(call).await? {
            Ok(_) => Err(self.failed(step(), error, "success")),
            Err(refused) => match refused.known {
                Some(answer) if known.contains(&answer) => Ok(()),
                None | Some(Known::Environment) => Err(refused.into()),
                Some(_) => Err(self.failed(step(), error, refused.answer())),
            },
        }
    }

    /// Asks for a file's attributes, which must be so; what finding it told must be the same.
    pub(super) async fn stat(
        &mut self,
        dir: &P::Dir,
        name: &str,
        expect: Expect,
    ) -> Result<Stat, Ended> {
        let place = self.place;
        let Told { value, stat: told } = self.must("stat", name, place.stat(dir, name)).await?;
        self.compare(|| format!("stat {name}"), expect, &value)?;
        self.told("lookup", name, Expect::all(&value), told)?;
        Ok(value)
    }

    /// The name must lead nowhere.
    pub(super) async fn gone(&mut self, dir: &P::Dir, name: &str, why: &str) -> Result<(), Ended> {
        let place = self.place;
        let doing = format!("{why}: stat");
        self.must_fail(&doing, name, place.stat(dir, name), &[Known::NoEnt], "ENOENT").await
    }

    /// Attributes that came with a reply, if they came.
    pub(super) fn told(
        &self,
        doing: &str,
        name: &str,
        expect: Expect,
        told: Option<Stat>,
    ) -> Result<(), Ended> {
        let step = || format!("{doing} {name}, the attributes in the reply");
        told.map_or(Ok(()), |told| self.compare(step, expect, &told))
    }

    pub(super) fn compare(
        &self,
        step: impl FnOnce() -> String,
        expect: Expect,
        seen: &Stat,
    ) -> Result<(), Ended> {
        match expect.difference(seen) {
            None => Ok(()),
            Some((expected, seen)) => Err(self.failed(step(), expected, seen)),
        }
    }

    pub(super) fn failed(
        &self,
        step: impl Into<String>,
        expected: impl Into<String>,
        seen: impl Into<String>,
    ) -> Ended {
        Ended::Failed(Failed {
            test: self.test,
            step: step.into(),
            expected: expected.into(),
            seen: seen.into(),
        })
    }
}

/// Makes an empty file, as creat(2) and close(2) do.
pub(super) async fn make_file<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    name: &str,
) -> Result<(), Ended> {
    let place = site.place;
    let Told { value, stat } = site.must("create", name, place.create(dir, name)).await?;
    site.told("create", name, Expect::EMPTY, stat)?;
    site.must("close", name, place.close(value)).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Mode;
    use super::super::local::Local;
    use super::*;

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
