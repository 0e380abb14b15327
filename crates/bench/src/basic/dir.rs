//! A directory of any file system, on a thread of its own: a system call that hangs must not keep
//! us from being interrupted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::exit::Failure;
use harness::local;
use harness::output;
use harness::signals::Interrupts;
use load::basic::local::Local;
use load::basic::place::Place;
use load::basic::{Outcome, run as run_tests};
use load::error::Error as LoadError;
use load::file_system::{self, FileSystem};
use net::clock::Clock;
use perf::record::Durability;
use perf::units::Nanos;
use tokio::sync::oneshot;

use super::lines;
use super::ran::{Described, Ran, broken, failed};
use super::work::{Work, is_enough, is_fit};

/// How long a run in progress may take to stop and to clean up.
const STOP_LIMIT: Nanos = Nanos::from_secs(5);

/// What the thread gives back.
type Answer = Result<(Outcome, Option<LoadError>), Failure>;

/// Runs the tests in the directory; an error is one of before the first test.
pub(super) async fn run(
    work: &Work<'_>,
    dir: &Path,
    interrupts: &mut Interrupts,
) -> Result<Ran, Failure> {
    let started = load::environment::rfc3339(work.clock);
    let file_system = local::directory(dir, "--dir")?;
    let free = file_system::free_bytes(dir).map_err(Failure::from)?;
    is_enough(&dir.display().to_string(), free, work.plan)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut answered = start(work, dir, &stop)?;
    let answer = tokio::select! {
        biased;
        () = interrupts.next() => {
            stop.store(true, Ordering::Relaxed);
            let place = described(dir, &file_system);
            return match work.clock.within(STOP_LIMIT, &mut answered).await {
                Ok(Ok(Ok((Outcome { measured, .. }, left)))) => {
                    let interrupted = Failure::interrupted();
                    let interrupted = match left {
                        Some(left) => interrupted.and(left),
                        None => interrupted,
                    };
                    Ran::until(interrupted, started, measured, (work.plan, place))
                }
                Ok(_) => Err(Failure::interrupted()),
                Err(_) => Err(Failure::interrupted()
                    .and(format!("files may be left in {}, which does not answer", dir.display()))),
            };
        }
        answer = &mut answered => answer.unwrap_or_else(|_| Err(Failure::interrupted())),
    };
    let (mut outcome, left) = answer?;
    let broken = broken(&mut outcome, work.plan, &dir.display().to_string());
    let failure = failed(&outcome.measured).or(broken);
    let failure = match (failure, left) {
        (failure, None) => failure,
        (Some(failure), Some(left)) => Some(failure.and(left)),
        (None, Some(left)) => Some(Failure::from(left)),
    };
    let Outcome { measured, left } = outcome;
    let place = described(dir, &file_system);
    Ok(Ran { started, measured, left, place, failure, interrupted: None })
}

fn start(
    work: &Work<'_>,
    dir: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<oneshot::Receiver<Answer>, Failure> {
    let (answer, answered) = oneshot::channel();
    let job = Job {
        clock: work.clock.clone(),
        dir: dir.to_owned(),
        plan: work.plan.clone(),
        is_printed: work.is_printed,
        stop: Arc::clone(stop),
    };
    let run = move || {
        let ended = net::runtime::block_on(job.run());
        let ended = ended.unwrap_or_else(|cause| Err(Failure::resources(cause)));
        // Nobody waits any more when the program is interrupted.
        answer.send(ended).ok();
    };
    let thread = std::thread::Builder::new().name("nfskit-basic".to_owned());
    thread.spawn(run).map_err(Failure::resources)?;
    Ok(answered)
}

/// What the thread is to do.
struct Job {
    clock: Clock,
    dir: PathBuf,
    plan: load::basic::Plan,
    is_printed: bool,
    stop: Arc<AtomicBool>,
}

impl Job {
    async fn run(&self) -> Answer {
        if self.plan.in_place {
            let place = Local::open(&self.dir, self.plan.sync).map_err(Failure::from)?;
            is_fit(&place, &place.root(), &self.plan).await?;
            return Ok((self.tests(&place).await?, None));
        }
        let scratch = local::scratch(&self.dir, &local::tag(&self.clock))?;
        let outcome = match Local::open(&scratch, self.plan.sync).map_err(Failure::from) {
            Ok(place) => self.tests(&place).await,
            Err(failure) => Err(failure),
        };
        let removed = std::fs::remove_dir_all(&scratch).map_err(|cause| {
            let path = scratch;
            LoadError::Local { doing: "removing a directory", path, cause }
        });
        Ok((outcome?, removed.err()))
    }

    async fn tests(&self, place: &Local) -> Result<Outcome, Failure> {
        let root = place.root();
        if self.is_printed {
            output::print(&lines::beginning(&place.show(&root), &self.plan))?;
        }
        let mut observe = lines::observer(self.is_printed, self.plan.mode);
        let (clock, plan, stop) = (&self.clock, &self.plan, &self.stop);
        Ok(run_tests(clock, place, &root, plan, stop, &mut observe).await)
    }
}

/// Nothing is flushed: what is written survives what the file system makes of that by itself.
fn described(dir: &Path, file_system: &FileSystem) -> Described {
    let is_nfs = file_system.is_nfs();
    let (durability, survives) = match file_system.flushed {
        Some(Durability::Stable) if is_nfs => {
            (Some(Durability::Stable), "a loss of power, as the protocol promises of a close")
        }
        Some(Durability::Memory) => (Some(Durability::Memory), "nothing: it lies in memory"),
        Some(_) => (
            Some(Durability::PageCache),
            "the end of this program, but no loss of power: nothing is flushed",
        ),
        None => (None, "something that is not known from here"),
    };
    Described {
        kind: "directory",
        name: dir.display().to_string(),
        file_system: file_system.kind.clone(),
        mount_options: file_system.mount_options.clone(),
        durability,
        survives: survives.to_owned(),
        cache: "the system's: what was just made, read or written may come from memory",
        ..Described::default()
    }
}
