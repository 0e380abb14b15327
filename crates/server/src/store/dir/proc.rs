//! This process's own descriptors as paths (`/proc/self/fd`): the only way to do to an O_PATH
//! descriptor what needs an open file, without naming the file again and risking to meet another.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Mode, OFlags, Timestamps};
use rustix::io::Errno;

use super::acting::Acting;
use super::beneath::Component;

/// Bytes of an ACL of 64 entries, which are mostly enough, and of any: an attribute has no more
/// (xattr(7)).
const ACL_BYTES_OF_FEW: usize = 4 + 64 * 8;
const ACL_BYTES_MAX: usize = 64 << 10;

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

    /// The rights (0777) that the default ACL of a directory withholds from what is made in it; 0
    /// where there is none.
    pub(super) fn withheld_by_acl(fd: BorrowedFd<'_>) -> u32 {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let read =
            |buffer: &mut [u8]| rustix::fs::getxattr(&path, c"system.posix_acl_default", buffer);
        let mut few = [0; ACL_BYTES_OF_FEW];
        match read(&mut few) {
            Ok(len) => !granted(&few[..len]) & 0o777,
            Err(Errno::RANGE) => {
                let mut all = vec![0; ACL_BYTES_MAX];
                // Changed in this moment: what it gives to others is not known.
                read(&mut all).map_or(0o077, |len| !granted(&all[..len]) & 0o777)
            }
            Err(_) => 0,
        }
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

/// What the entries of an ACL let a mode have: of the owner, of the group or the mask that stands
/// for it, of others.
fn granted(acl: &[u8]) -> u32 {
    const USER_OBJ: u16 = 1;
    const GROUP_OBJ: u16 = 4;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;
    let (mut rights, mut mask) = ([0; 3], None);
    // Behind a version of four bytes: tag, rights, and an id of four bytes.
    for entry in acl.get(4..).unwrap_or_default().chunks_exact(8) {
        let may = u32::from(entry[2] & 7);
        match u16::from_le_bytes([entry[0], entry[1]]) {
            USER_OBJ => rights[0] = may,
            GROUP_OBJ => rights[1] = may,
            MASK => mask = Some(may),
            OTHER => rights[2] = may,
            _ => {}
        }
    }
    let [owner, group, others] = rights;
    owner << 6 | mask.unwrap_or(group) << 3 | others
}

fn name(fd: BorrowedFd<'_>) -> rustix::path::DecInt {
    rustix::path::DecInt::from_fd(fd)
}
