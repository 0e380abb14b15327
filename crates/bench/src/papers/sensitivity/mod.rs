//! `nfskit papers sensitivity`: the same mix of operations on the live system and in a world, while
//! L, o and G are varied one at a time, beside what the paper and its model say.
//!
//! What the world takes from the live system, the processor's time for an operation and the rest of
//! the base response time, is measured there with the baseline's parameters only. Every other point
//! of the world is a prediction.

mod findings;
mod live;
mod markdown;
mod outcome;
mod points;
mod record;
mod report;
mod system;
mod table;
mod world;

use harness::exit::Failure;
use harness::output::Bars;
use harness::scratch;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use load::scratch::Scratch;
use net::shape::Shape;
use perf::record::Run as Record;

use self::findings::Findings;
use self::live::Live;
use self::outcome::Outcome;
use self::points::Course;
use self::world::Simulated;
use crate::papers::args::Sensitivity;
use crate::workload::{self, Conditions, Outputs, Workload};

impl Workload for Sensitivity {
    type Plan = Course;
    type Measured = Outcome;

    fn plan(&self) -> Result<Course, Failure> {
        Course::new(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { html: &self.html, ..Outputs::json(&self.common.json) }
    }

    async fn run(
        &self,
        course: &Course,
        conditions: Conditions,
    ) -> Result<workload::Outcome<Outcome>, Failure> {
        let outcome = measure(self, course, conditions).await?;
        Ok(workload::Outcome::whole(outcome))
    }

    fn table(&self, _: &Course, outcome: &Outcome, _: Verbosity) -> String {
        let text = if self.common.markdown { markdown::text } else { table::text };
        let report = self.html.iter().map(|html| format!("report: {}\n", html.display()));
        text(outcome) + &report.collect::<String>()
    }

    fn record(&self, _: &Course, outcome: &Outcome) -> Vec<Record> {
        vec![record::record(outcome)]
    }

    fn figure(&self, _: &Course, outcome: &Outcome) -> String {
        report::html(outcome)
    }

    fn verdict(&self, outcome: Outcome) -> Result<(), Failure> {
        self.common.verdict(outcome.findings.is_met(), || outcome.findings.summary())
    }
}

async fn measure(
    args: &Sensitivity,
    course: &Course,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<Outcome, Failure> {
    let mut bars = Bars::new(verbosity);
    let started = load::environment::rfc3339(&clock);
    let (begun, neighbours) = (clock.now(), Neighbours::watch(clock.now()));
    let live = match &args.target {
        Some(target) => {
            let options = target::options(target, args.common.reply_limit, Shape::default());
            let plain = Reached::new(&clock, None, target, options);
            scratch::in_scratch(&plain, &mut interrupts, async |scratch: &Scratch| {
                let live = Live::at(&clock, args.common.reply_limit, target, scratch.clone());
                course.run(&clock, &live, course.repeats, &mut bars).await
            })
            .await?
        }
        None => {
            let live = Live::embedded(&clock, args.common.reply_limit);
            interrupts.or(course.run(&clock, &live, course.repeats, &mut bars)).await?
        }
    };
    let now = clock.now();
    // Nothing is left to clean up, and a world does not listen: an interrupt ends us at once.
    drop(interrupts);
    let simulated = Simulated::like(course, &live).await?;
    // A world has no noise: once is enough.
    let world = course.run(&clock, &simulated, 1, &mut bars).await?;
    bars.clear();
    let findings = Findings::of(&live, &world);
    Ok(Outcome {
        mix: args.mix,
        url: args.target.as_ref().map(ToString::to_string),
        started,
        took: clock.now().since(begun),
        course: course.clone(),
        live,
        world,
        simulated,
        findings,
        neighbours_share: neighbours.share(now),
    })
}
