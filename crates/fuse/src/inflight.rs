//! Requests that could not be answered at once, and those who no longer want to wait.
//!
//! The kernel says which request's process has got a signal; but not whether the process dies of
//! it, and a system call must not fail because a timer went off. So from then on its thread is
//! looked at, now and then: once it is dying, the request is answered with EINTR, and the process
//! can go. This is what the kernel's own client does (TASK_KILLABLE), and why Ctrl-C works while a
//! server is away. What has waited for `LONG` is answered so too, if one of the signals has come
//! that ask a program to end: those that catch Ctrl-C (dd, make, git) are to hear of it. Who waits
//! for a lock waits for no server: any signal ends that at once (fcntl(2), flock(2)).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::clock::{Clock, Task};
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use rustix::io::Errno;
use wire::nfs3::FileHandle;

use crate::abi::answer::Body;
use crate::again::{Again, Come, Why};
use crate::caller;
use crate::device::Device;

/// How often those that have got a signal are looked at.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// A wait of so long is an outage, in which a system call that fails is better than one that does
/// not end.
const LONG: Nanos = Nanos::from_secs(5);

/// What becomes of the work when nobody waits for it any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Abandoned {
    /// It only asks: it is dropped.
    Dropped,
    /// It changes something, and goes on to its end.
    GoesOn,
    /// It waits for another program, and is dropped at any signal.
    AtOnce,
}

/// The one answer of a request. Dropped without one, it answers EIO.
#[derive(Debug)]
pub(crate) struct Reply {
    device: Arc<Device>,
    unique: u64,
    answered: Arc<AtomicBool>,
    /// Who hears of it, and where it is noted if the handle is stale.
    caller: Option<(Arc<Again>, u32)>,
    /// The caller comes again, and this is on the way.
    is_on_the_way: bool,
    /// Or it has come.
    _come: Option<Come>,
}

impl Reply {
    pub(crate) fn new(device: &Arc<Device>, unique: u64) -> Self {
        let (device, answered) = (Arc::clone(device), Arc::default());
        Self { device, unique, answered, caller: None, is_on_the_way: false, _come: None }
    }

    /// A thread waits for it, which comes again after a stale handle.
    pub(crate) fn to(mut self, again: &Arc<Again>, thread: u32) -> Self {
        self.caller = Some((Arc::clone(again), thread));
        self
    }

    /// The same, where the thread is on its way again, to the call that got a stale handle.
    pub(crate) fn on_the_way(mut self) -> Self {
        self.is_on_the_way = true;
        self
    }

    /// The same, where the thread has come.
    pub(crate) fn arrived(mut self, come: Come) -> Self {
        self._come = Some(come);
        self
    }

    /// The path of a thread that comes again ends here: it makes no further call.
    pub(crate) fn leads_nowhere(&mut self) {
        if let Some((again, thread)) = self.caller.take_if(|_| self.is_on_the_way) {
            again.has_come(thread);
        }
    }

    /// The caller is refused a file that it opens, and is to look its name up again.
    pub(crate) fn refuse(mut self, file: FileHandle) {
        if let Some((again, thread)) = self.caller.take() {
            again.expect(thread, Why::Refused(file));
        }
        self.error(Errno::STALE);
    }

    /// The request is one that has no answer.
    pub(crate) fn unwanted(self) {
        self.answered.store(true, Ordering::Release);
    }

    /// Answers. False when nobody has heard it: what it gave must be taken back.
    pub(crate) fn body(self, body: &Body) -> bool {
        self.succeed(body.as_slice())
    }

    pub(crate) fn data(self, data: &[u8]) -> bool {
        self.succeed(data)
    }

    pub(crate) fn done(self) -> bool {
        self.succeed(&[])
    }

    fn succeed(self, body: &[u8]) -> bool {
        if let Some((again, thread)) = self.caller.as_ref().filter(|_| self.is_on_the_way) {
            again.goes_on(*thread);
        }
        self.send(0, body)
    }

    pub(crate) fn error(self, errno: Errno) {
        self.report_error(errno);
    }

    /// As [`Reply::error`]; false when nobody has heard it.
    pub(crate) fn report_error(mut self, errno: Errno) -> bool {
        self.leads_nowhere();
        if let Some((again, thread)) = self.caller.as_ref().filter(|_| errno == Errno::STALE) {
            again.expect(*thread, Why::Stale);
        }
        self.send(errno.raw_os_error(), &[])
    }

