//! A test at work: its directory, its clocks, and the comparison of what it sees.

use std::sync::atomic::{AtomicBool, Ordering};

use net::clock::Clock;
use perf::histogram::Histogram;
use perf::units::{Instant, Nanos};

use super::check::{Ended, Expect, Failed};
use super::lines::{Line, Work};
use super::place::{Answer, Change, Changes, Known, Place, Stat, WithAttributes};
use super::{Plan, Sizes, Test};
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

    /// A copy of what came to its end.
    pub fn whole(&self) -> Option<Self> {
        let ended = match &self.ended {
            None => None,
            Some(Ended::Failed(failed)) => Some(Ended::Failed(failed.clone())),
            Some(Ended::Unsupported(why)) => Some(Ended::Unsupported(why.clone())),
            Some(Ended::Broken { .. } | Ended::Stopped) => return None,
        };
        let (lines, operations) = (self.lines.clone(), self.operations.clone());
        Some(Self { lines, operations, ended, ..*self })
    }
}

/// A test at work: its numbers, its clocks, and where its results are compared.
pub(super) struct Site<'a, P> {
    pub(super) place: &'a P,
    pub(super) plan: &'a Plan,
    pub(super) sizes: Sizes,
    /// The number of the directory above the test's own, where there is one.
    pub(super) above: Option<u64>,
    pub(super) test: Test,
    clock: &'a Clock,
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
    pub(super) fn new(
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

    pub(super) fn measured(self, ended: Option<Ended>) -> Measured {
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

    /// Gets a file's attributes, which must be so; those of the LOOKUP must be the same.
    pub(super) async fn stat(
        &mut self,
        dir: &P::Dir,
        name: &str,
        expect: Expect,
    ) -> Result<Stat, Ended> {
        let place = self.place;
        let WithAttributes { value, stat: in_reply } =
            self.must("stat", name, place.stat(dir, name)).await?;
        self.compare(|| format!("stat {name}"), expect, &value)?;
        self.attributes_of_reply("lookup", name, Expect::all(&value), in_reply)?;
        Ok(value)
    }

    /// The name must lead nowhere.
    pub(super) async fn gone(&mut self, dir: &P::Dir, name: &str, why: &str) -> Result<(), Ended> {
        let place = self.place;
        let doing = format!("{why}: stat");
        self.must_fail(&doing, name, place.stat(dir, name), &[Known::NoEnt], "ENOENT").await
    }

    /// The directory's attributes in replies to changes must be those of a GETATTR.
    /// Both names must be free.
    pub(super) async fn changes(
        &mut self,
        dir: &P::Dir,
        which: Changes,
        names: (&str, &str),
    ) -> Result<(), Ended> {
        let place = self.place;
        let made = self.must("changes of", "the directory", place.changes(dir, which, names));
        for Change { doing, in_reply, by_getattr } in made.await? {
            // Somebody else may work in a directory that is not our own.
            let modified = Some(by_getattr.modified).filter(|_| !self.plan.in_place);
            let expect = Expect { modified, ..Expect::all(&by_getattr) };
            let step = || format!("{doing}, the attributes of the directory in the reply");
            in_reply.map_or(Ok(()), |in_reply| self.compare(step, expect, &in_reply))?;
        }
        Ok(())
    }

    /// Attributes that came with a reply, if they came.
    pub(super) fn attributes_of_reply(
        &self,
        doing: &str,
        name: &str,
        expect: Expect,
        in_reply: Option<Stat>,
    ) -> Result<(), Ended> {
        let step = || format!("{doing} {name}, the attributes in the reply");
        in_reply.map_or(Ok(()), |in_reply| self.compare(step, expect, &in_reply))
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
    let WithAttributes { value, stat } = site.must("create", name, place.create(dir, name)).await?;
    site.attributes_of_reply("create", name, Expect::EMPTY, stat)?;
    site.must("close", name, place.close(value)).await
}
