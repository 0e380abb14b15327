//! What the kernel says of a file (statx), in neutral terms.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::io::Errno;

use super::beneath::Component;
use crate::types::{Attr, FileKind, Time};

/// Attributes of one file at one moment.
pub(super) struct Stat(Statx);

/// Which file it is: device, inode, and time of birth, which tells a recycled inode from the one
/// that had the number before. Zero where the file system keeps no time of birth.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) born_secs: i64,
    pub(super) born_nanos: u32,
}

impl Identity {
    pub(super) const BYTES: usize = 28;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.device.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.born_secs.to_le_bytes());
        bytes[24..].copy_from_slice(&self.born_nanos.to_le_bytes());
        bytes
    }

    /// `None` unless there are exactly as many bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (device, rest) = bytes.split_first_chunk()?;
        let (inode, rest) = rest.split_first_chunk()?;
        let (born_secs, rest) = rest.split_first_chunk()?;
        Some(Self {
            device: u64::from_le_bytes(*device),
            inode: u64::from_le_bytes(*inode),
            born_secs: i64::from_le_bytes(*born_secs),
            born_nanos: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }

    /// What tells files apart that exist at the same time.
    pub(super) fn number(self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

impl Stat {
    /// Of the file open at `fd`, which may be O_PATH. One system call.
    pub(super) fn of(fd: impl AsFd) -> Result<Self, Errno> {
        // What is open was there: FUSE has this error for a file that is gone.
        Self::at(fd.as_fd(), b"").map_err(|errno| match errno {
            Errno::NOENT => Errno::STALE,
            other => other,
        })
    }

    /// Of what is called `name` in `dir`, be it a link or the top of a mount. One system call.
    pub(super) fn named(dir: BorrowedFd<'_>, name: Component<'_>) -> Result<Self, Errno> {
        Self::at(dir, name.as_bytes())
    }

    fn at(fd: BorrowedFd<'_>, name: &[u8]) -> Result<Self, Errno> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        rustix::fs::statx(fd, name, flags, wanted).map(Self)
    }

    /// True when no name is left: the file lives only in descriptors that still hold it.
    pub(super) fn is_deleted(&self) -> bool {
        self.0.stx_nlink == 0
    }

    /// True for the top of a mount, where the kernel tells (Linux 5.8).
    pub(super) fn is_mount_root(&self) -> bool {
        let mount_root = StatxAttributes::MOUNT_ROOT;
        (self.0.stx_attributes_mask & self.0.stx_attributes).contains(mount_root)
    }

    /// True when the kernel says that it is no mount's top; older ones do not know.
    pub(super) fn is_no_mount_root(&self) -> bool {
        let known = self.0.stx_attributes_mask;
        known.contains(StatxAttributes::MOUNT_ROOT) && !self.is_mount_root()
    }

    /// Immutable or append-only (chattr(1)): the kernel looks at it when a file is opened.
    pub(super) fn is_guarded(&self) -> bool {
        self.0.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND)
    }

    /// How many names the file has.
    pub(super) fn links(&self) -> u32 {
        self.0.stx_nlink
    }

    pub(super) fn inode(&self) -> u64 {
        self.0.stx_ino
    }

    pub(super) fn size(&self) -> u64 {
        self.0.stx_size
    }

    /// Permission bits (07777).
    pub(super) fn mode(&self) -> u32 {
        u32::from(self.0.stx_mode) & 0o7777
    }

    pub(super) fn uid(&self) -> u32 {
        self.0.stx_uid
    }

    pub(super) fn device(&self) -> u64 {
        rustix::fs::makedev(self.0.stx_dev_major, self.0.stx_dev_minor)
    }

    /// The file system keeps when a file was made.
    pub(super) fn has_birth(&self) -> bool {
        StatxFlags::from_bits_retain(self.0.stx_mask).contains(StatxFlags::BTIME)
    }

    pub(super) fn identity(&self) -> Identity {
        let born = self.has_birth().then_some(self.0.stx_btime);
        Identity {
            device: self.device(),
            inode: self.0.stx_ino,
            born_secs: born.map_or(0, |time| time.tv_sec),
            born_nanos: born.map_or(0, |time| time.tv_nsec),
        }
    }

    pub(super) fn kind(&self) -> FileKind {
        match FileType::from_raw_mode(u32::from(self.0.stx_mode)) {
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            FileType::BlockDevice => FileKind::BlockDevice,
            FileType::CharacterDevice => FileKind::CharDevice,
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            _ => FileKind::Regular,
        }
    }

    pub(super) fn attr(&self) -> Attr {
        Attr {
            kind: self.kind(),
            mode: self.mode(),
            links: self.0.stx_nlink,
            uid: self.0.stx_uid,
            gid: self.0.stx_gid,
            size: self.0.stx_size,
            // st_blocks counts 512 bytes whatever the file system's block (stat(2)).
            used: self.0.stx_blocks.saturating_mul(512),
            device: (self.0.stx_rdev_major, self.0.stx_rdev_minor),
            fsid: self.device(),
            fileid: self.0.stx_ino,
            accessed: time(self.0.stx_atime),
            modified: time(self.0.stx_mtime),
            changed: time(self.0.stx_ctime),
            made: self.has_birth().then(|| time(self.0.stx_btime)),
        }
    }
}

fn time(stamp: StatxTimestamp) -> Time {
    Time { secs: stamp.tv_sec, nanos: stamp.tv_nsec }
}
