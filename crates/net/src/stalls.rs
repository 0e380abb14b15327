//! System calls that do not return, and who serves meanwhile.
//!
//! A call into a file system that is frozen, or whose other side is gone, keeps the worker that
//! makes it. tokio does not replace it: if this worker was the one that waits for sockets, none
//! does any more, and a single call stops all connections, timers and signals. So
//!
//! - a worker notes when it polls a task ([`Watched`]), at the cost of two stores;
//! - a thread looks at the notes every [`LOOK_INTERVAL`] while they change, and sleeps otherwise;
//! - [`RESERVED`] more workers are in reserve, each held by a task that does nothing. For each
//!   worker that waits where it was at the last look one of them is let go: as many serve as
//!   before;
//! - while none is in reserve, tasks are polled in tokio's `block_in_place`, which first gives the
//!   worker's place to another thread. So who was let go last is never caught;
//! - of each worker that stays in a poll, the tasks that it has put off are woken.
//!
//! As many calls may wait as the runtime may have threads. A task that was woken by the very poll
//! that waits may wait with it: only its worker can reach it.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::task::{block_in_place, coop, yield_now};

/// Several times what a call takes that only meets memory, and little to a person. Guess.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Looks at notes that do not change before the watching thread sleeps: few, as the timers of an
/// idle server wake it each time.
const IDLE_LOOKS: u32 = 2;

/// A wake-up may pass it by, so it looks again after so long.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// One is enough to go on; of the others each makes up for one that waits, at no cost to calls.
const RESERVED: usize = 4;

/// How long a runtime waits at its beginning until its reserve is complete.
const RESERVE_TIME: Duration = Duration::from_secs(1);

/// In a note: in a poll, in the worker's place or with that given away. Above is a number of the
/// poll.
const INSIDE: u64 = 1;
const APART: u64 = 2;
const NEXT: u64 = 4;

/// All that a runtime's threads share for this; clones are the same.
#[derive(Clone)]
pub(crate) struct Stalls(Arc<Shared>);

/// The watching ends with this value.
pub(crate) struct Watching(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Guards the list, which changes when a thread begins or ends.
    notes: Mutex<Vec<Arc<Note>>>,
    /// Guards who is in reserve.
    reserve: Mutex<Reserve>,
    changed: Condvar,
    /// Some worker is in reserve. Written under the lock of `reserve`.
    has_reserve: AtomicBool,
    /// The watching thread sleeps until it is woken.
    is_asleep: AtomicBool,
    has_ended: AtomicBool,
    watcher: OnceLock<Thread>,
    /// Guards who wants to know how many polls have stalled.
    listeners: Mutex<Vec<Listener>>,
}

/// Gets the number when it has changed; `false` if nobody wants it any more.
type Listener = Box<dyn Fn(usize) -> bool + Send>;

/// What one thread does.
#[derive(Default)]
struct Note {
    thread: os::ThreadId,
    poll: AtomicU64,
    /// As the watching thread has seen it last.
    seen: AtomicU64,
    /// It was seen to wait in the poll that was seen last.
    waits: AtomicBool,
    /// Guards the tasks that this thread is to wake when it has looked at sockets.
    put_off: Mutex<Vec<Waker>>,
}

/// Workers that do nothing until they are wanted.
#[derive(Debug, Default)]
struct Reserve {
    wanted: usize,
    held: usize,
    /// A task is on its way to hold one more.
    is_coming: bool,
}

/// How polls stand at a look.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Look {
    is_busy: bool,
    /// Some poll has not ended since the last look.
    is_long: bool,
    /// Polls that have not, and wait in the system.
    stalled: usize,
    /// Those of them that keep a worker.
    caught: usize,
}

struct Mine {
    shared: Arc<Shared>,
    note: Arc<Note>,
    /// Wakes those who are put off.
    waker: Waker,
}

thread_local! {
    static MINE: OnceCell<Mine> = const { OnceCell::new() };
}

/// A task whose polls may wait for the system.
pub(crate) struct Watched(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Watched {
    pub(crate) fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(work))
    }
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let work = self.0.as_mut();
        MINE.with(|mine| match mine.get() {
            Some(mine) => mine.poll(work, cx),
            None => work.poll(cx),
        })
    }
}

/// Wakes the task when the worker has looked at sockets, or is caught before.
pub(crate) fn put_off(cx: &Context<'_>) {
    MINE.with(|mine| match mine.get() {
        Some(mine) => mine.put_off(cx.waker()),
        None => leave_to_tokio(cx.waker()),
    });
}

/// It wakes them when the worker that this is has looked at sockets; at once, elsewhere.
fn leave_to_tokio(waker: &Waker) {
    // It has nothing to give but the wake-up.
    let _ = pin!(yield_now()).poll(&mut Context::from_waker(waker));
}

/// Lets `listener` know how many polls have stalled, if this thread's runtime watches them.
pub(crate) fn listen(listener: impl Fn(usize) -> bool + Send + 'static) {
    MINE.with(|mine| {
        if let Some(mine) = mine.get() {
            mine.shared.listeners.lock().push(Box::new(listener));
        }
    });
}

