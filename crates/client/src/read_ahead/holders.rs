//! For whom something is held ahead, and who gives way to the others: the one that has not read for
//! the longest time, if that is a second. Readers at work take nothing from each other.

use std::fmt::Debug;

use lru::LruCache;
use perf::units::{Instant, Nanos};

/// After so long without a read a reader is not waited for when others need the room (guess): a
/// program that pauses takes its part anew.
const IDLE: Nanos = Nanos::from_secs(1);

/// A reader for whom something is held.
pub trait Holder: Debug + Send + Sync {
    /// Others need the room.
    fn gives_way(&self);
}

/// See the module's head. Bounded by the open files. `T` is what leads to a reader.
#[derive(Debug)]
pub struct Holders<T> {
    by_use: LruCache<u64, (Instant, T)>,
    numbers: u64,
}

impl<T> Default for Holders<T> {
    fn default() -> Self {
        Self { by_use: LruCache::unbounded(), numbers: 0 }
    }
}

impl<T> Holders<T> {
    /// A number for one more reader.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A reader of this number reads, and something is held for it.
    pub fn reads(&mut self, number: u64, reader: T, now: Instant) {
        self.by_use.put(number, (now, reader));
    }

    /// Nothing is held for it any more.
    pub fn ends(&mut self, number: u64) {
        self.by_use.pop(&number);
    }

    /// Who gives way now, if anybody does.
    pub fn gives_way(&mut self, now: Instant) -> Option<T> {
        self.by_use.peek_lru().filter(|(_, (used, _))| now.since(*used) >= IDLE)?;
        self.by_use.pop_lru().map(|(_, (_, reader))| reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_has_not_read_for_the_longest_time_gives_way_first() {
        let at = |millis| Instant::EPOCH + Nanos::from_millis(millis);
        let mut holders = Holders::default();
        (0..3).for_each(|number| holders.reads(number, number, at(number)));
        holders.reads(0, 0, at(500));
        holders.ends(2);
        assert_eq!(holders.gives_way(at(1_000)), None, "all have read just now");
        assert_eq!(holders.gives_way(at(1_001)), Some(1));
        assert_eq!(holders.gives_way(at(1_499)), None);
        assert_eq!(holders.gives_way(at(1_500)), Some(0));
        assert_eq!(holders.gives_way(at(9_000)), None);
    }
}
