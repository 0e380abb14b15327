//! Making things stable: syncs run on the store's own threads, grouped by file (see [`group`]).
//!
//! A sync that fails means that the kernel may have thrown away what it could not write, and that
//! it will not report that again. So everyone whom that sync covers gets the error, and the write
//! verifier changes, upon which clients write again what they had not seen committed. The
//! verifier's value is read *before* a sync begins: data lost until then belong to an older one.

pub(super) mod group;

use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use rustix::io::Errno;
use tokio::sync::oneshot;

use self::group::{Arrival, Need};
use super::errno::status;
use super::objects::Object;
use super::proc::ProcFds;
use crate::durable::Durable;
use crate::metrics::Reading;
use crate::store::pool::Pool;
use crate::types::{Status, Verifier};

/// How a caller who waits for a sync gets its outcome.
pub(super) type Waiter = oneshot::Sender<Result<Durable, Status>>;

/// The system calls behind a sync; tests count them and let them fail.
pub(super) type SyncCall = Box<dyn Fn(BorrowedFd<'_>, Need) -> Result<(), Errno> + Send + Sync>;

/// fdatasync, fsync or syncfs.
pub(super) fn sync_call(fd: BorrowedFd<'_>, need: Need) -> Result<(), Errno> {
    match need {
        Need::Data => rustix::fs::fdatasync(fd),
        Need::File => rustix::fs::fsync(fd),
        Need::FileSystem => rustix::fs::syncfs(fd),
    }
}

#[derive(Clone)]
pub(super) struct Syncer {
    inner: Arc<Inner>,
    pool: Pool,
}

struct Inner {
    verifier: AtomicU64,
    call: SyncCall,
    proc: Arc<ProcFds>,
    /// For syncfs.
    root: OwnedFd,
    /// Callers who requested a sync, syncs that were done for them, and those that failed.
    requested: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
}

impl Syncer {
    /// `verifier` must differ from those of earlier processes.
    pub(super) fn new(
        verifier: u64,
        call: SyncCall,
        proc: Arc<ProcFds>,
        root: OwnedFd,
        pool: Pool,
    ) -> Self {
        let verifier = AtomicU64::new(verifier);
        let (requested, done, failed) = <(AtomicU64, AtomicU64, AtomicU64)>::default();
        let inner = Arc::new(Inner { verifier, call, proc, root, requested, done, failed });
        Self { inner, pool }
    }

    /// The verifier now in force. For a reply to an unstable write it must be read before the
    /// write.
    pub(super) fn verifier(&self) -> Verifier {
        self.inner.verifier()
    }

    pub(super) fn failures(&self) -> u64 {
        self.inner.failed.load(Ordering::Relaxed)
    }

    /// Joins are requests less syncs.
    pub(super) fn readings(&self) -> Vec<Reading> {
        let Inner { requested, done, failed, .. } = &*self.inner;
        let row = |name, help, counter: &AtomicU64| {
            Reading::new(name, help, counter.load(Ordering::Relaxed) as f64)
        };
        vec![
            row("nfskit_store_sync_requests_total", "Times that a sync was requested.", requested),
            row("nfskit_store_syncs_total", "Syncs done, each for all who had requested it.", done),
            row("nfskit_store_sync_failures_total", "Syncs that failed.", failed),
        ]
    }

    /// Makes what was done to `object` until now stable, together with all others who ask.
    ///
    /// The first to ask lets all go first who are ready to run, and only then gives the group to a
    /// thread: those who have writes for the same file at hand come into the same sync.
    pub(super) async fn sync(&self, object: &Arc<Object>, need: Need) -> Result<Durable, Status> {
        let (waiter, outcome) = oneshot::channel();
        self.inner.requested.fetch_add(1, Ordering::Relaxed);
        if object.group.lock().arrive(need, waiter) == Arrival::First {
            // Handed over when dropped, also if this caller is given up: others have joined.
            let _first = HandOver { syncer: self, object };
            others_first(&self.inner.requested).await;
        }
        outcome.await.unwrap_or(Err(Status::ServerFault))
    }

    /// Of what is no object yet, on this thread.
    pub(super) fn call(&self, fd: BorrowedFd<'_>, need: Need) -> Result<(), Errno> {
        (self.inner.call)(fd, need)
    }

    /// As [`Syncer::sync`], but nobody waits: only the verifier tells of a failure.
    pub(super) fn sync_unattended(&self, object: &Arc<Object>, need: Need) {
        drop(self.ask(object, need));
    }

    /// As [`Syncer::sync`] for a thread, which may wait for the answer or not.
    pub(super) fn ask(
        &self,
        object: &Arc<Object>,
        need: Need,
    ) -> oneshot::Receiver<Result<Durable, Status>> {
        let (waiter, outcome) = oneshot::channel();
        self.inner.requested.fetch_add(1, Ordering::Relaxed);
        if object.group.lock().arrive(need, waiter) == Arrival::First {
            self.hand_over(object);
        }
        outcome
    }

    fn hand_over(&self, object: &Arc<Object>) {
        let (this, object) = (self.clone(), Arc::clone(object));
        self.pool.run(Box::new(move || this.sync_group(&object)));
    }

    /// One sync, on a thread that may block. Those who came meanwhile get the next one, behind
    /// the other files that wait for a thread.
    fn sync_group(&self, object: &Arc<Object>) {
        let need = object.group.lock().begin();
        object.take_unsynced();
        if need >= Need::File {
            object.unstable.lock().sync_begins();
        }
        let verifier = self.inner.verifier();
        let outcome = self.inner.sync(object, need);
        if outcome.is_err() {
            // Before the next one begins, which may well succeed.
            object.has_failed.store(true, Ordering::Release);
        }
        if need >= Need::File {
            object.unstable.lock().sync_ended(outcome.is_ok());
        }
        let finished = object.group.lock().finish();
        for waiter in finished.waiters {
            // A caller who went away is no reason not to tell the others.
            let _ = waiter.send(Durable::after_sync(outcome, verifier));
        }
        if finished.again {
            let (this, object) = (self.clone(), Arc::clone(object));
            self.pool.run_next(Box::new(move || this.sync_group(&object)));
        }
    }

    /// Closes what the cache gave up. Data not yet synced are synced first, because an error that
    /// nobody has seen may be forgotten with the last descriptor.
    pub(super) fn retire(&self, objects: Vec<Arc<Object>>) {
        for object in objects {
            if object.take_unsynced() {
                self.sync_unattended(&object, Need::Data);
            }
        }
    }

    /// Drops `what` on a thread that may block, for the last descriptor of a large deleted file.
    pub(super) fn drop_aside(&self, what: impl Send + 'static) {
        self.aside(move || drop(what));
    }

    /// Does `work` on a thread that may block, unless too much waits for one.
    pub(super) fn aside(&self, work: impl FnOnce() + Send + 'static) {
        self.pool.offer(Box::new(work));
    }
}

/// A group that waits to be passed to a thread.
struct HandOver<'s> {
    syncer: &'s Syncer,
    object: &'s Arc<Object>,
}

