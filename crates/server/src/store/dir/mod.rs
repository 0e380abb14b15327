//! A directory of this machine as a store.
//!
//! Every operation is a few system calls on descriptors that stay open, made inline where
//! they meet memory only:
//!
//! ```text
//!   handle --handles--> O_PATH fd --objects--> cached, with fds for reading and writing
//!                                                 |
//!     statx, preadv2(NOWAIT), pwrite, openat2 ... inline
//!     cold reads ........................ threads "nfskit-read-N"
//!     fsync, fdatasync, grouped by file . threads "nfskit-sync-N"
//!     early writeback ................... thread  "nfskit-writeback-0"
//!     `..` of deep directories, files
//!     that others have moved ............ thread  "nfskit-seek-0"
//! ```
//!
//! **Nothing outside is reachable.** Names are opened one component at a time below a directory
//! that is already open, without following links and without crossing mount points (`beneath`);
//! `..` of the root is the root, and of what was moved outside it is refused (`up`); handles are
//! sealed or looked up in a table (`handles`). What lies behind a mount point inside the directory
//! is refused: export it by itself.
//!
//! **What a reply promises.** FILE_SYNC writes and COMMIT are an fsync, DATA_SYNC is fdatasync,
//! shared by those who ask for the same file at the same time (`sync`). Changes of names and
//! attributes are stable when they are answered: an fsync of the directory, and of the file whose
//! attributes were set, which on a journaling file system is one commit of the journal;
//! [`MetadataSync::Never`] gives that up for speed. A failed sync is reported to all whom it
//! concerns and changes the write verifier.
//!
//! **Who acts.** With privilege (CAP_SETUID, CAP_SETGID and the file capabilities) each operation
//! runs as its caller and the kernel decides (`acting`); cached descriptors are used only by those
//! who may (`rights`). Without, all operations run with the process's own ids, whoever calls, and
//! new files belong to its user; [`DirStore::acts_as_callers`] tells which.
//!
//! **What is cached goes again** (`idle`): files that nobody asks for are closed after some seconds
//! if whoever serves the store calls [`Store::tend`].
//!
//! **Limits.** Descriptors ([`DirOptions::open_files_max`]), known handles
//! ([`DirOptions::table_handles_max`]), 4,096 waiting jobs per kind of thread (then the caller's
//! thread does the work; of searches 256, then the reply is JUKEBOX), 64 MiB of idle
//! read buffers.
//!
//! **Not done.** Metadata that is not in memory is read inline, and so is the removal of names;
//! whoever serves the store has other threads for what comes meanwhile (`net::runtime`).
//! A local process's changes between our "attributes before" and "after" are not noticed. A file
//! that a local process moves out of the directory can still be used by its handle: as long as it
//! exists with kernel handles, as long as it stays open with the table. Without privilege, a
//! file that its owner may not open by its mode (a new file of mode 0444, say) is writable only as
//! long as the descriptor of its CREATE stays open.

mod acting;
mod answered;
mod attributes;
mod beneath;
mod bounded;
mod buffers;
mod data;
mod errno;
mod exclusive;
mod file_system;
mod granted;
mod handles;
mod idle;
mod layers;
mod list;
mod listing;
mod names;
mod objects;
mod options;
mod overlap;
mod overlay;
mod portions;
mod proc;
mod rights;
mod sorted;
mod stat;
mod sync;
mod sys;
#[cfg(test)]
mod tests;
mod tree;
mod up;
pub mod write_log;
mod writeback;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use perf::units::Instant;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;
use tokio::sync::oneshot;

use self::acting::Acting;
pub use self::acting::act_as_server;
use self::beneath::Beneath;
use self::file_system::FileSystem;
use self::handles::Handles;
use self::names::Created;
use self::objects::{Object, Objects};
pub use self::options::{
    DirOptions, HandleChoice, HandlesInUse, Identity, MetadataSync, OpenError,
};
pub use self::overlap::leads_to;
use self::proc::ProcFds;
use self::stat::Stat;
use self::sync::{SyncCall, Syncer};
use self::tree::{Touched, Tree};
use self::write_log::{GivenUp, Latencies, Log, LogError, Recovered};
use super::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed, Sink,
    Space, Store, Written,
};
use crate::durable::Durable;
use crate::metrics::Reading;
use crate::replies::answered::Recorded;
use crate::store::pool::Pool;
use crate::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};

/// Jobs that may wait for a kind of threads before callers do them themselves.
const JOBS_MAX: usize = 4096;

/// Early writebacks that may wait; more are dropped.
const WRITEBACKS_MAX: usize = 64;

/// Searches that may wait; beyond that the reply is JUKEBOX.
const SEARCHES_MAX: usize = 256;

