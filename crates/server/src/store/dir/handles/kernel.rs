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
//! The key must outlive the process as the handles do. Unless the caller brings one, it is stored
//! with the files, in an extended attribute of the root that only privileged processes can see
//! (`trusted.nfskit.handle_key`), and made by the first start. Where that cannot be (a read-only
//! root, a file system without such attributes, a process without CAP_SYS_ADMIN), it comes from a
//! file in the directory of what survives a restart. Where there is none, the key is random and
//! handles end with the process, which [`Kernel::survives_restart`] says.
//!
//! A copy of the root that brings its extended attributes along (`cp -a`, a snapshot) has the same
//! key. So the kernel's handle of the root goes into what seals: handles are good for one root.
//!
//! A file that a local process moves out of the export stays open to those who have its handle.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use rustix::fs::{OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::siphash::siphash;
use crate::small_file;
use crate::store::dir::beneath::Component;
use crate::store::dir::errno::{stale_status, status};
use crate::store::dir::file_system::FileSystem;
use crate::store::dir::sys::{self, KERNEL_HANDLE_BYTES_MAX, KernelHandle};
use crate::types::{Handle, Status};

pub(super) const MARKER: u8 = b'K';
const SEAL_BYTES: usize = 8;
pub(in crate::store::dir) const KEY_ATTRIBUTE: &str = "trusted.nfskit.handle_key";
/// In the state directory, where the attribute cannot be had.
const KEY_FILE: &str = "handle_key";

pub(in crate::store::dir) struct Kernel {
    key: [u8; 16],
    survives_restart: bool,
    mount: i32,
    /// Handles of this file system tell the inode.
    tell_inodes: bool,
}

impl Kernel {
    /// Tries whether this process may open handles here, and finds the key: one of its own, where
    /// what the kernel's handles mean does not last.
    pub(super) fn probe(
        root: &OwnedFd,
        key: Option<[u8; 16]>,
        state_dir: Option<&Path>,
        file_system: &FileSystem,
    ) -> Result<Self, Errno> {
        let (handle, mount) = sys::name_to_handle(root.as_fd())?;
        sys::open_by_handle(root.as_fd(), &handle, OFlags::PATH | OFlags::CLOEXEC)?;
        let lasting = file_system.has_lasting_identities();
        let (key, survives_restart) = match find_key(root, key, state_dir).ok().filter(|_| lasting)
        {
            Some(key) => (key_of_root(&key, &handle), true),
            None => (random_key()?, false),
        };
        // FUSE has a handle of the form of xfs with a number of its own in it.
        let tell_inodes = file_system.has_own_numbers()
            && inode_in(&handle) == Some(rustix::fs::fstat(root)?.st_ino);
        Ok(Self { key, survives_restart, mount, tell_inodes })
    }

    pub(super) fn survives_restart(&self) -> bool {
        self.survives_restart
    }

    pub(super) fn name(&self, fd: BorrowedFd<'_>) -> Result<Handle, Status> {
        let (kernel, mount) = sys::name_to_handle(fd).map_err(stale_status)?;
        if mount != self.mount {
            return Err(Status::Access);
        }
        self.seal(&kernel)
    }

    /// The handle of what is called `name` in `dir`, and its inode; `None` where the kernel's
    /// handle does not tell the inode, and of a mount point.
    pub(super) fn name_in(
        &self,
        dir: BorrowedFd<'_>,
        name: Component<'_>,
    ) -> Result<Option<(Handle, u64)>, Status> {
        if !self.tell_inodes {
            return Ok(None);
        }
        let (kernel, mount) = sys::name_to_handle_in(dir, name).map_err(status)?;
        let inode = inode_in(&kernel).filter(|_| mount == self.mount);
        inode.map(|inode| Ok((self.seal(&kernel)?, inode))).transpose()
    }

    fn seal(&self, kernel: &KernelHandle) -> Result<Handle, Status> {
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
        let kernel = kernel_handle(named).ok_or(Status::BadHandle)?;
        if siphash(&self.key, named).to_le_bytes() != *seal {
            return Err(Status::Stale);
        }
        Ok(kernel)
    }
}

/// What a handle of this kind names, without its seal, which a server's own records do not need.
pub(in crate::store::dir) fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (named, _) = bytes.split_last_chunk::<SEAL_BYTES>()?;
    named.first().is_some_and(|&marker| marker == MARKER).then_some(named)
}

/// The kernel's handle in it.
pub(in crate::store::dir) fn kernel_handle(named: &[u8]) -> Option<KernelHandle> {
    let [_marker, tag, inner @ ..] = named else {
        return None;
    };
    let mut own = [0; KERNEL_HANDLE_BYTES_MAX as usize];
    own.get_mut(..inner.len())?.copy_from_slice(inner);
    let len = u8::try_from(inner.len()).ok()?;
    Some(KernelHandle { tag: i32::from(*tag), len, bytes: own })
}