    fn send(&self, errno: i32, body: &[u8]) -> bool {
        !self.answered.swap(true, Ordering::AcqRel) && self.device.answer(self.unique, errno, body)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send(Errno::IO.raw_os_error(), &[]);
    }
}

/// See the module's head. Bounded by the processes that wait, and by what the kernel has
/// outstanding in the background.
#[derive(Clone, Debug)]
pub(crate) struct Inflight {
    clock: Clock,
    device: Arc<Device>,
    /// Guards the requests that wait, and whether somebody looks at those with a signal.
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: HashMap<u64, Request>,
    is_watched: bool,
}

#[derive(Debug)]
struct Request {
    pid: u32,
    answered: Arc<AtomicBool>,
    abandoned: Abandoned,
    task: Option<Task>,
    since: Instant,
    has_signal: bool,
}

/// Takes a request out of the table when its work ends or is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    unique: u64,
    waiting: Arc<Mutex<Waiting>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.waiting.lock().requests.remove(&self.unique);
    }
}

impl Inflight {
    pub(crate) fn new(clock: &Clock, device: &Arc<Device>) -> Self {
        Self { clock: clock.clone(), device: Arc::clone(device), waiting: Arc::default() }
    }

    /// A mark on a reply by which it can be found again.
    pub(crate) fn mark(reply: &Reply) -> Arc<AtomicBool> {
        Arc::clone(&reply.answered)
    }

    /// Lets work go on beside the reader.
    pub(crate) fn spawn(
        &self,
        unique: u64,
        pid: u32,
        answered: Arc<AtomicBool>,
        abandoned: Abandoned,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let since = self.clock.now();
        let request = Request { pid, answered, abandoned, task: None, since, has_signal: false };
        self.waiting.lock().requests.insert(unique, request);
        let entered = Entered { unique, waiting: Arc::clone(&self.waiting) };
        let task = self.clock.spawn(async move {
            let _entered = entered;
            work.await;
        });
        if let Some(request) = self.waiting.lock().requests.get_mut(&unique) {
            request.task = Some(task);
        }
    }

    /// The process of a request has got a signal.
    pub(crate) fn signalled(&self, unique: u64) {
        let mut waiting = self.waiting.lock();
        let Some(request) = waiting.requests.get_mut(&unique) else {
            return;
        };
        if request.abandoned == Abandoned::AtOnce {
            drop(waiting);
            return self.abandon(unique);
        }
        request.has_signal = true;
        if !std::mem::replace(&mut waiting.is_watched, true) {
            let watcher = self.clone();
            self.clock.spawn(async move { watcher.watch().await });
        }
    }

    async fn watch(self) {
        loop {
            let now = self.clock.now();
            let looked_at: Vec<(u64, u32, Nanos)> = {
                let mut waiting = self.waiting.lock();
                let signalled = waiting.requests.iter().filter(|(_, request)| request.has_signal);
                let looked_at: Vec<_> = signalled
                    .map(|(id, request)| (*id, request.pid, now.since(request.since)))
                    .collect();
                waiting.is_watched = !looked_at.is_empty();
                looked_at
            };
            if looked_at.is_empty() {
                return;
            }
            for (unique, pid, waited) in looked_at {
                let is_interrupted = waited >= LONG && caller::is_signalled_to_end(pid);
                if is_interrupted || caller::is_dying(pid) {
                    self.abandon(unique);
                }
            }
            self.clock.sleep(LOOK_EVERY).await;
        }
    }

    /// Answers that it was interrupted.
    fn abandon(&self, unique: u64) {
        let task = {
            let mut waiting = self.waiting.lock();
            let Some(request) = waiting.requests.get_mut(&unique) else {
                return;
            };
            request.has_signal = false;
            if request.answered.swap(true, Ordering::AcqRel) {
                return;
            }
            match request.abandoned {
                Abandoned::Dropped | Abandoned::AtOnce => request.task.take(),
                Abandoned::GoesOn => None,
            }
        };
        self.device.answer(unique, Errno::INTR.raw_os_error(), &[]);
        if let Some(task) = task {
            task.abort();
        }
    }

    /// Requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().requests.len()
    }
}