impl Drop for HandOver<'_> {
    fn drop(&mut self) {
        self.syncer.hand_over(self.object);
    }
}

/// A burst that goes on is no reason not to begin.
const TURNS_MAX: usize = 8;

/// Lets all go first who are ready to run: a turn of the executor, not a wait, and another one as
/// long as the last has added to `arrivals`, because a connection has some of its calls read and
/// executed in each.
pub(super) async fn others_first(arrivals: &AtomicU64) {
    for _ in 0..TURNS_MAX {
        let before = arrivals.load(Ordering::Relaxed);
        yield_once().await;
        if arrivals.load(Ordering::Relaxed) == before {
            break;
        }
    }
}

/// Comes back behind all that is ready to run.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Inner {
    fn verifier(&self) -> Verifier {
        Verifier(self.verifier.load(Ordering::Acquire).to_be_bytes())
    }

    fn sync(&self, object: &Object, need: Need) -> Result<(), Status> {
        let outcome = loop {
            match self.sync_once(object, need) {
                Err(Errno::INTR) => {}
                outcome => break outcome,
            }
        };
        self.done.fetch_add(1, Ordering::Relaxed);
        if outcome.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.verifier.fetch_add(1, Ordering::AcqRel);
        }
        outcome.map_err(status)
    }

    /// What cannot be opened (a socket, a file that is not ours to read) or cannot be synced alone
    /// is synced with its whole file system.
    fn sync_once(&self, object: &Object, need: Need) -> Result<(), Errno> {
        let opened = object.opened();
        let fd = opened.or_else(|| object.reading(&self.proc).ok());
        match fd {
            Some(fd) if need < Need::FileSystem => match (self.call)(fd, need) {
                Err(Errno::INVAL) => (self.call)(self.root.as_fd(), Need::FileSystem),
                outcome => outcome,
            },
            _ => (self.call)(self.root.as_fd(), Need::FileSystem),
        }
    }
}
