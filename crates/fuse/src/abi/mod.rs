//! The kernel's FUSE protocol (include/uapi/linux/fuse.h): bytes of /dev/fuse to requests, and
//! answers to bytes. Pure: whatever the bytes, a request or an error.
//!
//! The protocol is spoken here and not through a crate: see docs/dependencies.md. All numbers are
//! in the machine's byte order.

pub(crate) mod answer;
pub(crate) mod directory;
pub(crate) mod init;
pub(crate) mod request;

use std::time::Duration;

/// The node id of the root (FUSE_ROOT_ID).
pub(crate) const ROOT: u64 = 1;

/// Bytes in front of every request.
pub(crate) const IN_HEADER_BYTES: usize = 40;

/// Bytes of a WRITE in front of its data: the header, and its own arguments.
pub(crate) const WRITE_HEAD_BYTES: usize = IN_HEADER_BYTES + 40;

/// Flags of an open file's answer (FOPEN_*).
pub(crate) mod fopen {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
}

/// Which attributes a SETATTR sets (FATTR_*).
pub(crate) mod fattr {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const FH: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
}

/// Attributes as the kernel takes them (`fuse_attr`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Attr {
    /// What stat(2) shows; not the node id.
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    /// With the type.
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    pub(crate) blksize: u32,
}

/// Seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Time {
    pub(crate) seconds: u64,
    pub(crate) nanos: u32,
}

/// A node and what the kernel may believe of it, and for how long (`fuse_entry_out`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Entry {
    /// 0: there is no such name.
    pub(crate) node: u64,
    pub(crate) entry_valid: Duration,
    pub(crate) attr_valid: Duration,
    pub(crate) attr: Attr,
}
