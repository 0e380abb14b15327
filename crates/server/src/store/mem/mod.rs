//! Files in memory.
//!
//! ```text
//!   MemStore -- RwLock --> Tree: slots of inodes          tree.rs    numbers, handles, limits
//!                            |-- Chunks     (regular)     chunks.rs  sparse, shared with READs
//!                            |-- Directory                directory.rs  names and cookies
//!                            '-- target, device           inode.rs   attributes
//!                          names.rs: CREATE, RENAME, ...  permission.rs: who may
//! ```
//!
//! Everything completes at once, inline. The one lock guards the whole tree: looking operations
//! share it, changing ones have it alone. READs collect references under the lock and copy, when
//! they span chunks, after it; WRITEs copy what fills whole chunks before it.
//!
//! The access time follows Linux's `relatime`: a READ moves it only when it is not later than the
//! last change, so that reading seldom needs the lock alone.
//!
//! Time comes from outside. A change moves a file's times on by at least a nanosecond even when
//! the clock stands still, because clients compare them to see whether anything has changed.
//!
//! Nothing survives the process. Data written UNSTABLE is reported as such all the same, so that
//! clients behave as they do with a disk.

mod audit;
mod chunks;
mod directory;
mod image;
mod inode;
mod inodes;
mod names;
mod permission;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use self::inode::FILE_SIZE_MAX;
use self::names::LINKS_MAX;
use crate::durable::{Committed, Durable};
use crate::metrics::Reading;
use crate::types::{
    Access, Attr, Before, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time,
    Verifier, Wcc,
};

use self::chunks::Prepared;
use self::directory::Directory;
use self::directory::FileId;
use self::inode::{Body, Inode};
use self::inodes::{Inodes, Limits, ROOT};
use self::names::{New, Spot};
use super::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed, Sink,
    Space, Store, Written,
};

/// What time it is, since 1970.
pub type TimeSource = Arc<dyn Fn() -> Time + Send + Sync>;

/// How a memory store begins, and how large it may grow.
#[derive(Clone, Copy, Debug)]
pub struct MemOptions {
    /// Most bytes in data (in blocks of 4 KiB), names and symbolic links; beyond: NoSpace.
    pub bytes_max: u64,
    /// Most files, directories among them; beyond: NoSpace.
    pub files_max: u64,
    /// Tells this store from those before it: old handles are stale, the write verifier differs.
    pub instance: u64,
    pub root_mode: u32,
    pub root_uid: u32,
    pub root_gid: u32,
}

impl Default for MemOptions {
    /// 1 GiB, 2^20 files, and a root directory for everyone.
    fn default() -> Self {
        Self {
            bytes_max: 1 << 30,
            files_max: 1 << 20,
            instance: 0,
            root_mode: 0o777,
            root_uid: 0,
            root_gid: 0,
        }
    }
}

/// Files in memory, behind one lock.
pub struct MemStore {
    options: MemOptions,
    time: TimeSource,
    tree: RwLock<Inodes>, // guards all files
}

impl fmt::Debug for MemStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemStore").field("options", &self.options).finish_non_exhaustive()
    }
}

impl MemStore {
    pub fn new(options: MemOptions, time: TimeSource) -> Self {
        let now = time();
        let root = Inode {
            mode: options.root_mode & 0o7777,
            links: 2,
            uid: options.root_uid,
            gid: options.root_gid,
            accessed: now,
            modified: now,
            changed: now,
            made: now,
            create_verifier: None,
            body: Body::Directory(Directory::new(ROOT)),
        };
        let limits = Limits { bytes_max: options.bytes_max, files_max: options.files_max };
        Self { options, time, tree: RwLock::new(Inodes::new(options.instance, limits, root)) }
    }