/// A directory of this machine. Opening it is cheap; dropping it lets its threads finish what
/// waits.
pub struct DirStore {
    tree: Arc<Tree>,
}

impl DirStore {
    /// Serves the directory at `path`, which is resolved once, here; moved elsewhere, it is
    /// served on.
    pub fn open(path: impl AsRef<Path>, options: &DirOptions) -> Result<Self, OpenError> {
        Self::open_with(path.as_ref(), options, Box::new(sync::sync_call))
    }

    fn open_with(path: &Path, options: &DirOptions, call: SyncCall) -> Result<Self, OpenError> {
        Self::open_on(path, options, call, FileSystem::of)
    }

    /// With what tells the file system of the directory.
    fn open_on(
        path: &Path,
        options: &DirOptions,
        call: SyncCall,
        file_system: fn(BorrowedFd<'_>) -> Result<FileSystem, Errno>,
    ) -> Result<Self, OpenError> {
        // The store's own threads inherit what this one acts as.
        act_as_server();
        sys::outlive_file_size_limit();
        let acting = match options.identity {
            Identity::Process => Acting::Process,
            Identity::Best | Identity::Callers => Acting::probe(),
        };
        if options.identity == Identity::Callers && acting == Acting::Process {
            return Err(OpenError::Identity);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| {
            let path = path.to_owned();
            OpenError::Root { path, errno }
        })?;
        let for_syncfs = rustix::io::fcntl_dupfd_cloexec(&root, 0).map_err(|errno| {
            let path = path.to_owned();
            OpenError::Root { path, errno }
        })?;
        let stat = Stat::of(&root).map_err(OpenError::Stat)?;
        let beneath = Beneath::probe(root.as_fd());
        let file_system = file_system(root.as_fd()).map_err(OpenError::Stat)?;
        if file_system.is_overlay() && !layers::keep_numbers(&root, &stat) {
            return Err(OpenError::Layers);
        }
        let handles = Handles::choose(&root, beneath, acting, options, &file_system)?;
        let root_handle = handles.root(root.as_fd()).map_err(OpenError::RootHandle)?;
        let proc = Arc::new(ProcFds::open(acting).map_err(OpenError::Proc)?);
        let pool = |name, threads, jobs_max| {
            Pool::start(name, threads, jobs_max).map_err(OpenError::Thread)
        };
        let behind = |name, threads, jobs_max| {
            Pool::start_behind(name, threads, jobs_max).map_err(OpenError::Thread)
        };
        let syncs = pool("nfskit-sync", options.sync_threads, JOBS_MAX)?;
        let writers = options
            .early_writeback
            .then(|| pool("nfskit-writeback", 1, WRITEBACKS_MAX))
            .transpose()?;
        let syncer = Syncer::new(random()?, call, Arc::clone(&proc), for_syncfs, syncs);
        if options.write_log.is_some() && file_system.is_volatile() {
            return Err(LogError::NeedsSyncs.into());
        }
        let log = open_log(options, &root, &handles, &syncer)?;
        let tree = Tree {
            log,
            root: Arc::new(Object::new(root_handle, &stat, root)),
            root_identity: stat.identity(),
            acting,
            file_system,
            beneath,
            handles,
            objects: Objects::new(options.open_files_max),
            listings: listing::Listings::default(),
            syncer,
            proc,
            buffers: buffers::Buffers::default(),
            metadata_sync: options.metadata_sync,
            readers: pool("nfskit-read", options.read_threads, JOBS_MAX)?,
            seeker: behind("nfskit-seek", 1, SEARCHES_MAX)?,
            listers: behind("nfskit-list", options.list_threads, JOBS_MAX)?,
            writers,
        };
        Ok(Self { tree: Arc::new(tree) })
    }

    /// Whether `path` leads to the directory that this serves.
    pub fn is_at(&self, path: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
            .ok()
            .and_then(|dir| Stat::of(&dir).ok())
            .is_some_and(|stat| stat.identity() == self.tree.root_identity)
    }

    /// Whether operations run with the rights of their callers; else all run with the process's.
    pub fn acts_as_callers(&self) -> bool {
        self.tree.acting == Acting::Callers
    }

    /// What its write log held when it was opened.
    pub fn recovered(&self) -> Option<&Recovered> {
        self.tree.log.as_ref().map(|log| &log.recovered)
    }

    /// What the device of each of its write logs and that of the directory took for a sync when it
    /// was opened; none without a log.
    pub fn log_latencies(&self) -> &[Latencies] {
        self.tree.log.as_ref().map_or(&[], |log| &log.latencies)
    }

    /// Where each of its write logs lies, and how many bytes it has, in the order of the latencies.
    pub fn logs(&self) -> &[(PathBuf, u64)] {
        self.tree.log.as_ref().map_or(&[], |log| &log.places)
    }

    /// Waits until its write log cannot be written any more, and says what came of what it held.
    /// Without a log it waits for ever.
    pub async fn log_given_up(&self) -> GivenUp {
        match &self.tree.log {
            Some(log) => log.given_up().await,
            None => std::future::pending().await,
        }
    }

    /// Whether its write log cannot be written any more.
    pub fn has_log_failed(&self) -> bool {
        self.tree.log.as_ref().is_some_and(Log::has_failed)
    }

    /// Which write log could not be written, and why.
    pub fn log_failure(&self) -> Option<String> {
        self.tree.log.as_ref().and_then(Log::failure)
    }

    /// Brings what a write log holds to its place, after which the directory can be served without
    /// it. To be called when no call is in progress any more.
    ///
    /// # Errors
    /// Not all could be; the next server needs the log.
    pub async fn end_log(&self) -> Result<(), String> {
        match &self.tree.log {
            Some(log) => log.end().await,
            None => Ok(()),
        }
    }

    pub fn handles_in_use(&self) -> HandlesInUse {
        self.tree.handles.in_use()
    }

    /// Whether its file system has numbers and handles that mean the same files later on; else
    /// handles end with the process, and when the kernel forgets a file.
    pub fn has_lasting_identities(&self) -> bool {
        self.tree.file_system.has_lasting_identities()
    }
}

/// The write log, if there is to be one; a directory that has one is not served without it.
fn open_log(
    options: &DirOptions,
    root: &OwnedFd,
    handles: &Handles,
    syncer: &Syncer,
) -> Result<Option<Log>, LogError> {
    write_log::refuse_inside(root)?;
    match &options.write_log {
        None => write_log::refuse_without(root).map(|()| None),
        Some(_) if options.metadata_sync == MetadataSync::Never => {
            Err(LogError::NeedsSyncedMetadata)
        }
        Some(_) if !handles.are_lasting() => Err(LogError::NeedsHandles),
        Some(log) => Log::open(log, options.open_files_max, root, syncer.clone()).map(Some),
    }
}

/// A write verifier no earlier process had.
fn random() -> Result<u64, OpenError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty()).map_err(OpenError::Random)?;
    Ok(u64::from_ne_bytes(bytes))
}