impl Mine {
    fn poll(
        &self,
        work: Pin<&mut (dyn Future<Output = ()> + Send)>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let is_safe = self.shared.has_reserve.load(Ordering::Acquire);
        let place = if is_safe { INSIDE } else { APART };
        let poll = self.note.poll.load(Ordering::Relaxed).wrapping_add(NEXT) | place;
        self.note.poll.store(poll, Ordering::Release);
        let _inside = Inside(&self.note);
        if self.shared.is_asleep.load(Ordering::Relaxed) {
            self.shared.wake();
        }
        let polled = match is_safe {
            true => work.poll(cx),
            false => block_in_place(|| work.poll(cx)),
        };
        if polled.is_pending() && !coop::has_budget_remaining() {
            // tokio has put it off, where nobody else finds it.
            self.put_off(cx.waker());
        }
        polled
    }

    fn put_off(&self, waker: &Waker) {
        let mut put_off = self.note.put_off.lock();
        if put_off.last().is_some_and(|last| last.will_wake(waker)) {
            return;
        }
        put_off.push(waker.clone());
        let is_first = put_off.len() == 1;
        drop(put_off);
        if is_first {
            leave_to_tokio(&self.waker);
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
    /// Adds what it does now, and whether that is the same as at the last look.
    fn look(&self, look: &mut Look) {
        let now = self.poll.load(Ordering::Acquire);
        let is_same = self.seen.swap(now, Ordering::Relaxed) == now;
        let is_inside = now & (INSIDE | APART) != 0;
        look.is_busy |= is_inside || !is_same;
        let has_waited = is_same && self.waits.load(Ordering::Relaxed);
        let waits = is_inside && is_same && (has_waited || os::waits(self.thread));
        self.waits.store(waits, Ordering::Relaxed);
        if is_inside && is_same {
            look.is_long = true;
            look.stalled += usize::from(waits);
            look.caught += usize::from(waits && now & INSIDE != 0);
            self.wake_put_off();
        }
    }

    fn wake_put_off(&self) {
        let put_off = std::mem::take(&mut *self.put_off.lock());
        put_off.into_iter().for_each(Waker::wake);
    }
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wake_put_off();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_put_off();
    }
}

impl Stalls {
    /// For a runtime that has [`Self::RESERVED`] workers more than are to work.
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) const RESERVED: usize = RESERVED;

    /// This thread is one of the runtime's.
    pub(crate) fn enter(&self) {
        MINE.with(|mine| {
            let note = Arc::new(Note { thread: os::this_thread(), ..Note::default() });
            self.0.notes.lock().push(Arc::clone(&note));
            let waker = Waker::from(Arc::clone(&note));
            // It enters once.
            mine.set(Mine { shared: Arc::clone(&self.0), note, waker }).ok();
        });
    }

    /// Watches the runtime, whose reserve is complete then, unless it has much else to do.
    pub(crate) fn watch(&self, handle: Handle) -> std::io::Result<Watching> {
        let shared = Arc::clone(&self.0);
        let watcher = thread::Builder::new()
            .name("nfskit-stalls".to_owned())
            .spawn(move || shared.run(&handle))?;
        // It is started once.
        self.0.watcher.set(watcher.thread().clone()).ok();
        let mut reserve = self.0.reserve.lock();
        self.0.changed.wait_while_for(&mut reserve, |now| now.held < RESERVED, RESERVE_TIME);
        Ok(Watching(Arc::clone(&self.0)))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.wake();
    }
}

impl Shared {
    fn run(self: &Arc<Self>, handle: &Handle) {
        let (mut idle, mut before) = (0, Look::default());
        while !self.has_ended.load(Ordering::Acquire) {
            let look = self.look();
            let has_moved = self.want(RESERVED.saturating_sub(look.caught), handle);
            if look.stalled != before.stalled {
                self.listeners.lock().retain(|listener| listener(look.stalled));
            }
            if look.is_long || before.is_long || has_moved {
                // Wakes a worker, which then waits for sockets if nobody does.
                spawn(handle, async {});
            }
            before = look;
            idle = if look.is_busy || has_moved { 0 } else { idle + 1 };
            match idle > IDLE_LOOKS {
                true => self.sleep(),
                false => thread::park_timeout(LOOK_INTERVAL),
            }
        }
        self.want(0, handle);
    }

    fn look(&self) -> Look {
        let mut look = Look::default();
        let mut notes = self.notes.lock();
        // Of a thread that has ended nobody else has it.
        notes.retain(|note| Arc::strong_count(note) > 1);
        notes.iter().for_each(|note| note.look(&mut look));
        look
    }

