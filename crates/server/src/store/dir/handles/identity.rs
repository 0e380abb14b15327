//! Who a file is, so that a handle that says so never means another one, and the same after a
//! restart of the machine.
//!
//! Device, inode and time of birth do for most file systems, with these exceptions:
//!
//! - Some keep no time of birth (ext4 with inodes of 128 bytes, many FUSE file systems): a file
//!   that gets the inode of a deleted one would be taken for it. On overlayfs the time is that of
//!   the layer, and another one once the file was copied up. There the kernel's handle of the file
//!   stands in its place, which has the inode's generation; nobody needs privilege to ask for it.
//!   On FUSE, too: a program may pass the numbers and times of several file systems on, and the
//!   kernel's handle has the node that the program has made of the file.
//! - The device of btrfs, overlayfs and device mapper is a number that is given anew at each mount.
//!   That of the root's file system is left out, and what survives a restart is stored under the
//!   file system's own id. A subvolume of btrfs inside has a device of its own: there what statfs
//!   calls it stands in its place, which is made of the file system's UUID and its number.
//!
//! Where there is neither a time of birth nor a generation, no such handles are given out.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::siphash::siphash;
use crate::store::dir::errno::status;
use crate::store::dir::file_system::FileSystem;
use crate::store::dir::stat::{Identity, Stat};
use crate::store::dir::sys;
use crate::types::Status;

/// In the place of nanoseconds, which are fewer: what stands before them is a generation. A single
/// byte that is not 0, so that handles of version 2 have room for it.
const GENERATION: u32 = 1 << 31;

/// It tells files apart that nobody has chosen.
const KEY: [u8; 16] = [0; 16];

/// How files of one file system are identified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identities {
    /// What the kernel calls the root's file system now, and what it is called wherever it lies.
    device: u64,
    pub(super) file_system: u64,
    has_births: bool,
    has_subvolumes: bool,
}

impl Identities {
    /// For that of `root`. `None`: its files cannot be distinguished from later ones with the same
    /// inode.
    pub(super) fn of(root: &OwnedFd, file_system: &FileSystem) -> Result<Option<Self>, Errno> {
        let stat = Stat::of(root)?;
        let has_generations = generation(root.as_fd()).is_ok();
        let births_last = !file_system.is_overlay() && !file_system.is_fuse();
        let this = Self {
            device: stat.device(),
            file_system: file_system_id(root)?.unwrap_or_else(|| stat.device()),
            has_births: stat.has_birth() && (births_last || !has_generations),
            has_subvolumes: file_system.is_btrfs(),
        };
        Ok((this.has_births || has_generations).then_some(this))
    }

    /// As the kernel says it.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        Self { device: 0, file_system: 0, has_births: true, has_subvolumes: false }
    }

    /// The identity of the file open at `fd`.
    pub(super) fn identify(self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<Identity, Status> {
        let mut identity = stat.identity();
        if identity.device == self.device {
            identity.device = 0;
        } else if self.has_subvolumes {
            identity.device = rustix::fs::fstatvfs(fd).map_err(status)?.f_fsid;
        }
        if !self.has_births || !stat.has_birth() {
            identity.born_secs = generation(fd).map_err(status)?;
            identity.born_nanos = GENERATION;
        }
        Ok(identity)
    }
}

/// The kernel's handle of a file in short.
fn generation(fd: BorrowedFd<'_>) -> Result<i64, Errno> {
    let handle = match sys::name_to_handle(fd) {
        // What cannot be opened by a handle can still be distinguished from others by one (Linux
        // 6.5).
        Err(Errno::OPNOTSUPP) => sys::name_to_file_id(fd),
        named => named.map(|(handle, _)| handle),
    }?;
    let named = [&handle.tag.to_le_bytes(), &handle.bytes[..usize::from(handle.len)]].concat();
    Ok(siphash(&KEY, &named).cast_signed())
}

/// The id that lies on the disk, as far as it is known.
fn file_system_id(root: &OwnedFd) -> Result<Option<u64>, Errno> {
    if let Ok(uuid) = sys::file_system_uuid(root.as_fd()) {
        return Ok(Some(siphash(&KEY, &uuid)));
    }
    let id = rustix::fs::fstatvfs(root)?.f_fsid;
    Ok((id != 0).then_some(id))
}
