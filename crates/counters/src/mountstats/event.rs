//! What a mount's inodes and pages have seen: the lines `events:` and `bytes:`.

use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::{NUMBERS_MAX, first};

/// An event, in the order of the line (the kernel's `nfs_iostat.h`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    InodeRevalidate,
    DentryRevalidate,
    DataInvalidate,
    AttributeInvalidate,
    Open,
    Lookup,
    Access,
    UpdatePage,
    ReadPage,
    ReadPages,
    WritePage,
    WritePages,
    ReadDirectory,
    Setattr,
    Flush,
    Fsync,
    Lock,
    Release,
    CongestionWait,
    SetattrTruncate,
    ExtendWrite,
    SillyRename,
    ShortRead,
    ShortWrite,
    /// The server answered JUKEBOX: wait.
    Delay,
    PnfsRead,
    PnfsWrite,
}

/// How many there are.
pub(super) const EVENTS: usize = Event::PnfsWrite as usize + 1;

/// How often each event was; the newest are missing where the kernel is older.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Events(Vec<u64>);

impl Events {
    /// In the order of [`Event`].
    pub(super) fn of_list(counts: Vec<u64>) -> Self {
        Self(counts)
    }

    /// `None` where the kernel does not count it.
    pub fn of(&self, event: Event) -> Option<u64> {
        self.0.get(event as usize).copied()
    }

    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let before = before.0.iter().copied().chain(std::iter::repeat(0));
        Self(self.0.iter().zip(before).map(|(now, before)| difference(*now, before)).collect())
    }

    /// The first kernels that counted had 25.
    pub(super) fn read(line: &mut Line<'_>) -> Result<Self, Problem> {
        line.numbers("events", 25, NUMBERS_MAX).map(Self)
    }
}

/// Bytes of applications and of the wire. What the wire has more than the applications requested
/// are maps and reading ahead.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Bytes {
    /// read() and write() through the cache.
    pub normal_read: u64,
    pub normal_write: u64,
    /// With `O_DIRECT`.
    pub direct_read: u64,
    pub direct_write: u64,
    /// READ and WRITE.
    pub server_read: u64,
    pub server_write: u64,
    /// Pages of maps and of reading ahead; not in the oldest kernels.
    pub read_pages: u64,
    pub write_pages: u64,
}

impl Bytes {
    pub(super) fn read(line: &mut Line<'_>) -> Result<Self, Problem> {
        let numbers = line.numbers("bytes", 6, NUMBERS_MAX)?;
        let [
            normal_read,
            normal_write,
            direct_read,
            direct_write,
            server_read,
            server_write,
            read_pages,
            write_pages,
        ] = first(&numbers);
        Ok(Self {
            normal_read,
            normal_write,
            direct_read,
            direct_write,
            server_read,
            server_write,
            read_pages,
            write_pages,
        })
    }

    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            normal_read: difference(self.normal_read, before.normal_read),
            normal_write: difference(self.normal_write, before.normal_write),
            direct_read: difference(self.direct_read, before.direct_read),
            direct_write: difference(self.direct_write, before.direct_write),
            server_read: difference(self.server_read, before.server_read),
            server_write: difference(self.server_write, before.server_write),
            read_pages: difference(self.read_pages, before.read_pages),
            write_pages: difference(self.write_pages, before.write_pages),
        }
    }
}
