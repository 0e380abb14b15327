//! Bodies of answers and notifications.

use std::time::Duration;

use client::locks::{Kind, Lock};

use super::{Attr, Entry};

/// Bytes of an answer, built up field by field.
#[derive(Debug, Default)]
pub(crate) struct Body(pub(super) Vec<u8>);

/// The header of an answer (`fuse_out_header`): `errno` is 0 where it succeeded.
#[expect(clippy::cast_possible_truncation, reason = "no answer is as long as 4 GiB")]
pub(crate) fn header(unique: u64, errno: i32, body_bytes: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&((16 + body_bytes) as u32).to_ne_bytes());
    bytes[4..8].copy_from_slice(&(-errno).to_ne_bytes());
    bytes[8..].copy_from_slice(&unique.to_ne_bytes());
    bytes
}

/// Codes of notifications, which have no `unique` and are sent where answers have their errno.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Notify {
    InvalInode = 2,
    InvalEntry = 3,
    Store = 4,
}

/// The header of a notification.
pub(crate) fn notification(code: Notify, body_bytes: usize) -> [u8; 16] {
    header(0, -(code as i32), body_bytes)
}

/// FUSE_NOTIFY_INVAL_INODE: attributes, and the data from `offset`, `length` bytes (0: all).
pub(crate) fn inval_inode(node: u64, offset: u64, length: u64) -> Body {
    Body::default().u64(node).u64(offset).u64(length)
}

/// FUSE_NOTIFY_INVAL_ENTRY: what precedes a name of so many bytes, and a NUL. The name is looked up
/// when it is next used; kernels before 6.2, which do not know that (`FUSE_EXPIRE_ONLY`), drop it.
pub(crate) fn inval_entry(dir: u64, name_bytes: u32) -> Body {
    const EXPIRE_ONLY: u32 = 1;
    Body::default().u64(dir).u32(name_bytes).u32(EXPIRE_ONLY)
}

/// FUSE_NOTIFY_STORE: what precedes the data.
pub(crate) fn store(node: u64, offset: u64, count: u32) -> Body {
    Body::default().u64(node).u64(offset).u32(count).u32(0)
}

/// `fuse_attr_out`.
pub(crate) fn attr(attr: &Attr, valid: Duration) -> Body {
    Body::default().u64(valid.as_secs()).u32(valid.subsec_nanos()).u32(0).attr(attr)
}

/// `fuse_entry_out`.
pub(crate) fn entry(entry: &Entry) -> Body {
    Body::default().entry(entry)
}

/// `fuse_open_out`.
pub(crate) fn open(file: u64, flags: u32) -> Body {
    Body::default().u64(file).u32(flags).u32(0)
}

/// The answer of CREATE: an entry and an open file.
pub(crate) fn create(found: &Entry, file: u64, flags: u32) -> Body {
    entry(found).u64(file).u32(flags).u32(0)
}

/// `fuse_write_out`.
pub(crate) fn write(count: u32) -> Body {
    Body::default().u32(count).u32(0)
}

/// `fuse_lk_out`: the lock that is in the way, or that there is none (F_UNLCK).
pub(crate) fn lock(held: Option<&Lock>) -> Body {
    let (first, last) = held.map_or((0, 0), |held| (held.range.first, held.range.last));
    let kind = match held.map(|held| held.kind) {
        Some(Kind::Shared) => 0,
        Some(Kind::Exclusive) => 1,
        None => 2,
    };
    Body::default().u64(first).u64(last).u32(kind).u32(held.map_or(0, |held| held.pid))
}

/// What statfs(2) tells; sizes in blocks of `block_bytes`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Statfs {
    pub(crate) blocks: u64,
    pub(crate) blocks_free: u64,
    pub(crate) blocks_available: u64,
    pub(crate) files: u64,
    pub(crate) files_free: u64,
    pub(crate) block_bytes: u32,
    pub(crate) transfer_bytes: u32,
    pub(crate) name_len_max: u32,
}

/// `fuse_statfs_out`.
pub(crate) fn statfs(numbers: &Statfs) -> Body {
    Body::default()
        .u64(numbers.blocks)
        .u64(numbers.blocks_free)
        .u64(numbers.blocks_available)
        .u64(numbers.files)
        .u64(numbers.files_free)
        .u32(numbers.transfer_bytes)
        .u32(numbers.name_len_max)
        .u32(numbers.block_bytes)
        .bytes(&[0; 28])
}

impl Body {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn u16(mut self, number: u16) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    pub(super) fn u32(mut self, number: u32) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    pub(super) fn u64(mut self, number: u64) -> Self {
        self.0.extend(number.to_ne_bytes());
        self
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(super) fn attr(self, attr: &Attr) -> Self {
        self.u64(attr.ino)
            .u64(attr.size)
            .u64(attr.blocks)
            .u64(attr.atime.seconds)
            .u64(attr.mtime.seconds)
            .u64(attr.ctime.seconds)
            .u32(attr.atime.nanos)
            .u32(attr.mtime.nanos)
            .u32(attr.ctime.nanos)
            .u32(attr.mode)
            .u32(attr.nlink)
            .u32(attr.uid)
            .u32(attr.gid)
            .u32(attr.rdev)
            .u32(attr.blksize)
            .u32(0)
    }

    pub(super) fn entry(self, entry: &Entry) -> Self {
        // The generation stays 0: a node id is never given twice.
        self.u64(entry.node)
            .u64(0)
            .u64(entry.entry_valid.as_secs())
            .u64(entry.attr_valid.as_secs())
            .u32(entry.entry_valid.subsec_nanos())
            .u32(entry.attr_valid.subsec_nanos())
            .attr(&entry.attr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_sizes_of_the_kernels_structures() {
        let found = Entry::default();
        assert_eq!(entry(&found).as_slice().len(), 128);
        assert_eq!(attr(&found.attr, Duration::ZERO).as_slice().len(), 104);
        assert_eq!(open(1, 0).as_slice().len(), 16);
        assert_eq!(create(&found, 1, 0).as_slice().len(), 144);
        assert_eq!(write(1).as_slice().len(), 8);
        assert_eq!(lock(None).as_slice().len(), 24);
        assert_eq!(statfs(&Statfs::default()).as_slice().len(), 80);
        assert_eq!(inval_inode(1, 0, 0).as_slice().len(), 24);
        assert_eq!(inval_entry(1, 4).as_slice().len(), 16);
        assert_eq!(store(1, 0, 1).as_slice().len(), 24);
    }

    #[test]
    fn an_error_is_negative_and_a_notification_positive() {
        assert_eq!(header(3, 2, 0)[4..8], (-2i32).to_ne_bytes());
        assert_eq!(notification(Notify::Store, 0)[4..8], 4i32.to_ne_bytes());
    }
}
