//! Starts operations and counts their answers: one task, any number of calls outstanding.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use client::error::Error as ClientError;
use client::session::Session;
use futures_util::stream::{FuturesUnordered, Stream};
use net::clock::{Alarm, Clock};
use perf::units::{Instant, Nanos};

use super::arrivals::Schedule;
use super::effort::Meter;
use super::operation::Operation;
use super::outcome::{self, BATCHES, Outcome};
use super::perform::{Moved, perform};
use super::step::{Dealer, Step};
use super::{Load, Plan, Ran};
use crate::error::Error;
use crate::fileset::{BLOCK_BYTES, FileSet};
use crate::seqwrite::pattern;

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

    /// In which of the equal parts a moment of it lies.
    fn batch(&self, at: Instant) -> usize {
        let (into, span) = (at.since(self.begin).as_nanos(), self.end.since(self.begin).as_nanos());
        let batch = u128::from(into) * BATCHES as u128 / u128::from(span.max(1));
        usize::try_from(batch).unwrap_or(BATCHES).min(BATCHES - 1)
    }
}

/// An operation that was answered.
struct Done {
    operation: Operation,
    session: usize,
    step: Step,
    meant: Instant,
    answered: Instant,
    answer: Result<Moved, ClientError>,
}

pub(super) struct Generator<'a> {
    clock: &'a Clock,
    sessions: &'a [Session],
    files: &'a mut FileSet,
    dealer: Dealer,
    window: Window,
    /// What could not start by then is given up.
    give_up: Instant,
    started: usize,
    /// Sessions with room for another operation, where each has a closed loop of its own.
    free: Option<VecDeque<usize>>,
    /// When there was last no room for another operation.
    full: Option<Instant>,
    meter: Meter,
    outcome: Outcome,
}

