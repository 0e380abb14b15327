//! Parallel writers, as in the thesis of 2002 (Boumenot, *The Performance of a Linux NFS
//! Implementation*): k tasks, each of which runs the Connectathon suite's write test.
//!
//! What it stresses: one client's (or several clients') way of sharing a connection and a server
//! among writers, and the server's way of committing many files at once. The more tasks and the
//! longer and the more numerous the files, the less a cache helps, which is what the thesis wanted.
//!
//! | in the thesis | what | here |
//! |---|---|---|
//! | 4.2, table 4.1, figures 4.3, 4.4 | 1 to 20 tasks of one client, 1 MB | `Names::Same` |
//! | table 4.2, figure 4.5 | ten different files | `Names::Different` |
//! | table 4.3, figure 4.6 | the same with 32 MB | `Names::Different` |
//! | 4.3, tables 4.4, 4.5 | the client is the server | a target on this host |
//! | 6.1, table 6.1, figures 6.1 to 6.6 | disks of 2.89, 11, 42 MB/s | `Names::Same` |
//! | appendix B.3 | 8 threads, files growing by 16 KB to 32 MB | a sweep |
//! | 10.2, 10.3, tables 10.2 to 10.4 | two servers, two clients | writers of several targets |
//!
//! A task does ten times (`times`) what test 5 does: makes the file or cuts it to nothing, asks for
//! its size, writes it in calls of 8 KiB, closes it, asks for its size again. Each task has a
//! directory of its own, as in appendix B.2.
//!
//! Where it differs:
//!
//! - All tasks are released together, and the time of each counts from that moment. The thesis
//!   started them one after the other, and saw the first at an advantage (section 4.2).
//! - Making and removing directories is not in any time, and neither is mounting.
//! - Table 4.1 prints the mean of the tasks' throughputs, with its standard deviation; from the
//!   numbers tables 4.2 to 4.5 print their sum. Here there are both, and the throughput of all
//!   bytes until the last task has ended, less than the sum when tasks end at different times.
//! - The thesis's sizes in MB are 2^20 bytes; its Mbps are 10^6 bits for each second.

mod local;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use client::files::Files;
use client::session::Credential;
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use tokio::sync::oneshot;
use wire::nfs3::FileHandle;

use crate::cpu::Usage;
use crate::error::Error;
use crate::seqwrite::pattern;

/// Most tasks of a run: a thread, or an open file, for each.
pub const TASKS_MAX: u32 = 1_000;
/// Bytes that calls are cut from, again and again.
const SOURCE_BYTES: usize = 1 << 20;
/// How long tasks may take to stop: a write to a server that is gone never does.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// Whether the passes of a task are over one file or each has its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Names {
    Same,
    Different,
}

/// What each task does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Workload {
    pub file_bytes: u64,
    /// Above zero.
    pub call_bytes: u32,
    /// Passes: how often a file is written.
    pub times: u32,
    pub names: Names,
    /// Whether each file is flushed (fsync, COMMIT) before it is closed. NFS does so in any case.
    pub sync: bool,
}

impl Workload {
    /// Bytes that one task writes.
    pub fn task_bytes(&self) -> u64 {
        self.file_bytes.saturating_mul(u64::from(self.times))
    }

    /// Bytes that the files of one task take while it runs.
    pub fn room_bytes(&self) -> u64 {
        match self.names {
            Names::Same => self.file_bytes,
            Names::Different => self.task_bytes(),
        }
    }

    fn source(&self) -> Bytes {
        pattern((self.call_bytes as usize).max(SOURCE_BYTES))
    }

    /// The name of the file of a pass, as the suite has it.
    fn name(&self, pass: u32) -> String {
        match self.names {
            Names::Same => "bigfile".to_owned(),
            Names::Different => format!("bigfile.{pass}"),
        }
    }

    /// Offsets and lengths of the calls of a pass.
    fn calls(&self) -> impl Iterator<Item = (u64, usize)> + use<> {
        let (file_bytes, call_bytes) = (self.file_bytes, self.call_bytes.max(1));
        (0..file_bytes).step_by(call_bytes as usize).map(move |offset| {
            let left = usize::try_from(file_bytes - offset).unwrap_or(usize::MAX);
            (offset, left.min(call_bytes as usize))
        })
    }
}

