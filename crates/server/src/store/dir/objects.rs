//! Open descriptors, cached so that a hot READ or WRITE opens nothing.
//!
//! Each object in use has one O_PATH descriptor, and on demand one for reading and one for
//! writing. The cache is bounded: at most a third of its descriptor budget in objects
//! ([`Objects::new`]); those not used lately are closed, those in the middle of an operation
//! never are.
//!
//! A cached descriptor keeps a deleted file alive. Two things prevent that this shows: what
//! this store removes leaves the cache at once, and every use looks at the link count first, so
//! that a file deleted by others is `Stale`. Its space comes back when its descriptor is closed,
//! which is soon after the last use ([`super::idle`]).

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use log::unstable::Unstable;
use parking_lot::{Mutex, RwLock};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::bounded::Bounded;
use super::errno::status;
use super::granted::Rights;
use super::proc::ProcFds;
use super::stat::Stat;
use super::sync::Waiter;
use super::sync::group::Group;
use super::writeback::Writeback;
use crate::metrics::Reading;
use crate::types::{FileKind, Handle, Status};

/// Descriptors an object may have.
const FDS_PER_OBJECT: usize = 3;

/// A file in use.
pub(super) struct Object {
    pub(super) handle: Handle,
    /// Device and inode, which are its own as long as `path` is open.
    number: (u64, u64),
    pub(super) kind: FileKind,
    /// It had several names when it was met, on an overlay that makes another file of the one that
    /// is written to: then its number is another one.
    pub(super) may_part: bool,
    /// O_PATH, or more.
    path: OwnedFd,
    /// `path` is open for reading and writing: the file was made with it.
    path_writes: bool,
    read: OnceLock<OwnedFd>,
    write: OnceLock<Writing>,
    /// Held around "attributes before, change, attributes after", so that no other change of ours
    /// falls between and the three belong together. Other processes can still come between. A
    /// directory's may be held when a file's is taken, and never the other way round.
    pub(super) order: Mutex<()>,
    /// Who waits for a sync of this file.
    pub(super) group: Mutex<Group<Waiter>>,
    /// Unstable writes came after the last sync began.
    pub(super) unsynced: AtomicBool,
    pub(super) writeback: Mutex<Writeback>,
    /// With a write log, what of it a COMMIT would have to make stable. It may be taken when the
    /// file's order is held.
    pub(super) unstable: Mutex<Unstable>,
    /// It was synced with its attributes since it was last made or changed by others, so that it
    /// will be there after a crash.
    pub(super) is_rooted: AtomicBool,
    /// A sync of it has failed since it was opened.
    pub(super) has_failed: AtomicBool,
    /// What callers may, as the kernel reported.
    pub(super) rights: Mutex<Rights>,
    /// The second of the last use ([`super::idle::second`]); 0 if none had begun.
    used: AtomicU32,
}

/// A descriptor open for writing.
struct Writing {
    fd: OwnedFd,
    /// And for reading too, unless the file's mode forbids it.
    reads: bool,
}

impl Object {
    /// `path` may be opened as O_PATH.
    pub(super) fn new(handle: Handle, stat: &Stat, path: OwnedFd) -> Self {
        Self {
            handle,
            number: stat.identity().number(),
            kind: stat.kind(),
            may_part: false,
            path,
            path_writes: false,
            read: OnceLock::new(),
            write: OnceLock::new(),
            order: Mutex::new(()),
            group: Mutex::default(),
            unsynced: AtomicBool::new(false),
            writeback: Mutex::default(),
            unstable: Mutex::default(),
            is_rooted: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            rights: Mutex::default(),
            used: AtomicU32::new(0),
        }
    }

    /// Of a regular file that was just made; `fd` is open for reading and writing.
    pub(super) fn made(handle: Handle, stat: &Stat, fd: OwnedFd) -> Self {
        Self { path_writes: true, ..Self::new(handle, stat, fd) }
    }

