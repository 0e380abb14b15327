//! The mount that an open file is in, as the kernel lists it (proc(5)).

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What the kernel has of an open file (`/proc/self/fdinfo`).
pub(crate) struct Opened(String);

impl Opened {
    pub(crate) fn of(file: BorrowedFd<'_>) -> Option<Self> {
        fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok().map(Self)
    }

    /// A field, by its name with the colon.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }

    /// The line of its mount in `/proc/self/mountinfo`.
    pub(crate) fn mount(&self) -> Option<Vec<u8>> {
        let mounts = fs::read("/proc/self/mountinfo").ok()?;
        line(&mounts, self.field("mnt_id:")?).map(<[u8]>::to_vec)
    }
}

/// The line of the mount with this id.
pub(crate) fn line<'m>(mounts: &'m [u8], id: &str) -> Option<&'m [u8]> {
    mounts.split(|&byte| byte == b'\n').find(|line| fields(line).next() == Some(id.as_bytes()))
}

pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ')
}
