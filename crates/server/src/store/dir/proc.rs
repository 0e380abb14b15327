//! This process's own descriptors as paths (`/proc/self/fd`): the only way to do to an O_PATH
//! descriptor what needs an open file, without naming the file again and risking to meet another.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use super::acting::Acting;
use super::beneath::Component;

/// `/proc/self/fd`, opened once.
pub(super) struct ProcFds {
    dir: OwnedFd,
    acting: Acting,
}

impl ProcFds {
    pub(super) fn open(acting: Acting) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(c"/proc/self/fd", flags, Mode::empty())?;
        Ok(Self { dir, acting })
    }

    /// Opens the same file again, with the server's rights: who may use the descriptor is checked
    /// at each use.
    pub(super) fn reopen(&self, fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.acting.as_server(|| self.reopen_as_caller(fd, flags))
    }

    /// The same with the rights that this thread has now.
    pub(super) fn reopen_as_caller(
        &self,
        fd: BorrowedFd<'_>,
        flags: OFlags,
    ) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        rustix::fs::openat(&self.dir, name(fd), flags, Mode::empty())
    }

    /// `OPNOTSUPP` for a symbolic link.
    pub(super) fn set_mode(&self, fd: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
        rustix::fs::chmodat(&self.dir, name(fd), mode, AtFlags::empty())
    }

    pub(super) fn set_times(&self, fd: BorrowedFd<'_>, times: &Timestamps) -> Result<(), Errno> {
        rustix::fs::utimensat(&self.dir, name(fd), times, AtFlags::empty())
    }

    /// Whether this thread's ids may; for kernels without [`super::sys::may_access`].
    pub(super) fn may(&self, fd: BorrowedFd<'_>, access: Access) -> Result<(), Errno> {
        rustix::fs::accessat(&self.dir, name(fd), access, AtFlags::EACCESS)
    }

    /// Whether a directory says which rights what is made in it has.
    pub(super) fn has_default_acl(fd: BorrowedFd<'_>) -> bool {
        // No descriptor is good for it that was opened to be a path alone.
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        rustix::fs::getxattr(path, c"system.posix_acl_default", &mut [0_u8; 0]).is_ok()
    }

    /// Whether a file has an attribute, seen with the server's rights.
    pub(super) fn has_attribute(&self, fd: BorrowedFd<'_>, attribute: &str) -> bool {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let read = || rustix::fs::getxattr(&path, attribute, &mut [0_u8; 0]);
        self.acting.as_server(read).is_ok()
    }

    /// Gives the file one more name.
    pub(super) fn link(
        &self,
        fd: BorrowedFd<'_>,
        dir: BorrowedFd<'_>,
        as_name: Component<'_>,
    ) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(&self.dir, name(fd), dir, as_name.as_bytes(), flags)
    }
}

fn name(fd: BorrowedFd<'_>) -> rustix::path::DecInt {
    rustix::path::DecInt::from_fd(fd)
}
