//! When the open of a file began: with the look-up of its name.
//!
//! open(2) is a LOOKUP and an OPEN of one thread, as long as the kernel has to look the name up.
//! What the LOOKUP has requested of the server was requested after the open began, and
//! close-to-open needs no more of an OPEN. So the answer of a LOOKUP that has made such calls is
//! good for no time: a stat(2) that made it, and an open(2) that follows, are a LOOKUP each, and
//! the OPEN belongs to the last.
//!
//! What is opened by a descriptor of the file (/proc/self/fd) comes without a LOOKUP. So the OPEN
//! has to follow at once.

use std::collections::VecDeque;

use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::nfs3::FileHandle;

/// Threads between a LOOKUP and its OPEN (guess); of more, one makes a call without need.
const THREADS_MAX: usize = 256;

/// A kernel makes the next request of an open at once. On a busy machine it may take longer, which
/// costs a call (guess).
const OPENS_WITHIN: Nanos = Nanos::from_millis(10);

/// See the module's head.
#[derive(Debug)]
pub(crate) struct LookedUp {
    clock: Clock,
    /// Guards who has looked a file up.
    threads: Mutex<VecDeque<Begun>>,
}

#[derive(Debug)]
struct Begun {
    thread: u32,
    file: FileHandle,
    at: Instant,
    answered: Instant,
}

impl LookedUp {
    pub(crate) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), threads: Mutex::default() }
    }

    /// A thread looks a name up: what it has looked up before it does not open any more.
    pub(crate) fn begins(&self, thread: u32) -> Instant {
        self.threads.lock().retain(|begun| begun.thread != thread);
        self.clock.now()
    }

    /// It is about to be answered. Threads of other name spaces are all 0, and are not followed.
    pub(crate) fn answers(&self, thread: u32, file: FileHandle, at: Instant) {
        let mut threads = self.threads.lock();
        if threads.len() >= THREADS_MAX {
            threads.pop_front();
        }
        let answered = self.clock.now();
        threads.push_back(Begun { thread, file, at, answered });
    }

    /// A thread opens a file. Since when it does so, if that is known.
    pub(crate) fn opens(&self, thread: u32, file: &FileHandle) -> Option<Instant> {
        let mut threads = self.threads.lock();
        let at = threads.iter().position(|begun| begun.thread == thread)?;
        let begun = threads.remove(at).filter(|begun| begun.file == *file)?;
        (self.clock.now().since(begun.answered) < OPENS_WITHIN).then_some(begun.at)
    }
}

#[cfg(test)]
mod tests {
    use net::clock::world::World;

    use super::*;

    #[test]
    fn an_open_begins_with_the_last_look_up_of_its_thread() {
        let world = World::new();
        let clock = world.clock();
        let run = async move {
            let looked_up = LookedUp::new(&clock);
            let [file, other] = [1, 2].map(|number| FileHandle::new(&[number]).unwrap());
            let at = looked_up.begins(7);
            clock.sleep(Nanos::from_millis(20)).await;
            looked_up.answers(7, file, at);
            assert_eq!(looked_up.opens(8, &file), None);
            assert_eq!(looked_up.opens(7, &file), Some(at));
            assert_eq!(looked_up.opens(7, &file), None, "once");
            looked_up.answers(7, file, at);
            assert_eq!(looked_up.opens(7, &other), None);
            looked_up.answers(7, file, at);
            looked_up.begins(7);
            assert_eq!(looked_up.opens(7, &file), None, "that was another system call");
            looked_up.answers(7, file, at);
            clock.sleep(OPENS_WITHIN).await;
            assert_eq!(looked_up.opens(7, &file), None, "it was for something else");
            let last = u32::try_from(THREADS_MAX).unwrap();
            (0..=last).for_each(|thread| looked_up.answers(thread, file, at));
            let are_known = [0, 1].map(|thread| looked_up.opens(thread, &file).is_some());
            assert_eq!(are_known, [false, true]);
        };
        world.run(run).unwrap();
    }
}
