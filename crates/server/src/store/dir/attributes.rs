//! Looking at and changing attributes: GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO.
//!
//! | operation | system calls with a warm cache                              |
//! |-----------|-------------------------------------------------------------|
//! | attr      | statx                                                       |
//! | access    | statx; the first time faccessat2 (up to three when something is denied) |
//! | set_attr  | statx, one per attribute, statx; then fsync, or a record in the write log |

use std::sync::Arc;

use log::reply::Effect;
use rustix::fs::{Access as May, AtFlags, Gid, Mode, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::acting::Acting;
use super::errno::status;
use super::exclusive;
use super::objects::Object;
use super::stat::Stat;
use super::tree::{Tree, wcc};
use super::write_log::Ticket;
use crate::replies::Outcome;
use crate::store::{Changed, Looked, Properties, Space};
use crate::types::{Access, Attr, Caller, FileKind, Handle, SetAttr, SetTime, Status, Time};

impl Tree {
    pub(super) fn attr(&self, handle: &Handle) -> Result<Attr, Status> {
        Ok(self.object(handle)?.stat()?.attr())
    }

    /// Runs `operation` on an object and gives its attributes beside the result.
    pub(super) fn look<T>(
        &self,
        handle: &Handle,
        operation: impl FnOnce(&Object, &Stat) -> Result<T, Status>,
    ) -> Looked<T> {
        let looked = self.object(handle).and_then(|object| {
            let stat = object.stat()?;
            Ok((object, stat))
        });
        match looked {
            Ok((object, stat)) => {
                Looked { attr: Some(stat.attr()), result: operation(&object, &stat) }
            }
            Err(status) => Looked::failed(status),
        }
    }

    /// By the kernel's rules alone: what READ and WRITE let through beyond them is not shown.
    pub(super) fn access(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
        wanted: Access,
    ) -> Result<Access, Status> {
        self.acting.act_as(caller)?;
        let rights = match object.kind {
            FileKind::Directory => DIRECTORY_RIGHTS,
            _ => FILE_RIGHTS,
        };
        let requested: Vec<_> = rights.iter().filter(|(bit, _)| wanted.0 & bit != 0).collect();
        let all = requested.iter().fold(May::EXISTS, |all, (_, may)| all | *may);
        let granted = |needed| match self.may(caller, object, stat, needed) {
            Err(Status::ReadOnly) => Ok(false),
            answer => answer,
        };
        // Mostly everything is allowed, and one question answers all.
        let everything = granted(all)?;
        let mut bits = 0;
        for (bit, may) in requested {
            if everything || granted(*may)? {
                bits |= bit;
            }
        }
        Ok(Access(bits))
    }

    pub(super) fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: &SetAttr,
        guard: Option<Time>,
    ) -> Changed<(Arc<Object>, Option<Ticket>)> {
        let object = match self.object(handle) {
            Ok(object) => object,
            Err(status) => return Changed::failed(status),
        };
        let _order = object.order.lock();
        let before = match object.stat() {
            Ok(stat) => stat,
            Err(status) => return Changed::failed(status),
        };
        let changes = &exclusive::settled(&before, changes);
        let guarded = guard.is_none_or(|time| time == before.attr().changed);
        let result = match guarded {
            true => self
                .part(caller, &object, &before)
                .and_then(|()| self.acting.act_as(caller))
                .and_then(|()| self.apply(caller, &object, changes)),
            false => Err(Status::NotSync),
        };
        let wcc = wcc(&before, &object);
        let ticket = match (&self.log, &wcc.after, &result) {
            (Some(log), Some(after), Ok(())) => {
                let reply = log.encode_reply(handle, Effect::Logged, &Outcome::Changed(&wcc));
                log.submit_attributes(&object, changes, (&before, after), reply)
            }
            _ => None,
        };
        Changed { wcc, result: result.map(|()| (Arc::clone(&object), ticket)) }
    }

    /// A file that may part does so before an attribute is set: that of one name would change in
    /// the place of another's. Nothing is done for who may not set any.
    fn part(&self, caller: &Caller, object: &Object, stat: &Stat) -> Result<(), Status> {
        let may = self.acting == Acting::Process || [0, stat.uid()].contains(&caller.uid);
        if object.may_part && object.kind == FileKind::Regular && may {
            self.with_room(|| object.writing(&self.proc).map(drop))?;
        }
        Ok(())
    }

    /// In the order of the kernel's own server: the size first, because a truncation sets times
    /// and takes away set-id bits, the owner before the mode for the same reason, times last.
    pub(super) fn apply(
        &self,
        caller: &Caller,
        object: &Object,
        changes: &SetAttr,
    ) -> Result<(), Status> {
        if let Some(size) = changes.size {
            self.set_size(caller, object, size)?;
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            set_owner(object, changes.uid, changes.gid)?;
        }
        if let Some(mode) = changes.mode {
            self.set_mode(object, mode)?;
        }
        match (changes.accessed, changes.modified) {
            (SetTime::Keep, SetTime::Keep) => Ok(()),
            // ftruncate(2) has done it. For one of the two times, only the owner may;
            // Linux asks so for open(2) with O_TRUNC, which a group may.
            (SetTime::Keep, SetTime::ToServer) if changes.size.is_some() => Ok(()),
            (accessed, modified) => self.set_times(object, accessed, modified),
        }
    }

    fn set_size(&self, caller: &Caller, object: &Object, size: u64) -> Result<(), Status> {
        match object.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(Status::IsDirectory),
            _ => return Err(Status::Invalid),
        }
        if i64::try_from(size).is_err() {
            return Err(Status::TooLarge);
        }
        self.check_change(caller, object, &object.stat()?)?;
        object.unstable.lock().spoil();
        let fd = self.with_room(|| object.writing(&self.proc))?;
        rustix::fs::ftruncate(fd, size).map_err(status)
    }

    pub(super) fn set_mode(&self, object: &Object, mode: u32) -> Result<(), Status> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        match object.opened() {
            Some(fd) => rustix::fs::fchmod(fd, mode),
            None => self.proc.set_mode(object.path(), mode),
        }
        .map_err(status)
    }

    fn set_times(
        &self,
        object: &Object,
        accessed: SetTime,
        modified: SetTime,
    ) -> Result<(), Status> {
        let times =
            Timestamps { last_access: timespec(accessed)?, last_modification: timespec(modified)? };
        let path = object.path();
        match rustix::fs::utimensat(path, c"", &times, AtFlags::EMPTY_PATH) {
            // Before Linux 5.8; there a symbolic link's times cannot be set.
            Err(Errno::INVAL | Errno::NOENT) if object.kind != FileKind::Symlink => {
                self.proc.set_times(path, &times)
            }
            outcome => outcome,
        }
        .map_err(status)
    }

    pub(super) fn space(&self) -> Result<Space, Status> {
        let fs = rustix::fs::fstatvfs(self.root.path()).map_err(status)?;
        let bytes = |blocks: u64| blocks.saturating_mul(fs.f_frsize);
        Ok(Space {
            bytes_total: bytes(fs.f_blocks),
            bytes_free: bytes(fs.f_bfree),
            bytes_available: bytes(fs.f_bavail),
            files_total: fs.f_files,
            files_free: fs.f_ffree,
            files_available: fs.f_favail,
        })
    }

    pub(super) fn properties(&self) -> Result<Properties, Status> {
        let fs = rustix::fs::fstatvfs(self.root.path()).map_err(status)?;
        let (file_size_max, links_max) = self.file_system.limits(fs.f_bsize);
        Ok(Properties {
            file_size_max,
            time_resolution: self.time_resolution()?,
            hard_links: true,
            symlinks: true,
            links_max,
            name_bytes_max: u32::try_from(fs.f_namemax).unwrap_or(255),
            chown_restricted: true,
        })
    }

    /// A file system with small inodes has no place for parts of a second, nor for when a file was
    /// made. A root that mkfs has made has whole seconds on others, too.
    fn time_resolution(&self) -> Result<Time, Status> {
        let Attr { changed, made, .. } = self.root.stat()?.attr();
        Ok(match changed.nanos == 0 && made.is_none() {
            true => Time { secs: 1, nanos: 0 },
            false => Time { secs: 0, nanos: 1 },
        })
    }
}