    /// Checks the store's books: every file has as many names as it says, every directory its
    /// parent, and what is counted against the maximum is what is there. For tests; it walks
    /// everything.
    ///
    /// # Errors
    /// What does not add up.
    pub fn audit(&self) -> Result<(), &'static str> {
        self.tree.read().audit()
    }

    fn now(&self) -> Time {
        (self.time)()
    }

    /// Looks at one object.
    fn look<T>(
        &self,
        handle: &Handle,
        look: impl FnOnce(&Inodes, FileId) -> Result<T, Status>,
    ) -> Looked<T> {
        let tree = self.tree.read();
        match tree.resolve(handle) {
            Ok(id) => Looked { attr: tree.attr(id).ok(), result: look(&tree, id) },
            Err(status) => Looked::failed(status),
        }
    }

    /// Changes one object, or the entries of one directory.
    fn change<T>(
        &self,
        handle: &Handle,
        change: impl FnOnce(&mut Inodes, FileId, Time) -> Result<T, Status>,
    ) -> Changed<T> {
        let now = self.now();
        let mut tree = self.tree.write();
        match tree.resolve(handle) {
            Ok(id) => {
                let before = before(&tree, id);
                let result = change(&mut tree, id, now);
                let after = tree.attr(id).ok();
                let wcc = Wcc { before, after };
                Changed { wcc, result }
            }
            Err(status) => Changed::failed(status),
        }
    }

    /// Makes a file and describes it.
    fn make(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        body: Body,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let new = New { body, attrs, create_verifier: None };
        self.change(dir, |tree, dir, now| {
            let id = tree.make(caller, Spot { dir, name }, new, now)?;
            tree.node(id)
        })
    }

    /// Moves the access time on, as `relatime` does.
    fn touch_access(&self, handle: &Handle) -> Result<Attr, Status> {
        let now = self.now();
        let mut tree = self.tree.write();
        let id = tree.resolve(handle)?;
        tree.inode_mut(id)?.accessed = now;
        tree.attr(id)
    }

    /// The proof that what is in memory is as durable as it can be.
    fn durable(&self) -> Result<Durable, Status> {
        Durable::after_sync(Ok(()), self.verifier())
    }
}

fn before(tree: &Inodes, id: FileId) -> Option<Before> {
    tree.attr(id).ok().as_ref().map(Before::from)
}

impl Store for MemStore {
    fn root(&self) -> Handle {
        self.tree.read().handle(ROOT)
    }

    fn medium(&self) -> Medium {
        Medium::Memory
    }

    fn verifier(&self) -> Verifier {
        Verifier(self.options.instance.to_be_bytes())
    }

    fn readings(&self) -> Vec<Reading> {
        let tree = self.tree.read();
        let MemOptions { bytes_max, files_max, .. } = self.options;
        let used = |max: u64, free: u64| max.saturating_sub(free) as f64;
        vec![
            Reading::new(
                "nfskit_store_memory_bytes",
                "Bytes of files in memory.",
                used(bytes_max, tree.bytes_free()),
            ),
            Reading::new(
                "nfskit_store_memory_files",
                "Files, directories and links in memory.",
                used(files_max, tree.files_free()),
            ),
        ]
    }

    async fn attr(&self, _caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        let tree = self.tree.read();
        tree.attr(tree.resolve(handle)?)
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        self.change(handle, |tree, id, now| {
            let inode = tree.inode(id)?;
            if guard.is_some_and(|guard| guard != inode.changed) {
                return Err(Status::NotSync);
            }
            inode.check_changes(caller, &changes)?;
            tree.with_mut(id, |inode| inode.change(caller, &changes, now))
        })
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.look(dir, |tree, dir| {
            let id = tree.lookup(caller, Spot { dir, name })?;
            tree.node(id)
        })
    }

    async fn access(&self, caller: &Caller, handle: &Handle, wanted: Access) -> Looked<Access> {
        self.look(handle, |tree, id| Ok(permission::access(tree.inode(id)?, caller, wanted)))
    }

