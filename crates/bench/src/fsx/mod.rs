//! `nfskit bench fsx`: a file system exercised at random, every byte verified.

pub mod args;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::exit::Failure;
use harness::local;
use harness::output;
use harness::shell;
use harness::verbosity::Verbosity;
use load::file_system;
use load::fsx::{self, FILE_BYTES_MAX, Failed, Options, Tally};
use net::clock::Clock;
use perf::units::Nanos;
use tokio::sync::mpsc;

use crate::fsx::args::Fsx;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// How long operations in progress may take when we are interrupted.
const STOP_LIMIT: Nanos = Nanos::from_secs(3);

/// What came of a file.
type Ended = Result<Result<Tally, Box<Failed>>, load::error::Error>;

impl Workload for Fsx {
    type Plan = ();
    type Measured = Tally;

    fn plan(&self) -> Result<(), Failure> {
        if self.size > FILE_BYTES_MAX {
            let what =
                format!("--size is above {FILE_BYTES_MAX}, and a copy of each file is in memory");
            return Err(Failure::usage(what, "a smaller --size"));
        }
        local::is_fit_for_root(&self.dir)?;
        let needed = self.size.saturating_mul(u64::from(self.files));
        let free = file_system::free_bytes(&self.dir).map_err(Failure::from)?;
        if free < needed {
            let dir = self.dir.display();
            let what = format!("{dir}: {needed} bytes are needed there, and {free} are free");
            return Err(Failure::environment(what, "free space there, or a smaller --size"));
        }
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs::json(&None)
    }

    fn is_untimed(&self) -> bool {
        true
    }

    async fn run(&self, (): &(), conditions: Conditions) -> Result<Outcome<Tally>, Failure> {
        let total = exercise(self, conditions).await?;
        Ok(Outcome::whole(total))
    }

    fn table(&self, (): &(), total: &Tally, _: Verbosity) -> String {
        format!(
            "fsx: {} operations, {} MiB read and {} MiB written, every byte as it should be\n",
            total.operations,
            total.bytes_read >> 20,
            total.bytes_written >> 20
        )
    }
}

async fn exercise(args: &Fsx, conditions: Conditions) -> Result<Tally, Failure> {
    let Conditions { clock, mut interrupts, verbosity } = conditions;
    let seed = args.seed.unwrap_or_else(|| {
        // Short enough to be read out; what is lost is how far in the past we were.
        u64::from(clock.since_1970().subsec_nanos()) % 1_000_000
    });
    if verbosity > Verbosity::Quiet {
        // Now: a mapping whose page does not come ends this process without another word.
        output::print(&format!("fsx: seed {seed}, {} in {}\n", files(args), args.dir.display()))?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut answered = start(args, seed, &clock, &stop)?;
    let outcomes = tokio::select! {
        biased;
        () = interrupts.next() => {
            let interrupted = stop_all(&stop, Failure::interrupted());
            return Err(match clock.within(STOP_LIMIT, all(&mut answered)).await {
                Ok(_) => interrupted,
                Err(_) => {
                    interrupted.and(format!("scratch files may be left in {}", args.dir.display()))
                }
            });
        }
        outcomes = all(&mut answered) => outcomes,
    };
    sum(args, outcomes)
}

/// A thread for each file.
fn start(
    args: &Fsx,
    seed: u64,
    clock: &Clock,
    stop: &Arc<AtomicBool>,
) -> Result<mpsc::Receiver<Ended>, Failure> {
    let (answers, answered) = mpsc::channel(args.files as usize);
    for file in 0..args.files {
        let options = Options {
            seed: seed.wrapping_add(u64::from(file)),
            operations_max: args.ops.unwrap_or(u64::MAX),
            until: args.ops.is_none().then(|| clock.now() + args.time),
            file_bytes_max: args.size,
            call_bytes_max: u32::try_from(args.call).unwrap_or(u32::MAX),
            mapped: !args.no_mmap,
        };
        let name = format!("{}-{file}", local::tag(clock));
        let (clock, dir, stopped) = (clock.clone(), args.dir.clone(), Arc::clone(stop));
        let answers = answers.clone();
        let work = move || {
            let outcome = fsx::run(&clock, &dir, &name, &options, &stopped);
            if !matches!(outcome, Ok(Ok(_))) {
                stopped.store(true, Ordering::Relaxed);
            }
            // There is room for every file's; nobody reads it after an interrupt.
            answers.try_send(outcome).ok();
        };
        let thread = std::thread::Builder::new().name(format!("nfskit-fsx-{file}"));
        thread.spawn(work).map_err(|cause| stop_all(stop, Failure::resources(cause)))?;
    }
    Ok(answered)
}

fn stop_all(stop: &AtomicBool, failure: Failure) -> Failure {
    stop.store(true, Ordering::Relaxed);
    failure
}

async fn all(answered: &mut mpsc::Receiver<Ended>) -> Vec<Ended> {
    let mut outcomes = Vec::new();
    while let Some(outcome) = answered.recv().await {
        outcomes.push(outcome);
    }
    outcomes
}

/// The first failure, or what was done.
fn sum(args: &Fsx, outcomes: Vec<Ended>) -> Result<Tally, Failure> {
    let mut total = Tally::default();
    for outcome in outcomes {
        let tally = outcome.map_err(Failure::from)?.map_err(|failed| wrong(args, &failed))?;
        total.operations += tally.operations;
        total.bytes_read += tally.bytes_read;
        total.bytes_written += tally.bytes_written;
    }
    Ok(total)
}

fn wrong(args: &Fsx, failed: &Failed) -> Failure {
    let mut what = format!("operation {}: {}\n", failed.operation, failed.what);
    for line in &failed.log {
        what.push_str(&format!("     {line}\n"));
    }
    if let Some(writer) = &failed.last_writer {
        what.push_str(&format!("   the newest to write there: {writer}\n"));
    }
    what.push_str(&format!("   the file is left: {}", failed.file.display()));
    Failure::check(what, again(args, failed))
}

/// The command that does the same to one file.
fn again(args: &Fsx, failed: &Failed) -> String {
    let mapped = if args.no_mmap { " --no-mmap" } else { "" };
    format!(
        "nfskit bench fsx --dir {} --seed {} --ops {} --size {} --call {}{mapped}",
        shell::quoted(&args.dir),
        failed.seed,
        failed.operation,
        args.size,
        args.call
    )
}

fn files(args: &Fsx) -> String {
    match args.files {
        1 => format!("a file of up to {} bytes", args.size),
        files => format!("{files} files of up to {} bytes, seeds from this one on", args.size),
    }
}
