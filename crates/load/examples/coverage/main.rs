//! How often intervals hold the truth: the statistics of probes, curves and fits on simulated
//! servers, whose parameters are known, with noise that is none of what textbooks suppose.
//!
//! | noise | of a time | of a point |
//! |---|---|---|
//! | independent | a factor of 5 % | the same |
//! | autocorrelated | the same, each like the one before by 0.9 | by 0.3 |
//! | pauses | independent, and one in a hundred takes fifty times as long | twice as long |
//! | drifts | independent, and 5 % that last for a twentieth of the measurement | for a point |
//!
//! The truth is the parameter, which is the median of what is drawn around it. Bursts, which are
//! means over hundreds of calls, have a fifth of the noise. A point of a curve or a sweep stands
//! for some seconds: less of it is left in the next. What is simulated are measurements; how they
//! are made is held to servers in worlds (`crates/world/tests`).
//!
//! A probe is 4 portions with 250 NULL calls, 6 rounds and 3 bursts each. A load point has 40,000
//! operations, exponential service, and Poisson arrivals. A sweep has 12 windows, once or 5 times.
//! Servers are inferred from curves with their number of disks given and not, and from traces of
//! 480 calls. Changes to what was found, by a probe, too, are held to the same changes of the
//! server or the path.
//!
//! Prints the table of docs/models.md, section 26, of 200 seeds; `--check` fails where the document
//! has another one.

mod paths;
mod servers;
mod traces;

use std::fmt::Write as _;
use std::process::ExitCode;

use fastrand::Rng;
use load::mix::outcome::BATCHES;
use perf::model::least_squares::Fitted;
use perf::model::sweep::{Explained, Form, SweepPoint, throughput};
use perf::stats::{Estimate, Sum, mean_in_order};

const SEEDS: u64 = 200;

fn main() -> ExitCode {
    let table = table(&rows(SEEDS), SEEDS);
    if !std::env::args().any(|argument| argument == "--check") {
        print!("{table}");
        return ExitCode::SUCCESS;
    }
    let document = include_str!("../../../../docs/models.md");
    if document.contains(&table) {
        return ExitCode::SUCCESS;
    }
    eprintln!("docs/models.md, section 26, does not have this table:\n{table}");
    ExitCode::FAILURE
}

/// Of one parameter under one noise.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    parameter: String,
    noise: &'static str,
    /// In how many of the seeds the interval held the truth, and in how many there was one.
    covered: u32,
    of: u32,
}

impl Row {
    fn percent(&self) -> f64 {
        100.0 * f64::from(self.covered) / f64::from(self.of.max(1))
    }

    fn cell(&self, seeds: u64) -> String {
        match u64::from(self.of) == seeds {
            true => format!("{:.1}", self.percent()),
            false => format!("{:.1} ({})", self.percent(), self.of),
        }
    }
}

/// Everything, for so many seeds.
fn rows(seeds: u64) -> Vec<Row> {
    rows_and(seeds, seeds)
}

/// Each noise on a thread of its own; of servers with an unknown number of disks, and of traces,
/// which take longest, other seeds.
fn rows_and(seeds: u64, of_unknown: u64) -> Vec<Row> {
    let of_noises = std::thread::scope(|threads| {
        let running =
            Noise::ALL.map(|noise| threads.spawn(move || rows_of(noise, seeds, of_unknown)));
        running.map(|thread| thread.join().expect("a panic is the caller's"))
    });
    let mut rows: Vec<Row> = of_noises.into_iter().flatten().collect();
    for load in [50, 80, 90] {
        let name = format!("load {} %", load);
        count(&mut rows, QUEUE, seeds, |seed| queued(&name, f64::from(load) / 100.0, seed));
    }
    rows
}

