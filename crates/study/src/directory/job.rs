//! The steps, on a thread of their own: a system call that hangs must not keep us from being
//! interrupted. Before and after each, the kernel's counters of the mount are read.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use harness::counted;
use load::directory::{BLOCK_BYTES, Crowd, Kind, Names, Place, Singles};
use load::error::Error;
use load::floor::storage;
use load::scratch::Scratch;
use net::clock::Clock;
use perf::units::Nanos;

use doctor::collect::Files;

use super::counted::{Counted, between, look, mount_above};

/// How many programs at once.
pub(super) const PROGRAMS: [usize; 5] = [1, 2, 4, 8, 16];
/// The larger single write.
pub(super) const LARGE_BYTES: usize = 1 << 20;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) names: u32,
    pub(super) small: u32,
    pub(super) large: u32,
    /// No step of single calls goes on for longer.
    pub(super) step_time: Nanos,
    pub(super) repeats: usize,
    pub(super) run_time: Nanos,
    /// A file is as long as the path writes in this time, between these bounds.
    pub(super) file_time: Nanos,
    pub(super) file_bytes: (u64, u64),
    pub(super) file_repeats: u32,
}

impl Plan {
    pub(super) const FULL: Self = Self {
        names: 500,
        small: 200,
        large: 30,
        step_time: Nanos::from_secs(5),
        repeats: 3,
        run_time: Nanos::from_millis(1_000),
        file_time: Nanos::from_secs(3),
        file_bytes: (4 << 20, 256 << 20),
        file_repeats: 3,
    };
    pub(super) const QUICK: Self = Self {
        names: 100,
        small: 50,
        large: 8,
        step_time: Nanos::from_millis(1_000),
        repeats: 2,
        run_time: Nanos::from_millis(300),
        file_time: Nanos::from_millis(700),
        file_bytes: (4 << 20, 64 << 20),
        file_repeats: 1,
    };

    /// Room that all of it needs at most.
    pub(super) fn bytes_max(&self) -> u64 {
        2 * self.file_bytes.1 + (PROGRAMS[PROGRAMS.len() - 1] as u64 + 2) * (1 << 20)
    }
}

/// A step with what the kernel counted in it.
#[derive(Clone, Debug)]
pub(super) struct Step<T> {
    pub(super) of: T,
    pub(super) counted: Option<Counted>,
}

/// So many programs, all repetitions.
#[derive(Clone, Debug)]
pub(super) struct Crowds {
    pub(super) kind: Kind,
    pub(super) programs: usize,
    pub(super) runs: Vec<Crowd>,
    pub(super) counted: Option<Counted>,
}

impl Crowds {
    /// Before anything ran.
    fn all() -> Vec<Self> {
        let of = |kind| {
            let new = |programs| Self { kind, programs, runs: Vec::new(), counted: None };
            PROGRAMS.map(new)
        };
        [Kind::Write, Kind::Read].into_iter().flat_map(of).collect()
    }

    fn add(&mut self, step: Step<Crowd>) {
        self.runs.push(step.of);
        if let Some(counted) = step.counted {
            self.counted.get_or_insert_default().add(&counted);
        }
    }

    /// `write_stable_n4`
    pub(super) fn name(&self) -> String {
        format!("{}_n{}", name(self.kind), self.programs)
    }
}

/// In records.
pub(super) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "write_stable",
        Kind::Read => "read",
    }
}

/// All that was measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) names: Step<Names>,
    pub(super) small: Step<Singles>,
    pub(super) large: Step<Singles>,
    pub(super) crowds: Vec<Crowds>,
    pub(super) files: Step<storage::Measured>,
    pub(super) file_bytes: u64,
    /// The NFS mount that the directory is on.
    pub(super) mount: Option<String>,
    /// What this host had counted before and after, for doctor.
    pub(super) before: Files,
    pub(super) after: Files,
}

/// What the thread is to do.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) clock: Clock,
    pub(super) dir: PathBuf,
    pub(super) plan: Plan,
    pub(super) stop: Arc<AtomicBool>,
    /// Thousandths of the work that are done.
    pub(super) done: Arc<AtomicU32>,
}

