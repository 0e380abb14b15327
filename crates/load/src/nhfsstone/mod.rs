//! nhfsstone: Legato's benchmark of 1990, at the wire.
//!
//! What it stresses: a server, with a mix of calls that nfsstat has counted somewhere, at a rate
//! that is given and below what the server can do. Its results are the mix that was generated, the
//! time, the calls, their rate, and their mean time; Sun's tuning guide of 1990 plots the last over
//! the one before. LADDIS and SFS came from it. Numbers here are those of version 1.22.
//!
//! - `choice`: which operation comes next, so that the calls come to be the mix.
//! - `pace`: how long a task sleeps before it, so that the calls come to be the rate.
//! - `files`: the 40 files of a task, and what an operation does with them.
//! - [`outcome`]: the results, and whether they count.
//!
//! How it differs:
//! - The original makes system calls and reads the kernel's counters to see what became of them;
//!   this makes the calls of the protocol, and knows each. There is no client cache to be cheated:
//!   its long names and its reopened files are there, and have nothing left to do.
//! - An operation is as many calls as the original counts for it: a file that is read is a GETATTR
//!   and a READ of each of its blocks, one that is written a LOOKUP, a GETATTR and WRITEs; what
//!   there is enough of already is left out of that, as a cache would. WRITEs are stable, as all
//!   of version 2 are, unless the mix has COMMITs.
//! - Rewritten files keep their length, so that the lengths stay those of the benchmark.
//! - It sleeps as long as it means to, where the original could not sleep less than 20 ms.
//! - Operations of version 3 may be in the mix.
//! - A time counts from when the operation was due, which is when its task has slept. As in the
//!   original a task that waits for an answer asks for nothing else, so that a server that stops
//!   shows in the rate and in [`Outcome::behind_max`] rather than in the times; the workload
//!   `curve` is the one that counts from a schedule.

mod choice;
mod files;
pub mod outcome;
mod pace;

use std::pin::pin;

use client::error::Error as ClientError;
use client::session::Session;
use fastrand::Rng;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;

pub use outcome::Outcome;

use self::choice::Choice;
use self::files::{Call, Files};
use self::pace::Pace;
pub use self::plan::Plan;
use crate::error::Error;
use crate::mix::Operation;
use crate::space;

/// What the benchmark does without options.
pub const CALLS: u64 = 5_000;
pub const TASKS: usize = 7;

/// A server's directory for some of the tasks.
#[derive(Clone, Debug)]
pub struct Place {
    pub session: Session,
    pub dir: FileHandle,
}

/// The tasks' files, made.
#[derive(Debug)]
pub struct Prepared {
    tasks: Vec<Task>,
}

#[derive(Debug)]
struct Task {
    session: Session,
    files: Files,
    random: Rng,
}

/// Makes the files of all tasks, which go to the places in turn. Tells how much is done.
///
/// # Errors
/// Any call's, or no place.
pub async fn prepare(
    places: &[Place],
    plan: &Plan,
    mut tell: impl FnMut(f64),
) -> Result<Prepared, Error> {
    if places.is_empty() {
        return Err(Error::TooFew { what: "nhfsstone: there is no directory" });
    }
    let random = |number: usize| Rng::with_seed(plan.seed.wrapping_add(number as u64));
    for (first, Place { session, dir }) in places.iter().enumerate() {
        let tasks = (first..plan.tasks).step_by(places.len());
        let need = tasks.map(|number| files::need(&mut random(number))).sum();
        space::check(session, *dir, need).await?;
    }
    let mut tasks = Vec::new();
    for number in 0..plan.tasks {
        let Place { session, dir } = &places[number % places.len()];
        let mut random = random(number);
        let files = Files::make(session, *dir, number, &mut random).await?;
        tasks.push(Task { session: session.clone(), files, random });
        tell(tasks.len() as f64 / plan.tasks.max(1) as f64);
    }
    Ok(Prepared { tasks })
}

