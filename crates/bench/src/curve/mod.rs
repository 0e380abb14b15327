//! `nfskit bench curve`: response time over throughput, of one server or several side by side.
//!
//! `load::curve` does the work and says what differs from SPEC SFS, whose benchmark this is after.
//! Here are the generators' threads, the scratch directories, and the outputs.

pub mod args;
mod beside;
mod csv;
mod generators;
mod outcome;
mod places;
mod ranks;
mod record;
mod report;
mod text;

use std::path::PathBuf;

use client::mount;
use client::url::{Target, Version};
use harness::exit::Failure;
use harness::local;
use harness::logged::{self, Pair};
use harness::output::{self, Bars};
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use load::curve::{self, Files, Gather, Loads, Progress, Runs, Settings, Signature, Step};
use load::mix::{Mix, Operation};
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;

use self::generators::{Generators, Way};
use self::outcome::{Outcome, Server};
use self::places::Places;
use crate::curve::args::Curve as Args;
use crate::curve::ranks::Ranks;
use crate::mix;
use crate::workload::{self, Conditions, Outputs, Workload};

/// Where to look when a step with the other processes fails.
const OTHERS: &str = "the messages of the other processes";

/// A server, by its name and how to reach it.
#[derive(Clone, Debug)]
struct Subject {
    name: String,
    target: Target,
    options: mount::Options,
}

impl Workload for Args {
    type Plan = Settings;
    type Measured = Outcome;

    fn plan(&self) -> Result<Settings, Failure> {
        settings(self)
    }

    /// Of several processes the first one tells what all have seen; the others are perhaps on hosts
    /// that could not.
    fn outputs(&self) -> Outputs<'_> {
        match ranks::is_first(self.process) {
            true => Outputs { json: &self.json, csv: &self.csv, html: &self.html },
            false => Outputs::json(&None),
        }
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.mix.iter().map(PathBuf::from).collect()
    }

    fn is_reported_elsewhere(&self) -> bool {
        !ranks::is_first(self.process)
    }

    async fn run(
        &self,
        settings: &Settings,
        mut conditions: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let joining = Ranks::join(&conditions.clock, self.meet.as_ref(), self.process);
        let mut ranks = conditions.interrupts.or(joining).await?;
        let is_first = ranks.is_first();
        if !is_first {
            conditions.verbosity = Verbosity::Quiet;
        }
        let (outcome, failed) = measure(self, settings, &mut ranks, conditions).await?;
        Ok(match is_first {
            false => workload::Outcome { measured: None, failed },
            true if outcome.is_empty() => workload::Outcome {
                measured: None,
                failed: failed.or_else(|| ended(outcome).err()),
            },
            true => workload::Outcome { measured: Some(outcome), failed },
        })
    }

    fn table(&self, _: &Settings, outcome: &Outcome, _: Verbosity) -> String {
        text::text(outcome)
    }

    fn record(&self, _: &Settings, outcome: &Outcome) -> Vec<Record> {
        record::records(outcome)
    }

    fn csv(&self, _: &Settings, outcome: &Outcome) -> String {
        csv::points(outcome)
    }

    fn figure(&self, _: &Settings, outcome: &Outcome) -> String {
        report::html(outcome)
    }

    fn verdict(&self, outcome: Outcome) -> Result<(), Failure> {
        ended(outcome)
    }
}

fn loads(args: &Args) -> Result<Loads, Failure> {
    Ok(match (&args.closed[..], &args.loads[..]) {
        ([], []) => Loads::Find { points: args.points as usize },
        ([], rates) => Loads::Rates(distinct(rates)?),
        ([most], _) => Loads::Outstanding(steps(*most, args.points)),
        (numbers, _) => Loads::Outstanding(numbers.iter().map(|number| *number as usize).collect()),
    })
}

/// What the arguments ask for.
fn settings(args: &Args) -> Result<Settings, Failure> {
    let loads = loads(args)?;
    if loads.count() > curve::POINTS_MAX {
        let most = curve::POINTS_MAX;
        return Err(Failure::usage(format!("more than {most} points"), "fewer loads"));
    }
    Ok(Settings {
        mix: mix(args)?,
        arrivals: args.arrivals,
        loads,
        warm_up: args.warm_up,
        time: args.time,
        repeats: args.repeats as usize,
        outstanding_max: args.outstanding_max as usize,
        files: Files {
            bytes_per_rate: args.file_set_per_op,
            bytes_max: args.file_set_max,
            accessed: f64::from(args.accessed) / 100.0,
        },
        seed: args.seed,
    })
}

