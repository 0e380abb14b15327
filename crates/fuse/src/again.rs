//! Threads that were answered ESTALE. The kernel looks the whole path up once more then, and makes
//! the same call again; what that finds has to be the server's, and not what is remembered here:
//! the file that another client has put in the place of the first may itself have been replaced,
//! or changed, since a listing had it. There is no third time.

use std::collections::VecDeque;

use parking_lot::Mutex;
use wire::nfs3::FileHandle;

/// Threads that are remembered (guess); of more, one gets what is known here.
const THREADS_MAX: usize = 256;

/// Why a thread comes again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// The server does not know a handle.
    Stale,
    /// It was refused this file, for which the server was just called.
    Refused(FileHandle),
}

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct Again {
    threads: Mutex<VecDeque<(u32, Why)>>,
}

impl Again {
    /// A thread is about to hear of a stale handle. What the kernel does for itself has none (0).
    pub(crate) fn expect(&self, thread: u32, why: Why) {
        if thread == 0 {
            return;
        }
        let mut threads = self.threads.lock();
        if let Some(known) = threads.iter_mut().find(|(expected, _)| *expected == thread) {
            known.1 = why;
            return;
        }
        if threads.len() >= THREADS_MAX {
            threads.pop_front();
        }
        threads.push_back((thread, why));
    }

    /// Whether, and why, a thread is on its way again.
    pub(crate) fn expected(&self, thread: u32) -> Option<Why> {
        let threads = self.threads.lock();
        threads.iter().find(|(expected, _)| *expected == thread).map(|(_, why)| *why)
    }

    /// Whether one that has arrived was.
    pub(crate) fn has_come(&self, thread: u32) -> bool {
        let mut threads = self.threads.lock();
        let at = threads.iter().position(|(expected, _)| *expected == thread);
        at.and_then(|at| threads.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_comes_again_once_and_so_many_are_remembered() {
        let again = Again::default();
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
}
