//! Handles that are the kernel's own: nothing is remembered, so they survive rename and restart.
//!
//! ```text
//!   'K' | file system's tag (1) | kernel handle (up to 38) | seal (8)
//! ```
//!
//! The kernel's handle holds inode and generation, so a recycled inode is another handle. It also
//! opens *any* file of the file system, in the export or not, and its bytes are easily guessed.
//! Hence the seal, a keyed hash: only handles that this store gave out, for files it met below
//! the root, are ever shown to the kernel.
//!
//! The key must outlive the process as the handles do. Unless the caller brings one, it is kept
//! with the files, in an extended attribute of the root that only privileged processes can see
//! (`trusted.nfskit.handle_key`), and made by the first start. Where that cannot be (a read-only
//! root, a file system without such attributes), the key is random and handles end with the
//! process, which [`Kernel::survives_restart`] says.
//!
//! A file that a local process moves out of the export stays open to those who have its handle.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::siphash::siphash;
use crate::store::dir::errno::stale_status;
use crate::store::dir::sys::{self, KERNEL_HANDLE_BYTES_MAX, KernelHandle};
use crate::types::{Handle, Status};

pub(super) const MARKER: u8 = b'K';
const SEAL_BYTES: usize = 8;
const KEY_ATTRIBUTE: &str = "trusted.nfskit.handle_key";

pub(in super::super) struct Kernel {
    key: [u8; 16],
    survives_restart: bool,
    mount: i32,
}

impl Kernel {
    /// Tries whether this process may open handles here, and finds the key.
    pub(super) fn probe(root: &OwnedFd, key: Option<[u8; 16]>) -> Result<Self, Errno> {
        let (handle, mount) = sys::name_to_handle(root.as_fd())?;
        sys::open_by_handle(root.as_fd(), &handle, OFlags::PATH | OFlags::CLOEXEC)?;
        let (key, survives_restart) = match key.map_or_else(|| kept_key(root), Ok) {
            Ok(key) => (key, true),
            Err(_) => (random_key()?, false),
        };
        Ok(Self { key, survives_restart, mount })
    }

    pub(super) fn survives_restart(&self) -> bool {
        self.survives_restart
    }

    pub(super) fn name(&self, fd: BorrowedFd<'_>) -> Result<Handle, Status> {
        let (kernel, mount) = sys::name_to_handle(fd).map_err(stale_status)?;
        if mount != self.mount {
            return Err(Status::Access);
        }
        let tag = u8::try_from(kernel.tag).map_err(|_| Status::ServerFault)?;
        let mut bytes = Vec::with_capacity(Handle::BYTES_MAX);
        bytes.extend([MARKER, tag]);
        bytes.extend_from_slice(&kernel.bytes[..usize::from(kernel.len)]);
        let seal = siphash(&self.key, &bytes);
        bytes.extend(seal.to_le_bytes());
        Handle::new(&bytes).ok_or(Status::ServerFault)
    }

    pub(super) fn open(&self, root: BorrowedFd<'_>, handle: &Handle) -> Result<OwnedFd, Status> {
        let kernel = self.unseal(handle.as_bytes())?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        sys::open_by_handle(root, &kernel, flags).map_err(stale_status)
    }

    /// A broken seal is `Stale`, not `BadHandle`: most likely the key is not the one it was.
    fn unseal(&self, bytes: &[u8]) -> Result<KernelHandle, Status> {
        let (named, seal) = bytes.split_last_chunk::<SEAL_BYTES>().ok_or(Status::BadHandle)?;
        let [_marker, tag, inner @ ..] = named else {
            return Err(Status::BadHandle);
        };
        if siphash(&self.key, named).to_le_bytes() != *seal {
            return Err(Status::Stale);
        }
        let mut own = [0; KERNEL_HANDLE_BYTES_MAX as usize];
        own.get_mut(..inner.len()).ok_or(Status::BadHandle)?.copy_from_slice(inner);
        Ok(KernelHandle {
            tag: i32::from(*tag),
            len: u8::try_from(inner.len()).map_err(|_| Status::BadHandle)?,
            bytes: own,
        })
    }
}

/// The key that lies with the files; made if there is none.
fn kept_key(root: &OwnedFd) -> Result<[u8; 16], Errno> {
    match read_key(root) {
        Err(Errno::NODATA) => {}
        found => return found,
    }
    match rustix::fs::fsetxattr(root, KEY_ATTRIBUTE, &random_key()?, XattrFlags::CREATE) {
        // Another process may have been first: what lies there now counts.
        Ok(()) | Err(Errno::EXIST) => read_key(root),
        Err(errno) => Err(errno),
    }
}

fn read_key(root: &OwnedFd) -> Result<[u8; 16], Errno> {
    let mut key = [0; 16];
    match rustix::fs::fgetxattr(root, KEY_ATTRIBUTE, &mut key)? {
        16 => Ok(key),
        _ => Err(Errno::INVAL),
    }
}

fn random_key() -> Result<[u8; 16], Errno> {
    let mut key = [0; 16];
    match rustix::rand::getrandom(&mut key, GetRandomFlags::empty())? {
        16 => Ok(key),
        _ => Err(Errno::AGAIN),
    }
}
