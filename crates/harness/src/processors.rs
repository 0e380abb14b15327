//! A client and a server of one process on processors of their own.
//!
//! The system likes to put who wakes and who is woken on one processor, where they take turns. What
//! each of them spends on a message is then in both.

use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs `make`, which starts a server's threads, so that these have the second of our processors,
/// and leaves the first to the calling thread. With a single one nothing is changed.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    let Some((ours, theirs)) = two() else { return make() };
    pin(theirs);
    let made = make();
    pin(ours);
    made
}

/// The first two that this thread might use before it was pinned to one.
fn two() -> Option<(usize, usize)> {
    static TWO: OnceLock<Option<(usize, usize)>> = OnceLock::new();
    *TWO.get_or_init(|| {
        let allowed = sched_getaffinity(None).ok()?;
        let mut processors = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number));
        Some((processors.next()?, processors.next()?))
    })
}

/// Where it is not allowed, the system decides as before.
fn pin(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).ok();
}
