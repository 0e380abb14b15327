//! Which points are measured, in which order, and what a point's number is.

use harness::exit::Failure;
use harness::output::Bars;
use load::fileset::Layout;
use load::mix::{Arrivals, Load, Mix, Outcome, Plan};
use load::recover::{Injected, Parameter};
use net::clock::Clock;
use perf::model::loggp::Link;
use perf::stats::{Estimate, Interval, Sample};
use perf::units::Nanos;

use super::system::System;
use crate::papers::args::Sensitivity;

/// The paper's baseline: its Myrinet without anything added (section 3.1, figures 5, 7 and 10).
pub(super) const BASELINE: Injected = Injected {
    link: Link { latency: Nanos::from_micros(10), gap: Nanos::ZERO, gap_per_byte_ps: 38_462 },
    overhead: Nanos::from_micros(80),
};

/// Bytes of the files: any server has them in memory, and so had the paper's at low load.
const FILES_BYTES: u64 = 4 << 20;

/// Operations a second where a response time is requested. At 1.25 MB/s they fill three fifths of
/// the way back.
const LOW_RATE: f64 = 400.0;

/// What an open loop may have outstanding: two seconds' worth.
const OUTSTANDING_MAX: usize = 800;

/// Operations outstanding where saturation is requested: the processor always finds one.
const OUTSTANDING_SATURATED: usize = 16;

/// What is varied, and what is requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    /// Response time against L.
    Latency,
    /// Saturation against o.
    Overhead,
    /// Response time against G.
    Bandwidth,
}

/// One setting of the emulator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) part: Part,
    pub(super) conditions: Injected,
}

/// A point, measured any number of times.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) point: Point,
    pub(super) runs: Vec<Outcome>,
    /// Response time in microseconds, or operations a second at saturation: the median of the
    /// runs, with their range where there are few.
    pub(super) value: Estimate,
}

/// What is measured, and how much.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(super) points: Vec<Point>,
    pub(super) mix: Mix,
    pub(super) repeats: usize,
    pub(super) warm_up: Nanos,
    pub(super) time: Nanos,
    pub(super) seed: u64,
}

impl Part {
    pub(super) const ALL: [Self; 3] = [Self::Latency, Self::Overhead, Self::Bandwidth];

    pub(super) fn parameter(self) -> Parameter {
        match self {
            Self::Latency => Parameter::Latency,
            Self::Overhead => Parameter::Overhead,
            Self::Bandwidth => Parameter::GapPerByte,
        }
    }

    /// L in us (figures 5 and 11), o in us on top of the baseline's (figure 7), MB/s (figure 10);
    /// the first of each is the baseline.
    fn amounts(self, quick: bool) -> &'static [f64] {
        match (self, quick) {
            (Self::Latency, false) => {
                &[10.0, 50.0, 150.0, 500.0, 1_000.0, 2_000.0, 4_000.0, 10_000.0, 40_000.0]
            }
            (Self::Latency, true) => &[10.0, 150.0, 4_000.0],
            (Self::Overhead, false) => &[0.0, 25.0, 50.0, 100.0, 200.0, 300.0, 500.0],
            (Self::Overhead, true) => &[0.0, 100.0, 500.0],
            (Self::Bandwidth, false) => &[26.0, 10.0, 5.0, 2.5, 1.25],
            (Self::Bandwidth, true) => &[26.0, 2.5, 1.25],
        }
    }

    /// A run's number. Medians do not say how often the machine paused, which a world does not do;
    /// one of 50 ms makes the mean of 800 operations longer by 0.6 ms. That operations wait for
    /// each other, as with G they do, medians show as well.
    pub(super) fn value(self, run: &Outcome) -> f64 {
        let response = match self {
            Self::Overhead => return run.achieved_per_s(),
            Self::Latency | Self::Bandwidth => run.response_of_medians(),
        };
        response.map_or(f64::NAN, Nanos::as_micros_f64)
    }

    fn points(self, quick: bool) -> impl Iterator<Item = Point> {
        let with = move |amount: f64| {
            let mut conditions = BASELINE;
            match self {
                Self::Latency => conditions.link.latency = Nanos::from_micros_f64(amount),
                Self::Overhead => {
                    conditions.overhead = BASELINE.overhead + Nanos::from_micros_f64(amount);
                }
                Self::Bandwidth => {
                    conditions.link.gap_per_byte_ps =
                        Injected::rate(amount * 1e6).link.gap_per_byte_ps
                }
            }
            Point { part: self, conditions }
        };
        self.amounts(quick).iter().map(move |amount| with(*amount))
    }
}

impl Point {
    /// Whether the world takes what is measured here: the baselines of L and o. G's has the same
    /// conditions as L's, and is measured and predicted like any other point.
    pub(super) fn is_input(&self) -> bool {
        self.part != Part::Bandwidth && self.is_baseline()
    }