impl Job {
    /// In a directory that only its maker may look into, and that is removed in any case; then
    /// what could not be removed, and why.
    pub(super) fn run(&self) -> (Result<Measured, Error>, Option<Error>) {
        let tag = format!("{:x}-{}", self.clock.since_1970().as_nanos(), std::process::id());
        let path = self.dir.join(Scratch::name_for(&tag));
        let failed = |doing, cause| Error::Local { doing, path: path.clone(), cause };
        if let Err(cause) = DirBuilder::new().mode(0o700).create(&path) {
            return (Err(failed("making a directory", cause)), None);
        }
        let measured = self.measure(&path);
        let removed = std::fs::remove_dir_all(&path);
        (measured, removed.err().map(|cause| failed("removing a directory", cause)))
    }

    fn measure(&self, scratch: &Path) -> Result<Measured, Error> {
        let root = Path::new("/");
        let (plan, clock) = (self.plan, &self.clock);
        let place = Place { clock, dir: scratch, stop: &self.stop };
        let before = counted::look(root);
        let real = scratch.canonicalize().unwrap_or_else(|_| scratch.to_owned());
        let mount = mount_above(&real, &before);
        let counting = Counting { root, mount: mount.as_deref() };
        let names = counting.step(|| place.names(plan.names, plan.step_time))?;
        self.progress(0.1);
        let single = |bytes, count| place.singles(bytes, count, plan.step_time);
        let small = counting.step(|| single(BLOCK_BYTES, plan.small))?;
        let large = counting.step(|| single(LARGE_BYTES, plan.large))?;
        self.progress(0.2);
        let file_bytes = self.file_bytes(&large.of);
        let crowds = self.crowds(&place, &counting, file_bytes)?;
        self.progress(0.7);
        let files = counting.step(|| self.files(scratch, file_bytes))?;
        self.progress(1.0);
        let after = counted::look(root);
        Ok(Measured { names, small, large, crowds, files, file_bytes, mount, before, after })
    }

    /// What the path writes in the plan's time, in whole MiB.
    fn file_bytes(&self, large: &Singles) -> u64 {
        let mut times = large.stable.clone();
        times.sort_unstable();
        let median = times.get(times.len() / 2).map_or(1.0, |time| time.as_secs_f64());
        let bytes = LARGE_BYTES as f64 * self.plan.file_time.as_secs_f64() / median.max(1e-6);
        let (least, most) = self.plan.file_bytes;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let bytes = bytes.clamp(least as f64, most as f64) as u64;
        bytes >> 20 << 20
    }

    /// Every number of programs once, before any comes again.
    fn crowds(
        &self,
        place: &Place<'_>,
        counting: &Counting<'_>,
        file_bytes: u64,
    ) -> Result<Vec<Crowds>, Error> {
        place.prepare(PROGRAMS[PROGRAMS.len() - 1], file_bytes)?;
        let mut crowds = Crowds::all();
        let (count, total) = (crowds.len(), self.plan.repeats * crowds.len());
        for done in 0..total {
            let crowd = &mut crowds[done % count];
            let run = || place.crowd(crowd.kind, crowd.programs, self.plan.run_time, CALLS_MAX);
            crowd.add(counting.step(run)?);
            self.progress(0.2 + 0.5 * (done + 1) as f64 / total as f64);
        }
        Ok(crowds)
    }

    fn files(&self, scratch: &Path, file_bytes: u64) -> Result<storage::Measured, Error> {
        let plan = storage::Plan {
            dir: scratch.to_owned(),
            file_bytes,
            call_bytes: LARGE_BYTES,
            repeats: self.plan.file_repeats,
            appends: 0,
            append_time_max: Nanos::ZERO,
            drop_caches: false,
        };
        let mut progress = |share: f64| self.progress(0.7 + 0.3 * share);
        let outcome = storage::run(&self.clock, &plan, "file", &self.stop, &mut progress);
        match outcome.failed {
            Some(error) => Err(error),
            None => Ok(outcome.measured),
        }
    }

    fn progress(&self, share: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
        self.done.store((share.clamp(0.0, 1.0) * 1e3) as u32, Ordering::Relaxed);
    }
}

/// Most calls of one program in a run: their times are recorded.
const CALLS_MAX: usize = 100_000;

/// Whose counters are read around each step.
struct Counting<'a> {
    root: &'a Path,
    mount: Option<&'a str>,
}

impl Counting<'_> {
    fn step<T>(&self, work: impl FnOnce() -> Result<T, Error>) -> Result<Step<T>, Error> {
        let Some(mount) = self.mount else { return Ok(Step { of: work()?, counted: None }) };
        let first = look(self.root);
        let of = work()?;
        Ok(Step { of, counted: between(mount, first, look(self.root)) })
    }
}
