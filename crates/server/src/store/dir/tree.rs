//! What all operations stand on: from handles to open objects, from names to children, and the
//! frame around changes of a directory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use futures_util::future::join;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::sync::oneshot;

use super::acting::Acting;
use super::beneath::{Beneath, Component};
use super::buffers::Buffers;
use super::errno::status;
use super::handles::{Handles, Opened};
use super::listing::Listings;
use super::objects::{Object, Objects};
use super::proc::ProcFds;
use super::stat::{Identity, Stat};
use super::sync::Syncer;
use super::sync::group::Need;
use super::write_log::{self, Log, Ticket};
use super::{FileSystem, MetadataSync};
use crate::durable::Durable;
use crate::store::pool::Pool;
use crate::store::{Changed, Node};
use crate::types::{Before, Caller, FileKind, Handle, Status, Wcc};

/// How often what failed for want of something is tried again at once, before the reply is JUKEBOX.
const ATTEMPTS: u32 = 64;

pub(super) struct Tree {
    pub(super) root: Arc<Object>,
    pub(super) root_identity: Identity,
    /// Whose rights operations have.
    pub(super) acting: Acting,
    pub(super) file_system: FileSystem,
    pub(super) beneath: Beneath,
    pub(super) handles: Handles,
    pub(super) objects: Objects,
    pub(super) listings: Listings,
    pub(super) proc: Arc<ProcFds>,
    pub(super) buffers: Buffers,
    pub(super) syncer: Syncer,
    /// Where stable WRITEs go first, if anywhere.
    pub(super) log: Option<Log>,
    pub(super) metadata_sync: MetadataSync,
    /// For reads that have to wait for the disk.
    pub(super) readers: Pool,
    /// For what must be searched for: the root above a deep directory, and files that were moved.
    pub(super) seeker: Pool,
    /// For what of listings is long.
    pub(super) listers: Pool,
    /// For early writeback; `None`: no early writeback.
    pub(super) writers: Option<Pool>,
}

/// A file found under a name.
pub(super) struct Child {
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
    pub(super) handle: Handle,
}

/// What a change has touched, and must be stable before the reply.
#[derive(Default)]
pub(super) struct Touched(pub(super) [Option<Arc<Object>>; 2]);

impl Tree {
    /// The object a handle names. It may be deleted: [`Object::stat`] tells.
    pub(super) fn object(&self, handle: &Handle) -> Result<Arc<Object>, Status> {
        if *handle == self.root.handle {
            return Ok(Arc::clone(&self.root));
        }
        if let Some(object) = self.objects.find(handle) {
            if !object.has_parted() {
                return Ok(object);
            }
            self.objects.forget(handle);
        }
        if let Some((object, gone)) = self.objects.take_back(handle) {
            self.syncer.retire(gone);
            return Ok(object);
        }
        let opened = self.with_room(|| {
            let root = self.root.reading(&self.proc)?;
            self.handles.open(self.acting, root, handle)
        })?;
        match opened {
            Opened::Found(fd) => self.object_at(handle, fd),
            // Too much waits to be searched for.
            Opened::Lost => Err(Status::Jukebox),
        }
    }

    fn object_at(&self, handle: &Handle, fd: OwnedFd) -> Result<Arc<Object>, Status> {
        let stat = Stat::of(&fd).map_err(status)?;
        if stat.is_deleted() {
            return Err(Status::Stale);
        }
        self.check_own_log(fd.as_fd(), &stat)?;
        Ok(self.keep(*handle, &stat, fd))
    }

