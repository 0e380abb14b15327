//! One test, by one copy or several at once; and whether what it did is right.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use net::clock::Clock;
use perf::units::{Instant, Nanos};

use super::failed::{Failed, same};
use super::material::Material;
use super::step::Step;
use super::{Test, andrew, archive, build, large, small};
use crate::cpu::Usage;

/// What a copy has seen, to be compared when the time is over.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Nothing,
    Counted(andrew::Counted),
    Listings(Vec<Vec<String>>),
    Bytes(Vec<u8>),
}

/// One copy's part.
#[derive(Debug)]
pub struct CopyRun {
    /// From the moment at which all were released.
    pub span: Nanos,
    seen: Seen,
}

/// What happened.
#[derive(Debug)]
pub struct Run {
    pub copies: Vec<CopyRun>,
    /// Until the last copy had ended.
    pub elapsed: Nanos,
    /// Until what was changed had been flushed as well; `None` where nothing was.
    pub flushed: Option<Nanos>,
    /// Processor time of this process, all threads; children are not in it.
    pub cpu: Nanos,
}

/// Runs a test in each of `dirs`, all released together; then flushes the file system they are on,
/// if the test writes and `sync` wants it. Blocks.
///
/// # Errors
/// The first of any copy, which stops the others.
pub fn run(
    clock: &Clock,
    test: Test,
    material: &Arc<Material>,
    dirs: &[PathBuf],
    sync: bool,
    stop: &AtomicBool,
) -> Result<Run, Failed> {
    // All are there, then the clock is read, then all may go: who is first is not before that.
    let [ready, go] = [(); 2].map(|()| Barrier::new(dirs.len() + 1));
    let (ready, go, broken) = (&ready, &go, &AtomicBool::new(false));
    let (begun, cpu, ended) = std::thread::scope(|scope| {
        let copy = |dir: &'_ PathBuf| {
            let (dir, clock) = (dir.clone(), clock.clone());
            std::thread::Builder::new().name("nfskit-copy".to_owned()).spawn_scoped(
                scope,
                move || {
                    let step = Step { dir: &dir, material, stop };
                    ready.wait();
                    go.wait();
                    let seen = match broken.load(Ordering::Relaxed) {
                        true => Err(Failed::Stopped),
                        false => perform(&step, test),
                    };
                    if seen.is_err() {
                        // The others need not go on.
                        stop.store(true, Ordering::Relaxed);
                    }
                    (clock.now(), seen)
                },
            )
        };
        let threads: Vec<_> = dirs.iter().map(copy).collect();
        if threads.iter().any(Result::is_err) {
            broken.store(true, Ordering::Relaxed);
            // Who is not there cannot be waited for: stand in for each.
            for _ in threads.iter().filter(|thread| thread.is_err()) {
                scope.spawn(|| {
                    ready.wait();
                    go.wait();
                });
            }
        }
        ready.wait();
        let (begun, cpu) = (clock.now(), Usage::now());
        go.wait();
        let ended: Vec<_> = threads
            .into_iter()
            .zip(dirs)
            .map(|(thread, dir)| match thread {
                Ok(thread) => thread.join().unwrap_or((begun, Err(Failed::Stopped))),
                Err(cause) => (begun, Err(Failed::at("starting a thread for", dir)(cause))),
            })
            .collect();
        (begun, cpu, ended)
    });
    let copies = copies(begun, ended)?;
    let elapsed = copies.iter().map(|copy| copy.span).max().unwrap_or(Nanos::ZERO);
    let mut flushed = None;
    if sync && test.writes() {
        if let Some(dir) = dirs.first() {
            flush(dir)?;
        }
        flushed = Some(clock.now().since(begun));
    }
    Ok(Run { copies, elapsed, flushed, cpu: Usage::now().since(cpu).process })
}

/// All copies, or why one failed.
fn copies(
    begun: Instant,
    ended: Vec<(Instant, Result<Seen, Failed>)>,
) -> Result<Vec<CopyRun>, Failed> {
    let mut copies = Vec::new();
    let mut failed: Option<Failed> = None;
    for (at, seen) in ended {
        match (seen, &failed) {
            (Ok(seen), _) => copies.push(CopyRun { span: at.since(begun), seen }),
            // The one that stopped the others has the reason.
            (Err(error), None | Some(Failed::Stopped)) => failed = Some(error),
            (Err(_), Some(_)) => {}
        }
    }
    failed.map_or(Ok(copies), Err)
}

