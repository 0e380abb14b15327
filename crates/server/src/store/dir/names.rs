//! Names: LOOKUP, READLINK, and all that makes, removes and moves them.
//!
//! | operation  | system calls with a warm cache, without the sync               |
//! |------------|----------------------------------------------------------------|
//! | lookup     | statx x 2; the first time openat2, statx and a handle more        |
//! | create     | openat, statx, handle, a few for attributes, around it statx x 2 |
//! | remove     | statx, unlinkat, close, around it statx x 2                    |
//!
//! RFC 1813 wants these to be on stable storage when the reply is sent (section 4.8): with
//! [`MetadataSync::Always`](super::MetadataSync) each waits for an fsync of the directory, and of
//! the new file where its attributes were set after it was made. Callers who change the same
//! directory at the same time share that fsync.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use log::reply::FileId;
use rustix::fs::{Access as May, AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::acting::Acting;
use super::beneath::Component;
use super::errno::status;
use super::exclusive;
use super::objects::Object;
use super::proc::ProcFds;
use super::stat::Stat;
use super::tree::{Child, Touched, Tree, wcc};
use super::write_log::file_id;
use crate::store::{Changed, Linked, Looked, Node, Renamed};
use crate::types::{
    Caller, CreateHow, DIRECTORY_MODE_UNSTATED, FileKind, Handle, MODE_UNSTATED, SetAttr, Special,
    Status, Time,
};

/// Removed files from this size on are let go of on a thread: freeing their blocks takes time.
const LARGE_FILE_BYTES: u64 = 1 << 20;

/// Linux has 12 bits for the first number of a device, and 20 for the second; mknod(2) takes others
/// for those that their last bits are.
const MAJOR_MAX: u32 = (1 << 12) - 1;
const MINOR_MAX: u32 = (1 << 20) - 1;

/// What a CREATE has done.
pub(super) enum Created {
    /// The name is this file's, whether it was before or not.
    Named(Node),
    /// The file was there, and has got a size.
    Sized(Node),
}

impl Created {
    pub(super) fn node(self) -> Node {
        let (Self::Named(node) | Self::Sized(node)) = self;
        node
    }
}

impl Tree {
    /// Not of `..`, which is [`Tree::lookup_above`].
    pub(super) fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.look(dir, |dir, stat| {
            if dir.kind != FileKind::Directory {
                return Err(Status::NotDirectory);
            }
            self.acting.act_as(caller)?;
            let child = match name {
                b"." => {
                    let may = self.may(caller, dir, stat, May::EXEC_OK)?;
                    let node = Node { handle: dir.handle, attr: stat.attr() };
                    return may.then_some(node).ok_or(Status::Access);
                }
                _ => {
                    let name = Component::new(name)?;
                    if let Some(node) = self.met(dir, name)? {
                        return Ok(node);
                    }
                    self.child(dir, name)?
                }
            };
            let node = Node::from(&child);
            // The next call is likely about this file.
            self.keep(child.handle, &child.stat, child.fd);
            Ok(node)
        })
    }

    pub(super) fn read_link(&self, object: &Object) -> Result<Bytes, Status> {
        if object.kind != FileKind::Symlink {
            return Err(Status::Invalid);
        }
        let target = rustix::fs::readlinkat(object.path(), c"", Vec::new()).map_err(status)?;
        Ok(Bytes::from(target.into_bytes()))
    }

    pub(super) fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: &CreateHow,
    ) -> Changed<(Created, Touched)> {
        self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            let attrs = match how {
                CreateHow::Unchecked(attrs) | CreateHow::Guarded(attrs) => *attrs,
                CreateHow::Exclusive(verifier) => {
                    exclusive::attrs(*verifier, ProcFds::withheld_by_acl(dir.path()))
                }
            };
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW;
            let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(attrs.mode.unwrap_or(MODE_UNSTATED) & 0o7777);
            let open = || match rustix::fs::openat(dir.path(), name.as_bytes(), flags, mode) {
                Ok(fd) => Ok(Some(fd)),
                Err(Errno::EXIST) => Ok(None),
                Err(errno) => Err(status(errno)),
            };
            let named = |(node, touched)| (Created::Named(node), touched);
            match self.with_room(open)? {
                Some(fd) => self.made_file(caller, dir, name, fd, &attrs).map(named),
                None => self.found(caller, dir, name, how),
            }
        })
    }

    /// CREATE of a name that is there already.
    fn found(
        &self,
        caller: &Caller,
        dir: &Arc<Object>,
        name: Component<'_>,
        how: &CreateHow,
    ) -> Result<(Created, Touched), Status> {
        let child = self.child(dir, name)?;
        if child.stat.kind() != FileKind::Regular {
            return Err(Status::Exists);
        }
        match how {
            CreateHow::Unchecked(SetAttr { size: Some(size), .. }) => {
                let object = self.keep(child.handle, &child.stat, child.fd);
                let size = SetAttr { size: Some(*size), ..SetAttr::default() };
                // Of files none is held when one of a directory is requested.
                let _order = object.order.lock();
                self.apply(caller, &object, &size)?;
                let (node, touched) = node_and(&object, dir)?;
                Ok((Created::Sized(node), touched))
            }
            CreateHow::Unchecked(_) => {
                let object = self.keep(child.handle, &child.stat, child.fd);
                let (node, touched) = node_and(&object, dir)?;
                Ok((Created::Named(node), touched))
            }
            CreateHow::Exclusive(verifier)
                if exclusive::is_made_with(&child.stat, *verifier)
                    && self.may_have_made(caller, &child.stat) =>
            {
                let object = self.keep(child.handle, &child.stat, child.fd);
                // The first attempt may not have come as far as its sync.
                let (node, touched) = node_and(&object, dir)?;
                Ok((Created::Named(node), touched))
            }
            CreateHow::Guarded(_) | CreateHow::Exclusive(_) => Err(Status::Exists),
        }
    }

    /// Whose file it is. Verifiers can be guessed, and anybody gives his own file such times: what
    /// somebody else has put there is not what an exclusive CREATE has made.
    fn may_have_made(&self, caller: &Caller, stat: &Stat) -> bool {
        self.acting == Acting::Process || stat.uid() == caller.uid
    }

    pub(super) fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: &SetAttr,
    ) -> Changed<(Node, Touched)> {
        self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            let mode = Mode::from_raw_mode(attrs.mode.unwrap_or(DIRECTORY_MODE_UNSTATED) & 0o7777);
            let spare = self.spare_descriptor(dir)?;
            rustix::fs::mkdirat(dir.path(), name.as_bytes(), mode).map_err(status)?;
            drop(spare);
            self.made_node(caller, dir, name, FileKind::Directory, attrs)
        })
    }

    pub(super) fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: &SetAttr,
    ) -> Changed<(Node, Touched)> {
        self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            let spare = self.spare_descriptor(dir)?;
            rustix::fs::symlinkat(target, dir.path(), name.as_bytes()).map_err(status)?;
            drop(spare);
            // Linux knows no mode of a symbolic link; clients send one all the same.
            let attrs = SetAttr { mode: None, size: None, ..*attrs };
            self.made_node(caller, dir, name, FileKind::Symlink, &attrs)
        })
    }

    pub(super) fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: &SetAttr,
    ) -> Changed<(Node, Touched)> {
        self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            let (file_type, kind, (major, minor)) = match what {
                Special::BlockDevice { major, minor } => {
                    (FileType::BlockDevice, FileKind::BlockDevice, (major, minor))
                }
                Special::CharDevice { major, minor } => {
                    (FileType::CharacterDevice, FileKind::CharDevice, (major, minor))
                }
                Special::Fifo => (FileType::Fifo, FileKind::Fifo, (0, 0)),
                Special::Socket => (FileType::Socket, FileKind::Socket, (0, 0)),
            };
            if major > MAJOR_MAX || minor > MINOR_MAX {
                return Err(Status::Invalid);
            }
            let device = rustix::fs::makedev(major, minor);
            let mode = Mode::from_raw_mode(attrs.mode.unwrap_or(MODE_UNSTATED) & 0o7777);
            let name_bytes = name.as_bytes();
            let spare = self.spare_descriptor(dir)?;
            rustix::fs::mknodat(dir.path(), name_bytes, file_type, mode, device).map_err(status)?;
            drop(spare);
            let attrs = SetAttr { size: None, ..*attrs };
            self.made_node(caller, dir, name, kind, &attrs)
        })
    }

    /// What is made can be opened afterwards only if a descriptor is left: without one nothing is
    /// made, and the call can be made again.
    fn spare_descriptor(&self, dir: &Object) -> Result<OwnedFd, Status> {
        self.with_room(|| rustix::io::fcntl_dupfd_cloexec(dir.path(), 0).map_err(status))
    }

    /// The file that was just made and is open at `fd` for reading and writing. It is not looked
    /// up by its name again: another process may have put something else there.
    fn made_file(
        &self,
        caller: &Caller,
        dir: &Arc<Object>,
        name: Component<'_>,
        fd: OwnedFd,
        attrs: &SetAttr,
    ) -> Result<(Node, Touched), Status> {
        let stat = Stat::of(&fd).map_err(status)?;
        let handle = self.handles.name_new(&dir.handle, name, fd.as_fd(), &stat)?;
        let object = self.keep_object(Object::made(handle, &stat, fd));
        self.made(caller, dir, name, &object, &stat, attrs)
    }

    /// What was just made under `name` and can only be found by it. Whoever else may write to the
    /// directory may have put something there since, which gets no attributes of ours.
    pub(super) fn made_node(
        &self,
        caller: &Caller,
        dir: &Arc<Object>,
        name: Component<'_>,
        kind: FileKind,
        attrs: &SetAttr,
    ) -> Result<(Node, Touched), Status> {
        let fd = self.open_child(dir, name)?;
        let stat = Stat::of(&fd).map_err(status)?;
        let is_complete = missing_attrs(dir, &stat, attrs) == SetAttr::default();
        if stat.kind() != kind || !is_complete && !self.is_new(dir, &fd, &stat)? {
            return Err(Status::Exists);
        }
        let handle = self.handles.name_new(&dir.handle, name, fd.as_fd(), &stat)?;
        let object = self.keep(handle, &stat, fd);
        self.made(caller, dir, name, &object, &stat, attrs)
    }

    /// Whether what is open at `fd` may have been made by the last change of `dir`. By the file
    /// system's own clock, as far as it keeps when files were made.
    fn is_new(&self, dir: &Object, fd: &OwnedFd, stat: &Stat) -> Result<bool, Status> {
        /// As coarse as such times are, and as long as a server is held up; guess.
        const SLACK_SECS: i64 = 1;
        let changed = dir.stat()?.attr().modified;
        let is_late = |made: Time| Time { secs: made.secs + SLACK_SECS, ..made } >= changed;
        if !stat.attr().made.is_none_or(is_late) {
            return Ok(false);
        }
        match stat.kind() {
            FileKind::Directory => Ok(stat.links() <= 2 && self.is_empty(fd)?),
            _ => Ok(stat.links() <= 1),
        }
    }

    fn is_empty(&self, dir: &OwnedFd) -> Result<bool, Status> {
        let fd = self.proc.reopen(dir.as_fd(), OFlags::DIRECTORY).map_err(status)?;
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut entries = RawDir::new(fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(status)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finishes something new: the attributes that making it could not set. If they cannot be set
    /// it goes again, so that a failed call leaves nothing behind.
    fn made(
        &self,
        caller: &Caller,
        dir: &Arc<Object>,
        name: Component<'_>,
        object: &Arc<Object>,
        stat: &Stat,
        attrs: &SetAttr,
    ) -> Result<(Node, Touched), Status> {
        let missing = missing_attrs(dir, stat, attrs);
        if missing == SetAttr::default() {
            let node = Node { handle: object.handle, attr: stat.attr() };
            return Ok((node, Touched([Some(Arc::clone(dir)), None])));
        }
        if let Err(status) = self.apply(caller, object, &missing) {
            let flags = match object.kind {
                FileKind::Directory => AtFlags::REMOVEDIR,
                _ => AtFlags::empty(),
            };
            if rustix::fs::unlinkat(dir.path(), name.as_bytes(), flags).is_ok() {
                self.handles.unlinked(&dir.handle, name, &object.handle, true);
                self.objects.forget(&object.handle);
            }
            return Err(status);
        }
        node_and(object, dir)
    }

    pub(super) fn remove(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> Changed<(FileId, Touched)> {
        self.unlink(caller, dir, name, AtFlags::empty())
    }

    pub(super) fn remove_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> Changed<(FileId, Touched)> {
        self.unlink(caller, dir, name, AtFlags::REMOVEDIR)
    }

    fn unlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        flags: AtFlags,
    ) -> Changed<(FileId, Touched)> {
        self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            let unlink = || {
                let removed = rustix::fs::unlinkat(dir.path(), name.as_bytes(), flags);
                removed.map_err(|error| of_directory_that_may_be_full(status(error)))
            };
            // Mostly the handle is of no interest, only whether the file is in the cache.
            let by_child = self.handles.follow_names() || !self.file_system.has_own_numbers();
            let plain = if by_child {
                None
            } else {
                let stat = Stat::named(dir.path(), name).map_err(status)?;
                stat.is_no_mount_root().then_some(stat)
            };
            let file = if let Some(stat) = plain {
                unlink()?;
                self.forget_unlinked(&stat);
                file_id(&stat.attr())
            } else {
                let child = self.child(dir, name)?;
                self.close_before(&child.handle);
                // Whoever opens the handle meanwhile would have the file searched for.
                let _moving = self.handles.moving();
                unlink()?;
                let file = file_id(&child.stat.attr());
                self.let_go(dir, name, child);
                file
            };
            Ok((file, Touched([Some(Arc::clone(dir)), None])))
        })
    }

    /// A name of the file was removed, before which `stat` was taken. Its space is given back when
    /// its last descriptor is closed.
    fn forget_unlinked(&self, stat: &Stat) {
        let last = stat.kind() == FileKind::Directory || stat.links() <= 1;
        if let Some(object) = self.recognise(stat).filter(|_| last) {
            let descriptors = self.objects.forget(&object.handle);
            if stat.size() >= LARGE_FILE_BYTES {
                self.syncer.drop_aside((object, descriptors));
            }
        }
    }

    /// A program behind FUSE hides what is removed while it is open under another name in the same
    /// directory, which then is not empty. What nobody uses is closed first, unless it waits for a
    /// sync.
    fn close_before(&self, removed: &Handle) {
        if self.file_system.is_fuse() && !self.objects.is_unsynced(removed) {
            self.objects.forget(removed);
        }
    }

    /// `name` does not name `child` any more.
    fn let_go(&self, dir: &Object, name: Component<'_>, child: Child) {
        let deleted = Stat::of(&child.fd).is_ok_and(|stat| stat.is_deleted());
        self.handles.unlinked(&dir.handle, name, &child.handle, deleted);
        if !deleted {
            return;
        }
        let object = self.objects.forget(&child.handle);
        if child.stat.size() >= LARGE_FILE_BYTES {
            self.syncer.drop_aside((child.fd, object));
        }
    }

    pub(super) fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> (Renamed, Option<FileId>, Touched) {
        let dirs = self.directory(from_dir).and_then(|from| Ok((from, self.directory(to_dir)?)));
        let (from, to) = match dirs {
            Ok(dirs) => dirs,
            Err(status) => return (Renamed::failed(status), None, Touched::default()),
        };
        // Both orders are held, always in the same sequence, a single one once.
        let same = Arc::ptr_eq(&from, &to);
        let (low, high) =
            if Arc::as_ptr(&from) <= Arc::as_ptr(&to) { (&from, &to) } else { (&to, &from) };
        let _low = low.order.lock();
        let _high = (!same).then(|| high.order.lock());
        let before = from.stat().and_then(|stat| Ok((stat, to.stat()?)));
        let (from_before, to_before) = match before {
            Ok(before) => before,
            Err(status) => return (Renamed::failed(status), None, Touched::default()),
        };
        let result = self
            .acting
            .act_as(caller)
            .and_then(|()| self.rename_entry(&from, from_name, &to, to_name));
        let (file, result) = (result.ok(), result.map(drop));
        let renamed = Renamed { from: wcc(&from_before, &from), to: wcc(&to_before, &to), result };
        let other = (!same).then(|| Arc::clone(&to));
        drop((_high, _low));
        (renamed, file, Touched([Some(from), other]))
    }

    fn rename_entry(
        &self,
        from: &Object,
        from_name: &[u8],
        to: &Object,
        to_name: &[u8],
    ) -> Result<FileId, Status> {
        let (from_name, to_name) = (Component::new(from_name)?, Component::new(to_name)?);
        let source = self.child(from, from_name)?;
        let target = match self.child(to, to_name) {
            Ok(target) => Some(target),
            Err(Status::NoEntry) => None,
            Err(status) => return Err(status),
        };
        let file = file_id(&source.stat.attr());
        if let Some(target) = target.as_ref().filter(|target| target.handle != source.handle) {
            self.close_before(&target.handle);
        }
        let _moving = self.handles.moving();
        rustix::fs::renameat(from.path(), from_name.as_bytes(), to.path(), to_name.as_bytes())
            .map_err(|error| of_directory_that_may_be_full(status(error)))?;
        match target {
            // Two names of one file: rename(2) leaves both, and so RFC 1813 wants it.
            Some(target) if target.handle == source.handle => return Ok(file),
            Some(target) => self.let_go(to, to_name, target),
            None => {}
        }
        // The new place first, so that the file is never without one.
        self.handles.name(&to.handle, to_name, source.fd.as_fd(), &source.stat)?;
        self.handles.unlinked(&from.handle, from_name, &source.handle, false);
        Ok(file)
    }

    pub(super) fn link(
        &self,
        caller: &Caller,
        handle: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> (Linked, Touched) {
        let object = match self.object(handle) {
            Ok(object) => object,
            Err(status) => return (Linked::failed(status), Touched::default()),
        };
        let change = self.change(caller, dir, |dir| {
            let name = Component::new(name)?;
            if object.kind == FileKind::Directory {
                return Err(Status::IsDirectory);
            }
            let stat = object.stat()?;
            self.proc.link(object.path(), dir.path(), name).map_err(status)?;
            self.handles.name(&dir.handle, name, object.path(), &stat)?;
            Ok(((), Touched([Some(Arc::clone(dir)), None])))
        });
        let (result, touched) = match change.result {
            Ok(((), touched)) => (Ok(()), touched),
            Err(status) => (Err(status), Touched::default()),
        };
        let linked =
            Linked { attr: object.stat().ok().map(|stat| stat.attr()), dir: change.wcc, result };
        (linked, touched)
    }
}

