//! A few named threads for what may block on a disk.
//!
//! The queue is bounded. When it is full, [`Pool::run`] does the job on the caller's own thread:
//! the caller slows down, which is the back-pressure, and nothing is refused or lost.
//! [`Pool::offer`] is for jobs that are only hints and drops them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};
use rustix::process::setpriority_process;
use rustix::thread::gettid;

/// Of threads that give way (sched(7)): a tenth of the share of one that does not.
const NICE: i32 = 10;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads and their queue. The threads end, after the jobs that wait, when the last clone goes.
#[derive(Clone)]
pub(super) struct Pool {
    owner: Arc<Owner>,
}

/// Closes the queue when the last clone of the pool is dropped; the threads hold only `shared`.
struct Owner {
    shared: Arc<Shared>,
}

struct Shared {
    /// Guards the jobs that wait.
    queue: Mutex<Queue>,
    /// Signalled when a job comes or the queue closes.
    changed: Condvar,
    jobs_max: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Pool {
    /// Threads named `name-0`, `name-1`, ...; at least one.
    pub(super) fn start(name: &str, threads: usize, jobs_max: usize) -> io::Result<Self> {
        Self::start_as(name, threads, jobs_max, || ())
    }

    /// Threads for long work: those that serve calls go first.
    pub(super) fn start_behind(name: &str, threads: usize, jobs_max: usize) -> io::Result<Self> {
        // To give way is always allowed; where it is not, the work is done all the same.
        let give_way = || setpriority_process(Some(gettid()), NICE).unwrap_or_default();
        Self::start_as(name, threads, jobs_max, give_way)
    }

    fn start_as(name: &str, threads: usize, jobs_max: usize, begin: fn()) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), jobs_max });
        let pool = Self { owner: Arc::new(Owner { shared: Arc::clone(&shared) }) };
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("{name}-{index}")).spawn(move || {
                begin();
                work(&shared);
            })?;
        }
        Ok(pool)
    }

    /// Runs `job` on one of the threads, or here and now when the queue is full.
    pub(super) fn run(&self, job: Job) {
        if let Some(job) = self.push(job, self.owner.shared.jobs_max) {
            job();
        }
    }

    /// As [`Pool::run`], but never refused: for a job that follows from one that just ran, so that
    /// they do not nest, and of which something else bounds the number.
    pub(super) fn run_next(&self, job: Job) {
        let refused = self.push(job, usize::MAX);
        debug_assert!(refused.is_none(), "nothing is refused without a bound");
    }

    /// Runs `job` on one of the threads unless the queue is full; then drops it.
    pub(super) fn offer(&self, job: Job) {
        drop(self.push(job, self.owner.shared.jobs_max));
    }

    /// Gives the job back when `jobs_max` are waiting already.
    fn push(&self, job: Job, jobs_max: usize) -> Option<Job> {
        let mut queue = self.owner.shared.queue.lock();
        if queue.jobs.len() >= jobs_max {
            return Some(job);
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.owner.shared.changed.notify_one();
        None
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

fn work(shared: &Shared) {
    while let Some(job) = next(shared) {
        job();
    }
}

fn next(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue.lock();
    loop {
        match queue.jobs.pop_front() {
            Some(job) => return Some(job),
            None if queue.closed => return None,
            None => shared.changed.wait(&mut queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_full_queue_slows_the_caller_and_drops_only_hints() {
        let pool = Pool::start("test", 1, 1).unwrap();
        let (release, held) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        pool.run(Box::new(move || {
            started.send(()).unwrap();
            held.recv().unwrap();
        }));
        start.recv().unwrap();
        let (ran, order) = mpsc::channel();
        let note = |what: &'static str| {
            let ran = ran.clone();
            Box::new(move || ran.send((what, thread::current().id())).unwrap())
        };
        pool.run(note("queued"));
        pool.offer(note("hint"));
        pool.run(note("inline"));
        assert_eq!(order.recv().unwrap(), ("inline", thread::current().id()));
        release.send(()).unwrap();
        assert_eq!(order.recv().unwrap().0, "queued");
        drop((pool, ran));
        assert!(order.recv().is_err(), "the hint was dropped");
    }
}
