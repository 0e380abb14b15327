//! The file system that the kernel asks: one method for each operation.
//!
//! - `appending`: O_APPEND beside other clients.
//! - `names`: what finds, makes, moves and removes names.
//! - `attributes`: what asks and sets attributes.
//! - `data`: open files.
//! - `directories`: open directories.
//! - `locking`: locks of programs.
//! - `sharing`: what other clients have done to a file that this kernel caches.

mod appending;
mod attributes;
mod data;
mod directories;
mod locking;
pub(crate) mod names;
mod sharing;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use client::files::{Files, Found};
use client::locks::Locks;
use client::session::Credential;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use rustix::io::Errno;
use wire::nfs3::{FType, Fattr3, FileHandle};

use crate::abi::request::{Header, Operation};
use crate::abi::{Attr, Entry, init};
use crate::again::Again;
use crate::attributes::{attr, number};
use crate::caller::Callers;
use crate::dispatch::{Incoming, Work};
use crate::errno;
use crate::inflight::Reply;
use crate::looked_up::LookedUp;
use crate::nodes::{Named, Nodes};
use crate::notify::Notifier;
use crate::opens::Opens;

/// What programs should read and write at a time, where the kernel gathers for them.
const BLKSIZE: u32 = 64 << 10;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct FileSystem {
    pub(crate) files: Files,
    pub(crate) clock: Clock,
    pub(crate) callers: Callers,
    /// Guards what the kernel knows; never held across a call.
    pub(crate) nodes: Mutex<Nodes>,
    pub(crate) opens: Opens,
    /// Guards which file system the root is of, once that is known.
    root_fsid: Mutex<Option<u64>>,
    again: Arc<Again>,
    looked_up: LookedUp,
    locks: Locks,
    notifier: Notifier,
    cache: init::KernelCache,
    /// The kernel writes back: it alone knows sizes and times of regular files.
    writes_back: bool,
    /// WRITEs of what the kernel had in its cache.
    pub(crate) written_back: AtomicU64,
}

impl FileSystem {
    pub(crate) fn new(
        files: Files,
        clock: &Clock,
        callers: Callers,
        notifier: Notifier,
        cache: init::KernelCache,
        agreed: init::Agreed,
    ) -> Self {
        let nodes = Mutex::new(Nodes::new(files.root()));
        let writes_back = agreed.writes_back();
        let (opens, locks) = (Opens::default(), Locks::default());
        let again = Arc::new(Again::new(clock));
        let looked_up = LookedUp::new(clock);
        let (clock, root_fsid) = (clock.clone(), Mutex::default());
        Self {
            files,
            clock,
            callers,
            nodes,
            opens,
            root_fsid,
            again,
            looked_up,
            locks,
            notifier,
            cache,
            writes_back,
            written_back: AtomicU64::default(),
        }
    }

    /// Begins a request; none where nothing is to be answered. What must be remembered in the order
    /// of requests is remembered before this returns, or in the first step of the work.
    pub(crate) fn begin(self: &Arc<Self>, request: Incoming<'_>, reply: Reply) -> Option<Work> {
        let Incoming { header, operation, data } = request;
        let (this, node) = (Arc::clone(self), header.node);
        Some(match operation {
            Operation::Forget { lookups } => {
                self.nodes.lock().forget(node, lookups);
                reply.unwanted();
                return None;
            }
            Operation::BatchForget(forgets) => {
                let mut nodes = self.nodes.lock();
                forgets.for_each(|(node, lookups)| nodes.forget(node, lookups));
                reply.unwanted();
                return None;
            }
            Operation::Read { file, offset, count, is_direct, asks_server } => {
                if !is_direct && let Some(node) = self.nodes.lock().find_mut(node) {
                    node.has_pages = true;
                }
                Box::pin(async move { this.read(file, (offset, count), asks_server, reply).await })
            }
            Operation::Write { file, offset, how, .. } => {
                Box::pin(async move { this.write((node, file), (offset, data), how, reply).await })
            }
            Operation::Flush { file, owner } => {
                Box::pin(async move { this.flush(node, file, owner, reply).await })
            }
            Operation::Getlk(lock) => {
                self.getlk((node, header.uid), &lock, reply);
                return None;
            }
            Operation::Setlk { lock, may_wait } => {
                Box::pin(async move { this.setlk((node, header.uid), lock, may_wait, reply).await })
            }
            Operation::Fsync { file } => Box::pin(async move { this.fsync(file, reply).await }),
            Operation::Release { file } => Box::pin(async move { this.release(file, reply).await }),
            Operation::Readdir { dir, offset, size, is_plus } => {
                Box::pin(async move { this.readdir(dir, offset, size, is_plus, reply).await })
            }
            Operation::Releasedir { dir } => {
                drop(self.opens.take_dir(dir));
                reply.done();
                return None;
            }
            // Names are stable on the server when it has answered.
            Operation::Fsyncdir => {
                reply.done();
                return None;
            }
            // Requested once: the kernel remembers that there are no attributes by name and no
            // FALLOCATE, and answers EOPNOTSUPP; of RENAME that there are no flags, and answers
            // EINVAL.
            Operation::Unserved | Operation::Rename { flags: 1.., .. } => {
                reply.error(Errno::NOSYS);
                return None;
            }
            by_permission => return self.begin_for(&header, by_permission, reply),
        })
    }