/// What each bit of RFC 1813 section 3.3.4 needs; the others mean nothing for a file...
const FILE_RIGHTS: &[(u32, May)] = &[
    (Access::READ, May::READ_OK),
    (Access::MODIFY, May::WRITE_OK),
    (Access::EXTEND, May::WRITE_OK),
    (Access::EXECUTE, May::EXEC_OK),
];

/// ...or for a directory, whose entries change only for those who may pass through it.
const DIRECTORY_RIGHTS: &[(u32, May)] = &[
    (Access::READ, May::READ_OK),
    (Access::LOOKUP, May::EXEC_OK),
    (Access::MODIFY, May::WRITE_OK.union(May::EXEC_OK)),
    (Access::EXTEND, May::WRITE_OK.union(May::EXEC_OK)),
    (Access::DELETE, May::WRITE_OK.union(May::EXEC_OK)),
];

fn set_owner(object: &Object, uid: Option<u32>, gid: Option<u32>) -> Result<(), Status> {
    // The kernel takes the highest number for "keep".
    if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
        return Err(Status::Invalid);
    }
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    rustix::fs::chownat(object.path(), c"", uid, gid, flags).map_err(status)
}

fn timespec(time: SetTime) -> Result<Timespec, Status> {
    let (tv_sec, tv_nsec) = match time {
        SetTime::Keep => (0, rustix::fs::UTIME_OMIT),
        SetTime::ToServer => (0, rustix::fs::UTIME_NOW),
        SetTime::To(time) if time.nanos < 1_000_000_000 => (time.secs, i64::from(time.nanos)),
        SetTime::To(_) => return Err(Status::Invalid),
    };
    Ok(Timespec { tv_sec, tv_nsec })
}