    /// A directory inside that has a write log of its own is refused as a mount point is: what is
    /// stable in it may be in that log alone, and a replay would undo what is written here.
    fn check_own_log(&self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<(), Status> {
        let is_marked =
            stat.kind() == FileKind::Directory && self.proc.has_attribute(fd, write_log::MARK);
        if !is_marked {
            return Ok(());
        }
        let has_own = || {
            let dir = self.proc.reopen(fd, OFlags::RDONLY | OFlags::DIRECTORY)?;
            Ok(write_log::has_own(&dir))
        };
        match self.acting.as_server(has_own) {
            Ok(false) => Ok(()),
            _ => Err(Status::Access),
        }
    }

    /// Has a file looked for that is not where it was last seen, on a thread: before an operation
    /// on `handle`, which finds the object open as long as this one is held.
    pub(super) async fn meet(self: &Arc<Self>, handle: &Handle) -> Option<Arc<Object>> {
        let is_open = !self.handles.follow_names()
            || *handle == self.root.handle
            || self.objects.is_cached(handle);
        if is_open {
            return None;
        }
        let lost = self.with_room(|| {
            let root = self.root.reading(&self.proc)?;
            self.handles.open(self.acting, root, handle)
        });
        match lost {
            Ok(Opened::Found(fd)) => return self.object_at(handle, fd).ok(),
            Ok(Opened::Lost) => {}
            Err(_) => return None,
        }
        let (done, found) = oneshot::channel();
        let (tree, handle) = (Arc::clone(self), *handle);
        self.seeker.offer(Box::new(move || {
            let found = tree.with_room(|| {
                let root = tree.root.reading(&tree.proc)?;
                tree.handles.search(tree.acting, root, &handle)
            });
            // The caller may have gone away.
            let _ = done.send(found.and_then(|fd| tree.object_at(&handle, fd)).ok());
        }));
        found.await.ok().flatten()
    }

    pub(super) fn directory(&self, handle: &Handle) -> Result<Arc<Object>, Status> {
        let object = self.object(handle)?;
        match object.kind {
            FileKind::Directory => Ok(object),
            _ => Err(Status::NotDirectory),
        }
    }

    pub(super) fn regular(&self, handle: &Handle) -> Result<Arc<Object>, Status> {
        let object = self.object(handle)?;
        match object.kind {
            FileKind::Regular => Ok(object),
            FileKind::Directory => Err(Status::IsDirectory),
            _ => Err(Status::Invalid),
        }
    }

    /// The file called `name` in `dir`. A mount point is `Access`: what lies behind it is not of
    /// this export; and so is a directory with a write log of its own.
    pub(super) fn child(&self, dir: &Object, name: Component<'_>) -> Result<Child, Status> {
        let fd = self.open_child(dir, name)?;
        let stat = Stat::of(&fd).map_err(status)?;
        self.check_own_log(fd.as_fd(), &stat)?;
        let handle = self.handles.name(&dir.handle, name, fd.as_fd(), &stat)?;
        Ok(Child { fd, stat, handle })
    }

    /// The same without a descriptor, which for a file in the cache costs one system call: what
    /// has the number of an open file is that file.
    pub(super) fn met(&self, dir: &Object, name: Component<'_>) -> Result<Option<Node>, Status> {
        Ok(self.met_as(dir, name)?.map(|(node, _)| node))
    }

    /// The same, and who it is.
    pub(super) fn met_as(
        &self,
        dir: &Object,
        name: Component<'_>,
    ) -> Result<Option<(Node, Identity)>, Status> {
        let stat = Stat::named(dir.path(), name).map_err(status)?;
        let known = self.recognise(&stat);
        let Some(known) = known.filter(|_| stat.is_no_mount_root()) else {
            return Ok(None);
        };
        let handle = self.handles.name_again(&dir.handle, name, known.handle)?;
        Ok(Some((Node { handle, attr: stat.attr() }, stat.identity())))
    }

    /// A file that is cached, by its number; where others can have it, none is.
    pub(super) fn recognise(&self, stat: &Stat) -> Option<Arc<Object>> {
        self.file_system.has_own_numbers().then(|| self.objects.recognise(stat)).flatten()
    }

    /// A file that was not met before, in two system calls. The handle comes first: if another file
    /// is put in its place before the second, with the same inode, then the handle's is gone.
    pub(super) fn seen_as(
        &self,
        dir: &Object,
        name: Component<'_>,
    ) -> Result<Option<(Node, Identity)>, Status> {
        let Some((handle, inode)) = self.handles.name_in(dir.path(), name)? else {
            return Ok(None);
        };
        let stat = Stat::named(dir.path(), name).map_err(status)?;
        let is_it = stat.inode() == inode && stat.is_no_mount_root();
        Ok(is_it.then(|| (Node { handle, attr: stat.attr() }, stat.identity())))
    }

    /// Opens it as O_PATH.
    pub(super) fn open_child(&self, dir: &Object, name: Component<'_>) -> Result<OwnedFd, Status> {
        self.with_room(|| match self.beneath.child(dir.path(), name) {
            Err(Errno::XDEV) => Err(Status::Access),
            opened => opened.map_err(status),
        })
    }

    /// Puts a file that was met into the cache of objects.
    pub(super) fn keep(&self, handle: Handle, stat: &Stat, fd: OwnedFd) -> Arc<Object> {
        let several = stat.kind() != FileKind::Directory && stat.links() > 1;
        let may_part = self.file_system.parts_names && several;
        if may_part && self.objects.find(&handle).is_some_and(|old| old.has_parted()) {
            self.objects.forget(&handle);
        }
        let mut object = Object::new(handle, stat, fd);
        object.may_part = may_part;
        self.keep_object(object)
    }

    pub(super) fn keep_object(&self, mut object: Object) -> Arc<Object> {
        if let Some(log) = &self.log {
            *object.unstable.get_mut() = log.unstable();
        }
        if object.handle == self.root.handle {
            return Arc::clone(&self.root);
        }
        let (object, gone) = self.objects.keep(object);
        self.syncer.retire(gone);
        object
    }

    /// Tries again when descriptors are short, after closing some that are only cached.
    pub(super) fn with_room<T>(&self, open: impl Fn() -> Result<T, Status>) -> Result<T, Status> {
        match open() {
            Err(Status::Jukebox) => {
                self.syncer.retire(self.objects.make_room());
                // What is given up is closed by others, and some shortages pass by themselves.
                for _ in 0..ATTEMPTS {
                    match open() {
                        Err(Status::Jukebox) => std::thread::yield_now(),
                        outcome => return outcome,
                    }
                }
                open()
            }
            outcome => outcome,
        }
    }

    /// Changes a directory: looks at it before and after, with no other change of ours between.
    pub(super) fn change<T>(
        &self,
        caller: &Caller,
        dir: &Handle,
        operation: impl FnOnce(&Arc<Object>) -> Result<(T, Touched), Status>,
    ) -> Changed<(T, Touched)> {
        let dir = match self.directory(dir) {
            Ok(dir) => dir,
            Err(status) => return Changed::failed(status),
        };
        let _order = dir.order.lock();
        let before = match dir.stat() {
            Ok(stat) => stat,
            Err(status) => return Changed::failed(status),
        };
        let result = self.acting.act_as(caller).and_then(|()| operation(&dir));
        Changed { wcc: wcc(&before, &dir), result }
    }

    /// Makes an object stable as it is now.
    pub(super) async fn sync(&self, object: &Arc<Object>, need: Need) -> Result<Durable, Status> {
        match &self.log {
            Some(log) => log.sync(object, need).await,
            None => self.syncer.sync(object, need).await,
        }
    }

    /// Waits until the log has what it has taken up, or else syncs the object.
    pub(super) async fn logged(
        &self,
        ticket: Ticket,
        object: &Arc<Object>,
    ) -> Result<Durable, Status> {
        let verifier = self.syncer.verifier();
        match &self.log {
            Some(log) => log.stable(ticket, object, verifier).await,
            None => self.syncer.sync(object, Need::File).await,
        }
    }

    /// Before a file is truncated: what the log has of it comes to its place, or a crash in between
    /// would leave a file that is half the one and half the other.
    pub(super) async fn settle_log(&self, object: Option<Arc<Object>>) {
        if let (Some(log), Some(object)) = (&self.log, object)
            && log.has(&object)
        {
            // If it fails, so does what is to be stable after it.
            let _ = log.sync(&object, Need::File).await;
        }
    }

    /// A file in the cache, by its name; without a log nobody needs it.
    pub(super) fn cached_child(&self, dir: &Handle, name: &[u8]) -> Option<Arc<Object>> {
        self.log.as_ref()?;
        let dir = self.directory(dir).ok()?;
        let stat = Stat::named(dir.path(), Component::new(name).ok()?).ok()?;
        self.recognise(&stat)
    }

    /// Both syncs at once, so that one commit of a journal can serve the two.
    pub(super) async fn make_stable(&self, Touched(touched): Touched) -> Result<(), Status> {
        if self.metadata_sync == MetadataSync::Never {
            return Ok(());
        }
        let sync = async |object: &Option<Arc<Object>>| match object {
            Some(object) => self.sync(object, Need::File).await.map(|_| ()),
            None => Ok(()),
        };
        let (first, second) = join(sync(&touched[0]), sync(&touched[1])).await;
        first.and(second)
    }
}

/// The state around a change that has just been made.
pub(super) fn wcc(before: &Stat, object: &Object) -> Wcc {
    Wcc {
        before: Some(Before::from(&before.attr())),
        after: object.stat().ok().map(|stat| stat.attr()),
    }
}

impl From<&Child> for Node {
    fn from(child: &Child) -> Self {
        Self { handle: child.handle, attr: child.stat.attr() }
    }
}