/// The mix that was requested, of which every target's version has all operations.
fn mix(args: &Args) -> Result<Mix, Failure> {
    let versions = || args.target.iter().map(|target| target.version);
    let is_of_two = versions().all(|version| version == Version::Two);
    // Servers of this process speak version 3.
    let usual = match is_of_two && args.write_log.is_none() {
        true => "sfs97-v2",
        false => "sfs97-v3",
    };
    let mix = mix::read(args.mix.as_deref().unwrap_or(usual), versions().next())?;
    for version in versions() {
        if let Some(operation) = mix.lacking(version) {
            let what = format!("mix {mix}: NFS version {} has no {operation}", version.number());
            return Err(Failure::usage(what, "targets of one version"));
        }
    }
    Ok(mix)
}

/// The loads in order, each once: points are named by them.
fn distinct(rates: &[f64]) -> Result<Vec<f64>, Failure> {
    if let Some(rate) = rates.iter().find(|rate| **rate > RATE_MAX) {
        let what = format!("--loads {rate}: no generator makes more than {RATE_MAX} a second");
        return Err(Failure::usage(what, "smaller loads"));
    }
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|a, b| (*a - *b).abs() < 1e-3);
    Ok(rates)
}

/// The highest load that may be requested: no generator of ours comes near.
const RATE_MAX: f64 = 1e7;

/// Numbers of outstanding operations up to the most, each the same factor above the one before.
fn steps(most: u32, points: u32) -> Vec<usize> {
    if points <= 1 {
        return vec![most as usize];
    }
    let mut steps: Vec<usize> = (0..points)
        .map(|step| {
            let exponent = f64::from(step) / f64::from(points - 1);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let outstanding = f64::from(most).powf(exponent).round() as usize;
            outstanding
        })
        .collect();
    // Where they are close to each other, the next ones: as many points as there are numbers.
    for at in 1..steps.len() {
        steps[at] = steps[at].max(steps[at - 1] + 1);
    }
    steps.retain(|outstanding| *outstanding <= most as usize);
    steps
}

/// Measures as one of the processes that `gather` knows: what was measured, and what ended it
/// before its end.
async fn measure<G: Gather>(
    args: &Args,
    settings: &Settings,
    gather: &mut G,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<(Outcome, Option<Failure>), Failure> {
    let clock = &clock;
    agree_on_mix(&settings.mix, gather).await?;
    let started = load::environment::rfc3339(clock);
    let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
    // Both servers of this process, if it is about them, end when this does.
    let pair = pair(args, clock)?;
    let subjects = subjects(args, pair.as_ref());
    let plain = subjects
        .iter()
        .map(|subject| Reached::new(clock, None, &subject.target, subject.options.clone()));
    let plain: Vec<Reached> = plain.collect();
    let places = all_or_none(Places::make(&plain, &mut interrupts).await, gather).await?;
    let mut bars = Bars::new(verbosity);
    let mut runs = Runs::default();
    let work = curves(clock, (args, &subjects), settings, &places, gather, &mut bars, &mut runs);
    let ended = interrupts.or(work).await;
    let now = clock.now();
    let neighbours_share = neighbours.share(now);
    let measured = runs.measured(settings);
    let files = match &ended {
        Ok(()) => measured.iter().map(|measured| measured.built.files).sum(),
        // Interrupted: what there may be.
        Err(_) => settings.files.layout(f64::INFINITY, 0).files,
    };
    bars.show("removing the files", 0.0);
    let left = places.clear(files).await;
    bars.clear();
    let failed = match (ended, left) {
        (Ok(()), left) => {
            // The curve stays.
            left.into_iter().for_each(|left| output::say(left.what()));
            None
        }
        (Err(failure), None) => Some(failure),
        (Err(failure), Some(left)) => Some(failure.and(left.what())),
    };
    let servers = subjects.into_iter().zip(measured).map(|(subject, measured)| Server {
        name: subject.name,
        target: subject.target,
        signature: Signature::of(&measured.points),
        measured,
    });
    let outcome = Outcome {
        servers: servers.collect(),
        settings: settings.clone(),
        started,
        took: now.since(begun),
        threads: args.threads,
        processes: gather.share().ranks,
        connections: connections(args),
        neighbours_share,
    };
    Ok((outcome, failed))
}

/// Where one process has no place to work in, none goes on, and each cleans up before any ends.
async fn all_or_none<'a, G: Gather>(
    made: Result<Places<'a>, Failure>,
    gather: &mut G,
) -> Result<Places<'a>, Failure> {
    let failed = gather.sum(vec![f64::from(u8::from(made.is_err()))]).await;
    let failed = failed.map_err(|error| Failure::environment(error, OTHERS))?;
    let failure = match made {
        Ok(places) if failed[..] == [0.0] => return Ok(places),
        Ok(places) => places.clear(0).await,
        Err(failure) => Some(failure),
    };
    gather.barrier().await.ok();
    // The process that failed tells why.
    Err(failure.unwrap_or_else(|| Failure::printed(3)))
}