    /// The same of what depends on who the caller is.
    fn begin_for(
        self: &Arc<Self>,
        header: &Header,
        operation: Operation<'_>,
        reply: Reply,
    ) -> Option<Work> {
        let (this, node) = (Arc::clone(self), header.node);
        let who = self.callers.credential(header);
        let expected = self.again.expected(header.pid);
        // What is looked at on the way there.
        let is_on_the_way = matches!(
            operation,
            Operation::Lookup { .. }
                | Operation::Readlink
                | Operation::Getattr { .. }
                | Operation::Access { .. }
        );
        let come = (!is_on_the_way).then(|| self.again.has_come(header.pid)).flatten();
        let comes_again = come.is_some();
        let reply = match (come, expected) {
            // There is no third time.
            (Some(come), _) => reply.arrived(come),
            (None, Some(_)) => reply.to(&self.again, header.pid).on_the_way(),
            (None, None) => reply.to(&self.again, header.pid),
        };
        Some(match operation {
            Operation::Lookup { name } => {
                let name = name.to_vec();
                let how = (expected, header.pid);
                Box::pin(async move { this.lookup(who, (node, name), how, reply).await })
            }
            Operation::Getattr { file } => {
                Box::pin(async move { this.getattr(who, node, file, reply).await })
            }
            Operation::Setattr(new) => {
                Box::pin(async move { this.setattr(who, node, new, reply).await })
            }
            Operation::Access { mask } => {
                Box::pin(async move { this.access(who, node, mask, reply).await })
            }
            Operation::Statfs => Box::pin(async move { this.statfs(who, reply).await }),
            Operation::Readlink => Box::pin(async move { this.readlink(who, node, reply).await }),
            Operation::Open { flags } => {
                let (opener, how) = ((node, header.pid), (flags, comes_again));
                Box::pin(async move { this.open(who, opener, how, reply).await })
            }
            Operation::Create { name, mode, flags } => {
                let name = name.to_vec();
                let (name, how) = ((node, name), (flags, comes_again));
                Box::pin(async move { this.create(who, name, mode, how, reply).await })
            }
            Operation::Opendir { lists } => {
                Box::pin(async move { this.opendir(who, node, lists, reply).await })
            }
            naming => return self.begin_naming(who, node, naming, reply),
        })
    }