/// Of a rename or a removal: a directory that has entries is `EEXIST` to XFS, and to POSIX either.
fn of_directory_that_may_be_full(status: Status) -> Status {
    if status == Status::Exists { Status::NotEmpty } else { status }
}

/// The node as it is now; it and the directory are to be made stable.
fn node_and(object: &Arc<Object>, dir: &Arc<Object>) -> Result<(Node, Touched), Status> {
    let node = Node { handle: object.handle, attr: object.stat()?.attr() };
    Ok((node, Touched([Some(Arc::clone(object)), Some(Arc::clone(dir))])))
}

/// What is still to be set on something new. Its mode went through the process's umask, unless the
/// directory has a default ACL, which decides of rights; and a directory may have got the
/// set-group-id bit from the one above, which it keeps. chown(2) and truncate(2) take set-id bits
/// from what is no directory: there the mode is set once more, behind them.
fn missing_attrs(dir: &Object, stat: &Stat, wanted: &SetAttr) -> SetAttr {
    let inherited = match stat.kind() {
        FileKind::Directory => stat.mode() & 0o2000,
        _ => 0,
    };
    let (had, rights) = (stat.mode(), 0o777);
    let mode = wanted.mode.map(|mode| mode & 0o7777 | inherited).map(|mode| {
        match (mode ^ had) & rights != 0 && ProcFds::has_default_acl(dir.path()) {
            true => mode & !rights | had & rights,
            false => mode,
        }
    });
    let attr = stat.attr();
    let uid = wanted.uid.filter(|&uid| uid != attr.uid);
    let gid = wanted.gid.filter(|&gid| gid != attr.gid);
    let size = wanted.size.filter(|&size| size != attr.size);
    let takes_set_id =
        stat.kind() != FileKind::Directory && (uid.or(gid).is_some() || size.is_some());
    SetAttr {
        mode: mode.filter(|&mode| mode != had || takes_set_id && mode & 0o6000 != 0),
        uid,
        gid,
        size,
        accessed: wanted.accessed,
        modified: wanted.modified,
    }
}