/// Runs it; `stopped` ends it before its end. `observe` is called at every call's end.
///
/// # Errors
/// No timer. A call without an answer ends the run, and stands in the outcome.
pub async fn run(
    clock: &Clock,
    prepared: Prepared,
    plan: &Plan,
    observe: &mut (dyn FnMut(&Outcome) + Send),
    stopped: impl Future<Output = ()>,
) -> (Outcome, Option<ClientError>) {
    let begin = clock.now();
    let mut driver = Driver {
        choice: Choice::new(&plan.mix),
        pace: Pace::new(plan, begin),
        outcome: Outcome::new(plan),
        random: Rng::with_seed(plan.seed ^ u64::MAX),
        begin,
        is_stable: !plan.mix.commits(),
        clock: clock.clone(),
    };
    let mut events: FuturesUnordered<BoxFuture<'static, Event>> = FuturesUnordered::new();
    for task in prepared.tasks {
        events.push(driver.sleep(task, begin));
    }
    let mut broken = None;
    let mut stopped = pin!(stopped);
    loop {
        let event = tokio::select! {
            biased;
            () = &mut stopped => break,
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        let now = clock.now();
        match event {
            Event::Awake { task, due } if driver.outcome.calls() < plan.calls => {
                events.push(driver.begin(task, due));
            }
            Event::Awake { .. } => {}
            Event::Done { task, calls, ended } => {
                driver.count(&calls, now);
                observe(&driver.outcome);
                if let Err(error) = ended {
                    broken = Some(error);
                    break;
                }
                if driver.outcome.calls() < plan.calls {
                    events.push(driver.sleep(task, now));
                }
            }
        }
    }
    (driver.outcome, broken)
}

enum Event {
    /// A task has slept, until `due` or a little longer.
    Awake { task: Task, due: Instant },
    /// An operation has had its answers, or an error that is none.
    Done { task: Task, calls: Vec<Call>, ended: Result<(), ClientError> },
}

struct Driver {
    choice: Choice,
    pace: Pace,
    outcome: Outcome,
    random: Rng,
    begin: Instant,
    is_stable: bool,
    clock: Clock,
}

impl Driver {
    fn sleep(&mut self, task: Task, now: Instant) -> BoxFuture<'static, Event> {
        let span = self.pace.sleep(&mut self.random);
        let clock = self.clock.clone();
        async move {
            let due = now + span;
            match clock.alarm() {
                Ok(mut alarm) => alarm.until(due).await,
                // Out of descriptors: a millisecond late is better than not at all.
                Err(_) => clock.sleep(span).await,
            }
            Event::Awake { task, due }
        }
        .boxed()
    }

    fn begin(&mut self, mut task: Task, due: Instant) -> BoxFuture<'static, Event> {
        let operation = self.choice.next(&self.outcome, &mut self.random);
        let (clock, is_stable) = (self.clock.clone(), self.is_stable);
        let has = |operation| {
            let wanted = 100.0 * self.outcome.mix.share(operation);
            wanted > 0.0 && self.outcome.percent(operation) <= wanted
        };
        let (looks_up, asks_attributes) = (has(Operation::Lookup), has(Operation::Getattr));
        self.pace.begun();
        async move {
            let mut calls = Vec::new();
            let Task { session, files, random } = &mut task;
            let mut work = files::Work {
                clock: &clock,
                session,
                is_stable,
                looks_up,
                asks_attributes,
                due,
                calls: &mut calls,
            };
            let ended = files.perform(operation, &mut work, random).await;
            Event::Done { task, calls, ended }
        }
        .boxed()
    }

    fn count(&mut self, calls: &[Call], now: Instant) {
        let took = calls.iter().fold(Nanos::ZERO, |sum, call| sum + call.took);
        for call in calls {
            self.outcome.count(call);
        }
        self.outcome.elapsed = now.since(self.begin);
        let behind = self.pace.done(now, self.outcome.calls(), took);
        self.outcome.behind_max = self.outcome.behind_max.max(behind);
    }
}

mod plan;
#[cfg(test)]
mod tests;