    /// The same of what changes the names in a directory.
    fn begin_naming(
        self: &Arc<Self>,
        who: Credential,
        node: u64,
        operation: Operation<'_>,
        reply: Reply,
    ) -> Option<Work> {
        let this = Arc::clone(self);
        Some(match operation {
            Operation::Symlink { name, target } => {
                let (name, target) = (name.to_vec(), target.to_vec());
                Box::pin(async move { this.symlink(who, node, name, target, reply).await })
            }
            Operation::Mknod { name, mode, rdev } => {
                let name = name.to_vec();
                Box::pin(async move { this.mknod(who, node, name, mode, rdev, reply).await })
            }
            Operation::Mkdir { name, mode } => {
                let name = name.to_vec();
                Box::pin(async move { this.mkdir(who, node, name, mode, reply).await })
            }
            Operation::Unlink { name } => {
                let name = name.to_vec();
                Box::pin(async move { this.unlink(who, node, name, reply).await })
            }
            Operation::Rmdir { name } => {
                let name = name.to_vec();
                Box::pin(async move { this.rmdir(who, node, name, reply).await })
            }
            Operation::Rename { name, new_dir, new_name, .. } => {
                let (from, to) = ((node, name.to_vec()), (new_dir, new_name.to_vec()));
                Box::pin(async move { this.rename(who, from, to, reply).await })
            }
            Operation::Link { node: file, name } => {
                let name = name.to_vec();
                Box::pin(async move { this.link(who, file, node, name, reply).await })
            }
            // INIT, INTERRUPT and DESTROY do not come here from a kernel that keeps the protocol.
            _ => {
                reply.error(Errno::INVAL);
                return None;
            }
        })
    }

    /// The file that a node is.
    fn file(&self, node: u64) -> Result<FileHandle, Errno> {
        self.nodes.lock().find(node).map(|node| node.file).ok_or(Errno::STALE)
    }

    fn attr(&self, attributes: &Fattr3) -> Attr {
        let sizes = self.files.session().sizes();
        let blksize = if self.writes_back { BLKSIZE } else { sizes.write_bytes_max };
        attr(attributes, self.number(attributes.fileid, attributes.fsid), blksize)
    }

    /// The number of a file, of whatever file system of the export.
    fn number(&self, fileid: u64, fsid: u64) -> u64 {
        let root = self.files.last(&self.files.root());
        let mut root_fsid = self.root_fsid.lock();
        *root_fsid = root.map(|root| root.fsid).or(*root_fsid);
        number(fileid, fsid, root_fsid.unwrap_or(fsid))
    }

    /// How a found file is known to the kernel.
    fn named(&self, found: &Found) -> Named {
        let is_cached = self.writes_back && found.attributes.ftype == FType::Reg;
        Named {
            file: found.handle,
            version: is_cached.then_some(found.version),
            size: found.attributes.size,
            mtime: found.attributes.mtime,
        }
    }

    /// What is answered of a file that was found in `dir`; the kernel then knows its node once
    /// more.
    fn entry(&self, dir: &FileHandle, found: &Found) -> Entry {
        // What the kernel keeps it gives to all users.
        let is_for_all = !self.files.refuses_some(dir);
        let in_dir = if is_for_all { self.valid(dir) } else { Duration::ZERO };
        let named = self.named(found);
        let node = self.nodes.lock().name(named);
        let attr_valid = self.attr_valid(node, &found.handle);
        // A name that outlives the attributes would hide what others do to the file.
        let entry_valid = if named.version.is_some() { in_dir.min(attr_valid) } else { in_dir };
        Entry { node, entry_valid, attr_valid, attr: self.attr(&found.attributes) }
    }

    /// How long what is known of a file is good.
    fn valid(&self, file: &FileHandle) -> Duration {
        duration(self.files.validity(file))
    }

    /// How long the kernel may do without asking for the attributes of a node.
    fn attr_valid(&self, node: u64, file: &FileHandle) -> Duration {
        let asks = self.nodes.lock().find(node).is_some_and(|node| node.asks_to_append);
        // What is not yet at the server moves the times, which one that writes back has itself.
        let is_moving = !self.writes_back && self.files.write_behind().is_dirty(*file);
        if asks || is_moving { Duration::ZERO } else { self.valid(file) }
    }

    /// The entry was not heard of.
    fn unname(&self, entry: &Entry) {
        self.nodes.lock().forget(entry.node, 1);
    }

    /// On whose behalf an open file is used.
    fn opener(&self, file: Option<u64>, who: Credential) -> Credential {
        file.and_then(|file| self.opens.file(file)).map_or(who, |open| open.who)
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

/// What a program sees of a failure.
fn errno(error: client::error::Error) -> Errno {
    errno::of(&error)
}