/// Where a task writes.
#[derive(Clone, Debug)]
pub enum At {
    /// A directory of any file system.
    Dir(PathBuf),
    /// A directory of a server, through our client.
    Server(Server),
}

/// A directory of a file system that our client has mounted.
#[derive(Clone, Debug)]
pub struct Server {
    pub files: Files,
    pub who: Credential,
    pub dir: FileHandle,
}

/// One task.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The caller's numbers of the place and of its client, given back in [`TaskRun`].
    pub target: usize,
    pub client: usize,
    pub at: At,
}

/// What one task took.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TaskRun {
    pub target: usize,
    pub client: usize,
    /// From the moment at which all were released.
    pub span: Nanos,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Run {
    pub workload: Workload,
    /// In the order of the writers.
    pub tasks: Vec<TaskRun>,
    /// Until the last task had ended.
    pub wall: Nanos,
    /// Processor time of this process, all threads.
    pub cpu: Nanos,
    /// The time that this is of: until the tasks' answers are here, too.
    pub cpu_span: Nanos,
}

impl Run {
    fn bits(&self) -> f64 {
        self.workload.task_bytes() as f64 * 8.0
    }

    /// Throughput of one task in Mbit/s (10^6).
    pub fn task_mbit_per_s(&self, task: &TaskRun) -> f64 {
        self.bits() / 1e6 / task.span.as_secs_f64()
    }

    /// The sum of the throughputs of the tasks that `counts` takes.
    pub fn sum_mbit_per_s(&self, counts: impl Fn(&TaskRun) -> bool) -> f64 {
        let tasks = self.tasks.iter().filter(|task| counts(task));
        tasks.map(|task| self.task_mbit_per_s(task)).sum()
    }

    /// All bytes over the time until the last task had ended.
    pub fn wall_mbit_per_s(&self) -> f64 {
        self.bits() * self.tasks.len() as f64 / 1e6 / self.wall.as_secs_f64()
    }
}

/// Runs one task for each of `writers`, all released together. Dropped before its end, it stops
/// them, and waits a while for those that write in directories. What a task that failed or was
/// stopped has made is left.
///
/// # Errors
/// The first of any task, which stops the others.
pub async fn run(clock: &Clock, writers: &[Writer], workload: &Workload) -> Result<Run, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let source = workload.source();
    let (end, ended) = mpsc::channel();
    let mut running =
        Running { stop: Arc::clone(&stop), ended, starts: Vec::new(), answers: Vec::new() };
    let mut ready = Vec::new();
    for (number, writer) in writers.iter().enumerate() {
        let (start, started) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let (prepared, is_prepared) = oneshot::channel();
        let job = Job {
            clock: clock.clone(),
            workload: *workload,
            source: source.clone(),
            name: format!("task{number:03}"),
            stop: Arc::clone(&stop),
            prepared,
            started,
        };
        match writer.at.clone() {
            At::Dir(dir) => local::start(job, dir, answer, end.clone())?,
            At::Server(server) => remote::start(job, server, answer),
        }
        running.starts.push(start);
        running.answers.push(answered);
        ready.push(is_prepared);
    }
    drop(end);
    // One that could not prepare itself has an answer that says why.
    let mut are_ready = true;
    for is_prepared in ready {
        are_ready &= is_prepared.await.is_ok();
    }
    if !are_ready {
        stop.store(true, Ordering::Relaxed);
    }
    let cpu = Usage::now();
    let begun = clock.now();
    for start in running.starts.drain(..) {
        // One that has failed does not wait.
        start.send(begun).ok();
    }
    let tasks = running.answers(writers).await?;
    let wall = tasks.iter().map(|task| task.span).max().unwrap_or(Nanos::ZERO);
    let (cpu, cpu_span) = (Usage::now().since(cpu).process, clock.now().since(begun));
    Ok(Run { workload: *workload, tasks, wall, cpu, cpu_span })
}

/// What a task works from.
struct Job {
    clock: Clock,
    workload: Workload,
    source: Bytes,
    /// Its directory's.
    name: String,
    stop: Arc<AtomicBool>,
    /// Notified when the directory is there.
    prepared: oneshot::Sender<()>,
    /// Tells when to begin.
    started: oneshot::Receiver<Instant>,
}