impl fmt::Debug for DirStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirStore")
            .field("handles", &self.handles_in_use())
            .field("verifier", &self.verifier())
            .finish_non_exhaustive()
    }
}

impl Store for DirStore {
    fn root(&self) -> Handle {
        self.tree.root.handle
    }

    fn medium(&self) -> Medium {
        if self.tree.file_system.keeps_nothing() { Medium::Memory } else { Medium::Stable }
    }

    fn verifier(&self) -> Verifier {
        self.tree.syncer.verifier()
    }

    fn sync_failures(&self) -> u64 {
        self.tree.syncer.failures() + u64::from(self.has_log_failed())
    }

    fn unstored_handles(&self) -> u64 {
        self.tree.handles.unstored() as u64
    }

    fn readings(&self) -> Vec<Reading> {
        let mut readings = self.tree.objects.readings();
        readings.extend(self.tree.syncer.readings());
        readings.extend(self.tree.log.iter().flat_map(Log::readings));
        readings
    }

    fn is_root_gone(&self) -> bool {
        self.tree.root.is_deleted()
    }

    fn keeps_replies(&self) -> bool {
        self.tree.log.as_ref().is_some_and(Log::keeps_replies)
    }

    fn recorded(&self) -> Vec<Recorded> {
        self.tree.log.as_ref().map_or_else(Vec::new, Log::recorded)
    }

    async fn attr(&self, _: &Caller, handle: &Handle) -> Result<Attr, Status> {
        let _met = self.tree.meet(handle).await;
        self.tree.attr(handle)
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let _met = self.tree.meet(handle).await;
        if changes.size.is_some() && self.tree.log.is_some() {
            self.tree.settle_log(self.tree.object(handle).ok()).await;
        }
        let Changed { wcc, result } = self.tree.set_attr(caller, handle, &changes, guard);
        let result = match result {
            Ok((object, Some(ticket))) => self.tree.logged(ticket, &object).await.map(|_| ()),
            Ok((object, None)) => {
                let reply = self.tree.reply_attributes(&object, &wcc);
                self.tree.settle_touched(Touched([Some(object), None]), reply).await
            }
            Err(status) => Err(status),
        };
        Changed { wcc, result }
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        let _met = self.tree.meet(dir).await;
        match name {
            b".." => self.tree.lookup_above(caller, dir).await,
            _ => self.tree.lookup(caller, dir, name),
        }
    }

