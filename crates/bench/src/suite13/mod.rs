//! `nfskit bench suite13`: thirteen tests on several places side by side.

pub mod args;
mod calls;
mod failure;
pub(crate) mod measured;
mod plan;
mod record;
mod summary;
mod target;
mod targets;
mod thread;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use harness::csv;
use harness::exit::Failure;
use harness::output::Bars;
use harness::verbosity::Verbosity;
use load::suite13::{self as suite, Failed, Material, Test};
use net::clock::Clock;
use perf::record::Run as Record;
use perf::units::Nanos;

use self::calls::Calls;
use self::failure::failure;
use self::measured::{Measured, Outcome, Ran};
pub(crate) use self::plan::Plan;
use self::target::Target;
use self::targets::Targets;
use self::thread::blocking;
use crate::suite13::args::Suite13;
use crate::workload::{self, Conditions, Outputs, Workload};

impl Workload for Suite13 {
    type Plan = Plan;
    type Measured = Outcome;

    fn plan(&self) -> Result<Plan, Failure> {
        plan::of(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { csv: &self.csv, ..Outputs::json(&self.json) }
    }

    /// Our clients and mounts answer on other threads than those that wait for them.
    fn is_on_all_processors(&self) -> bool {
        true
    }

    async fn run(
        &self,
        plan: &Plan,
        Conditions { clock, mut interrupts, verbosity }: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let mut targets = Targets::look(&clock, self, plan, &mut interrupts).await?;
        let mut measured = plan.rows(targets.all.len());
        let work = all(&clock, plan, &mut targets.all, verbosity, &mut measured);
        let ended = interrupts.or(work).await;
        let places = targets.all.iter().map(|target| target.described.clone()).collect();
        let ended = targets.release(&clock, ended).await;
        measured.retain(|one| !one.runs.is_empty());
        let measured = (!measured.is_empty()).then_some(Outcome { places, measured });
        Ok(workload::Outcome::until(measured, ended))
    }

    fn table(&self, plan: &Plan, outcome: &Outcome, _: Verbosity) -> String {
        summary::text(outcome, plan)
    }

    fn record(&self, plan: &Plan, outcome: &Outcome) -> Vec<Record> {
        record::all(outcome, plan, self)
    }

    fn csv(&self, _: &Plan, outcome: &Outcome) -> String {
        csv(outcome)
    }
}

/// Every place, every number of copies, every test, every repetition.
async fn all(
    clock: &Clock,
    plan: &Plan,
    targets: &mut [Target],
    verbosity: Verbosity,
    measured: &mut [Measured],
) -> Result<(), Failure> {
    let mut bars = Bars::new(verbosity);
    let material = plan.material().await?;
    let mut stage = Stage { clock, plan, material: plan.warm_up().await?, number: 0 };
    for target in targets.iter_mut() {
        target.mount().await?;
        target.is_enough(plan, &material)?;
        stage.phase(target, 1, |_, _| {}).await?;
    }
    stage.material = material;
    let steps = (plan.repeats * targets.len() * plan.copies.len() * plan.tests.len()) as f64;
    let mut done = 0.0;
    for repeat in 0..plan.repeats {
        for turn in 0..targets.len() {
            // Another place comes first each time: what one leaves behind is not always the same
            // one's.
            let index = (turn + repeat) % targets.len();
            for &copies in &plan.copies {
                let phase = stage.phase(&targets[index], copies, |test, ran| {
                    let row = measured
                        .iter_mut()
                        .find(|row| (row.target, row.copies, row.test) == (index, copies, test));
                    if let Some(row) = row {
                        row.runs.push(ran);
                    }
                    done += 1.0;
                    bars.show("thirteen tests", done / steps);
                });
                let name = &targets[index].described.name;
                let at = |failure: Failure| failure.and(format!("in {name}, {copies} at once"));
                phase.await.map_err(at)?;
            }
        }
    }
    bars.clear();
    Ok(())
}

/// What all phases have in common.
struct Stage<'a> {
    clock: &'a Clock,
    plan: &'a Plan,
    material: Arc<Material>,
    number: u32,
}