fn rows_of(noise: Noise, seeds: u64, of_unknown: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |found: &dyn Fn(u64) -> Vec<Found>| count(&mut rows, noise.name(), seeds, found);
    add(&|seed| paths::probed(noise, seed));
    add(&|seed| paths::changed(noise, seed));
    for repeats in [1, 5] {
        add(&|seed| swept(noise, repeats, seed));
        add(&|seed| servers::changed_sweep(noise, repeats, seed));
    }
    for points in [10, 100] {
        add(&|seed| servers::with_disks(noise, points, seed));
    }
    count(&mut rows, noise.name(), of_unknown, |seed| servers::without_disks(noise, seed));
    count(&mut rows, noise.name(), of_unknown, |seed| traces::traced(noise, seed));
    rows
}

/// The noise that is in a queue by itself.
const QUEUE: &str = "a queue";

/// As docs/models.md has them: a line for each parameter, a column for each noise, and what load
/// points have apart. In brackets of how many, where the others were refused.
fn table(rows: &[Row], seeds: u64) -> String {
    let mut text = String::from("| covers, of 100 |");
    for noise in Noise::ALL {
        write!(text, " {} |", noise.name()).ok();
    }
    text.push_str("\n|---|---|---|---|---|\n");
    let first = Noise::ALL[0].name();
    for Row { parameter, .. } in rows.iter().filter(|row| row.noise == first) {
        write!(text, "| {parameter} |").ok();
        for noise in Noise::ALL {
            let of = |row: &&Row| row.parameter == *parameter && row.noise == noise.name();
            let cell = rows.iter().find(of).map_or_else(|| "-".to_owned(), |row| row.cell(seeds));
            write!(text, " {cell} |").ok();
        }
        text.push('\n');
    }
    text.push_str("\n| covers, of 100 | load points |\n|---|---|\n");
    for row in rows.iter().filter(|row| row.noise == QUEUE) {
        writeln!(text, "| {} | {} |", row.parameter, row.cell(seeds)).ok();
    }
    text
}

/// A parameter's name, its truth, and what was found.
type Found = (String, f64, Estimate);

fn count(rows: &mut Vec<Row>, noise: &'static str, seeds: u64, found: impl Fn(u64) -> Vec<Found>) {
    let mut counted: Vec<Row> = Vec::new();
    for (parameter, truth, estimate) in (0..seeds).flat_map(found) {
        let at = counted.iter().position(|row| row.parameter == parameter);
        let at = at.unwrap_or_else(|| {
            counted.push(Row { parameter, noise, covered: 0, of: 0 });
            counted.len() - 1
        });
        if let Some(ci95) = estimate.ci95 {
            counted[at].of += 1;
            counted[at].covered += u32::from(ci95.contains(truth));
        }
    }
    rows.extend(counted);
}

#[derive(Clone, Copy, Debug)]
enum Noise {
    Independent,
    Autocorrelated,
    Pauses,
    Drifts,
}

impl Noise {
    const ALL: [Self; 4] = [Self::Independent, Self::Autocorrelated, Self::Pauses, Self::Drifts];

    const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Autocorrelated => "autocorrelated",
            Self::Pauses => "pauses",
            Self::Drifts => "drifts",
        }
    }
}

/// Of a time, 5 %; of a burst, 1 %.
const SPREAD: f64 = 0.05;
const SPREAD_OF_BURSTS: f64 = 0.01;

/// What is drawn one after the other, of a measurement that goes from 0 to 1.
struct Process {
    noise: Noise,
    random: Rng,
    before: f64,
    /// The state of the machine, and when it was looked at.
    state: (f64, f64),
    kind: Kind,
}

/// What is drawn: how much it resembles the one before, how often it meets a pause, and by how
/// much that is longer.
struct Kind {
    alike: f64,
    pauses: f64,
    longer: f64,
    /// Of a state of the machine, 1 / e is left after so long.
    drift: f64,
}

const TIME: Kind = Kind { alike: 0.9, pauses: 0.01, longer: 50.0, drift: 0.05 };
const POINT: Kind = Kind { alike: 0.3, pauses: 0.01, longer: 2.0, drift: 1.0 };

impl Process {
    fn new(noise: Noise, kind: Kind, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let (before, state) = (normal(&mut random), normal(&mut random));
        Self { noise, random, before, state: (state, 0.0), kind }
    }