    fn sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
        thread::park_timeout(SLEEP_MAX);
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    #[cold]
    fn wake(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    /// Lets workers go until so many are in reserve, or sends a task that holds one more. True if
    /// there were less or more.
    fn want(self: &Arc<Self>, wanted: usize, handle: &Handle) -> bool {
        let mut reserve = self.reserve.lock();
        let (held, has_moved) = (reserve.held, reserve.wanted != wanted || reserve.held != wanted);
        reserve.wanted = wanted;
        if wanted == 0 {
            // Before the last one goes.
            self.has_reserve.store(false, Ordering::Release);
        }
        if held > wanted {
            self.changed.notify_all();
        }
        if held < wanted && !std::mem::replace(&mut reserve.is_coming, true) {
            let shared = Arc::clone(self);
            spawn(handle, async move { shared.hold() });
        }
        has_moved
    }

    /// Keeps the worker that runs it in reserve, as long as it is wanted there.
    fn hold(&self) {
        // Tasks that only this worker can reach (the one to run next, those put off) go where
        // others find them.
        block_in_place(|| ());
        let mut reserve = self.reserve.lock();
        reserve.is_coming = false;
        if reserve.held < reserve.wanted && has_place() {
            self.keep(&mut reserve);
        }
        drop(reserve);
        self.wake();
    }

    fn keep(&self, reserve: &mut MutexGuard<'_, Reserve>) {
        reserve.held += 1;
        self.has_reserve.store(true, Ordering::Release);
        self.changed.notify_all();
        // It was perhaps the one that waits for sockets.
        self.wake();
        while reserve.held <= reserve.wanted {
            self.changed.wait(reserve);
        }
        reserve.held -= 1;
    }
}

fn spawn(handle: &Handle, work: impl Future<Output = ()> + Send + 'static) {
    drop(handle.spawn(work));
}

/// Whether this thread has its worker's place: tokio may have given it to another one. Only who
/// has one puts off what yields.
fn has_place() -> bool {
    #[derive(Default)]
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let woken: Arc<Woken> = Arc::default();
    leave_to_tokio(&Waker::from(Arc::clone(&woken)));
    !woken.0.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
mod os {
    /// As gettid(2) has it; 0 is none.
    pub(super) type ThreadId = i32;

    pub(super) fn this_thread() -> ThreadId {
        rustix::thread::gettid().as_raw_pid()
    }

    /// Whether the thread waits for something other than a processor, as far as is known.
    pub(super) fn waits(thread: ThreadId) -> bool {
        let stat = std::fs::read(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
        state(&stat) != Some(b'R')
    }

    /// Behind the name in parentheses, in which there may be others.
    pub(super) fn state(stat: &[u8]) -> Option<u8> {
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        stat.get(end + 2).copied()
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    pub(super) type ThreadId = i32;

    pub(super) fn this_thread() -> ThreadId {
        0
    }

    pub(super) fn waits(_: ThreadId) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::clock::Clock;
    use crate::runtime::serve_on_threads;

    /// Of a thread that waits, as far as is known.
    fn note() -> Note {
        Note { thread: -1, ..Note::default() }
    }

    fn look(note: &Note) -> Look {
        let mut look = Look::default();
        note.look(&mut look);
        look
    }

    #[test]
    fn a_poll_that_is_there_at_two_looks_has_stalled_and_where_it_is_counts() {
        let note = note();
        assert_eq!(look(&note), Look::default());
        let fresh = Look { is_busy: true, ..Look::default() };
        let stalled = |caught| Look { is_busy: true, is_long: true, stalled: 1, caught };
        note.poll.store(NEXT | INSIDE, Ordering::Relaxed);
        assert_eq!([look(&note), look(&note), look(&note)], [fresh, stalled(1), stalled(1)]);
        note.poll.store((2 * NEXT) | INSIDE, Ordering::Relaxed);
        assert_eq!([look(&note), look(&note)], [fresh, stalled(1)]);
        note.poll.store((3 * NEXT) | APART, Ordering::Relaxed);
        assert_eq!([look(&note), look(&note)], [fresh, stalled(0)]);
        drop(Inside(&note));
        assert_eq!([look(&note), look(&note)], [fresh, Look::default()]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_works_for_long_does_not_wait() {
        let note = Note { thread: os::this_thread(), ..Note::default() };
        note.poll.store(NEXT | INSIDE, Ordering::Relaxed);
        look(&note);
        assert_eq!(look(&note), Look { is_busy: true, is_long: true, stalled: 0, caught: 0 });
        assert_eq!(os::state(b"1 (a) S (b) D 1 2"), Some(b'D'));
        assert_eq!(os::state(b"1 (a)"), None);
    }

    /// Tells when it is woken.
    struct Tells(mpsc::Sender<()>);

    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            self.0.send(()).ok();
        }
    }

    #[test]
    fn who_was_put_off_is_woken_although_the_worker_stays_in_a_poll() {
        let (woken, wakes) = mpsc::channel();
        let waker = Waker::from(Arc::new(Tells(woken)));
        let stays = move || {
            put_off(&Context::from_waker(&waker));
            wakes.recv_timeout(Duration::from_secs(20))
        };
        let (end, ends) = oneshot::channel();
        let run = async {
            Clock::real().spawn(async move { end.send(stays()).unwrap() });
            ends.await
        };
        serve_on_threads(1, 1, run).unwrap().unwrap().expect("it is woken");
    }
}
