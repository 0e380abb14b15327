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

use harness::exit::Failure;
use harness::local;
use harness::output;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use load::basic::place::{Place, Refused};
use load::basic::{Ended, Failed, Leftovers, Measured, Outcome, Plan, Test, leftovers};
use net::clock::Clock;
use perf::record::Durability;
use perf::units::Nanos;

use crate::basic::args::Basic;

/// A run, whatever came of it.
#[derive(Debug)]
struct Ran {
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

/// Runs the command.
pub fn run(args: &Basic, verbosity: Verbosity) -> Result<(), Failure> {
    if !args.read.is_empty() {
        return read::run(args);
    }
    let plan = plan::of(args)?;
    output::check([&args.json])?;
    let is_told = output::prints_text(verbosity, [&args.json]);
    let ran = net::runtime::block_on(measure(args, &plan, is_told))
        .map_err(|cause| Failure::environment(cause, "raise the limit of open files"))??;
    if is_told {
        output::print(lines::end(&ran))?;
        output::print(&summary::text(&ran))?;
    }
    if let Some(json) = &args.json {
        output::write(json, &record::json(&ran, &plan))?;
    }
    ran.failure.map_or(Ok(()), Err)
}

async fn measure(args: &Basic, plan: &Plan, is_told: bool) -> Result<Ran, Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let work = Work { clock: &clock, args, plan, is_told };
    match (&args.target, &args.dir) {
        (Some(target), _) => target::run(&work, target, &mut interrupts).await,
        (None, Some(dir)) => dir::run(&work, dir, &mut interrupts).await,
        (None, None) => Err(Failure::usage("there is no place to work in", "--target or --dir")),
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Work<'a> {
    clock: &'a Clock,
    args: &'a Basic,
    plan: &'a Plan,
    is_told: bool,
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
fn broken(outcome: &mut Outcome, plan: &Plan, place: &str) -> Option<Failure> {
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