/// The time it took; `None` when it was stopped.
type Answer = Result<Option<Nanos>, Error>;

impl Job {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Tells a task's answer; a failure stops the others.
fn answer(to: oneshot::Sender<Answer>, stop: &AtomicBool, answer: Answer) {
    if answer.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    // Nobody waits any more when the program is interrupted.
    to.send(answer).ok();
}

/// Tasks that run; see [`run`].
struct Running {
    stop: Arc<AtomicBool>,
    /// Closed when the last thread has ended.
    ended: mpsc::Receiver<()>,
    starts: Vec<oneshot::Sender<Instant>>,
    answers: Vec<oneshot::Receiver<Answer>>,
}

impl Running {
    /// What each task took; what a failure of another one has stopped has no row.
    ///
    /// # Errors
    /// The first of any task.
    async fn answers(&mut self, writers: &[Writer]) -> Result<Vec<TaskRun>, Error> {
        let mut tasks = Vec::new();
        let mut failed = None;
        for (writer, answered) in writers.iter().zip(self.answers.drain(..)) {
            match answered.await.unwrap_or(Ok(None)) {
                Ok(Some(span)) => {
                    tasks.push(TaskRun { target: writer.target, client: writer.client, span });
                }
                Ok(None) => {}
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(tasks), Err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.starts.clear();
        // Nothing is ever sent: it is closed, or the time is over.
        self.ended.recv_timeout(STOP_LIMIT).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SMALL: Workload =
        Workload { file_bytes: 20_000, call_bytes: 8192, times: 3, names: Names::Same, sync: true };

    fn writers(dir: &Path, count: usize) -> Vec<Writer> {
        let at = At::Dir(dir.to_owned());
        (0..count).map(|number| Writer { target: number % 2, client: 0, at: at.clone() }).collect()
    }

    fn run_in(dir: &Path, workload: &Workload, count: usize) -> Result<Run, Error> {
        let clock = Clock::real();
        net::runtime::block_on(run(&clock, &writers(dir, count), workload)).unwrap()
    }

    #[test]
    fn every_task_has_its_time_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        for names in [Names::Same, Names::Different] {
            let run = run_in(dir.path(), &Workload { names, ..SMALL }, 5).unwrap();
            assert_eq!(run.tasks.len(), 5);
            assert!(run.tasks.iter().all(|task| task.span > Nanos::ZERO && task.span <= run.wall));
            let targets: Vec<usize> = run.tasks.iter().map(|task| task.target).collect();
            assert_eq!(targets, [0, 1, 0, 1, 0]);
            assert!(run.wall_mbit_per_s() <= run.sum_mbit_per_s(|_| true) * 1.000_001);
            let of_each = [0, 1].map(|of| run.sum_mbit_per_s(|task| task.target == of));
            let sum = run.sum_mbit_per_s(|_| true);
            assert!((of_each[0] + of_each[1] - sum).abs() < sum * 1e-9);
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_task_that_cannot_begin_stops_all_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("task001")).unwrap();
        let error = run_in(dir.path(), &SMALL, 3).unwrap_err();
        assert!(error.to_string().contains("task001"), "{error}");
    }

    #[test]
    fn a_run_that_is_dropped_stops_its_tasks() {
        let dir = tempfile::tempdir().unwrap();
        let long = Workload { file_bytes: 1 << 40, times: 1, sync: false, ..SMALL };
        let clock = Clock::real();
        net::runtime::block_on(async {
            let writers = writers(dir.path(), 2);
            let run = run(&clock, &writers, &long);
            clock.within(Nanos::from_millis(20), run).await.unwrap_err();
        })
        .unwrap();
    }

    #[test]
    fn calls_cover_the_file() {
        let calls: Vec<(u64, usize)> = SMALL.calls().collect();
        assert_eq!(calls, [(0, 8192), (8192, 8192), (16_384, 3616)]);
        assert_eq!((SMALL.task_bytes(), SMALL.room_bytes()), (60_000, 20_000));
        let different = Workload { names: Names::Different, ..SMALL };
        assert_eq!(different.room_bytes(), 60_000);
        assert_eq!(different.name(2), "bigfile.2");
    }
}