/// Each process has read the mix for itself, perhaps on another host.
async fn agree_on_mix<G: Gather>(mix: &Mix, gather: &mut G) -> Result<(), Failure> {
    let own: Vec<f64> = Operation::ALL.into_iter().map(|operation| mix.share(operation)).collect();
    let first = gather.broadcast(own.clone()).await;
    let first = first.map_err(|error| Failure::environment(error, OTHERS))?;
    match first == own {
        true => Ok(()),
        false => Err(Failure::environment(
            "this process has read another mix than the first one",
            "a named mix, or the same file for --mix on every host; standard input has one reader",
        )),
    }
}

/// Two servers of this process, if they are requested.
fn pair(args: &Args, clock: &Clock) -> Result<Option<Pair>, Failure> {
    let (Some(log), Some(dir)) = (&args.write_log, &args.store) else { return Ok(None) };
    local::directory(dir, "--store")?;
    Pair::start(dir, log, &local::tag(clock)).map(Some)
}

/// What is measured: these two, or the targets.
fn subjects(args: &Args, pair: Option<&Pair>) -> Vec<Subject> {
    let of = |name: String, (target, options)| Subject { name, target, options };
    match pair {
        Some(pair) => {
            let reached = pair.reach(args.reply_limit, &Shape::default());
            let names = logged::NAMES.map(str::to_owned);
            names.into_iter().zip(reached).map(|(name, reached)| of(name, reached)).collect()
        }
        None => {
            let reach = |target: &Target| {
                let options = target::options(target, args.reply_limit, Shape::default());
                of(target.to_string(), (target.clone(), options))
            };
            args.target.iter().map(reach).collect()
        }
    }
}

/// Connections of this process to each target.
fn connections(args: &Args) -> usize {
    args.connections.unwrap_or(args.threads).max(args.threads) as usize
}

async fn curves<G: Gather>(
    clock: &Clock,
    (args, of): (&Args, &[Subject]),
    settings: &Settings,
    places: &Places<'_>,
    gather: &mut G,
    bars: &mut Bars,
    runs: &mut Runs,
) -> Result<(), Failure> {
    let mut subjects = Vec::new();
    for (subject, scratch) in of.iter().zip(places.dirs()) {
        let way = Way {
            clock: clock.clone(),
            target: subject.target.clone(),
            options: subject.options.clone(),
            dir: scratch.dir(),
            connections: connections(args),
        };
        subjects.push(Generators::start(&way, gather.share(), args.threads).await?);
    }
    let mut observe =
        |progress: Progress| bars.show_as("curve", &doing(args, of, progress), progress.done);
    let ended = curve::measure(clock, gather, &mut subjects, settings, &mut observe, runs).await;
    ended.map_err(|error| Failure::environment(error, OTHERS))
}

/// What a bar says.
fn doing(args: &Args, subjects: &[Subject], progress: Progress) -> String {
    let of = match subjects {
        [_] => String::new(),
        all if args.write_log.is_some() => format!("{}: ", all[progress.subject].name),
        all => format!("{}: ", all[progress.subject].target.host),
    };
    let step = match progress.step {
        Step::Files { bytes } => format!("files, {} MiB", bytes >> 20),
        Step::Search { outstanding } => format!("saturation, {outstanding} outstanding"),
        Step::Point { load } if args.closed.is_empty() => format!("{load:.0}/s"),
        Step::Point { load } => format!("{load:.0} outstanding"),
    };
    format!("{of}{step}, {:.0} s left", progress.left.as_secs_f64())
}

/// Ends as what was measured deserves.
fn ended(outcome: Outcome) -> Result<(), Failure> {
    let is_empty = outcome.is_empty();
    let (invalid, advice) = (outcome.invalid(), outcome.advice());
    let first =
        outcome.servers.into_iter().find_map(|server| Some((server.name, server.measured.broken?)));
    if let Some((target, broken)) = first {
        let failure = match broken.cause {
            Some(error) => mix::failure(error, "a smaller --file-set-max"),
            None => Failure::environment(broken.why, "the message of the other process"),
        };
        let points =
            if is_empty { "nothing was measured" } else { "what was measured before is recorded" };
        return Err(failure.and(format!("{target}: {points}")));
    }
    match invalid {
        0 => Ok(()),
        1 => Err(Failure::check("a point does not hold the rules", advice)),
        _ => Err(Failure::check(format!("{invalid} points do not hold the rules"), advice)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outstanding_numbers_rise_to_the_last() {
        assert_eq!(steps(64, 10), [1, 2, 3, 4, 6, 10, 16, 25, 40, 64]);
        assert_eq!(steps(4, 10), [1, 2, 3, 4]);
        assert_eq!((steps(64, 1), steps(1, 10)), (vec![64], vec![1]));
    }
}