    pub(super) fn is_baseline(&self) -> bool {
        // G was rounded on its way from a rate.
        let amount = |of: &Injected| self.part.parameter().of(of);
        (amount(&self.conditions) / amount(&BASELINE) - 1.0).abs() < 1e-3
    }
}

impl Course {
    pub(super) fn new(args: &Sensitivity) -> Result<Self, Failure> {
        let time = match args.time {
            Some(time) if time < TIME_LEAST => {
                return Err(Failure::usage(
                    format!("--time {time} is too short for a response time"),
                    format!("--time of at least {TIME_LEAST}"),
                ));
            }
            Some(time) => time,
            None if args.quick => Nanos::from_millis(1_000),
            None => Nanos::from_millis(2_000),
        };
        // o is spent in the server: somebody else's does not.
        let parts =
            Part::ALL.into_iter().filter(|part| *part != Part::Overhead || args.target.is_none());
        let mut points: Vec<Point> = parts.flat_map(|part| part.points(args.quick)).collect();
        if args.target.is_some() {
            points.iter_mut().for_each(|point| point.conditions.overhead = Nanos::ZERO);
        }
        Ok(Self {
            points,
            mix: args.mix,
            repeats: args.repeats.unwrap_or(if args.quick { 1 } else { 3 }) as usize,
            warm_up: Nanos::from_millis(200).max(time / 10),
            time,
            seed: args.seed,
        })
    }

    /// Measures all points on a system, over and over: what drifts drifts under all of them.
    pub(super) async fn run(
        &self,
        clock: &Clock,
        system: &impl System,
        repeats: usize,
        bars: &mut Bars,
    ) -> Result<Vec<Measured>, Failure> {
        let mut runs: Vec<Vec<Outcome>> = vec![Vec::new(); self.points.len()];
        let all = (self.points.len() * repeats) as f64;
        for repeat in 0..repeats {
            for (at, point) in self.points.iter().enumerate() {
                bars.show(system.name(), (repeat * self.points.len() + at) as f64 / all);
                // A world gives nobody else a turn: here an interrupt gets its.
                clock.sleep(Nanos::from_millis(1)).await;
                runs[at].push(self.one(system, point).await?);
            }
        }
        let measured =
            self.points.iter().zip(runs).map(|(point, runs)| Measured::new(*point, runs));
        measured.collect()
    }

    /// One run of a point.
    pub(super) async fn one(
        &self,
        system: &impl System,
        point: &Point,
    ) -> Result<Outcome, Failure> {
        let load = match point.part {
            Part::Overhead => Load::Closed { outstanding: OUTSTANDING_SATURATED },
            Part::Latency | Part::Bandwidth => Load::Open {
                arrivals: Arrivals::Poisson,
                per_s: LOW_RATE,
                phase: 0.0,
                outstanding_max: OUTSTANDING_MAX,
            },
        };
        let Self { mix, warm_up, time, seed, .. } = *self;
        // Answers take the longest way before the first counts.
        let delay = point.conditions.delay();
        let warm_up = warm_up + delay + delay;
        let plan = Plan { mix, load, warm_up, time, seed };
        let layout = Layout::of_bytes(FILES_BYTES, seed);
        system.run(point.conditions, &layout, &plan).await
    }
}

/// 80 operations at the low rate.
const TIME_LEAST: Nanos = Nanos::from_millis(200);

impl Measured {
    fn new(point: Point, runs: Vec<Outcome>) -> Result<Self, Failure> {
        let values: Vec<f64> = runs.iter().map(|run| point.part.value(run)).collect();
        let sample = Sample::new(values).map_err(|error| {
            Failure::environment(format!("nothing was answered: {error}"), "a longer --time")
        })?;
        let range = Interval { lo: sample.min(), hi: sample.max() };
        let median = sample.median_estimate();
        let ci95 = median.ci95.or_else(|| (sample.n() > 1).then_some(range));
        Ok(Self { point, runs, value: Estimate { ci95, ..median } })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn course(arguments: &[&str]) -> Course {
        let all = ["sensitivity"].iter().chain(arguments);
        Course::new(&Sensitivity::try_parse_from(all).unwrap()).unwrap()
    }

    #[test]
    fn nobody_spends_an_o_where_the_server_is_somebody_elses() {
        let ours = course(&[]);
        assert!(ours.points.iter().all(|point| point.conditions.overhead >= BASELINE.overhead));
        let theirs = course(&["--target", "nfs://h/x"]);
        assert!(theirs.points.iter().all(|point| point.conditions.overhead == Nanos::ZERO));
        assert!(theirs.points.iter().all(|point| point.part != Part::Overhead));
        let inputs =
            |course: &Course| course.points.iter().filter(|point| point.is_input()).count();
        assert_eq!((inputs(&ours), inputs(&theirs)), (2, 1));
    }
}