impl Stage<'_> {
    /// All tests, by so many copies, in fresh directories, which are removed at the end.
    async fn phase(
        &mut self,
        target: &Target,
        copies: u32,
        mut observe: impl FnMut(Test, Ran),
    ) -> Result<(), Failure> {
        self.number += 1;
        let name = |copy| target.top().join(format!("run{}-copy{copy}", self.number));
        let dirs: Arc<Vec<PathBuf>> = Arc::new((1..=copies).map(name).collect());
        let (material, made) = (Arc::clone(&self.material), Arc::clone(&dirs));
        let prepare = move |stop: &AtomicBool| {
            made.iter().try_for_each(|dir| suite::prepare(&material, dir, stop))
        };
        blocking(prepare).await?.map_err(failure)?;
        for &test in &self.plan.tests {
            let ran = self.test(target, test, &dirs).await;
            let ran = ran.map_err(|failure| failure.and(format!("test {}", test.number())))?;
            observe(test, ran);
        }
        let remove = move |_: &AtomicBool| dirs.iter().try_for_each(|dir| remove(dir));
        blocking(remove).await?.map_err(failure)
    }

    async fn test(
        &self,
        target: &Target,
        test: Test,
        dirs: &Arc<Vec<PathBuf>>,
    ) -> Result<Ran, Failure> {
        let (material, own) = (Arc::clone(&self.material), Arc::clone(dirs));
        let chosen = self.plan.tests.clone();
        let catch_up = move |stop: &AtomicBool| {
            own.iter().try_for_each(|dir| suite::catch_up(test, &chosen, &material, dir, stop))
        };
        blocking(catch_up).await?.map_err(failure)?;
        target.cool(self.plan, test, dirs).await?;
        let before = target.calls().await?;
        let (material, own) = (Arc::clone(&self.material), Arc::clone(dirs));
        let (clock, sync) = (self.clock.clone(), self.plan.sync);
        let run = move |stop: &AtomicBool| suite::run(&clock, test, &material, &own, sync, stop);
        let run = blocking(run).await?.map_err(failure)?;
        let calls = target.calls().await?.zip(before).map(|(after, before)| after.since(&before));
        let ran = Ran {
            elapsed: run.elapsed,
            flushed: run.flushed,
            copies: run.copies.iter().map(|copy| copy.span).collect(),
            cpu: run.cpu + calls.as_ref().map_or(Nanos::ZERO, |calls| calls.cpu),
            calls,
        };
        let (material, own) = (Arc::clone(&self.material), Arc::clone(dirs));
        let check = move |stop: &AtomicBool| suite::check(test, &material, &own, &run, stop);
        blocking(check).await?.map_err(failure)?;
        Ok(ran)
    }
}

fn remove(dir: &Path) -> Result<(), Failed> {
    let failed = |cause| Failed::System { doing: "removing", path: dir.to_owned(), cause };
    std::fs::remove_dir_all(dir).map_err(failed)
}

const COLUMNS: &str = "place,copies,repeat,test,name,elapsed_s,flushed_s,first_copy_s,calls,each";

/// Every run of every test, one a line.
fn csv(outcome: &Outcome) -> String {
    csv::text(COLUMNS, |rows| {
        for one in &outcome.measured {
            let place = &outcome.places[one.target].name;
            for (repeat, ran) in one.runs.iter().enumerate() {
                let seconds = |span: Nanos| format!("{:.9}", span.as_secs_f64());
                let first = ran.copies.iter().min().copied().unwrap_or_default();
                rows.add((
                    (place, one.copies, repeat, one.test.number(), one.test.name()),
                    (seconds(ran.elapsed), ran.flushed.map(seconds), seconds(first)),
                    ran.calls.as_ref().map(|calls| calls.total()),
                    ran.calls.as_ref().map(Calls::words),
                ));
            }
        }
    })
}
