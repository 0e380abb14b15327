//! `nfskit bench basic`: the Connectathon suite's basic tests, on a server or in a directory, and
//! the reader of its logs.

pub mod args;
mod dir;
mod lines;
mod plan;
mod ran;
mod read;
mod record;
mod summary;
mod target;
mod work;

use std::path::PathBuf;
use std::sync::LazyLock;

use harness::exit::Failure;
use harness::output;
use harness::verbosity::Verbosity;
use load::basic::Plan;
use perf::record::Run as Record;
use serde_json::Value;

use self::ran::Ran;
use self::read::Named;
use self::work::Work;
use crate::basic::args::Basic;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Task {
    Tests(Plan),
    /// To read logs.
    Logs,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    Ran(Box<Ran>),
    Read(Vec<Named>),
}

impl Workload for Basic {
    type Plan = Task;
    type Measured = Done;

    fn plan(&self) -> Result<Task, Failure> {
        match self.read.is_empty() {
            true => plan::of(self).map(Task::Tests),
            false => Ok(Task::Logs),
        }
    }

    /// What was read goes somewhere.
    fn outputs(&self) -> Outputs<'_> {
        let csv = match self.read.is_empty() || self.json.is_some() {
            true => &self.csv,
            false => self.csv.as_ref().map_or_else(|| &*STDOUT, |_| &self.csv),
        };
        Outputs { csv, ..Outputs::json(&self.json) }
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.read.clone()
    }

    fn is_untimed(&self) -> bool {
        self.functional || !self.read.is_empty()
    }

    async fn run(&self, task: &Task, conditions: Conditions) -> Result<Outcome<Done>, Failure> {
        match task {
            Task::Tests(plan) => {
                let mut ran = measure(self, plan, conditions).await?;
                let ended = ran.interrupted.take().map_or(Ok(()), Err);
                Ok(Outcome::until(Some(Done::Ran(Box::new(ran))), ended))
            }
            Task::Logs => {
                let paths = self.read.clone();
                let read = conditions.read(move || read::logs(&paths)).await?;
                Ok(Outcome::whole(Done::Read(read)))
            }
        }
    }

    fn table(&self, _: &Task, done: &Done, _: Verbosity) -> String {
        match done {
            Done::Ran(ran) => format!("{}{}", lines::end(ran), summary::text(ran)),
            Done::Read(_) => String::new(),
        }
    }

    fn record(&self, task: &Task, done: &Done) -> Vec<Record> {
        match (task, done) {
            (Task::Tests(plan), Done::Ran(ran)) => vec![record::record(ran, plan)],
            _ => Vec::new(),
        }
    }

    fn document(&self, _: &Task, done: &Done) -> Option<Value> {
        match done {
            Done::Ran(_) => None,
            Done::Read(logs) => Some(read::as_json(logs)),
        }
    }

    fn csv(&self, _: &Task, done: &Done) -> String {
        match done {
            Done::Ran(_) => String::new(),
            Done::Read(logs) => read::csv(logs),
        }
    }

    fn verdict(&self, done: Done) -> Result<(), Failure> {
        match done {
            Done::Ran(ran) => ran.failure.map_or(Ok(()), Err),
            Done::Read(logs) => read::problems(&logs),
        }
    }
}

static STDOUT: LazyLock<Option<PathBuf>> = LazyLock::new(|| Some("-".into()));

async fn measure(
    args: &Basic,
    plan: &Plan,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<Ran, Failure> {
    let is_printed = output::prints_text(verbosity, [&args.json]);
    let work = Work { clock: &clock, args, plan, is_printed };
    match (&args.target, &args.dir) {
        (Some(target), _) => target::run(&work, target, &mut interrupts).await,
        (None, Some(dir)) => dir::run(&work, dir, &mut interrupts).await,
        (None, None) => Err(Failure::usage("there is no place to work in", "--target or --dir")),
    }
}
