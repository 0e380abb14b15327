//! INIT: what the kernel can do, and what of it we want.

use super::answer::Body;
use super::request::Init;

/// The version of the protocol that is spoken.
const MAJOR: u32 = 7;
const MINOR: u32 = 38;

/// The oldest kernel: 4.20 speaks 7.28, the first with more than 32 pages in a request.
pub(crate) const MINOR_MIN: u32 = 28;

/// Most bytes of a READ or WRITE: what servers of NFS offer at most.
pub(crate) const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Requests that the kernel may have outstanding without a process that waits for each: write-back,
/// read-ahead, and the closing of files that nobody uses any more. Where the kernel bounds the
/// bytes of written data, they wait here, and not in its one queue for all of these requests: there
/// reads wait behind them. Else each may be a WRITE of the largest size.
const BACKGROUND_MAX: u16 = 256;

mod flag {
    pub(super) const ASYNC_READ: u64 = 1 << 0;
    pub(super) const POSIX_LOCKS: u64 = 1 << 1;
    pub(super) const BIG_WRITES: u64 = 1 << 5;
    pub(super) const FLOCK_LOCKS: u64 = 1 << 10;
    pub(super) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(super) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(super) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(super) const ASYNC_DIO: u64 = 1 << 15;
    pub(super) const WRITEBACK_CACHE: u64 = 1 << 16;
    pub(super) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(super) const HANDLE_KILLPRIV: u64 = 1 << 19;
    pub(super) const MAX_PAGES: u64 = 1 << 22;
    pub(super) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(super) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(super) const INIT_EXT: u64 = 1 << 30;
    pub(super) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
}

/// What the kernel keeps of file data.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KernelCache {
    /// Reads and writes: programs write to memory, and the kernel passes on up to 1 MiB at a time.
    #[default]
    Writeback,
    /// Reads. Every write(2) is a request of its own.
    Writethrough,
    /// Nothing.
    None,
}

/// What was agreed with the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Agreed {
    flags: u64,
    max_readahead: u32,
}

impl Agreed {
    /// The most of what we want that the kernel can do.
    pub(crate) fn with(kernel: &Init, cache: KernelCache) -> Self {
        let cached = match cache {
            // It asks before it reads, if attributes are not good, and drops no data itself.
            KernelCache::Writeback => flag::WRITEBACK_CACHE | flag::AUTO_INVAL_DATA,
            KernelCache::Writethrough => flag::AUTO_INVAL_DATA,
            KernelCache::None => 0,
        };
        let wanted = cached
            | flag::ASYNC_READ
            // By node the kernel would grant a lock twice: see `client::locks`.
            | flag::POSIX_LOCKS
            | flag::FLOCK_LOCKS
            | flag::BIG_WRITES
            | flag::DO_READDIRPLUS
            | flag::READDIRPLUS_AUTO
            | flag::ASYNC_DIO
            | flag::PARALLEL_DIROPS
            // Servers clear set-uid bits when a file is written or cut: the caller may not.
            | flag::HANDLE_KILLPRIV
            // And a kernel that keeps what is written passes on the WRITE that does it at once.
            | flag::HANDLE_KILLPRIV_V2
            | flag::MAX_PAGES
            | flag::CACHE_SYMLINKS
            // What is opened past the cache can be mapped (Linux 6.6).
            | flag::DIRECT_IO_ALLOW_MMAP
            | flag::INIT_EXT;
        Self { flags: wanted & kernel.flags, max_readahead: kernel.max_readahead }
    }

    /// Whether the kernel writes back.
    pub(crate) fn writes_back(&self) -> bool {
        self.flags & flag::WRITEBACK_CACHE != 0
    }

    /// `fuse_init_out`. `waiting_bytes_max`: bytes of WRITEs that may wait here, where the kernel
    /// does not bound them.
    #[expect(clippy::cast_possible_truncation, reason = "flags in two halves; few pages")]
    pub(crate) fn answer(&self, waiting_bytes_max: Option<u64>) -> Body {
        let background_max = waiting_bytes_max.map_or(BACKGROUND_MAX, |bytes| {
            let requests = bytes / u64::from(TRANSFER_BYTES_MAX);
            requests.clamp(1, BACKGROUND_MAX.into()) as u16
        });
        let pages = TRANSFER_BYTES_MAX as usize / rustix::param::page_size();
        Body::default()
            .u32(MAJOR)
            .u32(MINOR)
            .u32(self.max_readahead.max(TRANSFER_BYTES_MAX))
            .u32(self.flags as u32)
            .u16(background_max)
            .u16(background_max / 4 * 3)
            .u32(TRANSFER_BYTES_MAX)
            .u32(1)
            .u16(pages as u16)
            .u16(0)
            .u32((self.flags >> 32) as u32)
            .bytes(&[0; 28])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_kernel_can_do_is_requested() {
        let kernel = Init { flags: flag::ASYNC_READ | flag::MAX_PAGES, ..Init::default() };
        let agreed = Agreed::with(&kernel, KernelCache::Writeback);
        assert!(!agreed.writes_back());
        assert_eq!(agreed.flags, kernel.flags);
        let kernel = Init { flags: u64::MAX, ..kernel };
        let agreed = Agreed::with(&kernel, KernelCache::Writeback);
        assert!(agreed.writes_back() && agreed.flags & flag::AUTO_INVAL_DATA != 0);
        let agreed = Agreed::with(&kernel, KernelCache::None);
        assert!(!agreed.writes_back());
        assert_eq!(agreed.answer(None).as_slice().len(), 64);
        let can_map = |cache| Agreed::with(&kernel, cache).flags & flag::DIRECT_IO_ALLOW_MMAP != 0;
        let caches = [KernelCache::Writeback, KernelCache::Writethrough, KernelCache::None];
        assert_eq!(caches.map(can_map), [true; 3]);
    }

    #[test]
    fn write_back_that_the_kernel_does_not_bound_is_bounded_by_the_requests() {
        let agreed = Agreed::with(&Init::default(), KernelCache::Writeback);
        let background_max = |waiting_bytes_max| {
            let answer = agreed.answer(waiting_bytes_max);
            u16::from_ne_bytes(answer.as_slice()[16..18].try_into().unwrap())
        };
        assert_eq!(background_max(None), 256);
        assert_eq!(background_max(Some(64 << 20)), 64);
        assert_eq!(background_max(Some(4 << 20)), 4);
        assert_eq!(background_max(Some(1)), 1);
        assert_eq!(background_max(Some(u64::MAX)), 256);
    }
}
