//! Threads that were answered ESTALE. The kernel looks the whole path up once more then, and makes
//! the same call again; what that finds has to be the server's, and not what is remembered here:
//! the file that another client has put in the place of the first may itself have been replaced,
//! or changed, since a listing had it. There is no third time.
//!
//! A path that leads nowhere by then ends that, and so does a thread that does not come: what it
//! opens next it opens for the first time.

use std::collections::VecDeque;

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
    /// Guards who is expected, why, and when it was answered last.
    threads: Mutex<VecDeque<(u32, Why, Instant)>>,
}

impl Again {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), threads: Mutex::default() }
    }

    /// A thread is about to hear of a stale handle. What the kernel does for itself has none (0).
    pub(crate) fn expect(&self, thread: u32, why: Why) {
        if thread == 0 {
            return;
        }
        let mut threads = self.threads.lock();
        threads.retain(|(expected, ..)| *expected != thread);
        if threads.len() >= THREADS_MAX {
            threads.pop_front();
        }
        threads.push_back((thread, why, self.clock.now()));
    }

    /// Whether, and why, a thread is on its way again.
    pub(crate) fn expected(&self, thread: u32) -> Option<Why> {
        let now = self.clock.now();
        let threads = self.threads.lock();
        let (_, why, answered) = threads.iter().find(|(expected, ..)| *expected == thread)?;
        (now.since(*answered) < NEXT_WITHIN).then_some(*why)
    }

    /// One on its way is about to hear where the path leads on.
    pub(crate) fn goes_on(&self, thread: u32) {
        let now = self.clock.now();
        let mut threads = self.threads.lock();
        if let Some(known) = threads.iter_mut().find(|(expected, ..)| *expected == thread) {
            known.2 = now;
        }
    }

    /// Whether one that has arrived was; or that it does not come.
    pub(crate) fn has_come(&self, thread: u32) -> bool {
        let is_expected = self.expected(thread).is_some();
        self.threads.lock().retain(|(expected, ..)| *expected != thread);
        is_expected
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
        assert!(again.has_come(7) && !again.has_come(7));
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
            assert!(again.expected(7).is_none() && !again.has_come(7));
        };
        world.run(run).unwrap();
    }
}
