//! What kind of file system a directory is on, and what follows of it.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;

use super::overlay;

/// What of the file system matters for speed and limits.
pub(super) struct FileSystem {
    magic: u64,
    is_tmpfs_lasting: bool,
    /// Its syncs do nothing.
    is_volatile: bool,
    /// Of a file with several names, the one that is written to becomes another file.
    pub(super) parts_names: bool,
    /// Of ext4, not of ext2 and ext3, whose magic number is the same.
    has_extents: bool,
    /// Reads that must not wait are refused here (found out by the first).
    pub(super) lacks_nowait: AtomicBool,
}

/// `f_type` of statfs(2).
mod magic {
    pub(super) const BCACHEFS: u64 = 0xca45_1a4e;
    pub(super) const BTRFS: u64 = 0x9123_683e;
    pub(super) const CEPH: u64 = 0x00c3_6400;
    pub(super) const CIFS: u64 = 0xff53_4d42;
    pub(super) const EXT: u64 = 0xef53;
    pub(super) const F2FS: u64 = 0xf2f5_2010;
    pub(super) const FUSE: u64 = 0x6573_5546;
    pub(super) const GFS2: u64 = 0x0116_1970;
    pub(super) const GPFS: u64 = 0x4750_4653;
    pub(super) const JFS: u64 = 0x3153_464a;
    pub(super) const LUSTRE: u64 = 0x0bd0_0bd0;
    pub(super) const NFS: u64 = 0x6969;
    pub(super) const NILFS: u64 = 0x3434;
    pub(super) const NTFS3: u64 = 0x7366_746e;
    pub(super) const OCFS2: u64 = 0x7461_636f;
    pub(super) const OVERLAY: u64 = 0x794c_7630;
    pub(super) const RAMFS: u64 = 0x8584_58f6;
    pub(super) const SMB2: u64 = 0xfe53_4d42;
    pub(super) const TMPFS: u64 = 0x0102_1994;
    pub(super) const UBIFS: u64 = 0x2405_1905;
    pub(super) const XFS: u64 = 0x5846_5342;
    pub(super) const ZFS: u64 = 0x2fc1_2fc1;
}

impl FileSystem {
    pub(super) fn of(root: BorrowedFd<'_>) -> Result<Self, Errno> {
        let magic = rustix::fs::fstatfs(root)?.f_type;
        // Signed or not by architecture; the numbers are of 32 bits.
        let magic = u64::try_from(magic).unwrap_or(0) & 0xffff_ffff;
        Ok(Self {
            magic,
            is_volatile: magic == magic::OVERLAY && overlay::is_volatile(root),
            parts_names: magic == magic::OVERLAY && overlay::parts_names(root),
            is_tmpfs_lasting: is_from(rustix::system::uname().release().to_bytes(), (6, 6)),
            has_extents: magic != magic::EXT || has_extents(root),
            lacks_nowait: AtomicBool::new(false),
        })
    }

    /// As a program behind FUSE, wherever it lies.
    #[cfg(test)]
    pub(super) fn as_fuse(root: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(Self { magic: magic::FUSE, ..Self::of(root)? })
    }

    /// As a tmpfs whose cookies do not last.
    #[cfg(test)]
    pub(super) fn be_an_older_tmpfs(&mut self) {
        (self.magic, self.is_tmpfs_lasting) = (magic::TMPFS, false);
    }

    /// Its files are in memory alone.
    pub(super) fn is_memory(&self) -> bool {
        matches!(self.magic, magic::TMPFS | magic::RAMFS)
    }

    /// Its files may be gone when the machine is switched off, synced or not.
    pub(super) fn keeps_nothing(&self) -> bool {
        self.is_memory() || self.is_volatile
    }

    /// An overlay whose syncs do nothing.
    pub(super) fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// It has subvolumes, each a device of its own.
    pub(super) fn is_btrfs(&self) -> bool {
        self.magic == magic::BTRFS
    }

    /// A mount after a loss of power may change names by itself, and with them the change times of
    /// files. Of an overlay, that of its upper layer.
    pub(super) fn replays_names(&self) -> bool {
        matches!(self.magic, magic::BTRFS | magic::F2FS | magic::OVERLAY | magic::ZFS)
    }

    /// Its files are those of several others.
    pub(super) fn is_overlay(&self) -> bool {
        self.magic == magic::OVERLAY
    }

