//! System calls that do not return, and who serves meanwhile.
//!
//! A call into a file system that is frozen, or whose other side is gone, keeps the worker that
//! makes it. tokio does not replace it: if this worker was the one that waits for sockets, none
//! does any more, and a single call stops all connections, timers and signals. So
//!
//! - a worker notes when it polls what may wait ([`watched`]), at the cost of two stores;
//! - a thread looks at the notes every [`LOOK_INTERVAL`] while they change, and sleeps otherwise;
//! - some workers are in reserve, each held by a task that does nothing. For each worker that
//!   stays where it was at the last look one of them is let go: as many serve as before;
//! - while none is in reserve, what may wait is polled in tokio's `block_in_place`, which first
//!   gives the worker's place to another thread. So who was let go last is never caught.
//!
//! As many calls may wait as the runtime may have threads.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

/// Several times what a call takes that only meets memory, and little to a person. Guess.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Looks at notes that do not change before the watching thread sleeps.
const IDLE_LOOKS: u32 = 20;

/// In a note: in a poll, in the worker's place or with that given away. Above is a number of the
/// poll.
const INSIDE: u64 = 1;
const APART: u64 = 2;
const NEXT: u64 = 4;

/// All that a runtime's threads share for this; clones are the same.
#[derive(Clone)]
pub(crate) struct Stalls(Arc<Shared>);

struct Shared {
    /// Guards the list, which changes when a thread begins or ends.
    notes: Mutex<Vec<Arc<Note>>>,
    /// Guards who is in reserve.
    reserve: Mutex<Reserve>,
    changed: Condvar,
    /// No worker is in reserve. Written under the lock of `reserve`.
    is_spent: AtomicBool,
    /// The watching thread sleeps until it is woken.
    is_asleep: AtomicBool,
    watcher: OnceLock<Thread>,
    /// Guards who wants to know how many polls have stalled.
    listeners: Mutex<Vec<Listener>>,
}

/// Gets the number when it has changed; `false` if nobody wants it any more.
type Listener = Box<dyn Fn(usize) -> bool + Send>;

/// What one thread does.
#[derive(Default)]
struct Note {
    poll: AtomicU64,
    /// As the watching thread has seen it last.
    seen: AtomicU64,
}

/// Workers that do nothing until they are wanted.
#[derive(Debug, Default)]
struct Reserve {
    held: usize,
    /// Tasks on their way to hold a worker.
    coming: usize,
    wanted: usize,
}

/// How polls stand at a look.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Look {
    is_busy: bool,
    /// Polls that have not ended since the last look, and keep a worker.
    caught: usize,
    /// The same, of those that have given their place away.
    apart: usize,
}

struct Mine {
    stalls: Stalls,
    note: Arc<Note>,
}

thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
}

/// Polls what may wait for the system.
#[inline]
pub(crate) fn watched<T>(poll: impl FnOnce() -> T) -> T {
    MINE.with(|mine| match mine.get() {
        Some(mine) => mine.watched(poll),
        None => poll(),
    })
}

/// Lets `listener` know how many polls have stalled, if this thread's runtime watches them.
pub(crate) fn listen(listener: impl Fn(usize) -> bool + Send + 'static) {
    MINE.with(|mine| {
        if let Some(mine) = mine.get() {
            mine.stalls.0.listeners.lock().push(Box::new(listener));
        }
    });
}

impl Mine {
    fn watched<T>(&self, poll: impl FnOnce() -> T) -> T {
        let before = self.note.poll.load(Ordering::Relaxed);
        if before & (INSIDE | APART) != 0 {
            return poll();
        }
        let shared = &self.stalls.0;
        let is_apart = shared.is_spent.load(Ordering::Acquire);
        let place = if is_apart { APART } else { INSIDE };
        // Before the look at who sleeps, as the watching thread sleeps before it looks at this.
        self.note.poll.store(before.wrapping_add(NEXT) | place, Ordering::SeqCst);
        let _inside = Inside(&self.note);
        if shared.is_asleep.load(Ordering::SeqCst) {
            shared.wake();
        }
        match is_apart {
            true => tokio::task::block_in_place(poll),
            false => poll(),
        }
    }
}

/// Ends the note, also when the poll panics.
struct Inside<'n>(&'n Note);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let poll = self.0.poll.load(Ordering::Relaxed);
        self.0.poll.store(poll & !(INSIDE | APART), Ordering::Release);
    }
}

impl Note {
    /// What it does now, and whether that is the same as at the last look.
    fn look(&self) -> (u64, bool) {
        let now = self.poll.load(Ordering::SeqCst);
        (now, self.seen.swap(now, Ordering::Relaxed) == now)
    }
}

impl Look {
    fn add(&mut self, (poll, is_same): (u64, bool)) {
        let is_inside = poll & (INSIDE | APART) != 0;
        self.is_busy |= is_inside || !is_same;
        self.caught += usize::from(is_same && poll & INSIDE != 0);
        self.apart += usize::from(is_same && poll & APART != 0);
    }
}

