//! `nfskit bench tasks`: parallel writers on servers and in directories.

pub mod args;
mod plan;
mod record;
mod summary;
mod targets;

use harness::csv;
use harness::exit::Failure;
use harness::output::Bars;
use harness::records;
use harness::verbosity::Verbosity;
use load::tasks::{self as writers, Run};
use net::clock::Clock;
use perf::record::Run as Record;
use perf::stats::Sample;

use self::plan::{Case, Plan};
use self::targets::{Place, Targets};
use crate::tasks::args::Tasks;
use crate::workload::{self, Conditions, Outputs, Workload};

/// All repetitions of one case.
#[derive(Debug)]
struct Measured {
    case: Case,
    runs: Vec<Run>,
}

impl Measured {
    /// Of the repetitions; there is one at least.
    fn sample(&self, value: impl Fn(&Run) -> f64) -> Option<Sample> {
        records::sample(self.runs.iter().map(value).filter(|value| value.is_finite()))
    }

    /// The repetition with the median time until the last task had ended.
    fn typical(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.wall);
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// Share of one processor that this process used: its tasks, and our client.
    fn own_share(&self) -> f64 {
        let cpu: f64 = self.runs.iter().map(|run| run.cpu.as_secs_f64()).sum();
        cpu / self.runs.iter().map(|run| run.cpu_span.as_secs_f64()).sum::<f64>()
    }
}

/// Everything that came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    places: Vec<Place>,
    measured: Vec<Measured>,
}

impl Workload for Tasks {
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
        let targets = Targets::look(&clock, self, plan, &mut interrupts).await?;
        let empty = |case: &Case| Measured { case: *case, runs: Vec::new() };
        let mut measured: Vec<Measured> = plan.cases.iter().map(empty).collect();
        let ended = interrupts.or(all(&clock, plan, &targets, verbosity, &mut measured)).await;
        let places = targets.places().to_vec();
        let ended = targets.release(ended).await;
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

/// Every case, every repetition, in alternation.
async fn all(
    clock: &Clock,
    plan: &Plan,
    targets: &Targets<'_>,
    verbosity: Verbosity,
    measured: &mut [Measured],
) -> Result<(), Failure> {
    let seats = targets.seats().await?;
    let mut bars = Bars::new(verbosity);
    let warm_up = plan.warm_up();
    writers::run(clock, &seats.of(&warm_up), &warm_up.workload).await.map_err(Failure::from)?;
    let all = plan.cases.len() * plan.repeats;
    for repeat in 0..plan.repeats {
        for turn in 0..plan.cases.len() {
            // Another one comes first each time: what is left behind is not always the same one's.
            let index = (turn + repeat) % plan.cases.len();
            let case = plan.cases[index];
            let run = writers::run(clock, &seats.of(&case), &case.workload).await;
            measured[index].runs.push(run.map_err(Failure::from)?);
            let done = repeat * plan.cases.len() + turn + 1;
            bars.show("parallel writers", done as f64 / all as f64);
        }
    }
    bars.clear();
    seats.shut_down().await;
    Ok(())
}

const COLUMNS: &str = "file_bytes,call_bytes,files,times,tasks,alone,repeat,task,target,client,\
                       seconds,mbit_per_s";

/// Every task of every run, one a line.
fn csv(outcome: &Outcome) -> String {
    csv::text(COLUMNS, |rows| {
        for Measured { case, runs } in &outcome.measured {
            let work = &case.workload;
            for (repeat, run) in runs.iter().enumerate() {
                for (number, task) in run.tasks.iter().enumerate() {
                    rows.add((
                        (work.file_bytes, work.call_bytes, plan::files(work.names), work.times),
                        (case.tasks, case.only.is_some(), repeat, number),
                        (&outcome.places[task.target].name, task.client),
                        format!("{:.9}", task.span.as_secs_f64()),
                        format!("{:.3}", run.task_mbit_per_s(task)),
                    ));
                }
            }
        }
    })
}