    /// It numbers its files itself, and no other file has the number of one that is open.
    pub(super) fn has_own_numbers(&self) -> bool {
        let own = [
            magic::BCACHEFS,
            magic::BTRFS,
            magic::EXT,
            magic::F2FS,
            magic::GFS2,
            magic::JFS,
            magic::NILFS,
            magic::NTFS3,
            magic::OCFS2,
            magic::OVERLAY,
            magic::RAMFS,
            magic::TMPFS,
            magic::UBIFS,
            magic::XFS,
            magic::ZFS,
        ];
        own.contains(&self.magic)
    }

    /// What identifies a file in the kernel's handle, or by its number and birth, means the same
    /// file when the file system is mounted again. Another server's numbers last, too; those of a
    /// program behind FUSE are of one life of it, and images (squashfs, erofs, iso9660) number
    /// their files alike, so that one that takes the place of another has files of its numbers.
    pub(super) fn has_lasting_identities(&self) -> bool {
        let of_servers =
            [magic::CEPH, magic::CIFS, magic::GPFS, magic::LUSTRE, magic::NFS, magic::SMB2];
        self.has_own_numbers() || of_servers.contains(&self.magic)
    }

    /// Its files are those of a program, which may pass the numbers of several file systems on.
    pub(super) fn is_fuse(&self) -> bool {
        self.magic == magic::FUSE
    }

    /// Where a listing goes on has to do with the entry and not with how many stand before it, so
    /// that none is left out when others are removed.
    pub(super) fn has_lasting_cookies(&self) -> bool {
        match self.magic {
            magic::BTRFS | magic::EXT | magic::F2FS | magic::XFS | magic::ZFS => true,
            // From Linux 6.6 on.
            magic::TMPFS => self.is_tmpfs_lasting,
            _ => false,
        }
    }

    /// Its times are of this machine's clock, and a change of a directory moves them.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.magic, magic::BTRFS | magic::EXT | magic::TMPFS | magic::XFS)
    }

    /// The longest file, and the most links of one.
    pub(super) fn limits(&self, block_bytes: u64) -> (u64, u32) {
        const LONGEST: u64 = i64::MAX.cast_unsigned();
        match self.magic {
            magic::EXT if !self.has_extents => (longest_by_indirect_blocks(block_bytes), 65_000),
            // 2^32 - 1 blocks; EXT4_LINK_MAX.
            magic::EXT => (block_bytes.saturating_mul(u64::from(u32::MAX)), 65_000),
            magic::BTRFS => (LONGEST, 65_535),
            magic::XFS => (LONGEST, i32::MAX.cast_unsigned()),
            _ => (LONGEST, 32_000),
        }
    }
}

/// Whether a directory of ext2, ext3 or ext4 is stored as only ext4 stores one.
fn has_extents(dir: BorrowedFd<'_>) -> bool {
    const EXTENTS: u32 = 0x0008_0000;
    const INLINE_DATA: u32 = 0x1000_0000;
    let flags = rustix::fs::ioctl_getflags(dir);
    flags.is_ok_and(|flags| flags.bits() & (EXTENTS | INLINE_DATA) != 0)
}

/// Of a file whose blocks are found by 12 numbers in its inode and three levels of blocks of
/// numbers, and which are counted in 2^32 - 1 sectors, these blocks of numbers included.
fn longest_by_indirect_blocks(block_bytes: u64) -> u64 {
    const SECTOR_BYTES: u64 = 512;
    let numbers = block_bytes / 4;
    let reached = 12 + numbers + numbers.pow(2) + numbers.pow(3);
    let with_numbers = u64::from(u32::MAX) / (block_bytes / SECTOR_BYTES).max(1);
    let of_numbers = 3 + 2 * numbers + numbers.pow(2);
    reached.min(with_numbers.saturating_sub(of_numbers)) * block_bytes
}

/// Whether a kernel's release (`6.8.0-31-generic`) is this version or a later one.
fn is_from(release: &[u8], version: (u32, u32)) -> bool {
    let mut numbers = release.split(|byte| !byte.is_ascii_digit()).map(|digits| {
        str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= version
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel takes them (tried with truncate(1)).
    #[test]
    fn files_without_extents_are_shorter() {
        assert_eq!(longest_by_indirect_blocks(1 << 10), 17_247_252_480);
        let longest = longest_by_indirect_blocks(4 << 10);
        assert!(((2 << 40) - (8 << 30)..2 << 40).contains(&longest), "{longest}");
    }

    #[test]
    fn kernels_are_compared_by_number() {
        for (release, is_new) in [
            ("6.6.0", true),
            ("6.10.3-generic", true),
            ("7.0", true),
            ("6.5.9", false),
            ("5.15.0-1", false),
        ] {
            assert_eq!(is_from(release.as_bytes(), (6, 6)), is_new, "{release}");
        }
        assert!(!is_from(b"", (6, 6)));
    }
}
