//! The write benchmark of Lever & Honeyman 2002, section 2.4: a fresh file written from its
//! beginning to its end by calls of one size, then flushed, then closed.
//!
//! ```text
//!   start          last call answered     fsync answered    close answered
//!     |---- calls' times recorded - ----|-----------------|----------------|
//!     |<----------- written ------------->|                                  |
//!     |<----------------- flushed ----------------------->|                  |
//!     |<----------------------------- closed ------------------------------>|
//! ```
//!
//! All three spans begin with the first call. NFS flushes before it closes, a local file system
//! does not have to: with all three numbers both can be compared honestly. Making and removing the
//! file is not part of any span.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use client::files::Files;
use client::files::open::Open;
use client::session::Credential;
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, Sattr3};

use crate::cpu::{self, Usage};
use crate::error::Error;
use crate::scratch;
use crate::seqwrite::pattern;

/// Most calls of a run, whose times take 128 MiB.
pub const CALLS_MAX: u64 = 1 << 24;

/// Bytes that the calls are cut from, again and again: more than a processor's nearest cache, so
/// that copying them costs what copying costs.
const SOURCE_BYTES: usize = 1 << 20;

/// What to write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Workload {
    pub file_bytes: u64,
    /// Above zero.
    pub call_bytes: u32,
}

impl Workload {
    pub fn calls(&self) -> u64 {
        self.file_bytes.div_ceil(u64::from(self.call_bytes.max(1)))
    }

    /// The bytes that calls are cut from.
    pub fn source(&self) -> Bytes {
        let call_bytes = self.call_bytes as usize;
        pattern(call_bytes.max(SOURCE_BYTES / call_bytes.max(1) * call_bytes))
    }

    /// Offset and data of call `number`, counted from zero.
    fn call(&self, number: u64, source: &Bytes) -> Bytes {
        let offset = number * u64::from(self.call_bytes);
        let left = usize::try_from(self.file_bytes - offset).unwrap_or(usize::MAX);
        let slots = (source.len() / self.call_bytes as usize).max(1) as u64;
        let at = usize::try_from(number % slots).unwrap_or(0) * self.call_bytes as usize;
        source.slice(at..at + left.min(self.call_bytes as usize))
    }
}

perf::named! {
    /// A point of a run up to which the time is taken.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Mark {
        /// The last call has returned.
        Written => "written",
        /// The flush after it has returned: fsync, or COMMIT.
        Flushed => "flushed",
        /// The close after that has returned.
        Closed => "closed",
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Run {
    pub workload: Workload,
    /// Time of each call, in their order.
    pub calls: Vec<Nanos>,
    written: Nanos,
    flushed: Nanos,
    closed: Nanos,
    /// Processor time of this process, all threads.
    pub cpu: Nanos,
    /// Processor time of the whole machine, in ticks of 10 ms; `None` where the system does not
    /// say.
    pub machine_cpu: Option<Nanos>,
}

impl Run {
    /// Time from the first call to `mark`.
    pub fn span(&self, mark: Mark) -> Nanos {
        match mark {
            Mark::Written => self.written,
            Mark::Flushed => self.flushed,
            Mark::Closed => self.closed,
        }
    }

    /// All bytes over the time to `mark`, in MiB (2^20) for each second.
    pub fn mib_per_s(&self, mark: Mark) -> f64 {
        self.workload.file_bytes as f64 / f64::from(1 << 20) / self.span(mark).as_secs_f64()
    }
}

/// The clocks of a run, read in its course.
struct Recorder<'a> {
    clock: &'a Clock,
    workload: Workload,
    started: Instant,
    cpu: Usage,
    machine_cpu: Option<Nanos>,
    calls: Vec<Nanos>,
    marks: [Nanos; 3],
}

impl<'a> Recorder<'a> {
    fn start(clock: &'a Clock, workload: Workload) -> Self {
        let calls = usize::try_from(workload.calls().min(CALLS_MAX)).unwrap_or(0);
        let calls = Vec::with_capacity(calls);
        let (cpu, machine_cpu) = (Usage::now(), cpu::machine());
        let marks = [Nanos::ZERO; 3];
        Self { clock, workload, started: clock.now(), cpu, machine_cpu, calls, marks }
    }

    fn mark(&mut self, mark: Mark) {
        self.marks[mark as usize] = self.clock.now().since(self.started);
    }