    async fn access(&self, caller: &Caller, handle: &Handle, wanted: Access) -> Looked<Access> {
        let _met = self.tree.meet(handle).await;
        self.tree.look(handle, |object, stat| self.tree.access(caller, object, stat, wanted))
    }

    async fn read_link(&self, _: &Caller, handle: &Handle) -> Looked<Bytes> {
        let _met = self.tree.meet(handle).await;
        self.tree.look(handle, |object, _| self.tree.read_link(object))
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let _met = self.tree.meet(handle).await;
        self.tree.read(caller, handle, offset, count).await
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        let _met = self.tree.meet(handle).await;
        self.tree.write(caller, handle, offset, data, stability).await
    }

    async fn commit(&self, caller: &Caller, handle: &Handle, _: u64, _: u32) -> Changed<Durable> {
        let _met = self.tree.meet(handle).await;
        self.tree.commit(caller, handle).await
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let _met = self.tree.meet(dir).await;
        if let CreateHow::Unchecked(SetAttr { size: Some(_), .. }) = how {
            self.tree.settle_log(self.tree.cached_child(dir, name)).await;
        }
        let change = self.tree.create(caller, dir, name, &how);
        let reply = self.tree.reply_created(&change, dir, name);
        let Changed { wcc, result } = self.tree.settle(change, reply).await;
        Changed { wcc, result: result.map(Created::node) }
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let _met = self.tree.meet(dir).await;
        let change = self.tree.make_dir(caller, dir, name, &attrs);
        let reply = self.tree.reply_made(&change, dir, name);
        self.tree.settle(change, reply).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let _met = self.tree.meet(dir).await;
        let change = self.tree.symlink(caller, dir, name, target, &attrs);
        let reply = self.tree.reply_made(&change, dir, name);
        self.tree.settle(change, reply).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let _met = self.tree.meet(dir).await;
        let change = self.tree.make_node(caller, dir, name, what, &attrs);
        let reply = self.tree.reply_made(&change, dir, name);
        self.tree.settle(change, reply).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let _met = self.tree.meet(dir).await;
        let change = self.tree.remove(caller, dir, name);
        let reply = self.tree.reply_removed(&change, dir, name);
        let Changed { wcc, result } = self.tree.settle(change, reply).await;
        Changed { wcc, result: result.map(drop) }
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let _met = self.tree.meet(dir).await;
        let change = self.tree.remove_dir(caller, dir, name);
        let reply = self.tree.reply_removed(&change, dir, name);
        let Changed { wcc, result } = self.tree.settle(change, reply).await;
        Changed { wcc, result: result.map(drop) }
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let _met = (self.tree.meet(from_dir).await, self.tree.meet(to_dir).await);
        let (renamed, file, touched) =
            self.tree.rename(caller, from_dir, from_name, to_dir, to_name);
        let reply = self.tree.reply_renamed(&renamed, file, to_dir, to_name);
        let stable = match renamed.result {
            Ok(()) => self.tree.settle_touched(touched, reply).await,
            Err(status) => Err(status),
        };
        Renamed { result: stable, ..renamed }
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        let _met = (self.tree.meet(handle).await, self.tree.meet(dir).await);
        let (linked, touched) = self.tree.link(caller, handle, dir, name);
        let reply = self.tree.reply_linked(&linked, dir, name);
        let stable = match linked.result {
            Ok(()) => self.tree.settle_touched(touched, reply).await,
            Err(status) => Err(status),
        };
        Linked { result: stable, ..linked }
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let _met = self.tree.meet(dir).await;
        self.tree.list_in_portions(caller, dir, from, sink).await
    }

    async fn tend(&self, now: Instant) {
        if let Some(log) = &self.tree.log {
            log.tend(idle::second(now));
        }
        let (done, over) = oneshot::channel();
        let tree = Arc::clone(&self.tree);
        self.tree.syncer.aside(move || {
            tree.close_idle(now);
            let _ = done.send(());
        });
        // Not done when too much waits for the threads; then the next time.
        let _ = over.await;
    }

    async fn settle(&self, handle: &Handle) -> Result<(), Status> {
        let _met = self.tree.meet(handle).await;
        let object = self.tree.object(handle)?;
        self.tree.make_stable(Touched([Some(object), None])).await
    }

    async fn space(&self, _: &Caller, handle: &Handle) -> Looked<Space> {
        let _met = self.tree.meet(handle).await;
        self.tree.look(handle, |_, _| self.tree.space())
    }

    async fn properties(&self, _: &Caller, handle: &Handle) -> Looked<Properties> {
        let _met = self.tree.meet(handle).await;
        self.tree.look(handle, |_, _| self.tree.properties())
    }
}
