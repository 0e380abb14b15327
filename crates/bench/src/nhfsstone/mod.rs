//! `nfskit bench nhfsstone`: the benchmark of that name, against one directory of a server or more.

pub mod args;
mod background;
mod record;
mod text;

use std::path::PathBuf;

use client::mount::{self, Mounted};
use client::url::Version;
use harness::exit::Failure;
use harness::output::Bars;
use harness::scratch::Held;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Usage;
use load::mix::{Mix, Operation};
use load::nhfsstone::{self, CALLS, Outcome, Place, Plan};
use net::clock::Clock;
use net::shape::Shape;
use perf::record::Run as Record;
use perf::units::Nanos;

use self::background::Background;
use crate::mix;
use crate::nhfsstone::args::Nhfsstone as Args;
use crate::workload::{self, Conditions, Outputs, Workload};

/// How long the files of one task may take to be removed.
const REMOVE_LIMIT: Nanos = Nanos::from_secs(20);

/// What was measured, and how.
#[derive(Debug)]
pub(crate) struct Ran {
    started: String,
    took: Nanos,
    background: Background,
    outcome: Outcome,
    retransmissions: u64,
    /// Of a processor, while it ran.
    generator_share: f64,
}

impl Workload for Args {
    type Plan = Plan;
    type Measured = Ran;

    fn plan(&self) -> Result<Plan, Failure> {
        plan(self)
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&self.json)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        self.mix.iter().map(PathBuf::from).collect()
    }

    async fn run(
        &self,
        plan: &Plan,
        conditions: Conditions,
    ) -> Result<workload::Outcome<Ran>, Failure> {
        let (ran, failed) = measure(self, plan, conditions).await?;
        Ok(workload::Outcome { measured: (ran.outcome.calls() > 0).then_some(ran), failed })
    }

    fn table(&self, plan: &Plan, ran: &Ran, verbosity: Verbosity) -> String {
        text::text(plan, ran, verbosity)
    }

    fn record(&self, plan: &Plan, ran: &Ran) -> Vec<Record> {
        vec![record::record(self, plan, ran)]
    }

    fn verdict(&self, ran: Ran) -> Result<(), Failure> {
        match text::invalid(&ran.outcome) {
            None => Ok(()),
            Some((why, advice)) => Err(Failure::check(why, advice)),
        }
    }
}

/// What the arguments ask for.
fn plan(args: &Args) -> Result<Plan, Failure> {
    // What one target's version lacks is requested of none.
    let is_two = args.target.iter().any(|target| target.version == Version::Two);
    let version = if is_two { Version::Two } else { Version::Three };
    let word = match &args.operation {
        Some(operation) => named(operation)?,
        None => args.mix.clone().unwrap_or_else(|| "laddis".to_owned()),
    };
    let mix: Mix = mix::read(&word, Some(version))?;
    let calls = match (args.calls, args.time) {
        (Some(calls), _) => calls.into(),
        (None, Some(time)) => {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let calls = (time.as_secs_f64() * args.load).round() as u64;
            calls.max(1)
        }
        (None, None) => CALLS,
    };
    let tasks = args.processes as usize;
    Ok(Plan { mix, load_per_s: args.load, calls, tasks, seed: args.seed })
}

/// The name of an operation of `-T`.
fn named(operation: &str) -> Result<String, Failure> {
    let found = match operation.parse::<usize>() {
        Ok(number) => nhfsstone::outcome::operation(number),
        Err(_) => operation.parse::<Operation>().ok(),
    };
    found.map(|operation| operation.name().to_owned()).ok_or_else(|| {
        let advice = "0 to 17 as in version 2, without 3 and 7, which nobody serves; or a name";
        Failure::usage(format!("-T {operation}: there is no such operation"), advice)
    })
}

async fn measure(
    args: &Args,
    plan: &Plan,
    Conditions { clock, mut interrupts, verbosity }: Conditions,
) -> Result<(Ran, Option<Failure>), Failure> {
    let started = load::environment::rfc3339(&clock);
    let begun = clock.now();
    let background = tokio::select! {
        biased;
        () = interrupts.next() => return Err(Failure::interrupted()),
        background = Background::watch(&clock) => background,
    };
    background.is_quiet(args.busy)?;
    let options = |target| target::options(target, args.reply_limit, Shape::default());
    let plain: Vec<Reached> = args
        .target
        .iter()
        .map(|target| Reached::new(&clock, None, target, options(target)))
        .collect();
    let mut held = Vec::new();
    let mut made = Ok(());
    for reached in &plain {
        match Held::make(reached, &mut interrupts).await {
            Ok(one) => held.push(one),
            Err(failure) => {
                made = Err(failure);
                break;
            }
        }
    }
    let mut bars = Bars::new(verbosity);
    let outcome = match made {
        Err(failure) => Err(failure),
        Ok(()) => generate(&clock, (args, plan), &held, &mut interrupts, &mut bars).await,
    };
    bars.clear();
    let limit = REMOVE_LIMIT * u64::from(args.processes.max(1));
    let mut left = None;
    for (one, reached) in held.into_iter().zip(&plain) {
        left = one.clear(reached, limit, Ok(())).await.err().or(left);
    }
    let (outcome, (retransmissions, generator_share), failed) = match (outcome, &left) {
        (Ok(outcome), _) => outcome,
        (Err(failure), None) => return Err(failure),
        (Err(failure), Some(left)) => return Err(failure.and(left.what())),
    };
    let took = clock.now().since(begun);
    let failed = match (failed, left) {
        (Some(failure), Some(left)) => Some(failure.and(left.what())),
        (failure, left) => failure.or(left),
    };
    Ok((Ran { started, took, background, outcome, retransmissions, generator_share }, failed))
}

/// Makes the files, and runs: what was measured, and what ended it before its end.
async fn generate(
    clock: &Clock,
    (args, plan): (&Args, &Plan),
    held: &[Held],
    interrupts: &mut Interrupts,
    bars: &mut Bars,
) -> Result<(Outcome, (u64, f64), Option<Failure>), Failure> {
    let mut places = Vec::new();
    let preparing = async {
        for (target, held) in args.target.iter().zip(held) {
            let options = target::options(target, args.reply_limit, Shape::default());
            let Mounted { session, .. } = mount::mount(clock, target, &options).await?;
            places.push(Place { session, dir: held.scratch.dir() });
        }
        let tell = |share| bars.show("making the files", share);
        let prepared = nhfsstone::prepare(&places, plan, tell).await;
        prepared.map_err(|error| mix::failure(error, "fewer --processes (-p)"))
    };
    let prepared = interrupts.or(preparing).await?;
    let mut observe = |outcome: &Outcome| {
        bars.show("nhfsstone", outcome.calls() as f64 / plan.calls as f64);
    };
    let (began, used) = (clock.now(), Usage::now());
    let mut interrupted = None;
    let stopped = async {
        interrupts.next().await;
        interrupted = Some(Failure::interrupted());
    };
    let (outcome, broken) = nhfsstone::run(clock, prepared, plan, &mut observe, stopped).await;
    let took_s = clock.now().since(began).as_secs_f64();
    let share = Usage::now().since(used).process.as_secs_f64() / took_s.max(f64::MIN_POSITIVE);
    let again = places.iter().map(|place| place.session.rpc().retransmissions()).sum();
    Ok((outcome, (again, share), interrupted.or_else(|| broken.map(Failure::from))))
}

/// The targets, for people and for the record.
fn targets(args: &Args) -> String {
    args.target.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