    fn finish(self) -> Run {
        let [written, flushed, closed] = self.marks;
        let machine_cpu = cpu::machine().zip(self.machine_cpu);
        Run {
            workload: self.workload,
            calls: self.calls,
            written,
            flushed,
            closed,
            cpu: Usage::now().since(self.cpu).process,
            machine_cpu: machine_cpu.map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// A file in a directory that is removed with this value.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) path: PathBuf,
}

impl Fresh {
    pub(crate) fn make(dir: &Path, name: &str) -> Result<(Self, File), Error> {
        let path = dir.join(format!("{}{name}", scratch::PREFIX));
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        match made {
            Ok(file) => Ok((Self { path }, file)),
            Err(cause) => Err(Error::Local { doing: "making a file", path, cause }),
        }
    }

    pub(crate) fn failed(&self, doing: &'static str, cause: std::io::Error) -> Error {
        Error::Local { doing, path: self.path.clone(), cause }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // The run's own failure is the one to tell; a file that is gone is what we want.
        std::fs::remove_file(&self.path).ok();
    }
}

/// Runs the workload once in a directory of any file system, on a new file called after `name`,
/// which is removed at the end. `None` when `stop` was set before the end. Blocks.
///
/// # Errors
/// As the system says.
pub fn run_in_directory(
    clock: &Clock,
    dir: &Path,
    name: &str,
    source: &Bytes,
    workload: Workload,
    stop: &AtomicBool,
) -> Result<Option<Run>, Error> {
    let (fresh, mut file) = Fresh::make(dir, name)?;
    let mut recorder = Recorder::start(clock, workload);
    let mut before = recorder.started;
    for number in 0..workload.calls() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let data = workload.call(number, source);
        file.write_all(&data).map_err(|cause| fresh.failed("writing a file", cause))?;
        let after = clock.now();
        recorder.calls.push(after.since(before));
        before = after;
    }
    recorder.mark(Mark::Written);
    file.sync_all().map_err(|cause| fresh.failed("flushing a file", cause))?;
    recorder.mark(Mark::Flushed);
    // What close could complain about, fsync would have.
    drop(file);
    recorder.mark(Mark::Closed);
    Ok(Some(recorder.finish()))
}

/// A directory of a file system that our client has mounted.
#[derive(Clone, Copy, Debug)]
pub struct Directory<'a> {
    pub files: &'a Files,
    pub who: &'a Credential,
    pub dir: FileHandle,
}

impl Directory<'_> {
    /// Runs the workload once, on a new file called `name`, which is removed at the end. When it
    /// fails, or is dropped before its end, the file is left.
    ///
    /// # Errors
    /// As the server says.
    pub async fn run(
        &self,
        clock: &Clock,
        name: &str,
        source: &Bytes,
        workload: Workload,
    ) -> Result<Run, Error> {
        let Directory { files, who, dir } = *self;
        let attributes = Sattr3::of_mode(0o600);
        let made = files.create(who, dir, name.as_bytes(), attributes, true).await?;
        let open = files.open_made(who, made.handle);
        let run = write(clock, &open, source, workload).await;
        files.remove(who, dir, name.as_bytes()).await?;
        run
    }
}

async fn write(
    clock: &Clock,
    open: &Open,
    source: &Bytes,
    workload: Workload,
) -> Result<Run, Error> {
    let mut recorder = Recorder::start(clock, workload);
    let mut before = recorder.started;
    for number in 0..workload.calls() {
        let data = workload.call(number, source);
        open.write(number * u64::from(workload.call_bytes), &data).await?;
        let after = clock.now();
        recorder.calls.push(after.since(before));
        before = after;
    }
    recorder.mark(Mark::Written);
    open.flush().await?;
    recorder.mark(Mark::Flushed);
    open.close().await;
    recorder.mark(Mark::Closed);
    Ok(recorder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: Workload, dir: &Path, stop: bool) -> Result<Option<Run>, Error> {
        let stop = AtomicBool::new(stop);
        run_in_directory(&Clock::real(), dir, "test", &workload.source(), workload, &stop)
    }

    fn names(dir: &Path) -> usize {
        std::fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn every_call_is_timed_and_the_marks_come_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let workload = Workload { file_bytes: (1 << 20) + 1, call_bytes: 8 << 10 };
        let run = run(workload, dir.path(), false).unwrap().unwrap();
        assert_eq!(run.calls.len(), 129);
        let in_calls = run.calls.iter().fold(Nanos::ZERO, |sum, call| sum + *call);
        assert!(in_calls <= run.span(Mark::Written));
        assert!(run.span(Mark::Written) <= run.span(Mark::Flushed));
        assert!(run.span(Mark::Flushed) <= run.span(Mark::Closed));
        assert!(run.mib_per_s(Mark::Written) >= run.mib_per_s(Mark::Closed));
        assert_eq!(names(dir.path()), 0, "the file is removed");
    }

    #[test]
    fn calls_cover_the_file_whatever_their_size() {
        for (file_bytes, call_bytes) in [(1, 8192), (8192, 8192), (5 << 20, 3 << 20), (10_000, 7)] {
            let workload = Workload { file_bytes, call_bytes };
            let source = workload.source();
            let lengths = (0..workload.calls()).map(|n| workload.call(n, &source).len() as u64);
            assert_eq!(lengths.sum::<u64>(), file_bytes);
        }
    }

    #[test]
    fn a_run_that_is_stopped_or_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let workload = Workload { file_bytes: 1 << 20, call_bytes: 8 << 10 };
        assert!(run(workload, dir.path(), true).unwrap().is_none());
        assert_eq!(names(dir.path()), 0);
        let absent = run(workload, &dir.path().join("absent"), false).unwrap_err();
        assert!(absent.to_string().starts_with("making a file in "), "{absent}");
    }
}
