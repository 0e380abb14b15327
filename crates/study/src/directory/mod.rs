//! `nfskit study --dir`: the study through a mounted directory, of whatever file system.
//!
//! What the study of a URL calls at a server, programs do by system calls here: names, single
//! writes that are made stable, several programs at once, whole files. Beside each stands what the
//! kernel's client counted meanwhile, where the directory is on NFS, and at the end what doctor
//! says of the mount.

mod counted;
mod job;
mod outcome;
mod record;
mod report;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use doctor::{Evidence, Limits, diagnose};
use harness::exit::Failure;
use harness::output::Bars;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use harness::{counted as host, local, shell};
use load::cpu::Neighbours;
use load::error::Error as LoadError;
use load::file_system;
use net::clock::Clock;
use net::runtime::block_on;
use perf::units::Nanos;
use tokio::sync::oneshot;

use self::job::{Job, Measured, Plan};
use self::outcome::DirectoryStudy;
use crate::server_study::args::Study;
use crate::server_study::{prepare, written};

/// How long a run in progress may take to stop and to clean up.
const STOP_LIMIT: Nanos = Nanos::from_secs(5);
/// Between two looks at how far it is.
const STEP: Nanos = Nanos::from_millis(200);

/// Runs the command.
pub(crate) fn run(args: &Study, dir: &Path, verbosity: Verbosity) -> Result<(), Failure> {
    prepare(args)?;
    let outcome = block_on(measure(args, dir, verbosity)).map_err(Failure::resources)??;
    let record = record::record(&outcome);
    let report = report::report(&outcome, &record);
    written(args, verbosity, &record, &report, &record::calls_csv(&outcome.measured))
}

/// What to try where there is too little room.
fn more_room(is_quick: bool) -> &'static str {
    match is_quick {
        true => "free space there, or another directory",
        false => "another directory, or --quick, which needs less",
    }
}

async fn measure(
    args: &Study,
    dir: &Path,
    verbosity: Verbosity,
) -> Result<DirectoryStudy, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let clock = Clock::real();
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let started = load::environment::rfc3339(&clock);
    let file_system = local::directory(dir, "--dir")?;
    let free = file_system::free_bytes(dir).map_err(Failure::from)?;
    local::room(&dir.display().to_string(), plan.bytes_max(), free, more_room(args.quick))?;
    let neighbours = Neighbours::watch(clock.now());
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let job = Job { clock: clock.clone(), dir: dir.to_owned(), plan, stop, done };
    let answered = start(job.clone())?;
    let (measured, left) = answer(&job, answered, &mut interrupts, verbosity).await?;
    let measured = measured.map_err(Failure::from);
    let measured = match left {
        None => measured?,
        Some(left) => return Err(local::left(dir, &left.to_string(), measured)),
    };
    let diagnosis = diagnosis(&measured);
    Ok(DirectoryStudy {
        plan,
        started,
        command: shell::own(),
        dir: dir.to_owned(),
        file_system,
        measured,
        diagnosis,
        neighbours_share: neighbours.share(clock.now()),
    })
}

/// What the thread gives back.
type Answer = (Result<Measured, LoadError>, Option<LoadError>);

fn start(job: Job) -> Result<oneshot::Receiver<Answer>, Failure> {
    let (answer, answered) = oneshot::channel();
    // Nobody waits any more when the program is interrupted.
    let run = move || drop(answer.send(job.run()));
    let thread = std::thread::Builder::new().name("nfskit-study".to_owned());
    thread.spawn(run).map_err(Failure::resources)?;
    Ok(answered)
}

/// Waits for the thread, with a bar of how far it is; an interrupt ends it.
async fn answer(
    job: &Job,
    mut answered: oneshot::Receiver<Answer>,
    interrupts: &mut Interrupts,
    verbosity: Verbosity,
) -> Result<Answer, Failure> {
    let mut bars = Bars::new(verbosity);
    let answer = loop {
        tokio::select! {
            biased;
            () = interrupts.next() => {
                bars.clear();
                job.stop.store(true, Ordering::Relaxed);
                return Err(interrupted(job, answered).await);
            }
            answer = &mut answered => break answer,
            () = job.clock.sleep(STEP) => {
                let done = job.done.load(Ordering::Relaxed);
                bars.show("through the directory", f64::from(done) / 1e3);
            }
        }
    };
    bars.clear();
    answer.map_err(|_| Failure::interrupted())
}

async fn interrupted(job: &Job, mut answered: oneshot::Receiver<Answer>) -> Failure {
    match job.clock.within(STOP_LIMIT, &mut answered).await {
        Ok(Ok((_, None))) => Failure::interrupted(),
        Ok(Ok((_, Some(left)))) => Failure::interrupted().and(left),
        _ => Failure::interrupted()
            .and(format!("files may be left in {}, which does not answer", job.dir.display())),
    }
}

/// What doctor says of the mount, from all that was counted meanwhile.
fn diagnosis(measured: &Measured) -> Option<doctor::Report> {
    let point = measured.mount.as_ref()?;
    let (before, after) = (measured.before.clone(), measured.after.clone());
    let evidence = Evidence::of(host::both(Path::new("/"), before, after));
    let reports = diagnose(&evidence, &Limits::default());
    reports.into_iter().rfind(|report| report.name == *point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_that_is_quick_needs_another_hint() {
        assert!(more_room(false).contains("--quick") && !more_room(true).contains("--quick"));
    }
}