impl Stalls {
    /// For a runtime of which `reserved` workers are to be in reserve.
    pub(crate) fn new(reserved: usize) -> Self {
        Self(Arc::new(Shared {
            notes: Mutex::default(),
            reserve: Mutex::new(Reserve { wanted: reserved, ..Reserve::default() }),
            changed: Condvar::new(),
            is_spent: AtomicBool::new(true),
            is_asleep: AtomicBool::new(false),
            watcher: OnceLock::new(),
            listeners: Mutex::default(),
        }))
    }

    /// This thread is one of the runtime's.
    pub(crate) fn enter(&self) {
        MINE.with(|mine| {
            let note: Arc<Note> = Arc::default();
            self.0.notes.lock().push(Arc::clone(&note));
            // It enters once.
            mine.set(Mine { stalls: self.clone(), note }).ok();
        });
    }

    /// Watches until the end of the process.
    pub(crate) fn watch(&self, handle: Handle) -> std::io::Result<()> {
        let reserved = self.0.reserve.lock().wanted;
        let stalls = self.clone();
        let watcher = thread::Builder::new()
            .name("nfskit-stalls".to_owned())
            .spawn(move || stalls.0.run(&handle, reserved))?;
        // It is started once.
        self.0.watcher.set(watcher.thread().clone()).ok();
        Ok(())
    }
}

impl Shared {
    fn run(self: &Arc<Self>, handle: &Handle, reserved: usize) {
        let (mut idle, mut stalled) = (0, 0);
        self.want(reserved, handle);
        loop {
            thread::park_timeout(LOOK_INTERVAL);
            let look = self.look();
            self.want(reserved.saturating_sub(look.caught), handle);
            if stalled != look.caught + look.apart {
                stalled = look.caught + look.apart;
                self.listeners.lock().retain(|listener| listener(stalled));
            }
            if stalled > 0 {
                // Wakes a worker, which then waits for sockets.
                handle.spawn(async {});
            }
            idle = if look.is_busy { 0 } else { idle + 1 };
            if idle > IDLE_LOOKS {
                self.sleep();
                idle = 0;
            }
        }
    }

    fn look(&self) -> Look {
        let mut look = Look::default();
        let mut notes = self.notes.lock();
        // Of a thread that has ended nobody else has it.
        notes.retain(|note| Arc::strong_count(note) > 1);
        notes.iter().for_each(|note| look.add(note.look()));
        look
    }

    fn sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        while self.is_asleep.load(Ordering::SeqCst) && !self.look().is_busy {
            thread::park();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    #[cold]
    fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst)
            && let Some(watcher) = self.watcher.get()
        {
            watcher.unpark();
        }
    }

    /// Lets workers go until so many are in reserve, or sends tasks that hold more.
    fn want(self: &Arc<Self>, wanted: usize, handle: &Handle) {
        let mut reserve = self.reserve.lock();
        reserve.wanted = wanted;
        if wanted == 0 {
            // Before the last one goes.
            self.is_spent.store(true, Ordering::Release);
        }
        if reserve.held > wanted {
            self.changed.notify_all();
        }
        for _ in reserve.held + reserve.coming..wanted {
            reserve.coming += 1;
            let (shared, own) = (Arc::clone(self), handle.clone());
            handle.spawn(async move { shared.hold(&own) });
        }
    }

    /// Keeps the worker that runs it in reserve, as long as it is wanted there.
    fn hold(&self, handle: &Handle) {
        // A worker has a place for one task that no other worker takes: this one takes it, and who
        // was there goes to the queue that others take from.
        handle.spawn(async {});
        let mut reserve = self.reserve.lock();
        reserve.coming -= 1;
        if reserve.held >= reserve.wanted {
            return;
        }
        reserve.held += 1;
        self.is_spent.store(false, Ordering::Release);
        while reserve.held <= reserve.wanted {
            self.changed.wait(&mut reserve);
        }
        reserve.held -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_is_there_at_two_looks_has_stalled_and_where_it_is_counts() {
        let stalls = Stalls::new(1);
        stalls.enter();
        let look = || stalls.0.look();
        let caught = |caught| Look { is_busy: true, caught, apart: 0 };
        assert_eq!(look(), Look::default());
        stalls.0.is_spent.store(false, Ordering::Relaxed);
        watched(|| {
            assert_eq!([look(), look(), look()], [caught(0), caught(1), caught(1)]);
            watched(|| assert_eq!(look(), caught(1), "it is the same poll"));
        });
        assert_eq!([look(), look()], [caught(0), Look::default()]);
        watched(|| ());
        assert_eq!([look(), look()], [caught(0), Look::default()]);
        watched(look);
        watched(|| assert_eq!(look(), caught(0), "another one"));
        // Outside of a runtime nothing is given away.
        stalls.0.is_spent.store(true, Ordering::Relaxed);
        watched(|| {
            let apart = |apart| Look { is_busy: true, caught: 0, apart };
            assert_eq!([look(), look()], [apart(0), apart(1)]);
        });
    }

    #[test]
    fn a_poll_that_panics_is_over() {
        let stalls = Stalls::new(1);
        stalls.enter();
        std::panic::catch_unwind(|| watched::<()>(|| panic!("as tokio catches it"))).unwrap_err();
        stalls.0.look();
        assert_eq!(stalls.0.look(), Look::default());
    }
}
