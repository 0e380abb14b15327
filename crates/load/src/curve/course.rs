//! The course of a measurement: saturation, files, then point after point.
//!
//! Several servers are measured in alternation, point by point, each time in another order, so that
//! what drifts drifts under all of them. A server on which something fails is left out from there
//! on, and what was measured of it stays.

use net::clock::Clock;
use perf::units::{Instant, Nanos};

use super::gather::{Gather, GatherError};
use super::search::Search;
use super::subject::{Built, Subject};
use super::{Kind, Loads, Point, Settings, validity};
use crate::error::Error;
use crate::mix::{Load, Outcome, Plan, Ran};

/// Points are spread evenly up to this share of the saturation: closer to it, chance decides
/// whether a server keeps up.
const SPREAD: f64 = 0.95;

/// Where the point above it lies.
const ABOVE: f64 = 1.05;

/// Bytes of the files on which the saturation is looked for first, to know how many are needed.
const FIRST_LOOK_BYTES: u64 = 8 << 20;

/// A step of the search takes a fifth of a point's time, within these.
const STEP_TIMES: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3));

/// Most operations outstanding in the search.
const SEARCH_OUTSTANDING_MAX: usize = 1024;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Making files.
    Files { bytes: u64 },
    /// Looking for the saturation, with so many outstanding.
    Search { outstanding: usize },
    /// At this load.
    Point { load: f64 },
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Which of the servers.
    pub subject: usize,
    pub step: Step,
    /// From 0 to 1.
    pub done: f64,
    /// What is left, as far as it can be known: what files take cannot.
    pub left: Nanos,
}

/// What came of one server.
#[derive(Debug, Default)]
pub struct Measured {
    /// How the saturation was looked for, on the files that were measured on.
    pub search: Option<Search>,
    pub built: Built,
    /// In the order of their loads.
    pub points: Vec<Point>,
    /// What ended it before its end, on this process or another.
    pub broken: Option<Broken>,
}

/// See [`Measured::broken`].
#[derive(Debug)]
pub struct Broken {
    /// For people.
    pub why: String,
    /// Where it was this process.
    pub cause: Option<Error>,
}

/// The runs of all servers so far: they stay with their owner when the measurement is given up.
#[derive(Debug, Default)]
pub struct Runs(Vec<(Measured, Vec<f64>, Vec<Outcome>)>);

impl Runs {
    /// What they show of each server that was prepared, in order.
    pub fn measured(self, settings: &Settings) -> Vec<Measured> {
        let of = |(measured, loads, runs): (Measured, Vec<f64>, _)| {
            assess(measured, &loads, runs, settings)
        };
        self.0.into_iter().map(of).collect()
    }
}

/// Why a step has no result.
enum Stop {
    /// Of this server nothing more is measured.
    Broken(Broken),
    /// Nothing can be measured any more.
    Gather(GatherError),
}

impl From<GatherError> for Stop {
    fn from(error: GatherError) -> Self {
        Self::Gather(error)
    }
}

/// Measures the curves of these servers into `found`. `observe` is called before each step.
///
/// # Errors
/// Another process is gone. What happens to servers is part of the result.
pub async fn measure<S: Subject, G: Gather, T: FnMut(Progress)>(
    clock: &Clock,
    gather: &mut G,
    subjects: &mut [S],
    settings: &Settings,
    observe: &mut T,
    Runs(found): &mut Runs,
) -> Result<(), GatherError> {
    let timetable = Timetable::new(settings, subjects.len());
    let mut course = Course { clock, gather, settings, observe, timetable };
    for (number, subject) in subjects.iter_mut().enumerate() {
        let (measured, loads) = course.prepare(number, subject).await?;
        let runs = vec![Outcome::default(); loads.len()];
        found.push((measured, loads, runs));
    }
    let points = found.iter().map(|(_, loads, _)| loads.len()).max().unwrap_or(0);
    for round in 0..settings.repeats.max(1) * points {
        for turn in 0..subjects.len() {
            let number = (turn + round) % subjects.len();
            let (measured, loads, runs) = &mut found[number];
            let at = round % points;
            let (None, Some(&load)) = (&measured.broken, loads.get(at)) else { continue };
            let peak = loads.iter().copied().fold(0.0, f64::max);
            let ran = course.point(number, &mut subjects[number], load, load / peak, round).await;
            match ran {
                Ok((outcome, broken)) => {
                    measured.broken = broken;
                    runs[at].append(outcome);
                }
                Err(Stop::Broken(broken)) => measured.broken = Some(broken),
                Err(Stop::Gather(error)) => return Err(error),
            }
        }
    }
    Ok(())
}

