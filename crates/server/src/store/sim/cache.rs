//! The page cache: which pages of which files a READ need not fetch.
//!
//! It knows only that they are there, and since when; the data are in the live image anyway. When
//! it is full the page that was used longest ago goes.

use lru::LruCache;
use perf::units::Instant;

pub(super) const PAGE_BYTES: u64 = 4096;

#[derive(Debug)]
pub(super) struct Cache {
    /// By file and page: when it has come from the disk.
    pages: LruCache<(u64, u64), Instant>,
    pages_max: usize,
    pub(super) hits: u64,
    pub(super) misses: u64,
}

/// What a READ has to wait for.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Look {
    /// Ranges to fetch: offset and bytes, in whole pages.
    pub(super) missing: Vec<(u64, u64)>,
    /// When the last of those comes that are being fetched for others.
    pub(super) ready_at: Instant,
}

impl Cache {
    pub(super) fn new(bytes_max: u64) -> Self {
        let pages_max = usize::try_from(bytes_max / PAGE_BYTES).unwrap_or(usize::MAX);
        Self { pages: LruCache::unbounded(), pages_max, hits: 0, misses: 0 }
    }

    /// What of a range is not there.
    pub(super) fn look(&mut self, file: u64, offset: u64, bytes: u64) -> Look {
        let mut look = Look::default();
        for page in pages(offset, bytes) {
            if let Some(&ready_at) = self.pages.get(&(file, page)) {
                self.hits += 1;
                look.ready_at = look.ready_at.max(ready_at);
                continue;
            }
            self.misses += 1;
            let from = page * PAGE_BYTES;
            match look.missing.last_mut() {
                Some((last, bytes)) if *last + *bytes == from => *bytes += PAGE_BYTES,
                _ => look.missing.push((from, PAGE_BYTES)),
            }
        }
        look
    }

    /// A range is there from `ready_at` on.
    pub(super) fn fill(&mut self, file: u64, offset: u64, bytes: u64, ready_at: Instant) {
        if self.pages_max == 0 {
            return;
        }
        for page in pages(offset, bytes) {
            self.pages.put((file, page), ready_at);
            if self.pages.len() > self.pages_max {
                self.pages.pop_lru();
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }
}

fn pages(offset: u64, bytes: u64) -> std::ops::Range<u64> {
    let end = offset.saturating_add(bytes).div_ceil(PAGE_BYTES);
    if bytes == 0 { 0..0 } else { offset / PAGE_BYTES..end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_fetched_in_whole_pages_and_what_is_full_forgets() {
        let mut cache = Cache::new(3 * PAGE_BYTES);
        assert_eq!(cache.look(1, 100, 8000).missing, [(0, 8192)]);
        let at = Instant::from_nanos(5);
        cache.fill(1, 4096, 1, at);
        assert_eq!(
            cache.look(1, 0, 3 * 4096),
            Look { missing: vec![(0, 4096), (8192, 4096)], ready_at: at }
        );
        cache.fill(1, 0, 4 * 4096, at);
        assert_eq!(cache.look(1, 0, 4 * 4096).missing, [(0, 4096)]);
        assert_eq!(cache.bytes(), 3 * 4096);
        assert_eq!(cache.look(2, 0, 0).missing, []);
    }

    #[test]
    fn a_cache_of_no_size_has_nothing() {
        let mut cache = Cache::new(0);
        cache.fill(1, 0, 4096, Instant::EPOCH);
        assert_eq!(cache.look(1, 0, 10).missing.len(), 1);
    }
}