/// The inode that a kernel's handle is of, for file systems whose form is known.
fn inode_in(handle: &KernelHandle) -> Option<u64> {
    let bytes = handle.bytes.get(..usize::from(handle.len))?;
    let u32_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
    let u64_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
    match (handle.tag, handle.len) {
        // ext4, xfs with small inodes: inode, generation.
        (0x01, 8) => u32_at(0).map(u64::from),
        // tmpfs: generation, inode.
        (0x01, 12) => u64_at(4),
        // xfs: inode, generation. btrfs: inode, subvolume, generation.
        (0x81, 12) | (0x4d, 20) => u64_at(0),
        _ => None,
    }
}

/// The caller's key, or that which lies with the files, or that of the state directory.
fn find_key(
    root: &OwnedFd,
    key: Option<[u8; 16]>,
    state_dir: Option<&Path>,
) -> Result<[u8; 16], Errno> {
    if let Some(key) = key {
        return Ok(key);
    }
    stored_key(root).or_else(|errno| match state_dir {
        Some(dir) => key_beside(dir)
            .map_err(|error| error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)),
        None => Err(errno),
    })
}

/// What seals the handles of this root. One key may be that of several roots, from the state
/// directory or by a copy with its extended attributes; a handle of one export is none of another's
/// on the same file system nevertheless.
fn key_of_root(key: &[u8; 16], root: &KernelHandle) -> [u8; 16] {
    let named = [&root.tag.to_le_bytes(), &root.bytes[..usize::from(root.len)]].concat();
    let half = |which: u8| siphash(key, &[&named[..], &[which]].concat()).to_le_bytes();
    let mut own = [0; 16];
    own[..8].copy_from_slice(&half(0));
    own[8..].copy_from_slice(&half(1));
    own
}

/// The key in the state directory; made if there is none.
fn key_beside(dir: &Path) -> io::Result<[u8; 16]> {
    let path = dir.join(KEY_FILE);
    let stored = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = random_key()?;
            small_file::replace(&path, &key)?;
            key.to_vec()
        }
        read => read?,
    };
    stored.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The key that lies with the files; made if there is none.
fn stored_key(root: &OwnedFd) -> Result<[u8; 16], Errno> {
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_kernels_handle_tells_the_inode_where_that_of_its_directory_does() {
        let dir = tempfile::tempdir().unwrap();
        let inodes = |file: File| {
            let inode = rustix::fs::fstat(&file).unwrap().st_ino;
            let handle = sys::name_to_handle(file.as_fd()).ok()?.0;
            Some((inode_in(&handle), inode))
        };
        let of_dir = inodes(File::open(dir.path()).unwrap());
        let of_file = inodes(File::create(dir.path().join("file")).unwrap());
        if of_dir.is_some_and(|(of_handle, inode)| of_handle == Some(inode)) {
            assert!(
                of_file.is_some_and(|(of_handle, inode)| of_handle == Some(inode)),
                "{of_file:?}"
            );
        }
        let of = |tag, words: &[u32]| {
            let mut bytes = [0; KERNEL_HANDLE_BYTES_MAX as usize];
            for (at, word) in words.iter().enumerate() {
                bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
            }
            let len = u8::try_from(4 * words.len()).unwrap();
            inode_in(&KernelHandle { tag, len, bytes })
        };
        let wide = |low: u64, high: u64| Some(low | high << 32);
        let wide = if cfg!(target_endian = "little") { wide(7, 9) } else { wide(9, 7) };
        assert_eq!(of(1, &[7, 8]), Some(7));
        assert_eq!(of(1, &[8, 7, 9]), wide);
        assert_eq!(of(0x81, &[7, 9, 8]), wide);
        assert_eq!(of(0x4d, &[7, 9, 5, 0, 8]), wide);
        assert_eq!((of(0x81, &[7, 9]), of(0xfb, &[7, 9, 8])), (None, None));
    }

    #[test]
    fn a_key_from_the_state_directory_is_the_same_again_and_another_for_another_root() {
        let dir = tempfile::tempdir().unwrap();
        const LEN: usize = KERNEL_HANDLE_BYTES_MAX as usize;
        let root = |byte| KernelHandle { tag: 1, len: 8, bytes: [byte; LEN] };
        let of = |byte| key_beside(dir.path()).map(|key| key_of_root(&key, &root(byte)));
        let key = of(1).unwrap();
        assert_eq!(of(1).unwrap(), key);
        assert_ne!(of(2).unwrap(), key);
        fs::write(dir.path().join(KEY_FILE), b"cut off").unwrap();
        assert!(of(1).is_err());
    }
}
