//! What a loss of power leaves.

use super::journal::{Entry, Stable, Stamp};
use super::{Arc, SimStore, mixed};

/// A drive writes so much at once; less of it is not torn.
const TORN_BYTES: usize = 4096;

impl SimStore {
    /// The store after its machine has lost power now and come back: what was stable, and of what
    /// was on its way a part, which `seed` decides. Handles stay what they were; the write verifier
    /// is another one. The switches of [`super::Faults`] are the same, and so is the disk's load
    /// that nobody waits for any more: it is gone.
    ///
    /// Of the entries on their way, oldest first, a number are all there. After them data may be
    /// there in some blocks of 4 KiB and not in others; from the first change of names on that is
    /// missing, nothing is. A write log is replayed over that.
    ///
    /// Without [`super::SimOptions::crashes`] nothing is known to be stable: the store is empty but
    /// for its root.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        let state = self.begin();
        let stamp = Arc::new(Stamp::default());
        let stable = match &state.pipeline.stable {
            Some(stable) => {
                let store = stable.store.image(Self::unbounded(&self.options), stamp.source());
                Stable { store, stamp }
            }
            None => return Self::reborn(self, None),
        };
        let mut random = Random::new(seed);
        let mut all_there = true;
        for entry in state.pipeline.on_its_way() {
            // More often than not it has come, so that crashes meet long beginnings.
            all_there = all_there && random.below(8) != 0;
            match entry {
                _ if all_there => {
                    // What was left out before is all that it can miss.
                    stable.apply(entry).ok();
                }
                Entry::Names { .. } => break,
                Entry::Data { handle, offset, data, attr, .. } => {
                    for (index, block) in data.chunks(TORN_BYTES).enumerate() {
                        if random.below(2) == 0 {
                            let at = offset + (index * TORN_BYTES) as u64;

                            stable.store.put(handle, at, block, attr).ok();
                        }
                    }
                }
            }
        }
        // As a replay does: what the log has of files that are not past it.
        if let Some(write_log) = &state.write_log {
            for entry in write_log.replayed(|| random.below(2) == 0) {
                // A file that is gone misses nothing.
                stable.apply(entry).ok();
            }
        }
        drop(state);
        Self::reborn(self, Some(stable))
    }
}

/// A generator of numbers (xorshift64, Marsaglia 2003) that needs nothing.
struct Random(u64);

impl Random {
    /// Seeds next to each other are as different as any; its state must not be 0.
    fn new(seed: u64) -> Self {
        Self(mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)).max(1))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_next_to_each_other_differ() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<_, 4, _>(|_| random.below(u64::MAX))
        };
        let all: std::collections::BTreeSet<_> = (0..1_000).map(numbers).collect();
        assert_eq!(all.len(), 1_000);
    }
}
