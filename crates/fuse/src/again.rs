//! Threads that were answered ESTALE. The kernel looks the whole path up once more then, and makes
//! the same call again; what that finds has to be the server's, and not what is remembered here:
//! the file that another client has put in the place of the first may itself have been replaced,
//! or changed, since a listing told of it.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Threads that are remembered (guess); of more, one gets what is known here.
const THREADS_MAX: usize = 256;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Again {
    threads: Mutex<VecDeque<u32>>,
}

impl Again {
    /// A thread is about to hear of a stale handle. What the kernel does for itself has none (0).
    pub(crate) fn expect(&self, thread: u32) {
        let mut threads = self.threads.lock();
        if thread == 0 || threads.contains(&thread) {
            return;
        }
        if threads.len() >= THREADS_MAX {
            threads.pop_front();
        }
        threads.push_back(thread);
    }

    /// Whether a thread is on its way again.
    pub(crate) fn is_expected(&self, thread: u32) -> bool {
        self.threads.lock().contains(&thread)
    }

    /// The same of one that has arrived.
    pub(crate) fn has_come(&self, thread: u32) -> bool {
        let mut threads = self.threads.lock();
        let at = threads.iter().position(|expected| *expected == thread);
        at.and_then(|at| threads.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_comes_again_once_and_so_many_are_remembered() {
        let again = Again::default();
        again.expect(0);
        assert!(!again.is_expected(0), "the kernel's own");
        again.expect(7);
        again.expect(7);
        assert!(again.is_expected(7) && !again.is_expected(8));
        assert!(again.has_come(7) && !again.has_come(7));
        (1..=257).for_each(|thread| again.expect(thread));
        assert!(!again.is_expected(1) && again.is_expected(2) && again.is_expected(257));
    }
}
