//! `nfskit bench basic`: the Connectathon suite's basic tests, on a server or in a directory, and
//! the reader of its logs.

pub mod args;
mod dir;
mod lines;
mod plan;
mod read;
mod record;
mod summary;
mod target;

use std::path::PathBuf;
use std::sync::LazyLock;

use harness::exit::Failure;
use harness::local;
use harness::output;
use harness::verbosity::Verbosity;
use load::basic::place::{Place, Refused};
use load::basic::{self as tests, Ended, Failed, Leftovers, Measured, Plan, Test, leftovers};
use net::clock::Clock;
use perf::record::{Durability, Run as Record};
use perf::units::Nanos;
use serde_json::Value;

use self::read::Named;
use crate::basic::args::Basic;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// A run, whatever came of it.
#[derive(Debug)]
pub(crate) struct Ran {
    started: String,
    measured: Vec<Measured>,
    /// Tests that were not begun.
    left: Vec<Test>,
    place: Described,
    /// Why it has no more.
    failure: Option<Failure>,
}

/// What was measured, for the record and for people.
#[derive(Clone, Debug, Default)]
struct Described {
    kind: &'static str,
    name: String,
    file_system: String,
    mount_options: Option<String>,
    durability: Option<Durability>,
    /// What was answered survives that, in words, and why it is thought so.
    survives: String,
    cache: &'static str,
    version: Option<u32>,
    proto: Option<&'static str>,
    /// Calls that were retransmitted.
    retransmissions: Option<u64>,
    link: Option<String>,
}

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

    async fn run(&self, task: &Task, conditions: Conditions) -> Result<Outcome<Done>, Failure> {
        let done = match task {
            Task::Tests(plan) => Done::Ran(Box::new(measure(self, plan, conditions).await?)),
            Task::Logs => {
                let paths = self.read.clone();
                Done::Read(conditions.read(move || read::logs(&paths)).await?)
            }
        };
        Ok(Outcome::whole(done))
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

/// What the command line chooses.
#[derive(Clone, Copy)]
struct Work<'a> {
    clock: &'a Clock,
    args: &'a Basic,
    plan: &'a Plan,
    is_printed: bool,
}

/// Names that a message lists.
const NAMES_MAX: usize = 3;
/// Made and removed in a directory that is worked in itself, before anything else is.
const PROBE: &str = ".nfskit-scratch-probe";

/// A directory that is worked in itself may be written in, and nothing of ours is there.
async fn is_fit<P: Place>(place: &P, dir: &P::Dir, plan: &Plan) -> Result<(), Failure> {
    let show = place.show(dir);
    let Leftovers { ours, others } = leftovers(place, dir).await.map_err(refused)?;
    if !ours.is_empty() {
        let what = format!("{show} has names that the tests use: {}", list(&ours));
        return Err(Failure::environment(
            what,
            "remove what an earlier run has left there, or run without -n",
        ));
    }
    if !others.is_empty() && !plan.ignore_others && plan.tests.contains(&Test::Readdir) {
        let what = format!("{show} is not empty, and test 6 lists it: {}", list(&others));
        return Err(Failure::environment(what, "-i, which ignores others, or run without -n"));
    }
    let made = place.create(dir, PROBE).await.map_err(refused)?;
    place.close(made.value).await.map_err(refused)?;
    place.remove(dir, PROBE).await.map_err(refused)
}

fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn refused(refused: Refused) -> Failure {
    Failure::from(refused.error)
}

/// Whether test 5's file has room, and a little is left.
fn is_enough(place: &str, free: u64, plan: &Plan) -> Result<(), Failure> {
    if !plan.tests.contains(&Test::Data) {
        return Ok(());
    }
    let advice = "free space there, a smaller --size, or --test without 5";
    local::room(place, plan.file_bytes, free, advice)
}

/// What has ended the tests before their end, if it was no failed test: the way or the target.
fn broken(outcome: &mut tests::Outcome, plan: &Plan, place: &str) -> Option<Failure> {
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
fn failed(measured: &[Measured]) -> Option<Failure> {
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

fn advice(failed: &Failed) -> String {
    format!("the same test alone, --test {} -f, with a capture of it", failed.test.number())
}

/// How long cleaning up may take when a run is interrupted.
const CLEAN_LIMIT: Nanos = Nanos::from_secs(20);