    /// A time of so many us, at this share of the measurement.
    fn draw(&mut self, us: f64, spread: f64, at: f64) -> f64 {
        let fresh = normal(&mut self.random);
        let (log, times) = match self.noise {
            Noise::Independent => (fresh, 1.0),
            Noise::Autocorrelated => {
                self.before = next(self.before, self.kind.alike, fresh);
                (self.before, 1.0)
            }
            Noise::Pauses if self.random.f64() < self.kind.pauses => (fresh, self.kind.longer),
            Noise::Pauses => (fresh, 1.0),
            Noise::Drifts => {
                let (state, since) = self.state;
                let left = (-(at - since) / self.kind.drift).exp();
                self.state = (next(state, left, normal(&mut self.random)), at);
                (fresh + self.state.0 * SPREAD / spread, 1.0)
            }
        };
        us * times * (spread * log).exp()
    }
}

/// Of a series whose values resemble the ones before.
fn next(before: f64, alike: f64, fresh: f64) -> f64 {
    alike * before + (1.0 - alike * alike).sqrt() * fresh
}

fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// Operations of a point, in so many batches.
const OPERATIONS: f64 = 40_000.0;

fn queued(name: &str, load: f64, seed: u64) -> Vec<Found> {
    let mut random = Rng::with_seed(seed);
    let mut exponential = move |mean: f64| -mean * (1.0 - random.f64()).ln();
    let (mut now, mut work, end) = (0.0, 0.0_f64, OPERATIONS / load);
    let mut batches = vec![Sum::default(); BATCHES];
    let warm_up = 0.05 * end;
    loop {
        let distance = exponential(1.0 / load);
        now += distance;
        work = (work - distance).max(0.0) + exponential(1.0);
        if now >= end + warm_up {
            break;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let batch = ((now - warm_up).max(0.0) / end * BATCHES as f64) as usize;
        if let Some(batch) = batches.get_mut(batch).filter(|_| now >= warm_up) {
            batch.total += work;
            batch.count += 1.0;
        }
    }
    let of_batch = end / BATCHES as f64;
    let answered: Vec<Sum> =
        batches.iter().map(|batch| Sum { total: batch.count, count: of_batch }).collect();
    let response = mean_in_order(&batches).map(|e| (1.0 / (1.0 - load), e, "response time"));
    let rate = mean_in_order(&answered).map(|e| (load, e, "throughput"));
    let all = response.into_iter().chain(rate);
    all.map(|(truth, estimate, what)| (format!("{what}, {name}"), truth, estimate)).collect()
}

const WINDOWS: [u32; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// T and S, us.
const SWEEP: [f64; 2] = [500.0, 40.0];

fn swept(noise: Noise, repeats: usize, seed: u64) -> Vec<Found> {
    let observed = observed(noise, repeats, seed);
    let Ok(found) = Explained::from(&observed, Form::Curve) else { return Vec::new() };
    let name = match repeats {
        1 => "sweep, once",
        _ => "sweep, 5 times",
    };
    named(name, &found.fitted, &SWEEP)
}

/// A sweep, so often.
fn observed(noise: Noise, repeats: usize, seed: u64) -> Vec<SweepPoint> {
    let mut process = Process::new(noise, POINT, seed);
    let point = |(at, outstanding): (usize, u32)| {
        let per_s = throughput(Form::Curve, &SWEEP, outstanding).unwrap_or(f64::NAN);
        let us = process.draw(1e6 / per_s, SPREAD, at as f64);
        SweepPoint { outstanding, per_s: 1e6 / us }
    };
    std::iter::repeat_n(WINDOWS, repeats).flatten().enumerate().map(point).collect()
}

fn named(name: &str, fitted: &Fitted, truths: &[f64]) -> Vec<Found> {
    let named = fitted.parameters.iter().zip(truths);
    named
        .map(|(found, &truth)| (format!("{name}: {}", found.name), truth, found.estimate))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        // Of 40 seeds: 90 of 100, and three standard deviations less. All of it, and the servers of
        // unknown disks, are in the table of docs/models.md.
        for row in rows_and(40, 0) {
            assert!(row.of >= 30, "{row:?}");
            assert!(row.percent() >= 76.0, "{row:?}");
        }
    }
}
