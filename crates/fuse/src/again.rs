//! Threads that were answered ESTALE. The kernel looks the whole path up once more then, and makes
//! the same call again; what that finds has to be the server's, and not what is remembered here:
//! the file that another client has put in the place of the first may itself have been replaced,
//! or changed, since a listing had it. There is no third time.
//!
//! Nor may a program of this host take away what the thread has found by then: until it has opened
//! the file, that is one that is open.
//!
//! A path that leads nowhere by then ends that, and so does a thread that does not come: what it
//! opens next it opens for the first time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use client::files::Opening;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;

/// Threads that are remembered (guess); of more, one gets what is known here.
const THREADS_MAX: usize = 256;

/// A kernel that has an answer makes its next request at once, however busy the machine is (guess).
const NEXT_WITHIN: Nanos = Nanos::from_secs(5);

/// Why a thread comes again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// The server does not know a handle.
    Stale,
    /// It was refused this file, for which the server was just called.
    Refused(FileHandle),
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Again {
    clock: Clock,
    /// Guards who is expected.
    threads: Mutex<VecDeque<Expected>>,
    /// What does not come is let go.
    is_looked_after: AtomicBool,
}

#[derive(Debug)]
struct Expected {
    thread: u32,
    why: Why,
    answered: Instant,
    /// What it has found.
    opening: Option<Opening>,
}

/// A thread that has come again, and what it has found, which stays until this is dropped.
#[derive(Debug)]
pub(crate) struct Come {
    _opening: Option<Opening>,
}

impl Again {
    pub(crate) fn new(clock: &Clock) -> Self {
        let (threads, is_looked_after) = (Mutex::default(), AtomicBool::default());
        Self { clock: clock.clone(), threads, is_looked_after }
    }

    /// A thread is about to hear of a stale handle. What the kernel does for itself has none (0).
    pub(crate) fn expect(&self, thread: u32, why: Why) {
        if thread == 0 {
            return;
        }
        let mut threads = self.threads.lock();
        threads.retain(|expected| expected.thread != thread);
        if threads.len() >= THREADS_MAX {
            threads.pop_front();
        }
        let answered = self.clock.now();
        threads.push_back(Expected { thread, why, answered, opening: None });
    }

    /// Whether, and why, a thread is on its way again.
    pub(crate) fn expected(&self, thread: u32) -> Option<Why> {
        let now = self.clock.now();
        let threads = self.threads.lock();
        let known = threads.iter().find(|expected| expected.thread == thread)?;
        (now.since(known.answered) < NEXT_WITHIN).then_some(known.why)
    }

    /// One on its way has found a file. It may never come.
    pub(crate) fn found(self: &Arc<Self>, thread: u32, opening: Opening) {
        let mut threads = self.threads.lock();
        if let Some(known) = threads.iter_mut().find(|expected| expected.thread == thread) {
            known.opening = Some(opening);
            if !self.is_looked_after.swap(true, Ordering::AcqRel) {
                self.clock.spawn(Arc::clone(self).look_after());
            }
        }
    }

    /// Lets go what was found by those who do not come, as long as anything is.
    async fn look_after(self: Arc<Self>) {
        loop {
            self.clock.sleep(NEXT_WITHIN).await;
            let now = self.clock.now();
            let mut threads = self.threads.lock();
            threads.retain(|expected| now.since(expected.answered) < NEXT_WITHIN);
            if threads.iter().all(|expected| expected.opening.is_none()) {
                self.is_looked_after.store(false, Ordering::Release);
                return;
            }
        }
    }

    /// One on its way is about to hear where the path leads on.
    pub(crate) fn goes_on(&self, thread: u32) {
        let now = self.clock.now();
        let mut threads = self.threads.lock();
        if let Some(known) = threads.iter_mut().find(|expected| expected.thread == thread) {
            known.answered = now;
        }
    }

    /// One that has arrived and was expected; or it does not come.
    pub(crate) fn has_come(&self, thread: u32) -> Option<Come> {
        let is_expected = self.expected(thread).is_some();
        let mut threads = self.threads.lock();
        let at = threads.iter().position(|expected| expected.thread == thread)?;
        let come = threads.remove(at)?;
        is_expected.then_some(Come { _opening: come.opening })
    }
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    #[test]
    fn a_thread_comes_again_once_and_so_many_are_remembered() {
        let again = Again::new(&World::new().clock());
        again.expect(0, Why::Stale);
        assert_eq!(again.expected(0), None, "the kernel's own");
        let refused = Why::Refused(FileHandle::new(&[1; 8]).unwrap());
        again.expect(7, refused);
        assert_eq!((again.expected(7), again.expected(8)), (Some(refused), None));
        again.expect(7, Why::Stale);
        assert_eq!(again.expected(7), Some(Why::Stale), "the last counts");
        assert!(again.has_come(7).is_some() && again.has_come(7).is_none());
        (1..=257).for_each(|thread| again.expect(thread, Why::Stale));
        let are_expected = [1, 2, 257].map(|thread| again.expected(thread).is_some());
        assert_eq!(are_expected, [false, true, true]);
    }

    #[test]
    fn a_thread_that_was_answered_long_ago_does_not_come_again() {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let (again, a_little) = (Again::new(&clock), Nanos::from_nanos(1));
            again.expect(7, Why::Stale);
            clock.sleep(NEXT_WITHIN - a_little).await;
            again.goes_on(7);
            clock.sleep(NEXT_WITHIN - a_little).await;
            assert!(again.expected(7).is_some());
            clock.sleep(a_little).await;
            assert!(again.expected(7).is_none() && again.has_come(7).is_none());
        };
        world.run(run).unwrap();
    }
}