    /// For what needs no rights: `statx`, and as the directory of `...at` calls.
    pub(super) fn path(&self) -> BorrowedFd<'_> {
        self.path.as_fd()
    }

    /// Attributes now; `Stale` for a file that was deleted, and for one that has parted.
    pub(super) fn stat(&self) -> Result<Stat, Status> {
        let stat = Stat::of(&self.path).map_err(status)?;
        if stat.is_deleted() || self.is_other(&stat) {
            // However often it is requested, nobody has a use for it.
            self.used.store(LONG_AGO, Ordering::Relaxed);
            return Err(Status::Stale);
        }
        Ok(stat)
    }

    fn is_other(&self, stat: &Stat) -> bool {
        self.may_part && stat.identity().number() != self.number
    }

    /// What its descriptors lead to is another file than its handle names.
    pub(super) fn has_parted(&self) -> bool {
        self.may_part && Stat::of(&self.path).is_ok_and(|stat| self.is_other(&stat))
    }

    /// It has no name any more.
    pub(super) fn is_deleted(&self) -> bool {
        Stat::of(&self.path).is_ok_and(|stat| stat.is_deleted())
    }

    /// Open for reading: a regular file or a directory.
    pub(super) fn reading(&self, proc: &ProcFds) -> Result<BorrowedFd<'_>, Status> {
        if self.path_writes {
            return Ok(self.path());
        }
        if let Some(Writing { fd, reads: true }) = self.write.get() {
            return Ok(fd.as_fd());
        }
        if let Some(fd) = self.read.get() {
            return Ok(fd.as_fd());
        }
        let fd = match self.kind {
            FileKind::Regular => proc.reopen(self.path(), OFlags::RDONLY),
            FileKind::Directory => proc.reopen(self.path(), OFlags::RDONLY | OFlags::DIRECTORY),
            _ => return Err(Status::Invalid),
        };
        let fd = fd.map_err(status)?;
        Ok(self.read.get_or_init(|| fd).as_fd())
    }

    /// Open for writing: a regular file.
    pub(super) fn writing(&self, proc: &ProcFds) -> Result<BorrowedFd<'_>, Status> {
        if self.path_writes {
            return Ok(self.path());
        }
        if let Some(writing) = self.write.get() {
            return Ok(writing.fd.as_fd());
        }
        if self.kind != FileKind::Regular {
            return Err(Status::Invalid);
        }
        let open = |flags, reads| {
            let fd = proc.reopen(self.path(), flags)?;
            Ok(Writing { fd, reads })
        };
        let writing = open(OFlags::RDWR, true)
            .or_else(|_: Errno| open(OFlags::WRONLY, false))
            .map_err(status)?;
        // Being opened is what parts it, before a byte is written.
        if self.has_parted() {
            return Err(Status::Stale);
        }
        Ok(self.write.get_or_init(|| writing).fd.as_fd())
    }

    /// What is open already, for reading or writing.
    pub(super) fn opened(&self) -> Option<BorrowedFd<'_>> {
        if self.path_writes {
            return Some(self.path());
        }
        let writing = self.write.get().map(|writing| &writing.fd);
        writing.or_else(|| self.read.get()).map(AsFd::as_fd)
    }

    /// Whether unstable writes wait for a sync.
    pub(super) fn is_unsynced(&self) -> bool {
        self.unsynced.load(Ordering::Acquire)
    }

    /// Whether unstable writes wait for a sync; after this they count as taken care of.
    pub(super) fn take_unsynced(&self) -> bool {
        self.unsynced.swap(false, Ordering::AcqRel)
    }
}

/// A second in which objects were requested that nobody will ask for again.
const LONG_AGO: u32 = 1;

/// The objects in use.
pub(super) struct Objects {
    /// Guards which objects are cached; their descriptors are opened and closed outside of it.
    cached: RwLock<Cached>,
    /// The second it is, as far as anybody has noted; 0 until then.
    now: AtomicU32,
}

struct Cached {
    objects: Bounded<Handle, Arc<Object>>,
    /// Those that had to leave with data that were not synced, as long as their sync holds them.
    /// Opened a second time beside it, the file would not get the error of the first sync: the
    /// kernel reports an error of writing once for each open file, and not to those opened after.
    leaving: HashMap<Handle, Weak<Object>>,
    /// The handles of exactly these objects: one that is cached is recognised by a mere stat.
    handles: HashMap<(u64, u64), Handle>,
}

/// Half of the process's descriptors, and no more than this: the rest is for sockets.
const FDS_MAX: usize = 16 << 10;