/// The runs as points, those without any left out.
fn assess(
    mut measured: Measured,
    loads: &[f64],
    runs: Vec<Outcome>,
    settings: &Settings,
) -> Measured {
    let mut points: Vec<Point> = loads
        .iter()
        .zip(runs)
        .filter(|(_, outcome)| outcome.span > Nanos::ZERO)
        .map(|(load, outcome)| Point::new(*load, outcome, settings))
        .collect();
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    validity::shortfalls(&mut points);
    measured.points = points;
    measured
}

struct Course<'a, G, T> {
    clock: &'a Clock,
    gather: &'a mut G,
    settings: &'a Settings,
    observe: &'a mut T,
    timetable: Timetable,
}

impl<G: Gather, T: FnMut(Progress)> Course<'_, G, T> {
    /// Makes the files of a server, and decides on its loads.
    async fn prepare<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
    ) -> Result<(Measured, Vec<f64>), GatherError> {
        let mut measured = Measured::default();
        match self.loads(number, subject, &mut measured).await {
            Ok(loads) => Ok((measured, self.gather.broadcast(loads).await?)),
            Err(Stop::Broken(broken)) => {
                measured.broken = Some(broken);
                Ok((measured, Vec::new()))
            }
            Err(Stop::Gather(error)) => Err(error),
        }
    }

    async fn loads<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
        measured: &mut Measured,
    ) -> Result<Vec<f64>, Stop> {
        let settings = self.settings;
        match &settings.loads {
            Loads::Rates(rates) => {
                let peak = rates.iter().copied().fold(0.0, f64::max);
                measured.built = self.build(number, subject, peak).await?;
                Ok(rates.clone())
            }
            Loads::Outstanding(numbers) => {
                let most = numbers.iter().copied().max().unwrap_or(1);
                let peak = self.look(number, subject, vec![most]).await?.best_per_s();
                measured.built = self.build(number, subject, peak).await?;
                Ok(numbers.iter().map(|number| *number as f64).collect())
            }
            Loads::Find { points } => {
                // A first look on few files says how many are needed.
                let first = self.look(number, subject, Vec::new()).await?;
                measured.built = self.build(number, subject, first.best_per_s()).await?;
                let most = self.settings.outstanding_max.clamp(1, SEARCH_OUTSTANDING_MAX);
                let again = [1, 2, 4].map(|times| (times * first.enough()).min(most));
                let mut again = Vec::from(again);
                again.dedup();
                let search = self.search(number, subject, again).await?;
                let loads = spread(search.best_per_s(), *points);
                measured.search = Some(search);
                Ok(loads)
            }
        }
    }

    /// Searches on few files.
    async fn look<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
        numbers: Vec<usize>,
    ) -> Result<Search, Stop> {
        let bytes = FIRST_LOOK_BYTES.min(self.settings.files.bytes_max);
        let per_s = bytes as f64 / self.settings.files.bytes_per_rate.max(1) as f64;
        self.build(number, subject, per_s).await?;
        self.search(number, subject, numbers).await
    }

    /// With these outstanding, or until more gains nothing.
    async fn search<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
        numbers: Vec<usize>,
    ) -> Result<Search, Stop> {
        let mut search = Search::new(self.settings.outstanding_max.min(SEARCH_OUTSTANDING_MAX));
        let is_free = numbers.is_empty();
        let mut given = numbers.into_iter();
        let time = (self.settings.time / 5).max(STEP_TIMES.0).min(STEP_TIMES.1);
        loop {
            let next = if is_free { search.next() } else { given.next() };
            let Some(outstanding) = next else { return Ok(search) };
            self.report(number, Step::Search { outstanding });
            let load = Load::Closed { outstanding };
            let seed = self.settings.seed ^ (1 << 32) ^ outstanding as u64;
            let plan = self.plan(load, time / 2, time, seed);
            match self.run(subject, &plan, 1.0).await? {
                (outcome, None) => search.reached(outstanding, outcome.achieved_per_s()),
                (_, Some(broken)) => return Err(Stop::Broken(broken)),
            }
        }
    }

    fn plan(&self, load: Load, warm_up: Nanos, time: Nanos, seed: u64) -> Plan {
        Plan { mix: self.settings.mix, load, warm_up, time, seed }
    }

    async fn point<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
        load: f64,
        accessed: f64,
        round: usize,
    ) -> Result<(Outcome, Option<Broken>), Stop> {
        self.report(number, Step::Point { load });
        let Settings { arrivals, outstanding_max, warm_up, time, .. } = *self.settings;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        let (load, accessed) = match self.settings.kind() {
            Kind::Open => {
                (Load::Open { arrivals, per_s: load, phase: 0.0, outstanding_max }, accessed)
            }
            Kind::Closed => (Load::Closed { outstanding: load as usize }, 1.0),
        };
        let plan = self.plan(load, warm_up, time, self.settings.seed ^ ((round as u64 + 1) << 40));
        let ran = self.run(subject, &plan, accessed).await;
        self.timetable.point_done();
        ran
    }

    async fn build<S: Subject>(
        &mut self,
        number: usize,
        subject: &mut S,
        per_s: f64,
    ) -> Result<Built, Stop> {
        let layout = self.settings.files.layout(per_s, self.settings.seed);
        self.report(number, Step::Files { bytes: layout.bytes() });
        // All ask before anyone has taken of what there is.
        let checked = subject.check(&layout).await;
        self.agree(checked).await?;
        let built = subject.build(&layout).await;
        let own = self.agree(built).await?;
        let numbers = [own.files as f64, own.accessed as f64, own.bytes as f64];
        let sums = self.gather.sum(numbers.into()).await?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
        let sum = |at: usize| sums.get(at).copied().unwrap_or(0.0) as u64;
        let count = |at: usize| usize::try_from(sum(at)).unwrap_or(usize::MAX);
        Ok(Built { files: count(0), accessed: count(1), bytes: sum(2) })
    }

    async fn run<S: Subject>(
        &mut self,
        subject: &mut S,
        plan: &Plan,
        accessed: f64,
    ) -> Result<(Outcome, Option<Broken>), Stop> {
        self.gather.barrier().await?;
        let Ran { outcome, broken } = match subject.run(plan, accessed).await {
            Ok(ran) => ran,
            Err(error) => return self.agree(Err(error)).await.map(|outcome| (outcome, None)),
        };
        let merged = self.gather.merge(outcome).await?;
        let cause = broken.map(Error::from);
        let broken = merged.broken.clone().map(|why| Broken { why, cause });
        Ok((merged, broken))
    }

    /// Succeeds when it did for all.
    async fn agree<A>(&mut self, own: Result<A, Error>) -> Result<A, Stop> {
        let why = own.as_ref().err().map(ToString::to_string);
        let outcome = Outcome { broken: why, ..Outcome::default() };
        let merged = self.gather.merge(outcome).await?.broken;
        match (own, merged) {
            (Ok(own), None) => Ok(own),
            (Ok(_), Some(why)) => Err(Stop::Broken(Broken { why, cause: None })),
            (Err(error), why) => {
                let why = why.unwrap_or_else(|| error.to_string());
                Err(Stop::Broken(Broken { why, cause: Some(error) }))
            }
        }
    }

    fn report(&mut self, subject: usize, step: Step) {
        let (done, left) = self.timetable.now(self.clock.now());
        (self.observe)(Progress { subject, step, done, left });
    }
}

