//! `nfskit probe`: the parameters of somebody's server from the client's side alone.

pub mod args;
mod base;
mod notes;
mod page;
mod probed;
mod record;
mod screen;

use client::url::Target;
use harness::exit::Failure;
use harness::output::{self, Bars};
use harness::records;
use harness::scratch;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::{Neighbours, Usage};
use load::probe::concurrency;
use load::scratch::Scratch;
use load::study::{self as sweep, Plan, Step};
use net::clock::Clock;
use net::runtime::block_on;
use net::shape::Shape;
use perf::units::Nanos;

use self::base::Base;
use self::probed::Probed;
use crate::explain::{Explanation, PlannedRun};
use crate::probe::args::Probe;

/// Runs the command.
pub fn run(args: &Probe, verbosity: Verbosity) -> Result<(), Failure> {
    output::check([&args.json, &args.html], [])?;
    let outcome = block_on(measure(args, verbosity)).map_err(Failure::resources)??;
    let page = output::write_to(&args.html, || page::html(&outcome));
    output::print_text(verbosity, [&args.json, &args.html], || screen::text(&outcome))?;
    output::write_to(&args.json, || record::json(&outcome)).and(page)
}

/// What a quick probe found, for who shows it beside other things.
#[derive(Debug)]
pub struct Found {
    /// As the command prints it.
    pub text: String,
    /// The run record.
    pub record: String,
    pub sentence: String,
    /// Each with its value, unit and interval.
    pub parameters: Vec<(String, String)>,
}

/// Probes a server in short, for another command.
///
/// # Errors
/// As the command's.
pub fn quick(target: &Target, verbosity: Verbosity) -> Result<Found, Failure> {
    let args = Probe {
        target: target.clone(),
        link: None,
        quick: true,
        reply_limit: REPLY_LIMIT,
        html: None,
        json: None,
    };
    let outcome = block_on(measure(&args, verbosity)).map_err(Failure::resources)??;
    let value = |one: &screen::Parameter| {
        let interval = one.estimate.ci95.map(|ci95| format!(" ({:.3} to {:.3})", ci95.lo, ci95.hi));
        format!("{:.3} {}{}", one.estimate.value, one.unit, interval.unwrap_or_default())
    };
    let parameters = screen::parameters(&outcome);
    Ok(Found {
        text: screen::text(&outcome),
        record: record::json(&outcome),
        sentence: outcome.explanation.first_sentence().unwrap_or_default(),
        parameters: parameters.iter().map(|one| (one.name.to_owned(), value(one))).collect(),
    })
}

/// As the command has it unless it is given.
const REPLY_LIMIT: Nanos = Nanos::from_secs(30);

async fn measure(args: &Probe, verbosity: Verbosity) -> Result<Probed, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let clock = Clock::real();
    let reached = |links| {
        let options = target::options(&args.target, args.reply_limit, links);
        Reached::new(&clock, None, &args.target, options)
    };
    let link = args.link.clone().unwrap_or_default();
    let (plain, subject) = (reached(Shape::default()), reached(link.clone().into()));
    let mut bars = Bars::new(verbosity);
    let started = records::now();
    let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
    let outcome = scratch::in_scratch(&plain, &mut interrupts, async |scratch: &Scratch| {
        let plan = if args.quick { Plan::PROBE_QUICK } else { Plan::PROBE };
        let subjects = [subject.clone()];
        let mut study = sweep::Study::begin(&clock, plan, &subjects, scratch).await?;
        let (measured, samples) = sampled(&mut study, args.quick, &mut bars).await?;
        let findings = study.findings()?;
        let commit_bytes = study.commit_bytes();
        let planned = PlannedRun::of_sweep(&study, &plan, Nanos::ZERO);
        let sizes = study.call_bytes();
        let explanation = Explanation::new(planned, &findings, &[None], &sizes, &measured);
        let base = match args.quick {
            true => Base::of_sweep(&explanation, &findings.path, planned),
            false => base::measured(&mut study, &explanation, &findings.path, planned).await?,
        };
        let now = clock.now();
        let drains = measured.iter().map(|run| planned.drain.of(&run.configuration, planned.time));
        Ok(Probed {
            base,
            noise_pct: explanation.choice.noise_pct,
            url: args.target.to_string(),
            version: args.target.version.number(),
            proto: args.target.protocol.name(),
            link: link.clone(),
            started,
            took: now.since(begun),
            concurrency: samples.findings(&findings.op_us, &findings.block_us)?,
            findings,
            explanation,
            commit_bytes,
            repeats: measured.first().map_or(0, |measured| measured.mib_per_s.len()),
            unanswered: measured.iter().fold((0, 0), |(unanswered, runs), one| {
                (unanswered + one.unanswered(), runs + one.mib_per_s.len())
            }),
            drain_most: drains.fold(Nanos::ZERO, Nanos::max),
            neighbours_share: neighbours.share(now),
        })
    })
    .await;
    bars.clear();
    outcome
}

/// The sweep, and how many calls the server works on side by side: in three portions, so that a
/// machine that changes between them shows in the intervals.
async fn sampled(
    study: &mut sweep::Study<'_, Reached>,
    quick: bool,
    bars: &mut Bars,
) -> Result<(Vec<sweep::Measured>, concurrency::Samples), load::error::Error> {
    study.warm_up().await?;
    // The client is this thread.
    let busy = || Some(Usage::now().thread);
    let rounds = if quick { 2 } else { 4 };
    let mut progress = |step, share: f64| match step {
        Step::Probe => bars.show("the parts", share),
        Step::Measure | Step::Apply => bars.show("calls outstanding", share),
    };
    let mut samples = study.concurrency(rounds, &busy).await?;
    study.probe(&mut progress).await?;
    samples.absorb(study.concurrency(rounds, &busy).await?);
    let measured = study.sweep(&mut progress).await?;
    samples.absorb(study.concurrency(rounds, &busy).await?);
    Ok((measured, samples))
}