impl Objects {
    /// With at most `fds_max` descriptors, or by default half of RLIMIT_NOFILE (its soft value,
    /// at this moment) up to 16,384.
    pub(super) fn new(fds_max: Option<usize>) -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let half = limit.map_or(FDS_MAX, |fds| usize::try_from(fds / 2).unwrap_or(FDS_MAX));
        let fds = fds_max.unwrap_or_else(|| half.min(FDS_MAX));
        let objects = Bounded::new(fds / FDS_PER_OBJECT);
        let cached = Cached { objects, leaving: HashMap::new(), handles: HashMap::new() };
        Self { cached: RwLock::new(cached), now: AtomicU32::new(0) }
    }

    pub(super) fn readings(&self) -> Vec<Reading> {
        let count = self.cached.read().objects.len();
        let help = "Files and directories that stay open between calls.";
        vec![Reading::new("nfskit_store_objects", help, count as f64)]
    }

    pub(super) fn find(&self, handle: &Handle) -> Option<Arc<Object>> {
        let cached = self.cached.read();
        cached.objects.find(handle).map(|object| self.touched(object))
    }

    pub(super) fn is_cached(&self, handle: &Handle) -> bool {
        let cached = self.cached.read();
        let is_leaving = |left: &Weak<Object>| left.strong_count() > 0;
        cached.objects.peek(handle).is_some() || cached.leaving.get(handle).is_some_and(is_leaving)
    }

    /// Whether it is cached with unstable writes that wait for a sync.
    pub(super) fn is_unsynced(&self, handle: &Handle) -> bool {
        self.cached.read().objects.peek(handle).is_some_and(|object| object.is_unsynced())
    }

    /// Notes that the object is in use, in memory that is mostly left as it is.
    fn touched(&self, object: &Arc<Object>) -> Arc<Object> {
        let now = self.now.load(Ordering::Relaxed);
        if object.used.load(Ordering::Relaxed) != now {
            object.used.store(now, Ordering::Relaxed);
        }
        Arc::clone(object)
    }

    /// A file that is cached. While it is, nothing else has its number, where
    /// [`super::file_system::FileSystem::has_own_numbers`].
    pub(super) fn recognise(&self, stat: &Stat) -> Option<Arc<Object>> {
        let cached = self.cached.read();
        let handle = cached.handles.get(&stat.identity().number())?;
        // It counts as used.
        cached.objects.find(handle).map(|object| self.touched(object))
    }

    /// The object that is cached for this handle: `new`, if there was none. Beside it those that
    /// had to leave, for the caller to close.
    pub(super) fn keep(&self, new: Object) -> (Arc<Object>, Vec<Arc<Object>>) {
        let mut cached = self.cached.write();
        if let Some(old) = cached.objects.find(&new.handle) {
            return (self.touched(old), Vec::new());
        }
        let left = cached.leaving.remove(&new.handle).and_then(|left| left.upgrade());
        let object = left.unwrap_or_else(|| Arc::new(new));
        cached.insert(self.touched(&object))
    }

    /// Takes back one that is leaving, with those that have to go for it.
    pub(super) fn take_back(&self, handle: &Handle) -> Option<(Arc<Object>, Vec<Arc<Object>>)> {
        if self.cached.read().leaving.is_empty() {
            return None;
        }
        let mut cached = self.cached.write();
        let left = cached.leaving.remove(handle)?.upgrade()?;
        Some(cached.insert(self.touched(&left)))
    }

    pub(super) fn forget(&self, handle: &Handle) -> Option<Arc<Object>> {
        let mut cached = self.cached.write();
        let gone = cached.objects.remove(handle)?;
        cached.forget_number(&gone);
        Some(gone)
    }

    /// Those that nobody has used in the last `seconds`, and for how long.
    pub(super) fn idle(&self, now: u32, seconds: u32) -> Vec<(Arc<Object>, u32)> {
        self.now.store(now, Ordering::Relaxed);
        let cached = self.cached.read();
        let idle = cached.objects.values().filter_map(|object| {
            // Used before there was a time.
            let used = object.used.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
            let idle = now.saturating_sub(used.err().unwrap_or(now));
            (idle >= seconds).then(|| (Arc::clone(object), idle))
        });
        idle.collect()
    }

    /// Lets those go that are still idle.
    pub(super) fn release(&self, handles: &[Handle], now: u32, seconds: u32) -> Vec<Arc<Object>> {
        let mut cached = self.cached.write();
        let mut gone = Vec::new();
        for handle in handles {
            let still = cached.objects.peek(handle).is_some_and(|object| {
                let used = object.used.load(Ordering::Relaxed);
                is_idle(object) && now.saturating_sub(used) >= seconds
            });
            if still && let Some(object) = cached.objects.remove(handle) {
                gone.push((*handle, object));
            }
        }
        cached.let_go(gone)
    }

    /// Gives memory back that was needed for more objects than there are now.
    pub(super) fn shrink_to_fit(&self) {
        if self.cached.read().objects.is_roomy() {
            let mut cached = self.cached.write();
            cached.objects.shrink_to_fit();
            cached.handles.shrink_to_fit();
            cached.leaving.shrink_to_fit();
        }
    }

    /// Gives up a quarter of what is cached: the process has run out of descriptors.
    pub(super) fn make_room(&self) -> Vec<Arc<Object>> {
        let mut cached = self.cached.write();
        let len = cached.objects.len() / 4 * 3;
        let gone = cached.objects.shrink(len, is_idle);
        cached.let_go(gone)
    }
}

impl Cached {
    fn insert(&mut self, new: Arc<Object>) -> (Arc<Object>, Vec<Arc<Object>>) {
        let gone = self.objects.insert(new.handle, Arc::clone(&new), is_idle);
        self.handles.insert(new.number, new.handle);
        (new, self.let_go(gone))
    }

    fn let_go(&mut self, gone: Vec<(Handle, Arc<Object>)>) -> Vec<Arc<Object>> {
        self.leaving.retain(|_, left| left.strong_count() > 0);
        for (handle, object) in &gone {
            self.forget_number(object);
            if object.is_unsynced() {
                self.leaving.insert(*handle, Arc::downgrade(object));
            }
        }
        gone.into_iter().map(|(_, object)| object).collect()
    }

    fn forget_number(&mut self, gone: &Object) {
        if self.handles.get(&gone.number) == Some(&gone.handle) {
            self.handles.remove(&gone.number);
        }
    }
}

/// Nobody but the cache holds it: no operation is in its middle, no sync on its way.
fn is_idle(object: &Arc<Object>) -> bool {
    Arc::strong_count(object) == 1
}