/// Makes durable what was written on the file system of `dir` (syncfs(2)).
///
/// # Errors
/// As the system says; but a file that was removed meanwhile (ESTALE) has nothing to be flushed.
pub(super) fn flush(dir: &Path) -> Result<(), Failed> {
    let opened = std::fs::File::open(dir).map_err(Failed::at("opening", dir))?;
    match rustix::fs::syncfs(&opened) {
        Ok(()) | Err(rustix::io::Errno::STALE) => Ok(()),
        Err(errno) => Err(Failed::at("flushing", dir)(errno.into())),
    }
}

fn perform(step: &Step<'_>, test: Test) -> Result<Seen, Failed> {
    let nothing = |()| Seen::Nothing;
    match test {
        Test::MakeDirs => andrew::make_dirs(step).map(nothing),
        Test::CopyFiles => andrew::copy_files(step).map(nothing),
        Test::Stat => andrew::stat(step).map(Seen::Counted),
        Test::ReadAll => andrew::read(step).map(Seen::Counted),
        Test::Build => build::build(step).map(nothing),
        Test::Untar => archive::unpack(step, &step.archive(), &step.unpacked()).map(nothing),
        Test::List => large::list(step).map(Seen::Listings),
        Test::ReadBig | Test::ReadAgain => large::read(step, &step.big()[0]).map(Seen::Bytes),
        Test::CopyBig => large::copy(step).map(nothing),
        Test::ReadRandom => small::read_random(step).map(Seen::Bytes),
        Test::SmallWrites => small::append(step).map(nothing),
        Test::SmallReadsAndWrites => small::append_and_read(step).map(nothing),
    }
}

/// Does what the test needs to find and has not been done in `dir` by another one: which is known
/// by what is there, or by its being one of those `chosen`.
///
/// # Errors
/// As the system says.
pub fn catch_up(
    test: Test,
    chosen: &[Test],
    material: &Material,
    dir: &Path,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    let step = Step { dir, material, stop };
    for before in test.needs() {
        let is_done = match before {
            Test::MakeDirs => step.tree().exists(),
            Test::CopyFiles => step.tree().join("Makefile").exists(),
            read => chosen.contains(read),
        };
        if !is_done {
            perform(&step, *before)?;
        }
    }
    Ok(())
}

/// Compares what each copy has seen and left with what it should have.
///
/// # Errors
/// [`Failed::Wrong`] with the place; or as the system says.
pub fn check(
    test: Test,
    material: &Material,
    dirs: &[PathBuf],
    run: &Run,
    stop: &AtomicBool,
) -> Result<(), Failed> {
    for (dir, copy) in dirs.iter().zip(&run.copies) {
        let step = Step { dir, material, stop };
        step.may_go_on()?;
        match (test, &copy.seen) {
            (Test::MakeDirs, _) => andrew::check_dirs(&step),
            (Test::CopyFiles, _) => andrew::check_files(&step),
            (Test::Stat, Seen::Counted(counted)) => andrew::check_counted(&step, *counted, false),
            (Test::ReadAll, Seen::Counted(counted)) => andrew::check_counted(&step, *counted, true),
            (Test::Build, _) => build::check(&step),
            (Test::Untar, _) => archive::check(&material.archive, &step.unpacked()),
            (Test::List, Seen::Listings(listings)) => large::check_list(&step, listings),
            (Test::ReadBig | Test::ReadAgain, Seen::Bytes(bytes)) => {
                same(&step.big()[0], bytes, &material.big[0])
            }
            (Test::CopyBig, _) => {
                let path = step.copied();
                let found = std::fs::read(&path).map_err(Failed::at("reading", &path))?;
                same(&path, &found, &material.big[1])
            }
            (Test::ReadRandom, Seen::Bytes(bytes)) => small::check_random(&step, bytes),
            (Test::SmallWrites, _) => small::check(&step, 0, material.sizes.small_writes),
            (Test::SmallReadsAndWrites, _) => small::check(&step, 1, material.sizes.small_rewrites),
            (_, _) => Err(Failed::wrong(dir, "the test has seen nothing")),
        }?;
    }
    Ok(())
}
