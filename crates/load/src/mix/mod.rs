//! A mix of operations at the wire, as the SFS benchmarks have it: the generator.
//!
//! - [`table`]: the named mixes, and how sure we are of them.
//! - [`listing`]: mixes that are written in files.
//! - [`step`]: which operation comes next, and on which file.
//! - [`arrivals`]: when it is meant to start.
//! - `perform`: the call itself, through the production client.
//! - [`outcome`]: what came of it.
//!
//! An open loop starts operations by a schedule, whatever the server does, and counts from when one
//! was meant to start. A closed loop keeps a number of them outstanding, and finds what a server
//! can do. Both run in real time and in worlds.
//!
//! Every operation is one call, on one of the sessions in turn. A status that was not expected
//! counts as failed; a call without an answer ends the run.

pub mod arrivals;
pub mod listing;
pub mod operation;
pub mod outcome;
mod perform;
pub mod step;
pub mod table;

use std::task::Poll;

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use futures_util::stream::{FuturesUnordered, Stream};
use net::clock::{Alarm, Clock};
use perf::units::{Instant, Nanos};

pub use arrivals::Arrivals;
pub use operation::Operation;
pub use outcome::Outcome;
pub use table::Mix;

use self::arrivals::Schedule;
use self::perform::{Moved, perform};
use self::step::{Dealer, Step};
use crate::cpu::Usage;
use crate::error::Error;
use crate::fileset::{BLOCK_BYTES, FileSet};
use crate::seqwrite::pattern;

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// By a schedule. Over `outstanding_max`, which bounds what a server that does not keep up can
    /// cost us, an operation waits, and starts late.
    Open { arrivals: Arrivals, per_s: f64, outstanding_max: usize },
    /// One as soon as another is answered.
    Closed { outstanding: usize },
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub mix: Mix,
    pub load: Load,
    /// Runs before anything counts.
    pub warm_up: Nanos,
    pub time: Nanos,
    pub seed: u64,
}

/// Runs the mix over these sessions, which are on the same server, with these files.
///
/// # Errors
/// A call without an answer, no sessions, or a mix without operations.
pub async fn run(
    clock: &Clock,
    sessions: &[Session],
    files: &mut FileSet,
    plan: &Plan,
) -> Result<Outcome, Error> {
    let Some(dealer) = Dealer::new(&plan.mix, plan.seed) else {
        return Err(Error::TooFew { what: "a mix: it has no operations" });
    };
    if sessions.is_empty() {
        return Err(Error::TooFew { what: "a mix: there are no sessions" });
    }
    let begin = clock.now() + plan.warm_up;
    let window = Window { begin, end: begin + plan.time };
    let generator = Generator {
        clock,
        sessions,
        files,
        dealer,
        data: pattern(usize::try_from(BLOCK_BYTES).unwrap_or(0)),
        window,
        started: 0,
        cpu: None,
        outcome: Outcome { span: plan.time, ..Outcome::default() },
    };
    generator.run(plan.load).await
}

/// The part of a run that counts.
#[derive(Clone, Copy, Debug)]
struct Window {
    begin: Instant,
    end: Instant,
}

impl Window {
    fn contains(&self, at: Instant) -> bool {
        self.begin <= at && at < self.end
    }
}

/// An operation that was answered.
struct Done {
    operation: Operation,
    step: Step,
    meant: Instant,
    answered: Instant,
    answer: Result<Moved, ClientError>,
}

struct Generator<'a> {
    clock: &'a Clock,
    sessions: &'a [Session],
    files: &'a mut FileSet,
    dealer: Dealer,
    data: Bytes,
    window: Window,
    started: usize,
    /// Processor time when the window began.
    cpu: Option<Usage>,
    outcome: Outcome,
}

impl Generator<'_> {
    async fn run(mut self, load: Load) -> Result<Outcome, Error> {
        let (mut schedule, most) = match load {
            Load::Open { arrivals, per_s, outstanding_max } => {
                let schedule = Schedule::new(arrivals, per_s, self.clock.now());
                (Some(schedule), outstanding_max.max(1))
            }
            Load::Closed { outstanding } => (None, outstanding.max(1)),
        };
        let mut alarm = self.clock.alarm().map_err(Error::Timer)?;
        let mut calls = FuturesUnordered::new();
        let mut next = self.next_start(&mut schedule);
        loop {
            let may_start = calls.len() < most && next < self.window.end;
            if !may_start && calls.is_empty() {
                break;
            }
            let due = may_start.then_some(next);
            match answer_or_due(&mut calls, &mut alarm, due).await {
                None => {
                    calls.push(self.start(next));
                    self.outcome.outstanding_max = self.outcome.outstanding_max.max(calls.len());
                    next = self.next_start(&mut schedule);
                }
                Some(done) => {
                    self.count(done)?;
                    if schedule.is_none() {
                        next = self.clock.now();
                    }
                }
            }
        }
        self.outcome.cpu = self.cpu.map(|begun| Usage::now().since(begun));
        Ok(self.outcome)
    }

    fn next_start(&mut self, schedule: &mut Option<Schedule>) -> Instant {
        match schedule {
            Some(schedule) => schedule.next(self.dealer.random()),
            None => self.clock.now(),
        }
    }

    /// The next operation, which was meant to start at `meant`.
    fn start(&mut self, meant: Instant) -> impl Future<Output = Done> + use<> {
        let (operation, step) = self.dealer.next(self.files);
        let session = self.sessions[self.started % self.sessions.len()].clone();
        self.started += 1;
        let now = self.clock.now();
        if self.window.contains(meant) {
            if self.cpu.is_none() && !self.clock.is_virtual() {
                self.cpu = Some(Usage::now());
            }
            let late = now.since(meant);
            self.outcome.meant += 1;
            self.outcome.lateness.record(late);
            self.outcome.late += u64::from(late > outcome::LATE);
        }
        let (clock, data) = (self.clock.clone(), self.data.clone());
        async move {
            let answer = perform(&session, &step, &data).await;
            Done { operation, step, meant, answered: clock.now(), answer }
        }
    }

    fn count(&mut self, done: Done) -> Result<(), Error> {
        let moved = match done.answer {
            Ok(moved) => Some(moved),
            Err(error) if error.status().is_some() => {
                self.outcome.first_failure.get_or_insert_with(|| error.to_string());
                None
            }
            Err(error) => return Err(error.into()),
        };
        done.step.settle(self.files, moved.is_some());
        // Throughput is what came while we measured, whenever that was meant to start.
        if self.window.contains(done.answered) {
            match moved {
                Some(moved) => {
                    self.outcome.answered += 1;
                    self.outcome.read_bytes += moved.read_bytes;
                    self.outcome.written_bytes += moved.written_bytes;
                }
                None => self.outcome.unexpected += 1,
            }
        }
        if self.window.contains(done.meant) {
            let tally = self.outcome.operations.entry(done.operation).or_default();
            match moved {
                Some(_) => {
                    let time = done.answered.since(done.meant);
                    tally.response_time.record(time);
                    tally.total += time;
                }
                None => tally.failed += 1,
            }
        }
        Ok(())
    }
}

/// The next answer; none when `due` has come before.
async fn answer_or_due<F: Future<Output = Done>>(
    calls: &mut FuturesUnordered<F>,
    alarm: &mut Alarm,
    due: Option<Instant>,
) -> Option<Done> {
    std::future::poll_fn(|cx| {
        if let Poll::Ready(Some(done)) = std::pin::Pin::new(&mut *calls).poll_next(cx) {
            return Poll::Ready(Some(done));
        }
        match due {
            Some(due) => alarm.poll_at(cx, due).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}
