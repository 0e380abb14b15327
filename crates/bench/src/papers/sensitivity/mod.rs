//! `nfskit papers sensitivity`: the same mix of operations on the live system and in a world, while
//! L, o and G are varied one at a time, beside what the paper and its model say.
//!
//! What the world has to be told, the processor's time for an operation and the rest of the base
//! response time, is measured on the live system with the baseline's parameters only. Every other
//! point of the world is a prediction.

mod findings;
mod live;
mod markdown;
mod points;
mod record;
mod report;
mod system;
mod table;
mod world;

use harness::exit::Failure;
use harness::output::{self, Bars};
use harness::scratch;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use load::mix::Mix;
use load::scratch::Scratch;
use net::clock::Clock;
use net::shape::Shape;
use perf::units::Nanos;

use self::findings::Findings;
use self::live::Live;
use self::points::{Course, Measured, Part};
use self::world::Simulated;
use crate::papers::args::Sensitivity;

/// Everything that was measured, and how.
#[derive(Debug)]
struct Outcome {
    mix: Mix,
    /// The URL of somebody else's server.
    url: Option<String>,
    started: String,
    took: Nanos,
    course: Course,
    live: Vec<Measured>,
    world: Vec<Measured>,
    simulated: Simulated,
    findings: Findings,
    neighbours_share: Option<f64>,
}

impl Outcome {
    /// A point as it was live and in the world.
    fn pairs(&self, part: Part) -> impl Iterator<Item = (&Measured, &Measured)> {
        let both = self.live.iter().zip(&self.world);
        both.filter(move |(live, _)| live.point.part == part)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Sensitivity, verbosity: Verbosity) -> Result<(), Failure> {
    output::check([&args.json, &args.html])?;
    let outcome = net::runtime::block_on(measure(args, verbosity))
        .map_err(|cause| Failure::environment(cause, "raise the limit of open files"))??;
    if let Some(html) = &args.html {
        output::write(html, &report::html(&outcome))?;
    }
    if output::prints_text(verbosity, [&args.json, &args.html]) {
        let text = if args.markdown { markdown::text } else { table::text };
        output::print(&text(&outcome))?;
        if let Some(html) = &args.html {
            output::print(&format!("report: {}\n", html.display()))?;
        }
    }
    if let Some(json) = &args.json {
        output::write(json, &record::json(&outcome))?;
    }
    if args.check && !outcome.findings.is_met() {
        let advice = "again on a quiet machine, without --quick";
        return Err(Failure::check(outcome.findings.summary(), advice));
    }
    Ok(())
}

async fn measure(args: &Sensitivity, verbosity: Verbosity) -> Result<Outcome, Failure> {
    let clock = Clock::real();
    let course = Course::new(args)?;
    let mut bars = Bars::new(verbosity);
    let mut interrupts = Interrupts::catch()?;
    let started = load::environment::rfc3339(&clock);
    let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
    let live = match &args.target {
        Some(target) => {
            let options = target::options(target, args.reply_limit, Shape::default());
            let plain = Reached::new(&clock, None, target, options);
            scratch::in_scratch(&plain, &mut interrupts, async |scratch: &Scratch| {
                let live = Live::at(&clock, args.reply_limit, target, scratch.clone());
                course.run(&clock, &live, course.repeats, &mut bars).await
            })
            .await?
        }
        None => {
            let live = Live::embedded(&clock, args.reply_limit);
            tokio::select! {
                biased;
                () = interrupts.next() => return Err(Failure::interrupted()),
                measured = course.run(&clock, &live, course.repeats, &mut bars) => measured?,
            }
        }
    };
    let now = clock.now();
    // Nothing is left to clean up, and a world does not listen: an interrupt ends us at once.
    drop(interrupts);
    let simulated = Simulated::like(&course, &live).await?;
    // A world has no noise: once is enough.
    let world = course.run(&clock, &simulated, 1, &mut bars).await?;
    bars.clear();
    let findings = Findings::of(&live, &world);
    Ok(Outcome {
        mix: args.mix,
        url: args.target.as_ref().map(ToString::to_string),
        started,
        took: clock.now().since(begun),
        course,
        live,
        world,
        simulated,
        findings,
        neighbours_share: neighbours.share(now),
    })
}
