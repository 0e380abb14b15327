//! Threads for what may block on a disk. Queues are bounded: what does not fit is not done, and
//! the caller gets the outcome.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::keeper::{Job, Keeper};
use crate::shared::Shared;

/// Threads that read.
const READERS: usize = 2;

/// Reads that wait for one of them.
const READS_MAX: usize = 1024;

/// Bytes that wait to be stored: what comes faster is not.
const STORES_BYTES_MAX: usize = 64 << 20;

/// Jobs that wait for the keeper.
const JOBS_MAX: usize = 1 << 16;

/// How often the keeper looks around.
const TICK: Duration = Duration::from_secs(1);

/// How long the end waits for what is to be stored: a disk that hangs does not hang a program.
const END: Duration = Duration::from_secs(5);

type Read = Box<dyn FnOnce() + Send>;

/// The threads of a cache.
#[derive(Debug)]
pub(crate) struct Threads {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Guards what waits for the readers.
    reads: Mutex<Reads>,
    read_came: Condvar,
    /// Guards what waits for the keeper.
    jobs: Mutex<Jobs>,
    job_came: Condvar,
    ended: Condvar,
}

#[derive(Default)]
struct Reads {
    waiting: VecDeque<Read>,
    is_closed: bool,
}

impl std::fmt::Debug for Reads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reads").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    bytes: usize,
    is_closed: bool,
    is_running: bool,
    has_ended: bool,
}

impl Threads {
    pub(crate) fn start(shared: &Arc<Shared>, keeper: Keeper) -> io::Result<Self> {
        let inner = Arc::new(Inner::default());
        let this = Self { inner: Arc::clone(&inner) };
        for number in 0..READERS {
            let inner = Arc::clone(&inner);
            spawn(format!("nfskit-cache-{number}"), move || read(&inner))?;
        }
        let of = Arc::clone(shared);
        spawn("nfskit-cache-n".to_owned(), move || of.count())?;
        let of = Arc::clone(shared);
        spawn("nfskit-cache-w".to_owned(), move || keep(&inner, &of, keeper))?;
        Ok(this)
    }

    /// Runs `read` on a thread; false if too many wait.
    pub(crate) fn read(&self, read: Read) -> bool {
        let mut reads = self.inner.reads.lock();
        if reads.waiting.len() >= READS_MAX {
            return false;
        }
        reads.waiting.push_back(read);
        drop(reads);
        self.inner.read_came.notify_one();
        true
    }

    /// Gives the keeper a job; false if too much waits.
    pub(crate) fn submit(&self, job: Job) -> bool {
        let mut jobs = self.inner.jobs.lock();
        let bytes = job.bytes();
        if jobs.waiting.len() >= JOBS_MAX || jobs.bytes + bytes > STORES_BYTES_MAX {
            return false;
        }
        jobs.bytes += bytes;
        jobs.waiting.push_back(job);
        drop(jobs);
        self.inner.job_came.notify_one();
        true
    }

    /// Waits until nothing waits for the keeper, but no longer than at the end.
    pub(crate) fn settle(&self) {
        let mut jobs = self.inner.jobs.lock();
        while !jobs.has_ended && (jobs.is_running || !jobs.waiting.is_empty()) {
            if self.inner.ended.wait_for(&mut jobs, END).timed_out() {
                return;
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.inner.reads.lock().is_closed = true;
        self.inner.read_came.notify_all();
        let mut jobs = self.inner.jobs.lock();
        jobs.is_closed = true;
        self.inner.job_came.notify_all();
        while !jobs.has_ended {
            if self.inner.ended.wait_for(&mut jobs, END).timed_out() {
                return;
            }
        }
    }
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name).spawn(body).map(drop)
}

fn read(inner: &Inner) {
    loop {
        let mut reads = inner.reads.lock();
        let read = loop {
            match reads.waiting.pop_front() {
                Some(read) => break read,
                None if reads.is_closed => return,
                None => inner.read_came.wait(&mut reads),
            }
        };
        drop(reads);
        read();
    }
}

fn keep(inner: &Inner, shared: &Shared, mut keeper: Keeper) {
    keeper.run(shared, Job::Tick);
    loop {
        let mut jobs = inner.jobs.lock();
        jobs.is_running = false;
        if jobs.waiting.is_empty() {
            inner.ended.notify_all();
            if !jobs.is_closed {
                inner.job_came.wait_for(&mut jobs, TICK);
            }
        }
        let job = match jobs.waiting.pop_front() {
            Some(job) => job,
            None if jobs.is_closed => break,
            None => Job::Tick,
        };
        jobs.bytes -= job.bytes();
        jobs.is_running = true;
        drop(jobs);
        keeper.run(shared, job);
    }
    keeper.run(shared, Job::Tick);
    inner.jobs.lock().has_ended = true;
    inner.ended.notify_all();
}