    async fn read_link(&self, _caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        self.look(handle, |tree, id| match &tree.inode(id)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Status::Invalid),
        })
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let found = self.look(handle, |tree, id| {
            let inode = tree.inode(id)?;
            let chunks = inode.regular()?;
            permission::check_read(inode, caller)?;
            let pieces = chunks.read(offset, count as usize);
            let eof = offset.saturating_add(u64::from(count)) >= chunks.size();
            let old_access = inode.accessed <= inode.modified.max(inode.changed);
            Ok((pieces, eof, old_access))
        });
        match found.result {
            Ok((pieces, eof, old_access)) => {
                let touched = old_access.then(|| self.touch_access(handle).ok());
                Looked {
                    attr: touched.unwrap_or(found.attr),
                    result: Ok(Extent { data: pieces.gather(), eof }),
                }
            }
            Err(status) => Looked { attr: found.attr, result: Err(status) },
        }
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        // Outside of the lock; an offset that ends nowhere is refused below.
        let prepared = Prepared::new(offset, &data);
        self.change(handle, |tree, id, now| {
            let inode = tree.inode(id)?;
            let chunks = inode.regular()?;
            permission::check_write(inode, caller)?;
            let count = u32::try_from(data.len()).map_err(|_| Status::Invalid)?;
            let end = offset.checked_add(u64::from(count));
            end.filter(|&end| end <= FILE_SIZE_MAX).ok_or(Status::TooLarge)?;
            tree.check_room(chunks.growth(offset, data.len()), 0)?;
            if count > 0 {
                tree.with_mut(id, |inode| {
                    inode.regular_mut()?.write_prepared(offset, &prepared);
                    inode.drop_privileges(caller);
                    inode.touch_contents(now);
                    Ok(())
                })??;
            }
            let committed = match stability {
                Stability::Unstable => Committed::Unstable(self.verifier()),
                stable => Committed::Stable(stable, self.durable()?),
            };
            Ok(Written { count, committed })
        })
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        _offset: u64,
        _count: u32,
    ) -> Changed<Durable> {
        self.change(handle, |tree, id, _now| {
            let inode = tree.inode(id)?;
            inode.regular()?;
            permission::check_write(inode, caller)?;
            self.durable()
        })
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        self.change(dir, |tree, dir, now| {
            let id = tree.create(caller, Spot { dir, name }, how, now)?;
            tree.node(id)
        })
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let body = Body::Directory(Directory::new(ROOT));
        self.make(caller, dir, name, body, attrs)
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let body = Body::Symlink(Bytes::copy_from_slice(target));
        self.make(caller, dir, name, body, attrs)
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let device = matches!(what, Special::BlockDevice { .. } | Special::CharDevice { .. });
        if device && !permission::is_root(caller) {
            return self.change(dir, |_, _, _| Err(Status::NotOwner));
        }
        self.make(caller, dir, name, Body::Special(what), attrs)
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.change(dir, |tree, dir, now| tree.remove(caller, Spot { dir, name }, now))
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.change(dir, |tree, dir, now| tree.remove_dir(caller, Spot { dir, name }, now))
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let now = self.now();
        let mut tree = self.tree.write();
        let (from, to) = (tree.resolve(from_dir), tree.resolve(to_dir));
        let wcc_before = |id: Result<FileId, Status>| id.ok().and_then(|id| before(&tree, id));
        let befores = (wcc_before(from), wcc_before(to));
        let result = match (from, to) {
            (Ok(from), Ok(to)) => {
                let from = Spot { dir: from, name: from_name };
                let to = Spot { dir: to, name: to_name };
                tree.rename(caller, from, to, now)
            }
            (Err(status), _) | (_, Err(status)) => Err(status),
        };
        let after = |id: Result<FileId, Status>| id.and_then(|id| tree.attr(id)).ok();
        Renamed {
            from: Wcc { before: befores.0, after: after(from) },
            to: Wcc { before: befores.1, after: after(to) },
            result,
        }
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        let now = self.now();
        let mut tree = self.tree.write();
        let (file, dir) = (tree.resolve(handle), tree.resolve(dir));
        let dir_before = dir.ok().and_then(|dir| before(&tree, dir));
        let result = match (file, dir) {
            (Ok(file), Ok(dir)) => tree.link(caller, file, Spot { dir, name }, now),
            (Err(status), _) | (_, Err(status)) => Err(status),
        };
        Linked {
            attr: file.and_then(|file| tree.attr(file)).ok(),
            dir: Wcc { before: dir_before, after: dir.and_then(|dir| tree.attr(dir)).ok() },
            result,
        }
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let verifier = self.verifier().0;
        self.look(dir, |tree, dir| tree.list(caller, dir, from, verifier, sink))
    }

    async fn space(&self, _caller: &Caller, handle: &Handle) -> Looked<Space> {
        self.look(handle, |tree, _| {
            Ok(Space {
                bytes_total: self.options.bytes_max,
                bytes_free: tree.bytes_free(),
                bytes_available: tree.bytes_free(),
                files_total: self.options.files_max,
                files_free: tree.files_free(),
                files_available: tree.files_free(),
            })
        })
    }

    async fn properties(&self, _caller: &Caller, handle: &Handle) -> Looked<Properties> {
        self.look(handle, |_, _| {
            Ok(Properties {
                file_size_max: FILE_SIZE_MAX,
                time_resolution: Time { secs: 0, nanos: 1 },
                hard_links: true,
                symlinks: true,
                links_max: LINKS_MAX,
                name_bytes_max: 255,
                chown_restricted: true,
            })
        })
    }
}