impl<'a> Generator<'a> {
    /// # Errors
    /// No sessions, or a mix without operations.
    pub(super) fn new(
        clock: &'a Clock,
        sessions: &'a [Session],
        files: &'a mut FileSet,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let Some(dealer) = Dealer::new(&plan.mix, plan.seed, plan.operations()) else {
            return Err(Error::TooFew { what: "a mix: it has no operations" });
        };
        if sessions.is_empty() {
            return Err(Error::TooFew { what: "a mix: there are no sessions" });
        }
        let begin = clock.now() + plan.warm_up;
        let window = Window { begin, end: begin + plan.time };
        Ok(Self {
            clock,
            sessions,
            files,
            dealer,
            window,
            give_up: window.end + plan.time,
            started: 0,
            free: None,
            full: None,
            meter: Meter::default(),
            outcome: Outcome::of(plan.time, sessions.len()),
        })
    }

    /// # Errors
    /// No timer.
    pub(super) async fn run(mut self, load: Load) -> Result<Ran, Error> {
        let (mut schedule, most) = match load {
            Load::Open { arrivals, per_s, phase, outstanding_max } => {
                let schedule = Schedule::new(arrivals, per_s, phase, self.clock.now());
                (Some(schedule), outstanding_max.max(1))
            }
            Load::Closed { outstanding } => (None, outstanding.max(1)),
            Load::ClosedEach { outstanding } => {
                let most = outstanding.max(1) * self.sessions.len();
                self.free = Some((0..most).map(|at| at % self.sessions.len()).collect());
                (None, most)
            }
        };
        let mut alarm = self.clock.alarm().map_err(Error::Timer)?;
        // Operations borrow what they need: they are many, and each would count its copies.
        let data = pattern(usize::try_from(BLOCK_BYTES).unwrap_or(0));
        let mut calls = FuturesUnordered::new();
        let mut next = match &mut schedule {
            Some(schedule) => schedule.next(self.dealer.random()),
            None => self.clock.now(),
        };
        let mut broken = None;
        loop {
            let may_start = calls.len() < most && next < self.window.end;
            if !may_start && calls.is_empty() {
                break;
            }
            let due = may_start.then_some(next);
            let come = std::future::poll_fn(|cx| self.poll(cx, &mut calls, &mut alarm, due)).await;
            match (come, &mut schedule) {
                (Come::Due(now), Some(schedule)) if now > self.give_up => {
                    let Window { begin, end } = self.window;
                    self.outcome.meant += schedule.starts(next.max(begin), end);
                    self.outcome.given_up += schedule.starts(next, end);
                    next = end;
                }
                (Come::Due(now), schedule) => {
                    calls.push(self.start(next, now, &data));
                    self.outcome.outstanding_max = self.outcome.outstanding_max.max(calls.len());
                    if let Some(schedule) = schedule {
                        next = schedule.next(self.dealer.random());
                    }
                }
                (Come::Answer(done), schedule) => {
                    let answered = done.answered;
                    if answered >= self.window.end {
                        self.meter.end(answered);
                    }
                    match schedule {
                        Some(_) if calls.len() + 1 == most => self.full = Some(answered),
                        Some(_) => {}
                        None => next = answered,
                    }
                    broken = self.count(done);
                    if broken.is_some() {
                        break;
                    }
                }
            }
        }
        drop(calls);
        Ok(self.ended(broken))
    }

    fn ended(mut self, broken: Option<ClientError>) -> Ran {
        let now = self.clock.now();
        self.meter.end(now);
        self.outcome.effort = self.meter.effort();
        (_, self.outcome.accessed) = self.files.files();
        self.outcome.touched = self.files.touched_files();
        if let Some(error) = &broken {
            self.outcome.broken = Some(error.to_string());
            self.outcome.span = now.min(self.window.end).since(self.window.begin);
        }
        Ran { outcome: self.outcome, broken }
    }

    /// The next answer, or the moment `due`.
    fn poll<F: Future<Output = Done>>(
        &mut self,
        cx: &mut Context<'_>,
        calls: &mut FuturesUnordered<F>,
        alarm: &mut Alarm,
        due: Option<Instant>,
    ) -> Poll<Come> {
        if let Poll::Ready(Some(done)) = Pin::new(&mut *calls).poll_next(cx) {
            self.meter.wake();
            return Poll::Ready(Come::Answer(done));
        }
        let Some(due) = due else {
            self.meter.wake();
            return Poll::Pending;
        };
        let now = self.clock.now();
        if now >= due || alarm.poll_at(cx, due).is_ready() {
            self.meter.due(now);
            return Poll::Ready(Come::Due(now.max(due)));
        }
        match due.since(now) <= Alarm::LEAD {
            true => self.meter.watch(now),
            false => self.meter.wake(),
        }
        Poll::Pending
    }

    fn count_start(&mut self, meant: Instant, late: Nanos) {
        self.outcome.meant += 1;
        self.outcome.lateness.record(late);
        if late > outcome::LATE {
            // It waited for an answer, and not for us.
            let was_held = self.full.is_some_and(|full| meant <= full);
            self.outcome.held += u64::from(was_held);
            self.outcome.late += u64::from(!was_held);
        }
    }

    /// Which session the next operation is on.
    fn session(&mut self) -> usize {
        let in_turn = self.started % self.sessions.len();
        self.started += 1;
        self.free.as_mut().and_then(VecDeque::pop_front).unwrap_or(in_turn)
    }

    /// The next operation, which was meant to start at `meant`.
    fn start<'d>(
        &mut self,
        meant: Instant,
        now: Instant,
        data: &'d Bytes,
    ) -> impl Future<Output = Done> + use<'a, 'd> {
        let hollow = self.files.hollow();
        let (operation, step) = self.dealer.next(self.files);
        let at = self.session();
        let session = &self.sessions[at];
        if self.window.contains(meant) {
            self.meter.begin(self.clock, now);
            self.outcome.hollow += self.files.hollow() - hollow;
            self.count_start(meant, now.since(meant));
        }
        let clock = self.clock;
        async move {
            let answer = perform(session, &step, data).await;
            Done { operation, session: at, step, meant, answered: clock.now(), answer }
        }
    }

    /// Gives back what ends the run.
    fn count(&mut self, done: Done) -> Option<ClientError> {
        let moved = match done.answer {
            Ok(moved) => Some(moved),
            Err(error) if error.status().is_some() => {
                self.outcome.first_failure.get_or_insert_with(|| error.to_string());
                None
            }
            Err(error) => return Some(error),
        };
        done.step.settle(self.files, moved.is_some());
        if let Some(free) = &mut self.free {
            free.push_back(done.session);
        }
        // Throughput is what came while we measured, whenever that was meant to start.
        if self.window.contains(done.answered) {
            match moved {
                Some(moved) => {
                    self.outcome.answered += 1;
                    self.outcome.batches[self.window.batch(done.answered)].answered += 1;
                    self.outcome.of_session[done.session].answered += 1;
                    self.outcome.read_bytes += moved.read_bytes;
                    self.outcome.written_bytes += moved.written_bytes;
                }
                None => self.outcome.unexpected += 1,
            }
        }
        if self.window.contains(done.meant) {
            let time = done.answered.since(done.meant);
            let tally = self.outcome.operations.entry(done.operation).or_default();
            if moved.is_none() {
                tally.failed += 1;
                return None;
            }
            tally.response_time.record(time);
            tally.total += time;
            self.outcome.batches[self.window.batch(done.meant)].add_response(time);
            self.outcome.of_session[done.session].add_response(time);
        }
        None
    }
}

/// What happens next.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it comes from")]
enum Come {
    Answer(Done),
    /// It is time to start.
    Due(Instant),
}

impl Outcome {
    /// Nothing yet, of a run that long with so many sessions.
    fn of(span: Nanos, sessions: usize) -> Self {
        let parts = |count| vec![outcome::Batch::default(); count];
        Self { span, batches: parts(BATCHES), of_session: parts(sessions), ..Self::default() }
    }
}