/// Loads evenly up to a little less than the saturation, and one a little above it.
fn spread(saturation_per_s: f64, points: usize) -> Vec<f64> {
    let points = points.max(1);
    let below = (1..=points).map(|n| SPREAD * saturation_per_s * n as f64 / points as f64);
    below.chain([ABOVE * saturation_per_s]).collect()
}

/// What is left: points take what they are given, and what was before them takes none any more.
#[derive(Debug, Default)]
struct Timetable {
    point: Nanos,
    points: u64,
    points_done: u64,
    began: Option<Instant>,
}

impl Timetable {
    fn new(settings: &Settings, subjects: usize) -> Self {
        let points = settings.loads.count() * settings.repeats.max(1) * subjects;
        Self { point: settings.warm_up + settings.time, points: points as u64, ..Self::default() }
    }

    fn point_done(&mut self) {
        self.points_done += 1;
    }

    /// The share that is done, and the time that is left.
    fn now(&mut self, now: Instant) -> (f64, Nanos) {
        let began = *self.began.get_or_insert(now);
        let left = self.point * self.points.saturating_sub(self.points_done);
        let took = now.since(began).as_secs_f64();
        let all = took + left.as_secs_f64();
        let done = if all > 0.0 { took / all } else { 0.0 };
        (done, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_spread_below_the_saturation_and_one_lies_above_it() {
        let loads = spread(1_000.0, 10);
        assert_eq!(loads.len(), 11);
        assert!((loads[0] - 95.0).abs() < 1e-9 && (loads[9] - 950.0).abs() < 1e-9);
        assert!((loads[10] - 1_050.0).abs() < 1e-9);
    }
}
